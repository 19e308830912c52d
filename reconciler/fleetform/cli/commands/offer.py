"""`fleetform offer`: instance types of clouds that satisfy a requirement, and their prices."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from fleetform.cli.command import command as make_command
from fleetform.cli.command import directory_option, json_option, limit_option
from fleetform.cli.exit import Exit
from fleetform.cli.failure import Refused
from fleetform.cli.screen import error_screen, screen
from fleetform.cli.selection import unknown
from fleetform.cli.tree import load, open_workspace, or_default

if TYPE_CHECKING:
    from fleetform.model.offers import TriedOffer

_EXAMPLES = (
    ("fleetform offer --gpu A100:80GB:8", "List hosts with eight such GPUs, the cheapest first"),
    (
        "fleetform offer --gpu 24GB.. --max-price 2",
        "List hosts with one GPU of at least 24 GB for at most $2 an hour",
    ),
    ("fleetform offer train", "List what satisfies the declared run `train`"),
    ("fleetform offer --cpus 8 --spot auto --format json", "Both kinds, as JSON for scripts"),
    ("fleetform offer --refresh --region eu-west-1 --gpu 1", "Ask AWS what it offers in a region"),
)


_REGION = "us-east-1"
"""The region of the catalogue of AWS."""


@make_command(
    "offer",
    examples=_EXAMPLES,
    codes=((Exit.OK, "There is an offer."), (Exit.ERROR, "No offer satisfies the requirement.")),
)
@click.argument("name", required=False)
@directory_option
@click.option("--gpu", metavar="GPUS", help="GPUs of one host, such as 1, 24GB.. or H100:8.")
@click.option("--cpus", metavar="CPUS", help="CPU cores, such as 8.. or arm:4.")
@click.option("--memory", metavar="SIZE", help="Memory, such as 64GB...")
@click.option(
    "--backend",
    "backends",
    multiple=True,
    metavar="NAME",
    help="Only this backend; may be repeated.",
)
@click.option(
    "--region", "regions", multiple=True, metavar="NAME", help="Only this region; may be repeated."
)
@click.option(
    "--type",
    "instance_types",
    multiple=True,
    metavar="NAME",
    help="Only this instance type; may be repeated.",
)
@click.option(
    "--spot",
    "spot_policy",
    type=click.Choice(["on-demand", "spot", "auto"]),
    help="Kind of instances; `auto` is both.  [default: on-demand]",
)
@click.option(
    "--max-price",
    metavar="DOLLARS",
    help="Highest price of one host an hour; excludes unknown prices.",
)
@click.option(
    "--refresh",
    is_flag=True,
    help="Ask AWS first for the types and prices of the regions; later commands and plans use the answer.",
)
@limit_option(20)
@json_option
def command(
    name: str | None,
    path: str | None,
    gpu: str | None,
    cpus: str | None,
    memory: str | None,
    max_price: str | None,
    refresh: bool,
    limit: int,
    as_json: bool,
    **narrowed: Any,
) -> int:
    """
    List offers of clouds: instance types that satisfy a requirement, the cheapest first.

    NAME is a declared run or fleet: its resources, backends, regions, instance types, spot policy and
    highest price count, and options override them. Of a fleet, offers that its cloud has refused in the last
    10 minutes are named: the fleet does not ask for them now. Prices come from a catalogue that is part of
    fleetform, and no cloud is asked without --refresh: it has AWS in us-east-1, with prices on demand.
    Offers of unknown price are listed last, as `unknown`.
    """
    from fleetform.app.clock import SystemClock
    from fleetform.app.offers import (
        find_offers,
        refresh_offers,
        refreshed_folder,
        warning_of,
        why_no_offer,
    )
    from fleetform.providers.offers import catalogue
    from fleetform.schedule.offer_reasons import refresh_command
    from fleetform.views.offers import (
        not_shown,
        offer_rows,
        offers_table,
        priced_on,
        refused_texts,
        several_hosts,
        unknown_prices,
    )

    document, types, tried = ({}, {}, ()) if name is None else _declared(or_default(path), name)
    typed = _typed(gpu, cpus, memory, max_price, narrowed)
    resources = {**document.get("resources", {}), **typed.pop("resources")}
    asked = {**document, **typed, "resources": resources}
    if refresh:
        regions, spot = asked.get("regions") or (_REGION,), asked.get("spot_policy") or "on-demand"
        for untold in refresh_offers("aws", regions, spot):
            error_screen().labelled("warning", untold)
    found = find_offers(asked, types)
    if not found.offers:
        why, advice = why_no_offer(found, asked)
        error_screen().labelled("error", why)
        error_screen().labelled("help", advice)
    elif warning := warning_of(found, asked):
        error_screen().labelled("warning", warning)
    now_ms = SystemClock().now_ms()
    rows = offer_rows(found.offers[:limit], tried, now_ms=now_ms)
    out = screen()
    if as_json:
        out.json(rows)
    elif rows:
        out.table(offers_table(rows))
        if more := len(found.offers) - len(rows):
            out.line(not_shown(more), "dim")
        out.line(priced_on(catalogue.priced_on(rows, refreshed_folder())), "dim")
        regions = tuple(dict.fromkeys(one.region for one in rows if one.price_micros is None))
        # After a question to the cloud, a warning has said why.
        if regions and not refresh:
            out.line(unknown_prices(refresh_command(regions)), "dim")
        if (nodes := _nodes(document)) > 1:
            out.line(several_hosts(str(name), nodes), "dim")
        for text in refused_texts(rows, now_ms):
            out.line(f"refused lately: {text}", "warn")
    return Exit.OK if rows else Exit.ERROR


def _nodes(document: Mapping[str, Any]) -> int:
    """How many hosts a run wants, or a fleet when it is created."""
    nodes = document.get("nodes", 1)
    return int(nodes if isinstance(nodes, int) else nodes["target"])


def _declared(
    path: str | None, name: str
) -> tuple[Mapping[str, Any], Mapping[str, str], tuple[TriedOffer, ...]]:
    """Read what a declared run or fleet asks for, the types of the declared backends, and what became of the offers of the fleet."""
    from fleetform.app.offers import backend_types, documents_called, names_with_offers

    workspace = open_workspace(path)
    desired = load(workspace, keep_going=True).desired
    assert desired is not None, "loading has refused it"
    documents = documents_called(desired, name)
    if not documents:
        raise unknown("run or fleet", name, names_with_offers(desired))
    if len(documents) > 1:
        raise Refused(
            f"the elements of {name} ask for different offers",
            advice=f"name one of them: `fleetform offer {shlex.quote(next(iter(documents)))}`",
        )
    (document,) = documents.values()
    tried = workspace.read(lambda reader: reader.read_offers(name), ())
    return document, backend_types(desired), tried


def _typed(
    gpu: str | None,
    cpus: str | None,
    memory: str | None,
    max_price: str | None,
    narrowed: Mapping[str, Sequence[str] | str | None],
) -> dict[str, Any]:
    """Write options as a canonical document, with those fields only that were given."""
    from fleetform.spec.quantities import cpu_document, gpu_document, parse_cpu, parse_gpu
    from fleetform.spec.quantities.memory import parse_memory_range
    from fleetform.spec.quantities.price import parse_price

    resources = {
        "gpu": _read("--gpu", gpu, lambda text: gpu_document(parse_gpu(text))),
        "cpu": _read("--cpus", cpus, lambda text: cpu_document(parse_cpu(text))),
        "memory": _read("--memory", memory, lambda text: parse_memory_range(text).document()),
    }
    return {
        **{name: value for name, value in narrowed.items() if value},
        **(
            {} if max_price is None else {"max_price": _read("--max-price", max_price, parse_price)}
        ),
        "resources": {name: value for name, value in resources.items() if value is not None},
    }


def _read(option: str, text: str | None, parse: Callable[[str], Any]) -> Any:
    try:
        return None if text is None else parse(text)
    except ValueError as error:
        raise Refused(
            f"{option}: {error}", advice="`fleetform explain task.resources` shows the forms"
        ) from error
