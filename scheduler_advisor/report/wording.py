"""A recommendation in words: sentences filled with its numbers, numbers with their units."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

from scheduler_advisor.advice.draft import Draft, Keys, NotRecommended, Phrases
from scheduler_advisor.advice.recommendation import Recommendation, Saving
from scheduler_advisor.durations import duration_text
from scheduler_advisor.figure import Figure, Unit
from scheduler_advisor.messages import Words, refusals

WEEKS_PER_MONTH = 365.25 / 12 / 7
PARTS = ("title", "why", "do", "risk", "check", "undo", "pays")


def amount_text(amount: Decimal | float | None, currency: str | None) -> str:
    """Money to the unit from 100 on, to the cent below; an en dash where there is no price."""
    if amount is None:
        return "–"
    digits = 0 if abs(float(amount)) >= 100 else 2
    return f"{amount:,.{digits}f} {currency or ''}".strip()


def hours_text(hours: float) -> str:
    """GPU-hours without decimals from ten on."""
    return f"{hours:,.0f}" if abs(hours) >= 10 else f"{hours:,.1f}"


def money_ends(low: Decimal, high: Decimal, currency: str | None) -> tuple[str, str]:
    """Both ends of a range, with as many decimals as the larger one carries."""
    digits = 0 if max(abs(float(low)), abs(float(high))) >= 100 else 2
    return f"{low:,.{digits}f}", f"{high:,.{digits}f} {currency or ''}".strip()


def hours_ends(low: float, high: float) -> tuple[str, str]:
    """Both ends of a range of GPU-hours, with as many decimals as the larger one carries."""
    digits = 0 if max(abs(low), abs(high)) >= 10 else 1
    return f"{low:,.{digits}f}", f"{high:,.{digits}f}"


def month_phrase(saving: Saving, currency: str | None, words: Words) -> str:
    """The saving of a month, in money where there is a price, else in GPU-hours."""
    if saving.range_only:
        return words.say("phrase.no_promise")
    if saving.gpu_hours == 0:
        return words.say("phrase.no_saving")
    if saving.cost is None:
        hours = f"{saving.gpu_hours * WEEKS_PER_MONTH:,.0f}"
        return words.say("phrase.hours_month", hours=hours)
    month = rounded(float(saving.cost) * WEEKS_PER_MONTH)
    amount = (
        f"{month:,.0f} {currency or ''}".strip() if month >= 10 else amount_text(month, currency)
    )
    return words.say("phrase.money_month", amount=amount)


def rounded(amount: float) -> float:
    """To two significant figures from 100 on: a modelled amount does not carry more."""
    if abs(amount) < 10:
        return round(amount, 2)
    step = 10 ** (len(str(int(abs(amount)))) - 2)
    return float(round(amount / step) * step)


def sentence(rec: Recommendation, part: str, currency: str | None, words: Words) -> str:
    """One of `PARTS` of a recommendation."""
    params: dict[str, Any] = {
        **{name: said(value, words) for name, value in rec.draft.params.items()},
        "month": month_phrase(rec.saving, currency, words),
    }
    return words.of_kind(rec.kind, rec.draft.variant, part, params)


def said(value: Any, words: Words) -> Any:
    """``value``, or the sentences that it stands for."""
    if isinstance(value, Keys):
        return _joined([words.say(key) for key in value])
    if isinstance(value, Phrases):
        return _joined([words.say(phrase.key, phrase.params) for phrase in value])
    return value


def _joined(told: Sequence[str]) -> str:
    """Sentences one after the other; parts of one with semicolons between them."""
    return (" " if all(each.endswith(".") for each in told) else "; ").join(told)


def reason_text(entry: NotRecommended, words: Words) -> str:
    """Why something is not advised."""
    params = {name: said(value, words) for name, value in entry.params.items()}
    return words.say(f"reason.{entry.reason}", refusals.said_in(params, words))


def kind_name(kind: str, words: Words) -> str:
    """The kind in words."""
    return words.say(f"kind.{kind}.name")


def owner_text(draft: Draft, words: Words) -> str:
    """Team and person, or the platform team."""
    named = [name for name in (draft.owner.team, draft.owner.user) if name]
    return " / ".join(named) or words.say("phrase.platform")


def figure_text(figure: Figure, currency: str | None, words: Words) -> str:
    """A figure's name, value, unit and kind on one line."""
    name = words.say(f"figure.{figure.name}")
    kind = words.say(f"number.{figure.kind.value}")
    return f"{name}: {value_text(figure, currency)} ({kind})"


def value_text(figure: Figure, currency: str | None) -> str:
    """A figure's value with its unit; an en dash where it was not measured."""
    value = figure.value
    if value is None:
        return "–"
    number = float(value)
    if figure.unit is Unit.MONEY:
        return amount_text(number, figure.currency or currency)
    return _FORMS[figure.unit](number)


_FORMS: dict[Unit, Callable[[float], str]] = {
    Unit.RATIO: lambda n: f"{n:.0%}",
    Unit.SECONDS: duration_text,
    Unit.MIB: lambda n: f"{n / 1024:,.1f} GiB",
    Unit.GPU_HOURS: lambda n: f"{hours_text(n)} GPU-h",
    Unit.HOURS: lambda n: f"{hours_text(n)} h",
    Unit.DAYS: lambda n: f"{hours_text(n)} d",
    Unit.GPUS: lambda n: f"{hours_text(n) if n % 1 else f'{n:,.0f}'} GPU",
    Unit.COUNT: lambda n: f"{n:,.0f}",
}
