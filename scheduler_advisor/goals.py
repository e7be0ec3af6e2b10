"""What the operator wants: ``goals.toml``. Without it advice is ranked by money, and says so."""

from __future__ import annotations

import tomllib
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from scheduler_advisor.errors import AdvisorError, GoalsError
from scheduler_advisor.window import parse_duration, zone_named

DEFAULT_TOML = Path(__file__).with_name("goals_default.toml")


def _duration(value: object) -> object:
    if not isinstance(value, str):
        return value
    try:
        return parse_duration(value)
    except AdvisorError as error:
        raise ValueError(str(error)) from error


def _zone(value: object) -> object:
    if isinstance(value, str):
        try:
            zone_named(value)
        except AdvisorError as error:
            raise ValueError(str(error)) from error
    return value


def _money(value: object) -> object:
    if isinstance(value, float):
        raise ValueError('write money as a string, such as "12.50", so that no cent is lost')
    return value


Duration = Annotated[timedelta, BeforeValidator(_duration)]
Money = Annotated[Decimal, BeforeValidator(_money), Field(ge=0)]


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Match(_Table):
    """Which work is meant; every key that is given must fit. An empty match is refused."""

    team: str | None = None
    user: str | None = None
    queue: str | None = None
    qos: str | None = None
    job_name: str | None = None

    def model_post_init(self, _: Any) -> None:
        """An empty match would silently mean everything."""
        if not self.model_fields_set:
            raise ValueError("name at least one of team, user, queue, qos, job_name")

    def fits(self, **facts: str | None) -> bool:
        """Whether work with these facts is meant."""
        asked = self.model_dump(exclude_none=True)
        return all(facts.get(key) == value for key, value in asked.items())


class WorkClass(_Table):
    """A class of work: the wait that is still acceptable, and what an hour of waiting costs."""

    name: str
    match: Match
    max_wait_p95: Duration | None = None
    waiting_cost_per_hour: Money | None = None
    importance: Annotated[int, Field(ge=1, le=5)] = 3


class Never(_Table):
    """Work that advice must leave alone."""

    preempt: tuple[Match, ...] = ()
    move: tuple[Match, ...] = ()
    share: tuple[Match, ...] = ()


class Capacity(_Table):
    """Which capacity turns into cash when it is freed; everything else is freed capacity."""

    give_back: tuple[str, ...] = ()


class ReportSettings(_Table):
    """How the weekly report is made and when it goes out (cron in the stated zone)."""

    time_zone: Annotated[str, BeforeValidator(_zone)] = "UTC"
    language: Literal["en", "ko"] = "en"
    window: str = "4w"
    cron: str = "0 7 * * mon"


class Nudges(_Table):
    """Personal notes to the owner only; off unless asked for, and first as a dry run."""

    enabled: bool = False
    dry_run: bool = True
    min_days_between: Annotated[int, Field(ge=7)] = 7
    holidays: tuple[date, ...] = ()


class Goals(_Table):
    """Everything in ``goals.toml``; a key that is not known is an error."""

    first: Literal["money", "response_time", "throughput", "fairness"] = "money"
    headroom_gpus: Annotated[int, Field(ge=0)] = 0
    max_disruption_per_team_per_week: Duration | None = None
    work_class: tuple[WorkClass, ...] = Field(default=(), alias="class")
    never: Never = Never()
    capacity: Capacity = Capacity()
    report: ReportSettings = ReportSettings()
    nudges: Nudges = Nudges()
    thresholds: dict[str, dict[str, float]] = Field(default_factory=dict)
    given: bool = Field(default=False, exclude=True)

    def threshold(self, kind: str, name: str, default: float) -> float:
        """The operator's own threshold of a rule, or the rule's default."""
        return self.thresholds.get(kind, {}).get(name, default)

    def never_shared(self, **facts: str | None) -> bool:
        """Whether work with these facts must not share a GPU."""
        return any(match.fits(**facts) for match in self.never.share)


def load_goals(path: Path | None) -> Goals:
    """Goals from ``path``, or the documented default when it is None.

    Raises GoalsError naming the file, the key and the remedy.
    """
    if path is None:
        return Goals()
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise GoalsError(
            f"cannot read goals at {path} ({error.strerror}): `unstrand advise goals` prints "
            "the default to start from, or leave --goals away to rank by money"
        ) from error
    except UnicodeDecodeError as error:
        raise GoalsError(f"{path}: not UTF-8 text: {error}") from error
    return parse_goals(text, str(path))


def parse_goals(text: str, where: str) -> Goals:
    """Goals from TOML; GoalsError names ``where``, the key and the remedy."""
    try:
        raw = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise GoalsError(f"{where}: not valid TOML: {error}") from error
    return _checked(raw, where)


def _checked(raw: dict[str, Any], where: str) -> Goals:
    if "given" in raw:
        raise GoalsError(f"{where}: given: unknown key: remove it")
    try:
        return Goals(**raw, given=True)
    except ValidationError as error:
        lines = [_line(where, problem) for problem in error.errors()]
        raise GoalsError("\n".join(lines)) from error


def _line(where: str, problem: Any) -> str:
    place = ".".join(str(part) for part in problem["loc"]) or "the file"
    if problem["type"] == "extra_forbidden":
        return f"{where}: {place}: unknown key: see the default ({DEFAULT_TOML.name}) for the keys"
    message = str(problem["msg"]).removeprefix("Value error, ")
    return f"{where}: {place}: {message} (found {problem['input']!r})"
