"""
From what a document came to, to the resources that it declares, and to the digest of all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict

from fleetform.spec.canonical import digest
from fleetform.spec.desired import Declared, ResourceKey, Rules
from fleetform.spec.references import mentioned, required
from fleetform.spec.table import Table
from fleetform.spec.tree.addresses import Addresses
from fleetform.spec.tree.outcome import Outcome, Row

__all__ = ["declared_of", "digests_by_address", "document_of", "tree_digest"]


def declared_of(outcome: Outcome, row: Row, upstream: tuple[str, ...]) -> Declared:
    """The resource of one row; `upstream` are the names of the runs that it waits for."""
    key = outcome.keys[0]
    document = document_of(outcome, row)
    return Declared(
        ResourceKey(key.kind, row.name),
        outcome.type,
        document,
        row.digest,
        row.execution_digest,
        row.own_digest,
        key.name if row.identity else "",
        row.identity,
        required(mentioned(document, key.kind)) if outcome.required is None else outcome.required,
        upstream,
        outcome.place,
    )


def document_of(outcome: Outcome, row: Row) -> Mapping[str, object]:
    """Its whole canonical document."""
    return {**outcome.shared, **row.own} if row.own else outcome.shared


def digests_by_address(*tables: Table) -> dict[str, str]:
    """Digest of each resource's whole document, by its address: `run/train`."""
    return {str(key): digest for table in tables for key, digest in table.digests.items()}


def tree_digest(digests: Mapping[str, str], rules: Rules, addresses: Addresses) -> str:
    """Digest of all that a tree declares; `digests` are those of whole documents, by address."""
    said = {
        name: [[str(key) for key in one] for one in keys]
        for name, keys in (
            ("moved", addresses.moved),
            ("removed", [(key,) for key in addresses.removed]),
            ("import", [(key,) for key in addresses.imports]),
        )
        if keys
    }
    return digest(
        {
            **said,
            "resources": digests,
            "rules": {
                "allow_destroy": rules.allow_destroy,
                "delete_percent": rules.delete_percent,
                "delete_count": rules.delete_count,
                **({"freeze": [asdict(one) for one in rules.freeze]} if rules.freeze else {}),
            },
        }
    )
