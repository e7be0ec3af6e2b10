from __future__ import annotations

import pytest

from scheduler_advisor.advice.kinds import KINDS
from scheduler_advisor.errors import ReportError
from scheduler_advisor.messages import LANGUAGES, Words, catalogue, fields_of
from scheduler_advisor.messages.filling import ends_in_consonant
from scheduler_advisor.report.wording import PARTS


def test_no_sentence_is_missing_in_a_language():
    keys = {language: set(catalogue(language)) for language in LANGUAGES}
    assert keys["en"] == keys["ko"]


def test_a_sentence_is_filled_with_the_same_names_in_every_language():
    english, korean = catalogue("en"), catalogue("ko")
    different = [key for key in english if fields_of(english[key]) != fields_of(korean[key])]
    assert different == []


def test_no_sentence_is_left_untranslated():
    english, korean = catalogue("en"), catalogue("ko")
    same = {key for key in english if english[key] == korean[key]}
    units = {"statement.kwh", "statement.carbon", "kind.policy_change.risk"}
    assert same <= {"report.p50", "report.p95", "report.model", "report.price_line"} | units


@pytest.mark.parametrize("kind", [kind.RULE.kind for kind in KINDS])
@pytest.mark.parametrize("language", LANGUAGES)
def test_every_kind_has_every_part(kind, language):
    words = Words(language)
    for part in ("name", *PARTS):
        assert words.has(f"kind.{kind}.{part}"), part


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.RULE.kind)
def test_every_threshold_gives_its_reason(kind):
    for threshold in kind.RULE.thresholds.values():
        assert len(threshold.reason) > 10


def test_a_number_brings_the_word_that_goes_with_it():
    words = Words("en")
    assert words.say("report.headline_capacity", count=1, amount="5 USD", cash="").startswith(
        "1 change would"
    )
    assert words.say("report.headline_capacity", count=2, amount="5 USD", cash="").startswith(
        "2 changes would"
    )


@pytest.mark.parametrize(
    ("word", "consonant"),
    [("박", True), ("나", False), ("node-7", True), ("node-2", False), ("m.park", False),
     ("train", True), ("a100-03", True), ("", False), ("vision", True)],
)  # fmt: skip
def test_korean_particles_follow_the_last_sound(word, consonant):
    assert ends_in_consonant(word) is consonant


def test_a_name_that_is_not_given_is_an_error_and_not_a_hole():
    with pytest.raises(ReportError, match=r"report\.window"):
        Words("en").say("report.window", since="x")
    with pytest.raises(ReportError, match="no language"):
        Words("fr")
