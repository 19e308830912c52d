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
from fleetform.spec.tree import codec, tagged
from fleetform.spec.tree.addresses import Addresses
from fleetform.spec.tree.cache import KeptFile
from fleetform.spec.tree.whole import Input, Rows, Whole

__all__ = ["decode", "encode"]


def encode(whole: Whole) -> bytes:
    """
    Its files are not among it, except for documents that an overlay has made.

    Raises:
        TypeError: There is something in it that could not be read again.
        ValueError: Some value is none of JSON.
    """
    overlaid = codec.encode(whole.files[-1].documents).decode("utf-8", "surrogatepass")
    said = {
        "frame": tagged.write(whole.frame),
        "resources": _rows(whole.resources),
        "beyond": _rows(whole.beyond),
        "obstacles": tagged.write(dict(whole.obstacles)),
        "overlaid": overlaid,
        "findings": [codec.finding_written(one) for one in whole.findings],
        "counts": [whole.documents_count, whole.files_count, whole.walked_count],
        "folders": whole.folders,
        "inputs": {path: list(one) for path, one in whole.inputs.items()},
        "answers": whole.answers,
        "addresses": tagged.write(tuple(whole.addresses)),
        "values": tagged.write(dict(whole.values)),
        "budget_left": whole.budget_left,
        "flags": [whole.is_alone, whole.has_disputes],
        "claims": whole.claims,
    }
    text = json.dumps(said, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return text.encode("utf-8", "surrogatepass")


def decode(data: bytes, files: Sequence[KeptFile]) -> Whole:
    """
    What was encoded; `files` are the readings that were kept beside it, in the same order.

    Raises:
        ValueError, TypeError, KeyError, IndexError: It is nothing that `encode` has written.
    """
    said = json.loads(data.decode("utf-8", "surrogatepass"))
    overlaid: str = said["overlaid"]
    documents_count, files_count, walked_count = said["counts"]
    is_alone, has_disputes = said["flags"]
    elements, written, digested = said["budget_left"]
    return Whole(
        tagged.read(said["frame"]),
        _rows_of(said["resources"]),
        _rows_of(said["beyond"]),
        tagged.read(said["obstacles"]),
        (*files, KeptFile("", "", "", decode=lambda: codec.decode(json.loads(overlaid)))),
        tuple([codec.finding_read(one) for one in said["findings"]]),
        documents_count,
        files_count,
        tuple(said["folders"]),
        walked_count,
        {path: Input(*one) for path, one in said["inputs"].items()},
        tuple([codec.answer_read(one) for one in said["answers"]]),
        Addresses(*tagged.read(said["addresses"])),
        tagged.read(said["values"]),
        (elements, written, digested),
        is_alone,
        has_disputes,
        said["claims"],
    )


def _rows(rows: Rows) -> dict[str, Any]:
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


def _rows_of(said: dict[str, Any]) -> Rows:
    kinds = chain.from_iterable(repeat(kind, count) for kind, count in said["kinds"].items())
    keys = map(ResourceKey._make, zip(kinds, said["names"], strict=True))
    names = [tuple(one) for one in said["upstream_names"]]
    return Rows(
        dict(zip(keys, said["digests"], strict=True)),
        said["origins"],
        {position: names[number] for position, number in said["upstream"]},
    )
