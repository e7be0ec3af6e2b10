"""`unstrand price calculate`: what an owned GPU costs per available hour."""

from __future__ import annotations

import getpass
from datetime import datetime
from typing import Annotated

import typer

from analytics.amortization import Asset, amortized_rate, as_price
from analytics.errors import PriceError
from analytics.prices import load_prices
from analytics.sheet import decimal_cell
from analytics.window import EPOCH
from collector.store import Work
from unstrand.clock import utc_now
from unstrand.commands.change import change
from unstrand.commands.options import Db, Json, Server, instant
from unstrand.output import Format, print_document

_COLUMNS = "gpu_model,amount,currency,kind,effective_from,source"


def _option(name: str, text: str) -> typer.models.OptionInfo:
    option: typer.models.OptionInfo = typer.Option(name, help=text, metavar="NUMBER")
    return option


def calculate(
    gpus: Annotated[int, typer.Option("--gpus", help="How many GPUs the purchase has.")],
    capex: Annotated[str, _option("--capex", "What was paid for it.")],
    currency: Annotated[str, typer.Option("--currency", metavar="CODE")] = "USD",
    residual: Annotated[str, _option("--residual", "Share of it left at the end, 0.25.")] = "0",
    life: Annotated[str, _option("--life-years", "Years until then.")] = "4",
    power: Annotated[str, _option("--power-kw", "At the wall, all of it, before PUE.")] = "0",
    load: Annotated[str, _option("--load", "Mean share of that power, 0 to 1.")] = "1",
    pue: Annotated[str, _option("--pue", "The building on top, 1 or more.")] = "1",
    per_kwh: Annotated[str, _option("--per-kwh", "Price of a kWh.")] = "0",
    network: Annotated[str, _option("--network", "Per year.")] = "0",
    space: Annotated[str, _option("--space", "Per year.")] = "0",
    staff: Annotated[str, _option("--staff", "Per year.")] = "0",
    availability: Annotated[str, _option("--availability", "Share of hours, up to 1.")] = "1",
    gpu_model: Annotated[
        str | None, typer.Option("--gpu-model", help="Put the rate into the price book as this.")
    ] = None,
    since: Annotated[
        datetime | None,
        typer.Option("--since", metavar="TIME", parser=instant, help="It holds from."),
    ] = None,
    db: Db = None,
    server: Server = None,
    as_json: Json = False,
) -> None:
    """Work out the amortized rate per available GPU-hour of GPUs that you own.

    Per year: capex x (1 - residual) / life + kW x 8760 x load x PUE x price + network + space +
    staff.

    Example: `unstrand price calculate --gpus 8 --capex 300000 --power-kw 10.2 --per-kwh 0.12`
    """
    texts = {
        "capex": capex, "residual_ratio": residual, "life_years": life, "power_kw": power,
        "load_ratio": load, "pue": pue, "price_per_kwh": per_kwh, "network_per_year": network,
        "space_per_year": space, "staff_per_year": staff, "availability_ratio": availability,
    }  # fmt: skip
    numbers = {name: decimal_cell(text, name, PriceError) for name, text in texts.items()}
    asset = Asset(gpus=gpus, currency=currency, **numbers)
    rate = amortized_rate(asset).to_dict()
    if gpu_model is not None:
        start = since or EPOCH
        price = as_price(asset, gpu_model, start, f"price calculate: {gpus} GPUs, capex {capex}")
        actor = getpass.getuser()

        def write(work: Work) -> dict[str, int]:
            return {"new": load_prices(work, [price], at=utc_now(), actor=actor)}

        row = (
            f'{gpu_model},{price.amount},{currency},amortized,{start.isoformat()},"{price.source}"'
        )
        body = {"text": f"{_COLUMNS}\n{row}\n", "name": "price calculate", "actor": actor}
        change(db, server, "prices", body, write)
    if as_json:
        print_document({**rate, "rows": []}, Format.JSON)
        return
    rows = [{"part": name.replace("_", " "), "value": value} for name, value in rate.items()]
    print_document({"rows": rows}, Format.TABLE)
    if gpu_model is not None:
        typer.echo(f"{gpu_model}: {rate['per_gpu_hour']} {currency} per GPU-hour, in the book")
