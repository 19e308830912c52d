"""What offers there are for declared runs and fleets, or for amounts that a user types."""

from __future__ import annotations

import contextlib
import difflib
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from fleetform.app.paths import state_home
from fleetform.app.problems import LedgerProblem, WorkspaceProblem
from fleetform.model.figures import first_of
from fleetform.model.instance import Gpu
from fleetform.model.live import FleetOffers
from fleetform.model.run import GpuRequirement
from fleetform.providers.contract.errors import PermanentError, ProviderError
from fleetform.providers.offers import catalogue
from fleetform.schedule.demand import gpu_matches
from fleetform.schedule.offer_reasons import no_offer, refresh_command, spot_warning
from fleetform.schedule.offers import OfferRequest, Selection, select
from fleetform.spec.clouds.names import REGIONS
from fleetform.spec.desired import ResourceKey
from fleetform.spec.names import split_element

if TYPE_CHECKING:
    from pathlib import Path

    from fleetform.app.workspace import Workspace
    from fleetform.model.offers import TriedOffer
    from fleetform.spec.desired import Declared, Desired

# What a catalogue does not say of its GPUs.
_UNKNOWN = ("slice", "compute_capability")
_OWN_HOSTS = ("local", "ssh_config")
_KINDS = frozenset({"run", "fleet"})
_NAMES_MAX = 3
"""Names in an advice; more are a list to read."""
FIELDS = (
    "resources", "nodes", "backends", "regions", "instance_types", "spot_policy", "max_price", "placement",
)  # fmt: skip
"""The fields of a run or fleet that choose among offers, and the number of hosts."""


def documents_called(desired: Desired, name: str) -> dict[str, Mapping[str, Any]]:
    """
    Find the runs and fleets of that name by their own names, those too that cannot be carried out yet.

    Of a sweep or an array, each element that asks for other offers than those before it.

    Raises:
        WorkspaceProblem: The document of that name is invalid, or is a fleet with hosts of its own.
    """
    for kind in sorted(_KINDS):
        if ResourceKey(kind, name) in desired.broken:
            raise WorkspaceProblem(
                f"the document of {kind} {name} is invalid", "correct it first, as shown above"
            )
    found: dict[str, Mapping[str, Any]] = {}
    for key, one in _declared(desired):
        if key.kind not in _KINDS or name not in {key.name, split_element(key.name)[0]}:
            continue
        if any(source in one.document for source in _OWN_HOSTS):
            raise WorkspaceProblem(
                f"fleet {name} has hosts of its own, and offers are of clouds",
                "give the requirement by options, such as `--gpu H100:8`",
            )
        narrowed = {field: one.document[field] for field in FIELDS if field in one.document}
        if narrowed not in found.values():
            found[key.name] = narrowed
    return found


def names_with_offers(desired: Desired) -> list[str]:
    """Name the runs and fleets that `documents_called` finds."""
    return sorted(
        {split_element(key.name)[0] for key, _one in _declared(desired) if key.kind in _KINDS}
    )


def find_offers(document: Mapping[str, Any], backend_types: Mapping[str, str]) -> Selection:
    """
    Choose among the offers of all catalogues.

    Args:
        document: The canonical fields `FIELDS`, each of which may be missing.
        backend_types: The type of each declared backend, by its name.

    Raises:
        WorkspaceProblem: It names what no catalogue has, or asks for what none says.
    """
    gpu = (document.get("resources") or {}).get("gpu") or {}
    for field in _UNKNOWN:
        if field in gpu:
            raise WorkspaceProblem(
                f"catalogues of offers do not say the `{field}` of a GPU",
                f"leave `resources.gpu.{field}` out, and give the GPU's `name` or `memory`",
            )
    backends = [backend_types.get(name, name) for name in document.get("backends") or ()]
    known = catalogue.backends()
    if without := [name for name in backends if name not in known]:
        raise WorkspaceProblem(
            f"there is no catalogue of offers for `{without[0]}`",
            f"offers are known of {', '.join(known)}",
        )
    offers = [
        offer
        for backend in backends or known
        for offer in catalogue.offers(backend, refreshed_folder())
    ]
    request = OfferRequest.from_document({**document, "backends": backends})
    offers += [
        offer
        for backend in backends or known
        for offer in catalogue.offers_elsewhere(backend, request.regions, refreshed_folder())
    ]
    known_regions = {one.region for one in offers}
    known_regions.update(*(REGIONS[backend] for backend in backends or known))
    for region in request.regions:
        new = f"If AWS has this region, run `{refresh_command((region,))}`."
        _refuse_unknown("region", (region,), known_regions, new)
    new = f"If AWS has this type, run `{refresh_command(request.regions)}`."
    _refuse_unknown(
        "instance type", request.instance_types, {one.instance_type for one in offers}, new
    )
    models = {
        one.gpu_name: Gpu("", one.gpu_name, 0, vendor=one.gpu_vendor)
        for one in offers
        if one.gpu_name
    }
    for name in request.requirement.gpu.names if request.requirement.gpu else ():
        if not any(gpu_matches(GpuRequirement(1, names=(name,)), one) for one in models.values()):
            _refuse_unknown("GPU", {name}, models)
    return select(offers, request)


def refreshed_folder() -> Path:
    """Return the folder with what clouds have said of their offers."""
    return state_home() / "offers"


def refresh_offers(backend: str, regions: Iterable[str], spot: str) -> list[str]:
    """
    Ask a cloud for its offers in these regions, and keep the answers.

    Returns:
        Which prices it did not tell of the instances that `spot`, a spot policy, allows, why, and what to do; they are unknown.

    Raises:
        WorkspaceProblem: It does not answer, refuses, or tells no price on demand, or of spot, where some are known: all of the region stay.
    """
    # Here: offers are mostly read from catalogues.
    from fleetform.app.clock import SystemClock
    from fleetform.providers.registry import region_offers

    now = datetime.fromtimestamp(SystemClock().now_ms() / 1000, UTC)
    untold: list[str] = []
    for region in regions:
        try:
            found = region_offers(backend, region, now)
        except ProviderError as problem:
            raise WorkspaceProblem(
                f"the offers of {backend} are not known: {problem}", _advice_of(problem)
            ) from problem
        before = [
            one for one in catalogue.offers(backend, refreshed_folder()) if one.region == region
        ]
        kinds = (
            ("on demand", False, found.on_demand_problem, spot != "spot"),
            ("of spot", True, found.spot_problem, spot != "on-demand"),
        )
        for kind, is_spot, refusal, is_asked in kinds:
            rows = [row for row in found.rows if bool(row.get("spot")) == is_spot]
            if not rows or any(row.get("price") for row in rows):
                continue
            why = f": {refusal}" if refusal else ", though it answered"
            told = f"{backend} told no prices {kind} in {region}{why}"
            advice = _advice_of(refusal) if refusal else _NO_PRICES
            if any(one.price_micros is not None for one in before if one.spot == is_spot):
                raise WorkspaceProblem(f"{told}; all that is known of {region} stays", advice)
            if is_asked:
                untold.append(f"{told}; they are unknown" + (f" ({advice})" if advice else ""))
        catalogue.write_region(refreshed_folder(), backend, region, found.rows)
    return untold


_NO_PRICES = "ask again later: the price list of a cloud may lag behind its regions and types"


def _advice_of(problem: ProviderError) -> str:
    return problem.advice if isinstance(problem, PermanentError) else ""


def retry_offers(workspace: Workspace, fleet: str, *, who: str) -> tuple[TriedOffer, ...]:
    """
    Have a fleet ask again for the offers that its cloud has refused, and return those that it would not ask for now.

    Raises:
        LedgerProblem: The ledger cannot be written; nothing has changed.
    """
    # Here: most commands about offers write no ledger.
    from fleetform.app.clock import SystemClock
    from fleetform.app.ledger import open_for_writing
    from fleetform.model.ports import LedgerUnavailable

    with contextlib.closing(open_for_writing(workspace)) as ledger:
        try:
            return ledger.retry_offers(fleet, who=who, now_ms=SystemClock().now_ms())
        except LedgerUnavailable as problem:
            raise LedgerProblem(str(problem), "run the same command again") from problem


def offers_of_fleet(document: Mapping[str, Any]) -> FleetOffers:
    """Choose among the offers of AWS for the hosts of a fleet; without any, say why."""
    narrowed = {name: document[name] for name in FIELDS if name in document}
    try:
        found = find_offers({**narrowed, "backends": ["aws"]}, {})
    except WorkspaceProblem as problem:
        return FleetOffers((), str(problem), problem.advice)
    if found.offers:
        return FleetOffers(found.offers, warning=warning_of(found, narrowed))
    return FleetOffers((), *why_no_offer(found, narrowed))


def why_no_offer(found: Selection, document: Mapping[str, Any]) -> tuple[str, str]:
    """Return why none of the offers satisfies `document`, as for `find_offers`, and what to change."""
    request = OfferRequest.from_document(document)
    why, advice = no_offer(found, request, document.get("resources") or {})
    return f"no offer satisfies it: {why}", advice


def warning_of(found: Selection, document: Mapping[str, Any]) -> str:
    """Return what people should know of the offers that `find_offers` has found for `document`; empty: nothing."""
    return spot_warning(found, OfferRequest.from_document(document))


def _refuse_unknown(what: str, names: Iterable[str], known: Iterable[str], new: str = "") -> None:
    """Refuse names that no offer has; `new` is what to do if there is such a thing."""
    has = sorted(known)
    for name in sorted(set(names).difference(has)):
        near = [f"`{one}`" for one in difflib.get_close_matches(name, has, n=_NAMES_MAX)]
        there = f"there is {first_of(has, _NAMES_MAX)}{'.' if new else ''}"
        meant = f"did you mean {' or '.join(near)}?" if near else there
        raise WorkspaceProblem(
            f"no catalogue of offers has the {what} `{name}`", f"{meant} {new}".strip()
        )


def backend_types(desired: Desired) -> dict[str, str]:
    """Give the type of each declared backend by its name."""
    return {
        key.name: one.document["type"] for key, one in _declared(desired) if key.kind == "backend"
    }


def _declared(desired: Desired) -> Iterable[tuple[ResourceKey, Declared]]:
    yield from desired.resources.items()
    yield from ((key, one.declared) for key, one in desired.beyond.items())
