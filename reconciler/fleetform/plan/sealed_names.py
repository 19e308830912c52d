"""
Elements whose names have a secret in clear, as an earlier release gave them, and their names now.

An upgrade must run nothing again: each such element is renamed, as `moved:` in `environment.yaml` would.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from fleetform.model.live import Live
from fleetform.model.rows import changed_rows
from fleetform.spec.desired import Desired, ResourceKey
from fleetform.spec.names import element_name, parse_address
from fleetform.spec.secrecy import names_secret, sealed_for_name


def with_sealed_names(desired: Desired, live: Live) -> Desired:
    """Return what is declared, with a rename for each element that has its secret in clear."""
    renames = tuple(_renames(desired, live))
    return replace(desired, moved=(*desired.moved, *renames)) if renames else desired


def _renames(desired: Desired, live: Live) -> Iterator[tuple[ResourceKey, ResourceKey]]:
    for key, row in sorted(changed_rows(live.resources).items()):
        # Of a sweep, which is told by its parameters: most rows are none.
        if key.kind != "run" or "=" not in row.element or key in desired.resources:
            continue
        parameters = dict(parse_address(key.name).params)
        sealed = {
            name: sealed_for_name(desired.environment.uid, text) if names_secret(name) else text
            for name, text in parameters.items()
        }
        after = ResourceKey("run", element_name(row.parent, sealed))
        if after != key and after in desired.resources:
            yield key, after
