"""A report into a Slack-compatible incoming webhook.

Built on the standard library on purpose: HTTP clients that log each request would write the
address, which is the secret, into the service's log.
"""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from typing import Any

from scheduler_advisor.delivery.receivers import Webhook
from scheduler_advisor.errors import DeliveryError
from scheduler_advisor.messages import Words
from scheduler_advisor.report.contents import WeeklyReport
from scheduler_advisor.report.summary import headline_text, top_lines

WITHIN_S = 10.0


class RetryableError(DeliveryError):
    """It may work in a while."""


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirect would hand the report to an address that nobody has named."""

    def redirect_request(self, *_: Any) -> None:
        """None: a redirect is answered as the error that it is."""


def payload(report: WeeklyReport, language: str) -> bytes:
    """The message as JSON: a text for notifications and blocks for the channel."""
    words = Words(language)
    head = headline_text(report, words)
    since, until = (report.window.local(at) for at in (report.window.since, report.window.until))
    span = words.say(
        "report.window", since=f"{since:%Y-%m-%d}", until=f"{until:%Y-%m-%d}",
        zone=report.window.time_zone,
    )  # fmt: skip
    lines = [f"{place}. {line}" for place, line in enumerate(top_lines(report, words), 1)]
    demo = f" · {words.say('report.demo')}" if report.demo else ""
    body = "\n".join(lines) or words.say("report.nothing_text")
    made: dict[str, Any] = {
        "text": f"{head} ({span}){demo}",
        "blocks": [
            {"type": "header", "text": {"type": "plain_text", "text": head[:150]}},
            {"type": "section", "text": {"type": "mrkdwn", "text": _escaped(body)[:2900]}},
            {"type": "context", "elements": [{"type": "mrkdwn", "text": _escaped(span + demo)}]},
        ],
    }  # fmt: skip
    return json.dumps(made, ensure_ascii=False).encode()


def send_webhook(hook: Webhook, body: bytes) -> None:
    """Post the message; RetryableError where it may work later, DeliveryError where it will not."""
    url = hook.url.get_secret_value()
    if not url.startswith(("https://", "http://")):
        raise DeliveryError(f"webhook {hook.name}: its address is no http address")
    headers = {"content-type": "application/json; charset=utf-8"}
    request = urllib.request.Request(url, body, headers, method="POST")
    try:
        with urllib.request.build_opener(_NoRedirect).open(request, timeout=WITHIN_S):
            return
    except urllib.error.HTTPError as error:
        error.close()
        kind = RetryableError if error.code == 429 or error.code >= 500 else DeliveryError
        raise kind(f"webhook {hook.name}: answered {error.code}") from None
    except (OSError, ValueError) as error:
        # Only the kind of the error: its text can hold the address.
        raise RetryableError(f"webhook {hook.name}: {type(error).__name__}") from None


def _escaped(text: str) -> str:
    """Slack's three control characters, so that a job's name cannot ping a channel."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
