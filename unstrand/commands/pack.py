"""`unstrand pack`: how full a placement rule gets a cluster before it is in its own way."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Annotated

import typer


def _ratio(text: str) -> Fraction:
    try:
        return Fraction(text)
    except (ValueError, ZeroDivisionError):
        raise typer.BadParameter(f"{text} is no ratio; write for example 1.3") from None


def pack(
    pods: Annotated[Path, typer.Option("--pods", metavar="FILE", help="Pods, as openb's list.")],
    nodes: Annotated[Path, typer.Option("--nodes", metavar="FILE", help="Nodes: CSV or TOML.")],
    policy: Annotated[
        str,
        typer.Option(
            "--policy",
            metavar="NAME",
            help="fgd, fgd-exact, best-fit, dot-product, gpu-packing, gpu-clustering, random.",
        ),
    ],
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="The result, as JSON.")],
    inflate: Annotated[
        Fraction | None,
        typer.Option(
            "--inflate",
            metavar="RATIO",
            parser=_ratio,
            help="Draw pods again until they ask for so much of the GPUs.",
        ),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Of every random choice.")] = 0,
    order: Annotated[
        Path | None,
        typer.Option("--order", metavar="FILE", help="Pods in order of arrival, repeats allowed."),
    ] = None,
    ties: Annotated[
        str,
        typer.Option(
            "--ties",
            metavar="RULE",
            help="name, most-packed, emptiest, random, or a file of nodes, the winner first.",
        ),
    ] = "name",
    placements: Annotated[
        Path | None, typer.Option("--placements", metavar="FILE", help="CSV: where each pod went.")
    ] = None,
) -> None:
    """Place pods one by one on empty nodes; none ever leaves, one that fits nowhere is passed over.

    As in the FGD paper (Weng et al., USENIX ATC 2023). Without --order the pods come in a random
    order by --seed; with --inflate they are then drawn again until they ask for RATIO of the GPUs.

    Example: `unstrand pack --pods pods.csv --nodes nodes.csv --policy fgd --inflate 1.3 --seed 42
    --out fgd.json`
    """
    if order is not None and inflate is not None:
        raise typer.BadParameter("--order and --inflate are two orders: give one of them")
    from unstrand.commands.pack_run import PackQuestion, pack_to_files

    question = PackQuestion(
        pods=pods,
        nodes=nodes,
        policy=policy,
        ties=ties,
        inflate=inflate,
        seed=seed,
        order=order,
    )
    typer.echo(pack_to_files(question, out, placements))
