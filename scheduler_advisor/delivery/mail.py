"""A report by mail: the text inside, the page attached."""

from __future__ import annotations

import smtplib
import ssl
from datetime import datetime
from email import message_from_bytes, policy
from email.message import EmailMessage
from email.utils import format_datetime, make_msgid

from scheduler_advisor.delivery.receivers import Mail
from scheduler_advisor.delivery.webhook import RetryableError
from scheduler_advisor.errors import DeliveryError
from scheduler_advisor.messages import Words
from scheduler_advisor.report.contents import WeeklyReport
from scheduler_advisor.report.forms import file_name, rendered
from scheduler_advisor.report.summary import headline_text

WITHIN_S = 20.0


def message(mail: Mail, report: WeeklyReport) -> EmailMessage:
    """The mail: Markdown as the text, HTML as its alternative and as an attachment to keep."""
    words = Words(mail.language)
    made = EmailMessage()
    cluster = f"[{report.cluster}] " if report.cluster else ""
    made["Subject"] = f"{cluster}{headline_text(report, words)}"
    made["From"] = mail.sender
    made["To"] = ", ".join(mail.to)
    made["Date"] = format_datetime(report.made_at)
    made["Message-ID"] = make_msgid(report.report_id, mail.sender.rpartition("@")[2].strip("> "))
    made["Auto-Submitted"] = "auto-generated"
    made.set_content(rendered(report, "md", mail.language).decode())
    page = rendered(report, "html", mail.language)
    made.add_alternative(page.decode(), subtype="html")
    made.add_attachment(page, maintype="text", subtype="html", filename=file_name(report, "html"))
    return made


def note_message(mail: Mail, subject: str, text: str, at: datetime, key: str) -> EmailMessage:
    """A personal note: plain text and nothing else."""
    made = EmailMessage()
    made["Subject"] = subject
    made["From"] = mail.sender
    made["To"] = ", ".join(mail.to)
    made["Date"] = format_datetime(at)
    made["Message-ID"] = make_msgid(key, mail.sender.rpartition("@")[2].strip("> "))
    made["Auto-Submitted"] = "auto-generated"
    made.set_content(text)
    return made


def send_mail(mail: Mail, content: bytes) -> None:
    """Hand the mail to the server, to and from those that ``mail`` names now; RetryableError where
    it may work later, else DeliveryError."""
    made = message_from_bytes(content, policy=policy.default)
    for name, value in (("From", mail.sender), ("To", ", ".join(mail.to))):
        del made[name]
        made[name] = value
    try:
        with _connected(mail) as server:
            if mail.user is not None:
                server.login(mail.user, mail.password.get_secret_value())
            refused = server.send_message(made)
    except smtplib.SMTPRecipientsRefused as error:
        codes = {code for code, _ in error.recipients.values()}
        raise _error(mail, min(codes)) from None
    except smtplib.SMTPResponseException as error:
        raise _error(mail, error.smtp_code) from None
    except smtplib.SMTPNotSupportedError:
        raise DeliveryError(
            f"mail {mail.name}: {mail.host} cannot do what security = {mail.security!r} needs"
        ) from None
    except (OSError, smtplib.SMTPException) as error:
        raise RetryableError(f"mail {mail.name}: {type(error).__name__}") from None
    if refused:
        raise DeliveryError(f"mail {mail.name}: {len(refused)} of {len(mail.to)} refused")


def _connected(mail: Mail) -> smtplib.SMTP:
    if mail.security == "tls":
        context = ssl.create_default_context()
        return smtplib.SMTP_SSL(mail.host, mail.port, timeout=WITHIN_S, context=context)
    server = smtplib.SMTP(mail.host, mail.port, timeout=WITHIN_S)
    if mail.security == "starttls":
        try:
            server.starttls(context=ssl.create_default_context())
        except BaseException:
            server.close()
            raise
    return server


def _error(mail: Mail, code: int) -> DeliveryError:
    """4xx may work later, 5xx will not; the server's text stays out: it can repeat what we sent."""
    kind = RetryableError if 400 <= code < 500 else DeliveryError
    return kind(f"mail {mail.name}: {mail.host} answered {code}")
