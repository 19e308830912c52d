"""Two fleets that claim one host: its GPUs would be given away twice."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from fleetform.spec.findings import Problem
from fleetform.spec.references import Catalogue, Entry

# The port of SSH (RFC 4251), where neither host nor fleet says one.
_PORT = 22


def check_hosts(catalogue: Catalogue) -> Iterator[tuple[Entry, Problem]]:
    """Told at each of the two fleets; a fleet's own hosts are its model's to compare."""
    claimed: dict[tuple[str, int], Entry] = {}
    for entry in catalogue.of_kind("fleet"):
        mine: dict[tuple[str, int], str] = {}
        for document in entry.documents:
            mine.update(_claimed(document.get("ssh_config", {})))
        shared: dict[int, tuple[Entry, list[str]]] = {}
        for identity, name in mine.items():
            first = claimed.setdefault(identity, entry)
            # Those that are declared twice are told as duplicates.
            if first.key != entry.key:
                shared.setdefault(first.number, (first, []))[1].append(name)
        for first, names in shared.values():
            yield entry, _host_problem(names, first)
            yield first, _host_problem(names, entry)


def _claimed(config: Mapping[str, Any]) -> dict[tuple[str, int], str]:
    """The name as it is written, by what tells a host from others; lost ones are nobody's."""
    port = config.get("port", _PORT)
    return {
        (host["hostname"].casefold().rstrip("."), host.get("port", port)): host["hostname"]
        for host in config.get("hosts", ())
        if "lost" not in host
    }


def _host_problem(names: list[str], other: Entry) -> Problem:
    what = f"The host `{names[0]}` belongs"
    if len(names) > 1:
        what = f"The hosts `{names[0]}` and {len(names) - 1} more belong"
    return Problem(
        "host-claimed-twice",
        ("ssh_config", "hosts"),
        f"{what} to the fleet `{other.key.name}` ({other.place.file}:{other.place.line}) as well; its free resources would be allocated twice.",
        "Remove it from one of the two. Several queues may lead to one fleet.",
        word=names[0],
    )
