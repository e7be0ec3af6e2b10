from __future__ import annotations

import json
import re
from html.parser import HTMLParser

import pytest

from dashboard.palette import CLASSES
from scheduler_advisor.errors import ReportError
from scheduler_advisor.report.colours import CLASS_STYLES
from scheduler_advisor.report.forms import rendered, write_files
from scheduler_advisor.report.html import report_html
from scheduler_advisor.report.json_form import report_json
from scheduler_advisor.report.wording import duration_text, rounded

FIELDS = {
    "id", "kind", "title", "scope", "owner", "evidence", "current_cost", "saving", "fidelity",
    "assumptions", "risk", "effort", "apply", "verify", "rollback", "alternatives",
    "exclusive_group", "state", "expires", "realised", "blast_radius", "history", "break_even",
}  # fmt: skip


@pytest.fixture
def report(lab):
    """Something to say of several kinds, and a name that is markup."""
    lab.node()
    lab.node("n2")
    lab.run("7", start=0, gpus=2, activity=0.0, name="<script>alert(1)</script>", user="a&b")
    lab.run("8", start=0, end=20, gpus=1, node="n2", cpus=64, mem_gib=32, user="dan")
    lab.run("9", start=0, end=20, gpus=2, node="n2", first=4, account="guest", activity=0.9)
    lab.state("n2", since=48)
    return lab.report()


class Checker(HTMLParser):
    """Every tag is closed, and nothing is asked of anybody."""

    VOID = ("meta", "br", "col")

    def __init__(self):
        super().__init__()
        self.open, self.outside = [], []

    def handle_starttag(self, tag, attrs):
        if tag not in self.VOID:
            self.open.append(tag)
        self.outside += [
            v for k, v in attrs if k in ("src", "href", "action") and not v.startswith("#")
        ]

    def handle_startendtag(self, tag, attrs):
        pass

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.mark.parametrize("language", ["en", "ko"])
def test_the_page_is_whole_and_reads_offline(report, language):
    page = report_html(report, language)
    checker = Checker()
    checker.feed(page)
    assert checker.open == []
    assert checker.outside == []
    assert "http" not in page
    assert "@import" not in page
    assert "<script" not in page
    assert "&lt;script&gt;" in page


def test_the_first_screen_says_what_is_wrong_what_to_do_what_it_brings_and_risks(report):
    page = report_html(report)
    place = [page.index(text) for text in ("<h1>", "What is wrong", "What to do", "What it brings",
                                           "What it risks", "The four measurements")]  # fmt: skip
    assert place == sorted(place)


def test_every_recommendation_carries_every_field_of_the_contract(report):
    body = report_json(report)
    assert {"recommendations", "diagnosis", "measurements", "fidelity", "window",
            "coverage_ratio"} <= set(body)  # fmt: skip
    assert body["recommendations"]
    for rec in body["recommendations"]:
        assert set(rec) >= FIELDS
        assert rec["fidelity"] is rec["realised"] is rec["blast_radius"] is None
        assert rec["saving"]["kind"] == "modelled"
        assert rec["current_cost"]["kind"] == "observed"
        assert {figure["kind"] for figure in rec["evidence"]["figures"]} <= {
            "observed", "modelled", "limit"
        }  # fmt: skip
        assert all(
            query.startswith(("unstrand ", "scontrol ")) for query in rec["evidence"]["queries"]
        )


def test_every_block_of_measurements_says_what_kind_of_number_it_holds(report):
    blocks = report_json(report)["measurements"]
    assert {block["kind"] for block in blocks.values()} == {"observed"}
    assert blocks["breakers"]["split_kind"] == "modelled"


def test_the_classes_add_up_to_what_is_installed_and_spent(report):
    body = report_json(report)
    assert sum(row["gpu_hours"] for row in body["classes"]) == pytest.approx(2 * 8 * 168)
    assert body["total"] == {"gpu_hours": 2688.0, "cost": "5376.00"}


@pytest.mark.parametrize("language", ["en", "ko"])
def test_every_form_is_written_and_says_the_same_money(report, tmp_path, language):
    paths = write_files(report, ("html", "json", "md"), tmp_path, language)
    assert [path.suffix for path in paths] == [".html", ".json", ".md"]
    body = json.loads(paths[1].read_text())
    titles = [rec["title"] for rec in body["recommendations"]]
    markdown = paths[2].read_text()
    assert titles
    assert all(title in markdown for title in titles)


def test_the_pdf_has_every_page_and_fetches_nothing(report):
    pytest.importorskip("weasyprint", reason="the extra `report` is not installed")
    pdf = rendered(report, "pdf", "en")
    assert pdf.startswith(b"%PDF-")
    assert len(re.findall(rb"/Type\s*/Page\b", pdf)) >= 1 or b"/ObjStm" in pdf


def test_an_unknown_form_is_refused_with_the_ones_there_are(report):
    with pytest.raises(ReportError, match="html, json, md, pdf"):
        rendered(report, "docx")


def test_a_window_of_a_few_hours_is_too_little_and_says_so(store):
    from datetime import UTC, datetime

    from scheduler_advisor.goals import Goals
    from scheduler_advisor.report.make import make_report
    from scheduler_advisor.window import Window

    window = Window(datetime(2026, 10, 5, tzinfo=UTC), datetime(2026, 10, 12, tzinfo=UTC))
    empty = make_report(store, window, Goals(), at=window.until)
    assert not empty.enough
    assert "Too little is known yet to advise" in report_html(empty)
    assert report_json(empty)["recommendations"] == []


def test_a_healthy_week_says_that_there_is_nothing_to_change(lab):
    lab.node()
    lab.run("7", start=0, end=168, gpus=8, activity=0.85, mem_gib=256, cpus=64)
    page = report_html(lab.report())
    assert "Nothing to change this week" in page
    assert "The four measurements" in page


def test_colours_are_those_of_the_pages():
    assert {name: colour for name, (colour, _) in CLASS_STYLES.items()} == {
        name: style.colour for name, style in CLASSES.items()
    }


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(None, "–"), (0, "0 s"), (89, "89 s"), (90, "1.5 min"), (5400, "1.5 h"), (172800, "2.0 d")],
)
def test_durations_read_in_the_unit_that_fits(seconds, text):
    assert duration_text(seconds) == text


@pytest.mark.parametrize(
    ("amount", "shown"),
    [(9.999, 10.0), (43.16, 43), (461.1, 460), (2003.8, 2000), (16_029, 16_000)],
)
def test_a_modelled_amount_carries_two_figures(amount, shown):
    assert rounded(amount) == shown
