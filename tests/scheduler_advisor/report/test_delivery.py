"""Delivery against real servers on this machine: HTTP and SMTP, failing and slow ones too."""

from __future__ import annotations

import json
import logging
import socketserver
import threading
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email import message_from_bytes, policy
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from scheduler_advisor.delivery.deliver import deliver, retry
from scheduler_advisor.delivery.outbox import waiting
from scheduler_advisor.delivery.receivers import load_receivers
from scheduler_advisor.errors import DeliveryError
from scheduler_advisor.goals import Goals
from scheduler_advisor.report.make import make_report
from scheduler_advisor.window import Window

NOW = datetime(2026, 11, 2, 7, tzinfo=UTC)
SECRET = "T0000-B0000-topsecretpath"
PASSWORD = "hunter2-is-secret"


@pytest.fixture
def report(store):
    """A report of an empty week: delivery does not depend on what it says."""
    window = Window(datetime(2026, 10, 26, tzinfo=UTC), datetime(2026, 11, 2, tzinfo=UTC))
    return make_report(store, window, Goals(), at=NOW)


@pytest.fixture
def hook_server():
    """A webhook that answers with the codes in ``answers``, then 200, and keeps the bodies."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            self.server.bodies.append(self.rfile.read(int(self.headers["content-length"])))
            code = self.server.answers.pop(0) if self.server.answers else 200
            self.send_response(code)
            self.send_header("location", "http://127.0.0.1:9/elsewhere")
            self.end_headers()

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.bodies, server.answers = [], []
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


class MailHandler(socketserver.StreamRequestHandler):
    """RFC 5321 far enough to take mail, or to refuse it."""

    def handle(self):
        self.say("220 test")
        while line := self.rfile.readline():
            word = line.split(b" ")[0].strip().upper().decode()
            getattr(self, f"on_{word.lower()}", lambda _: self.say("250 ok"))(line)
            if word == "QUIT":
                return

    def say(self, text):
        self.wfile.write(text.encode() + b"\r\n")

    def on_ehlo(self, _):
        self.wfile.write(b"250-test\r\n250 AUTH PLAIN\r\n")

    def on_quit(self, _):
        self.say("221 bye")

    def on_auth(self, line):
        self.server.auths.append(line)
        self.say(f"{self.server.auth_code} {line.decode().strip()}")

    def on_mail(self, _):
        self.say(f"{self.server.answers.pop(0)} not now" if self.server.answers else "250 ok")

    def on_data(self, _):
        self.say("354 go on")
        lines = []
        while (part := self.rfile.readline()) != b".\r\n":
            lines.append(part[1:] if part.startswith(b"..") else part)
        self.server.mails.append(b"".join(lines))
        self.say("250 taken")


@pytest.fixture
def smtp_server():
    """An SMTP server that answers MAIL with the codes in ``answers``, then takes mail."""
    server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), MailHandler)
    server.daemon_threads = True
    server.mails, server.answers, server.auths, server.auth_code = [], [], [], 235
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def webhook(tmp_path, server):
    file = tmp_path / "delivery.toml"
    file.write_text('[[webhook]]\nname = "ops"\nurl_env = "HOOK"\n')
    port = server.server_address[1]
    return load_receivers(file, {"HOOK": f"http://127.0.0.1:{port}/{SECRET}"})


def mail(tmp_path, server, *, user=False, language="en"):
    login = 'user = "bot"\npassword_env = "PASS"\n' if user else ""
    file = tmp_path / "delivery.toml"
    file.write_text(
        f'[[mail]]\nname = "team"\nhost = "127.0.0.1"\nport = {server.server_address[1]}\n'
        f'security = "none"\nsender = "unstrand@example.org"\nto = ["a@example.org"]\n{login}'
        f'language = "{language}"\n'
    )
    return load_receivers(file, {"PASS": PASSWORD})


def sent(store, report, receivers):
    waits = []
    results = deliver(store, report, receivers, clock=lambda: NOW, sleep=waits.append)
    return results, waits


def test_a_webhook_gets_a_slack_message_once_per_window(tmp_path, store, report, hook_server):
    receivers = webhook(tmp_path, hook_server)
    [first], _ = sent(store, report, receivers)
    [again], _ = sent(store, report, receivers)
    assert (first.error, first.attempts) == (None, 1)
    assert (again.error, again.attempts) == (None, 0)
    [body] = [json.loads(body) for body in hook_server.bodies]
    assert body["text"].startswith("Too little is known yet")
    assert [block["type"] for block in body["blocks"]] == ["header", "section", "context"]


def test_what_may_work_later_is_tried_again_and_every_attempt_is_kept(
    tmp_path, store, report, hook_server
):
    hook_server.answers = [503, 429]
    [result], waits = sent(store, report, webhook(tmp_path, hook_server))
    assert (result.error, result.attempts) == (None, 3)
    assert waits == [0.0, 5.0, 30.0]
    rows = store.rows("SELECT attempt, delivered, error FROM delivery ORDER BY attempt")
    assert [row["delivered"] for row in rows] == [False, False, True]
    assert rows[0]["error"] == "webhook ops: answered 503"


def test_a_refusal_is_not_tried_again(tmp_path, store, report, hook_server):
    hook_server.answers = [404]
    [result], _ = sent(store, report, webhook(tmp_path, hook_server))
    assert (result.error, result.attempts) == ("webhook ops: answered 404", 1)


def test_a_redirect_does_not_carry_the_report_elsewhere(tmp_path, store, report, hook_server):
    hook_server.answers = [302]
    [result], _ = sent(store, report, webhook(tmp_path, hook_server))
    assert result.error == "webhook ops: answered 302"


def test_no_secret_reaches_a_log_a_row_or_an_error(tmp_path, store, report, caplog, hook_server):
    caplog.set_level(logging.DEBUG)
    receivers = webhook(tmp_path, hook_server)
    hook_server.shutdown()
    hook_server.server_close()
    [result], _ = sent(store, report, receivers)
    assert result.error is not None
    rows = str(store.rows("SELECT * FROM delivery"))
    for text in (caplog.text, result.error, rows, repr(receivers), str(receivers)):
        assert SECRET not in text


def test_a_mail_carries_the_text_the_page_and_a_file_to_keep(tmp_path, store, report, smtp_server):
    [result], _ = sent(store, report, mail(tmp_path, smtp_server, language="ko"))
    assert result.error is None
    [raw] = smtp_server.mails
    got = message_from_bytes(raw, policy=policy.default)
    assert got["To"] == "a@example.org"
    assert "데이터가 부족" in got["Subject"]
    text = got.get_body(("plain",)).get_content()
    page = got.get_body(("html",)).get_content()
    assert text.startswith("# ")
    assert page.startswith("<!doctype html>")
    [attached] = list(got.iter_attachments())
    assert attached.get_filename() == "gpu-report-all-2026-11-02.html"


def test_a_busy_mail_server_is_tried_again_and_a_refusing_one_is_not(
    tmp_path, store, report, smtp_server
):
    smtp_server.answers = [451]
    [result], _ = sent(store, report, mail(tmp_path, smtp_server))
    assert (result.error, result.attempts) == (None, 2)
    smtp_server.answers = [550]
    store.value("SELECT 1")
    with store.work() as work:
        work.execute("DELETE FROM delivery")
    [result], _ = sent(store, report, mail(tmp_path, smtp_server))
    assert (result.error, result.attempts) == ("mail team: 127.0.0.1 answered 550", 1)


def test_a_password_that_the_server_repeats_is_not_repeated_by_us(
    tmp_path, store, report, caplog, smtp_server
):
    caplog.set_level(logging.DEBUG)
    smtp_server.auth_code = 535
    [result], _ = sent(store, report, mail(tmp_path, smtp_server, user=True))
    assert result.error == "mail team: 127.0.0.1 answered 535"
    assert smtp_server.auths, "the login was tried"
    for text in (caplog.text, str(store.rows("SELECT * FROM delivery"))):
        assert PASSWORD not in text
        assert "AUTH PLAIN" not in text


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ('[[webhook]]\nname = "a"\n', "url_env or url_file"),
        ('[[webhook]]\nname = "a"\nurl = "http://x"\n', "url"),
        ('[[webhook]]\nname = "a"\nurl_env = "GONE"\n', "the environment has no GONE"),
        ('[[mail]]\nname = "a"\nhost = "h"\nsender = "s"\nto = []\n', "to"),
        ('[[mail]]\nname = "a"\nhost = "h"\nsender = "s"\nto = ["t"]\nuser = "u"\n', "go together"),
        ('[[mail]]\nname = "a"\nhost = "mail.example.org"\nsender = "s"\nto = ["t"]\nuser = "u"\n'
         'password_env = "P"\nsecurity = "none"\n', "open line"),
        ("[[mail]", "not valid TOML"),
    ],
)  # fmt: skip
def test_receivers_that_cannot_work_are_refused_with_the_place(tmp_path, text, complaint):
    file = tmp_path / "delivery.toml"
    file.write_text(text)
    with pytest.raises(DeliveryError, match=complaint):
        load_receivers(file, {})


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(DeliveryError, match="cannot read"):
        load_receivers(Path(tmp_path / "none.toml"), {})


def test_what_did_not_arrive_is_tried_again_over_later_runs_with_growing_pauses(
    tmp_path, store, report, hook_server
):
    receivers = webhook(tmp_path, hook_server)
    hook_server.answers = [503] * 5
    [first], _ = sent(store, report, receivers)
    assert (first.error, first.attempts) == ("webhook ops: answered 503", 3)
    seen = []
    for minutes in range(0, 600, 5):
        now = NOW + timedelta(minutes=minutes)
        seen += [(minutes, each.attempts, each.error) for each in retry(store, receivers, now)]
    assert seen == [
        (15, 4, "webhook ops: answered 503"), (75, 5, "webhook ops: answered 503"),
        (315, 6, None),
    ]  # fmt: skip
    assert len(hook_server.bodies) == 6
    assert len(set(hook_server.bodies)) == 1, "what was tried first is what arrives"


def test_a_mended_file_is_used_and_a_newer_report_takes_the_place_of_one_that_waits(
    tmp_path, store, report, smtp_server
):
    smtp_server.answers = [550]
    [result], _ = sent(store, report, mail(tmp_path, smtp_server))
    assert result.error is not None
    with store.work() as work:
        [open_] = waiting(work, NOW)
    assert (open_.attempts, open_.next_at) == (1, NOW + timedelta(minutes=15))
    later = replace(report, report_id="later", window=Window(NOW - timedelta(days=6), NOW))
    smtp_server.answers = [550]
    minute = NOW + timedelta(minutes=1)
    deliver(store, later, mail(tmp_path, smtp_server), clock=lambda: minute, sleep=float)
    mended = tmp_path / "delivery.toml"
    mended.write_text(mended.read_text().replace("a@example.org", "b@example.org"))
    done = retry(store, load_receivers(mended, {}), NOW + timedelta(minutes=20))
    assert [(each.attempts, each.error) for each in done] == [(2, None)]
    assert retry(store, load_receivers(mended, {}), NOW + timedelta(days=1)) == []
    [raw] = smtp_server.mails
    assert message_from_bytes(raw, policy=policy.default)["To"] == "b@example.org"


def test_after_a_week_or_without_its_receiver_it_is_left_alone(
    tmp_path, store, report, hook_server
):
    hook_server.answers = [503] * 3
    receivers = webhook(tmp_path, hook_server)
    sent(store, report, receivers)
    (tmp_path / "none.toml").write_text("")
    assert retry(store, load_receivers(tmp_path / "none.toml", {}), NOW + timedelta(days=1)) == []
    assert retry(store, receivers, NOW + timedelta(days=8)) == []
    assert len(hook_server.bodies) == 3
