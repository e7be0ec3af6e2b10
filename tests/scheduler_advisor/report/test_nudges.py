"""Personal notes: owner only, once in seven days, never on a holiday, off, and first a dry run."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from email import message_from_bytes, policy

import pytest

from scheduler_advisor.delivery import deliver
from scheduler_advisor.delivery.deliver import retry
from scheduler_advisor.delivery.nudges import nudge, nudges_written, rests
from scheduler_advisor.delivery.receivers import load_receivers
from scheduler_advisor.errors import DeliveryError
from scheduler_advisor.goals import parse_goals

MONDAY = datetime(2026, 11, 2, 7, tzinfo=UTC)
DAY = timedelta(days=1)


def goals(text=""):
    return parse_goals("[nudges]\nenabled = true\n" + text, "goals")


LIVE = goals("dry_run = false\n")


@pytest.fixture
def reported(store):
    """A report with one thing for ann, one for her team, one for the platform, one worthless."""

    def rec(name, duty="owner", user="ann", hours=40.0, state="new"):
        return {"id": name, "title": f"Release {name}", "why": "It sleeps.", "action": "End it.",
                "owner": {"team": "nlp", "user": user, "duty": duty},
                "saving": {"gpu_hours": hours}, "state": state,
                "evidence": {"examples": [{"command": "unstrand job 7"}]}}  # fmt: skip

    found = [rec("notebook"), rec("team", duty="team"), rec("node", "platform", None),
             rec("nothing", hours=0.0), rec("bert", user="bob")]  # fmt: skip
    with store.work() as work:
        make(work, "r1", MONDAY, found)
    return store


def make(work, report_id, ts, found):
    work.append("advice_report", {
        "report_id": [report_id], "cluster": [None], "ts": [ts], "since": [ts - 28 * DAY],
        "until": [ts], "time_zone": ["UTC"], "currency": [None], "coverage_ratio": [1.0],
        "price_version": [None], "goals_version": ["g"], "body": ["{}"]})  # fmt: skip
    for rank, each in enumerate(found, 1):
        work.append("recommendation", {
            "report_id": [report_id], "recommendation_id": [each["id"]], "kind": ["held_idle"],
            "cluster": ["c"], "subject": [each["id"]], "owner": ["ann"], "rank": [rank],
            "gpu_hours": [40.0], "cost": [None], "cost_low": [None], "cost_high": [None],
            "currency": [None], "basis": ["capacity"], "exclusive_group": [None],
            "expires_at": [ts + 14 * DAY],
            "body": [json.dumps({"en": each, "ko": each})]})  # fmt: skip


@pytest.fixture
def receivers(tmp_path):
    file = tmp_path / "delivery.toml"
    file.write_text(
        '[[mail]]\nname = "team"\nhost = "127.0.0.1"\nport = 25\nsecurity = "none"\n'
        'sender = "unstrand@example.org"\nto = ["all@example.org"]\n'
        '[nudges]\nmail = "team"\naddress = "{user}@example.org"\n'
        'people = { bob = "robert@example.org" }\n'
    )
    return load_receivers(file, {})


@pytest.fixture
def outgoing(monkeypatch):
    """What would be handed to the mail server."""
    sent = []
    monkeypatch.setattr(deliver, "send_mail", lambda mail, content: sent.append((mail, content)))
    return sent


def look(store, wish, receivers, now):
    with store.work() as work, work.transaction():
        return nudge(work, wish, receivers, now)


def test_they_are_off_unless_asked_for(reported, receivers):
    assert look(reported, parse_goals("", "goals"), receivers, MONDAY) == []


def test_a_dry_run_writes_down_who_would_get_what_and_sends_nothing(reported, receivers, outgoing):
    made = look(reported, goals(), receivers, MONDAY)
    assert [(each.owner, each.dry_run) for each in made] == [("ann", True), ("bob", True)]
    assert made[0].recommendation_ids == ("notebook",)
    assert "Release notebook" in made[0].text
    assert "Nothing is ended or changed by itself" in made[0].text
    assert look(reported, goals(), receivers, MONDAY + DAY) == []
    assert retry(reported, receivers, MONDAY + DAY) == []
    assert outgoing == []
    with reported.work() as work:
        assert {row["owner"] for row in nudges_written(work)} == {"ann", "bob"}


def test_the_first_time_is_a_dry_run_even_where_it_is_switched_off(reported, receivers, outgoing):
    assert all(each.dry_run for each in look(reported, LIVE, receivers, MONDAY))
    assert look(reported, LIVE, receivers, MONDAY + timedelta(hours=2)) == []
    assert not any(each.dry_run for each in look(reported, LIVE, receivers, MONDAY + DAY))
    retry(reported, receivers, MONDAY + DAY)
    assert [mail.to for mail, _ in outgoing] == [("ann@example.org",), ("robert@example.org",)]
    got = message_from_bytes(outgoing[0][1], policy=policy.default)
    assert got["To"] == "ann@example.org"
    assert got["Subject"] == "GPU time of yours that could be free: 1 item"
    assert "bert" not in got.get_content()


def test_one_in_seven_days_whatever_the_reports_say(reported, receivers, outgoing):
    look(reported, LIVE, receivers, MONDAY)
    for hours in range(24, 24 * 22, 6):
        now = MONDAY + timedelta(hours=hours)
        with reported.work() as work:
            if hours % 24 == 0:
                body = json.loads(work.rows("SELECT body FROM recommendation LIMIT 1")[0]["body"])
                make(work, f"r{hours}", now, [body["en"]])
        look(reported, LIVE, receivers, now)
        retry(reported, receivers, now)
    to_ann = [content for mail, content in outgoing if mail.to == ("ann@example.org",)]
    assert len(to_ann) == 3, "on days 1, 8 and 15"


def test_never_on_a_holiday_of_the_reports_time_zone(reported, receivers, outgoing):
    wish = goals('dry_run = false\nholidays = [2026-11-03]\n[report]\ntime_zone = "Asia/Seoul"\n')
    look(reported, wish, receivers, MONDAY)
    late = datetime(2026, 11, 2, 16, tzinfo=UTC)  # 3 November, 01:00 in Seoul
    assert rests(wish, late)
    assert look(reported, wish, receivers, late) == []
    assert not rests(wish, MONDAY)
    assert [each.owner for each in look(reported, wish, receivers, MONDAY + 2 * DAY)] == [
        "ann", "bob",
    ]  # fmt: skip
    assert retry(reported, receivers, MONDAY + 2 * DAY, rest=True) == []
    assert len(retry(reported, receivers, MONDAY + 2 * DAY)) == 2


def test_what_was_dismissed_meanwhile_is_no_reason_to_write(reported, receivers):
    with reported.work() as work:
        work.append("recommendation_state", {
            "recommendation_id": ["notebook"], "ts": [MONDAY], "state": ["dismissed"],
            "actor": ["ann"], "reason": ["exam"], "until": [None]})  # fmt: skip
    assert [each.owner for each in look(reported, goals(), receivers, MONDAY)] == ["bob"]


def test_a_name_that_could_become_another_address_gets_nothing(reported, receivers):
    assert receivers.address_of("a@evil.example,b") is None
    assert receivers.address_of("ann\nBcc: x") is None
    with pytest.raises(DeliveryError):
        receivers.nudge_mail("a b")


@pytest.mark.parametrize(
    ("text", "complaint"),
    [('mail = "none"\naddress = "{user}@x"\n', "no .*mail.* named"),
     ('mail = "team"\naddress = "all@x"\n', "owner only"), ('mail = "team"\n', "people")],
)  # fmt: skip
def test_nudges_that_cannot_reach_an_owner_are_refused_with_the_place(tmp_path, text, complaint):
    file = tmp_path / "delivery.toml"
    file.write_text(
        '[[mail]]\nname = "team"\nhost = "h"\nsender = "s"\nto = ["t"]\n[nudges]\n' + text
    )
    with pytest.raises(DeliveryError, match=complaint):
        load_receivers(file, {})
