"""Who gets the report: ``delivery.toml``. Secrets stand in the environment or in files."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError, model_validator

from scheduler_advisor.errors import DeliveryError

# What a user name may be made of, so that none can turn an address into another one.
_USER = re.compile(r"[A-Za-z0-9._-]{1,64}")


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Webhook(_Table):
    """A Slack-compatible incoming webhook. The address is the secret."""

    name: str
    url_env: str | None = None
    url_file: Path | None = None
    language: Literal["en", "ko"] = "en"
    url: SecretStr = Field(default=SecretStr(""), exclude=True)

    @model_validator(mode="after")
    def _one_source(self) -> Webhook:
        if (self.url_env is None) == (self.url_file is None):
            raise ValueError("give url_env or url_file: the address is a secret and stays outside")
        return self


class Mail(_Table):
    """One SMTP receiver. ``security`` none is for a relay on this machine."""

    name: str
    host: str
    port: int = 587
    security: Literal["starttls", "tls", "none"] = "starttls"
    user: str | None = None
    password_env: str | None = None
    password_file: Path | None = None
    sender: str
    to: tuple[str, ...] = Field(min_length=1)
    language: Literal["en", "ko"] = "en"
    password: SecretStr = Field(default=SecretStr(""), exclude=True)

    @model_validator(mode="after")
    def _password_with_user(self) -> Mail:
        given = self.password_env is not None or self.password_file is not None
        if given != (self.user is not None):
            raise ValueError("user and password_env or password_file go together")
        if self.user is not None and self.security == "none" and not _loopback(self.host):
            raise ValueError("a password does not go over an open line: use starttls or tls")
        return self


class NudgeMail(_Table):
    """Personal notes go through the server of the mail receiver named ``mail``, to the address that
    ``people`` has for a user, else to ``address`` with {user} filled in."""

    mail: str
    address: str | None = None
    people: dict[str, str] = Field(default_factory=dict)
    language: Literal["en", "ko"] | None = None

    @model_validator(mode="after")
    def _somebody(self) -> NudgeMail:
        if self.address is None and not self.people:
            raise ValueError('give address = "{user}@example.org", or people by user name')
        if self.address is not None and "{user}" not in self.address:
            raise ValueError("address must have {user} in it: a note goes to its owner only")
        return self


class Receivers(_Table):
    """Everybody who gets the report, and how personal notes are sent."""

    webhook: tuple[Webhook, ...] = ()
    mail: tuple[Mail, ...] = ()
    nudges: NudgeMail | None = None

    @model_validator(mode="after")
    def _server_of_nudges(self) -> Receivers:
        if self.nudges is not None and self.nudges.mail not in [mail.name for mail in self.mail]:
            raise ValueError(f"nudges.mail: there is no [[mail]] named {self.nudges.mail!r}")
        return self

    def address_of(self, user: str) -> str | None:
        """Where a personal note to the user goes; None = not known, and nothing is sent."""
        if self.nudges is None or not _USER.fullmatch(user):
            return None
        known = self.nudges.people.get(user)
        return known or (self.nudges.address and self.nudges.address.replace("{user}", user))

    def nudge_mail(self, user: str) -> Mail:
        """The mail server, with the user as the only receiver."""
        address = self.address_of(user)
        servers = [mail for mail in self.mail if self.nudges and mail.name == self.nudges.mail]
        if address is None or not servers:
            raise DeliveryError(f"no address is known for {user}: see [nudges] of the file")
        return servers[0].model_copy(update={"to": (address,), "name": f"to {user}"})

    def knows(self, channel: str, receiver: str) -> bool:
        """Whether the receiver can still be reached by what the file says now."""
        if channel == "nudge":
            return self.address_of(receiver) is not None
        named = self.webhook if channel == "webhook" else self.mail
        return receiver in [each.name for each in named]


def load_receivers(path: Path, environment: Mapping[str, str] = os.environ) -> Receivers:
    """Receivers with their secrets filled in; DeliveryError names file, key and remedy."""
    try:
        raw = tomllib.loads(path.read_text(encoding="utf-8"))
        found = Receivers.model_validate(raw)
    except OSError as error:
        raise DeliveryError(f"cannot read {path}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise DeliveryError(f"{path}: not valid TOML: {error}") from error
    except ValidationError as error:
        first = error.errors(include_input=False)[0]
        place = ".".join(str(part) for part in first["loc"]) or "the file"
        raise DeliveryError(f"{path}: {place}: {first['msg']}") from error
    webhooks = [
        hook.model_copy(
            update={"url": _secret(hook.name, hook.url_env, hook.url_file, environment)}
        )
        for hook in found.webhook
    ]
    mails = [
        mail.model_copy(
            update={
                "password": _secret(mail.name, mail.password_env, mail.password_file, environment)
            }
        )
        for mail in found.mail
    ]
    return Receivers.model_construct(
        webhook=tuple(webhooks), mail=tuple(mails), nudges=found.nudges
    )


def _secret(
    name: str, variable: str | None, file: Path | None, environment: Mapping[str, str]
) -> SecretStr:
    if variable is not None:
        if not environment.get(variable):
            raise DeliveryError(f"receiver {name}: the environment has no {variable}")
        return SecretStr(environment[variable])
    if file is None:
        return SecretStr("")
    try:
        return SecretStr(file.read_text(encoding="utf-8").strip())
    except OSError as error:
        raise DeliveryError(f"receiver {name}: cannot read {file}: {error.strerror}") from error


def _loopback(host: str) -> bool:
    return host in ("localhost", "127.0.0.1", "::1")
