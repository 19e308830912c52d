"""
Snippets that editors offer, in YAML's flow style.

A kind's first snippet is the example in its docstring. The tables below add what one example
cannot show. `${1:name}` is a place to fill in, with what stands there at first; the tests put all
of them through the kinds' models, and through a real editor's server.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from fleetform.spec.nodes import plain
from fleetform.spec.schema import models, wording
from fleetform.spec.syntax import read_documents


def flow(value: Any) -> str:
    """The value on one line, its texts quoted only where they have to be."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{flow(key)}: {flow(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(flow(item) for item in value) + "]"
    if isinstance(value, str) and _is_plain(value):
        return value
    return json.dumps(value, ensure_ascii=False)


@functools.cache
def _is_plain(text: str) -> bool:
    """Whether the text without quotes is read as itself, wherever it stands."""
    nodes, findings = read_documents(f"[{text}]".encode(), "example")
    return not findings and len(nodes) == 1 and plain(nodes[0]) == [text]


Snippet = dict[str, Any]


class _Part(NamedTuple):
    label: str
    description: str
    body: Any


_DOCUMENTS: Mapping[str, tuple[_Part, ...]] = {
    "task": (
        _Part(
            "sweep",
            "A run for each combination of values.",
            {
                "type": "task",
                "name": "${1:sweep}",
                "matrix": {"lr": ["${2:0.1}", "${3:0.01}"]},
                "commands": ["${4:python train.py} --lr \\${{ matrix.lr \\}\\}"],
            },
        ),
        _Part(
            "array",
            "A run for each index, with a limit on how many run at a time.",
            {
                "type": "task",
                "name": "${1:render}",
                "array": "${2:1-100}%${3:10}",
                "commands": ["${4:python render.py} \\$FLEETFORM_ARRAY_INDEX"],
            },
        ),
        _Part(
            "distributed task",
            "A run on several hosts, which all start together.",
            {
                "type": "task",
                "name": "${1:train}",
                "nodes": "${2:2}",
                "commands": [
                    "torchrun --nnodes=\\$FLEETFORM_NODES_NUM --node-rank=\\$FLEETFORM_NODE_RANK ${3:train.py}"
                ],
                "resources": {"gpu": "${4:A100:80GB:8}"},
            },
        ),
    ),
}
"""Further snippets than the example of the kind, by `type:`."""

_FIELDS: Mapping[str, tuple[_Part, ...]] = {
    "resources": (
        _Part("one GPU", "One GPU with a model and memory.", {"gpu": "${1:A100:80GB:1}"}),
        _Part(
            "GPU, CPUs and memory",
            "GPUs, CPUs, memory and shared memory of a training job.",
            {"gpu": "${1:A100:80GB:8}", "cpu": "${2:32..}", "memory": "${3:256GB..}", "shm_size": "${4:64GB}"},
        ),
        _Part("no GPU", "CPUs and memory only.", {"cpu": "${1:4..}", "memory": "${2:16GB..}"}),
    ),
    "resources.gpu": (
        _Part(
            "any of several names",
            "GPUs of any one of these models.",
            {"name": ["${1:A100}", "${2:H100}"], "memory": "${3:80GB..}", "count": "${4:8}"},
        ),
    ),
    "retry": (
        _Part(
            "after preemption",
            "Try again, a limited number of times, after preemption or a failure of the host.",
            {"on": ["preemption", "node-failure"], "max_attempts": "${1:3}"},
        ),
    ),
    "checkpoint": (
        _Part(
            "signal before the end",
            "A signal that lets the program save its state in time.",
            {"signal": "${1:USR1}", "lead": "${2:5m}"},
        ),
    ),
    "concurrency": (
        _Part(
            "one at a time",
            "Runs of the same group run one after another.",
            {"group": "${1:one-at-a-time}", "limit": "${2:1}"},
        ),
    ),
}  # fmt: skip
"""By the path of a run's field. A part that this version of a field does not take is an error."""

WITHOUT = frozenset({"environment"})
"""`fleetform init` writes it: a uid that an editor hands out would be the same for everybody."""

_PLACE = re.compile(r"\$\{\d+:([^}]*)\}")


def document_snippets(kind: str) -> list[Snippet]:
    """The documents that an editor offers for a kind, the plain one first."""
    if kind in WITHOUT:
        return []
    model = models.MODELS[kind]
    example = wording.example_document(model)
    plain = [_Part(kind, wording.summary(model), _named(example))] if example else []
    return [_snippet(part) for part in (*plain, *_DOCUMENTS.get(kind, ()))]


def field_snippets(kind: str, path: str, text: str) -> list[Snippet]:
    """
    The values that an editor offers for a field, other than the examples that are scalars.

    Args:
        kind: A document's `type:`.
        path: The field's.
        text: Its docstring. Examples in it that are lists or mappings are offered here, because
            the YAML language server garbles them elsewhere (`[object Object]`, bare `$`).
    """
    parts = _FIELDS.get(path, ()) if models.shares_run_fields(kind) else ()
    examples = [_example(written, value) for written, value in wording.compound_examples(text)]
    return [*(_snippet(part) for part in parts), *examples]


def filled_in(body: Any) -> Any:
    """A snippet's body with the default text in all of its places."""
    if isinstance(body, dict):
        return {key: filled_in(value) for key, value in body.items()}
    if isinstance(body, list):
        return [filled_in(value) for value in body]
    if not isinstance(body, str):
        return body
    text = re.sub(r"\\([\\$}])", r"\1", _PLACE.sub(r"\1", body))
    return json.loads(text) if text.startswith('"') else text


def _named(example: Any) -> Any:
    """The example, its name a place to fill in and all else as text that is no place."""
    escaped = _escaped(example)
    if "name" in escaped:
        escaped["name"] = f"${{1:{escaped['name']}}}"
    return escaped


def _escaped(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _escaped(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_escaped(item) for item in value]
    # The server inserts texts as they are, so the quotes that YAML wants have to be in them.
    return _text(flow(value)) if isinstance(value, str) else value


def _text(text: str) -> str:
    """The text as one that has no places to fill in."""
    return re.sub(r"[\\$}]", r"\\\g<0>", text)


def _example(written: str, value: Any) -> Snippet:
    # A list is written as one text: the server takes the numbers of its entries for keys.
    if isinstance(value, dict):
        return {"label": written, "body": _escaped(value)}
    return {"label": written, "bodyText": _text(written)}


def _snippet(part: _Part) -> Snippet:
    return {"label": part.label, "description": part.description, "body": part.body}
