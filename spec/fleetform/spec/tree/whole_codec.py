"""
What a whole tree came to, as bytes and back.

Ten thousand resources are columns here, a list of names and one of digests: to read these takes a
tenth of the time that ten thousand lists would.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import chain, repeat
from typing import Any

from fleetform.spec.desired import ResourceKey
from fleetform.spec.tree.addresses import Addresses
from fleetform.spec.tree.cache import KeptFile
from fleetform.spec.tree.codec import (
    answer_read,
    decode_documents,
    encode_documents,
    finding_read,
    finding_written,
)
from fleetform.spec.tree.tagged import read_value, write_value
from fleetform.spec.tree.whole import Input, Rows, Whole

__all__ = ["decode_whole", "encode_whole"]


def encode_whole(whole: Whole) -> bytes:
    """
    Its files are not among it, except for documents that an overlay has made.

    Raises:
        TypeError: There is something in it that could not be read again.
        ValueError: Some value is none of JSON.
    """
    overlaid = encode_documents(whole.files[-1].documents).decode("utf-8", "surrogatepass")
    said = {
        "frame": write_value(whole.frame),
        "resources": _columns(whole.resources),
        "beyond": _columns(whole.beyond),
        "obstacles": write_value(dict(whole.obstacles)),
        "overlaid": overlaid,
        "findings": [finding_written(one) for one in whole.findings],
        "counts": [whole.documents_count, whole.files_count, whole.walked_count],
        "folders": whole.folders,
        "inputs": {path: list(one) for path, one in whole.inputs.items()},
        "answers": whole.answers,
        "addresses": write_value(tuple(whole.addresses)),
        "values": write_value(dict(whole.values)),
        "budget_left": whole.budget_left,
        "flags": [whole.is_alone, whole.has_disputes],
        "claims": whole.claims,
    }
    text = json.dumps(said, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return text.encode("utf-8", "surrogatepass")


def decode_whole(data: bytes, files: Sequence[KeptFile]) -> Whole:
    """
    What was encoded; `files` are the readings that were kept beside it, in the same order.

    Raises:
        ValueError, TypeError, KeyError, IndexError: It is nothing that `encode_whole` has written.
    """
    said = json.loads(data.decode("utf-8", "surrogatepass"))
    overlaid: str = said["overlaid"]
    documents_count, files_count, walked_count = said["counts"]
    is_alone, has_disputes = said["flags"]
    elements, written, digested = said["budget_left"]
    return Whole(
        read_value(said["frame"]),
        _columns_read(said["resources"]),
        _columns_read(said["beyond"]),
        read_value(said["obstacles"]),
        (*files, KeptFile("", "", "", decode=lambda: decode_documents(json.loads(overlaid)))),
        tuple([finding_read(one) for one in said["findings"]]),
        documents_count,
        files_count,
        tuple(said["folders"]),
        walked_count,
        {path: Input(*one) for path, one in said["inputs"].items()},
        tuple([answer_read(one) for one in said["answers"]]),
        Addresses(*read_value(said["addresses"])),
        read_value(said["values"]),
        (elements, written, digested),
        is_alone,
        has_disputes,
        said["claims"],
    )


def _columns(rows: Rows) -> dict[str, Any]:
    # In order of key, so that each kind is one stretch.
    counts: dict[str, int] = {}
    for kind, _ in rows.digests:
        counts[kind] = counts.get(kind, 0) + 1
    names: dict[tuple[str, ...], int] = {}
    return {
        "kinds": counts,
        "names": [name for _, name in rows.digests],
        "digests": list(rows.digests.values()),
        "origins": rows.origins,
        "upstream": [
            [position, names.setdefault(one, len(names))] for position, one in rows.upstream.items()
        ],
        "upstream_names": list(names),
    }


def _columns_read(said: dict[str, Any]) -> Rows:
    kinds = chain.from_iterable(repeat(kind, count) for kind, count in said["kinds"].items())
    keys = map(ResourceKey._make, zip(kinds, said["names"], strict=True))
    names = [tuple(one) for one in said["upstream_names"]]
    return Rows(
        dict(zip(keys, said["digests"], strict=True)),
        said["origins"],
        {position: names[number] for position, number in said["upstream"]},
    )
