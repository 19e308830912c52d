"""What offers there are for declared runs and fleets, or for amounts that a user types."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from fleetform.app.problems import WorkspaceProblem
from fleetform.providers.offers import catalogue
from fleetform.schedule.offers import OfferRequest, Selection, select
from fleetform.spec.names import split_element

if TYPE_CHECKING:
    from fleetform.spec.desired import Declared, Desired, ResourceKey

# What a catalogue does not say of its GPUs.
_UNKNOWN = ("slice", "compute_capability")
_KINDS = frozenset({"run", "fleet"})
FIELDS = ("resources", "backends", "regions", "instance_types", "spot_policy", "max_price")
"""The fields of a run or fleet that choose among offers."""


def documents_called(desired: Desired, name: str) -> dict[str, Mapping[str, Any]]:
    """
    Find the runs and fleets of that name by their own names, those too that cannot be carried out yet.

    Of a sweep or an array, each element that asks for other offers than those before it.
    """
    found: dict[str, Mapping[str, Any]] = {}
    for key, one in _declared(desired):
        if key.kind not in _KINDS or name not in {key.name, split_element(key.name)[0]}:
            continue
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
        WorkspaceProblem: It names a backend without a catalogue, or asks for what none says.
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
    request = OfferRequest.from_document({**document, "backends": backends})
    return select(_all_offers(backends or known), request)


def _all_offers(backends: Iterable[str]) -> Iterable[catalogue.Offer]:
    return (offer for backend in backends for offer in catalogue.offers(backend))


def backend_types(desired: Desired) -> dict[str, str]:
    """Give the type of each declared backend by its name."""
    return {
        key.name: one.document["type"] for key, one in _declared(desired) if key.kind == "backend"
    }


def _declared(desired: Desired) -> Iterable[tuple[ResourceKey, Declared]]:
    yield from desired.resources.items()
    yield from ((key, one.declared) for key, one in desired.beyond.items())
