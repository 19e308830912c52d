"""
The page that lists what is supported, kind by kind and field by field.

Only the examples are written here. The kinds, the fields and the reasons come from the code that
writes the findings; an example that gets no finding fails.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fleetform.spec import fields, schema
from fleetform.spec.findings import Problem
from fleetform.spec.kinds import BACKEND_TYPES as BACKENDS
from fleetform.spec.kinds import KINDS
from fleetform.spec.kinds.unsupported import KINDS as UNSUPPORTED_KINDS
from fleetform.spec.kinds.unsupported import WHY
from fleetform.spec.nodes import plain
from fleetform.spec.syntax import read_documents
from fleetform.spec.tree.document_problems import notes

_INTRODUCTION = """\
# What is supported

fleetform loads, validates and plans every kind and field of the language. This version supports hosts of this machine and hosts over SSH.
`fleetform validate` adds a note to each line that is not supported yet. There are two kinds of notes:

- **blocked** (`not-supported`): without the field, the resource would be a different one. `fleetform plan` shows the
  change in a separate section and blocks it, together with the resources that need it.
- **no effect** (`no-effect`): the resource works without the field.

"""

_AWS = (
    'regions: us-east-1\naws: {account: "123456789012", ssh_from: 203.0.113.7/32,'
    " image: ami-0f1e2d3c4b5a69788}"
)

_FLEETS = {
    "`local`": "local: true",
    "`ssh_config`": "ssh_config: {user: me, hosts: [node-1.example.com]}",
    "`aws`": _AWS,
    "`kubernetes`": "kubernetes: {context: lab}",
    "`slurm`": "slurm: {cluster: lab}",
    "none of these: in another cloud": "nodes: 0..2",
}

_VOLUMES = {
    "`fleet` with `path`": "fleet: local\npath: data",
    "`backend: aws` with `aws`": (
        "backend: aws\nregion: eu-west-1\navailability_zone: eu-west-1a\nsize: 100GB\n"
        'aws: {account: "123456789012"}'
    ),
    "`backend: aws` without `aws`": "backend: aws\nregion: eu-west-1\nsize: 100GB",
    "another `backend`": "backend: gcp\nregion: us-central1\nsize: 100GB",
}

# Values that are not supported, in fields that are.
_VALUES = {
    "task": (
        "runtime: container",
        "stop_duration: off",
        "on_upstream_change: rerun",
        "fleets: [other-project/gpus]",
        "env: [HF_TOKEN]",
        "resources: {cpu: arm:4}",
        "volumes: [/mnt/nvme:/scratch]",
        "volumes: [{name: [data-eu, data-us], path: /data}]",
        "files: [train.py:~/train.py]",
    ),
    "fleet": ("blocks: auto", "runtime: container"),
}

_BASE = {
    "task": "type: task\nname: train\ncommands: [python train.py]\n",
    "fleet": "type: fleet\nname: local\nlocal: true\n",
}


def page() -> Iterator[str]:
    """The page's text, in pieces."""
    yield _INTRODUCTION
    yield from _kinds()
    for kind in ("task", "fleet"):
        yield from _fields(kind)
        yield from _values(kind)


def _kinds() -> Iterator[str]:
    yield "## Kinds\n\n| `type:` | this version | |\n|---|---|---|\n"
    for name in schema.MODELS:
        if name in BACKENDS:
            continue
        why = UNSUPPORTED_KINDS.get(
            name, UNSUPPORTED_KINDS.get(KINDS[name].name if name in KINDS else "")
        )
        if why is not None:
            yield f"| `{name}` | blocked | {why} |\n"
        elif name == "fleet":
            yield from _makes(name, _FLEETS)
        elif name == "volume":
            yield from _makes(name, _VOLUMES)
        else:
            rest = ", except for the fields below" if fields.unsupported(name) else ""
            yield f"| `{name}` | supported{rest} | |\n"
    listed = ", ".join(f"`{name}`" for name in BACKENDS)
    yield f"| {listed} | blocked | {UNSUPPORTED_KINDS['backend']} |\n"


def _makes(kind: str, sources: dict[str, str]) -> Iterator[str]:
    """A kind that is supported from some sources."""
    for source, text in sources.items():
        told = _told(f"type: {kind}\nname: example\n{text}\n")
        state, why = ("blocked", told[0].detail) if told else ("supported", "")
        yield f"| `{kind}`, {source} | {state} | {why} |\n"


def _fields(kind: str) -> Iterator[str]:
    """
    Fields that are not supported, those with one reason in one row.

    Of a fleet, those that one of this machine may have; the others say where hosts come from.
    """
    known = schema.MODELS[kind].model_fields
    why = WHY.get(KINDS[kind].name, {})
    rows: dict[tuple[str, str], list[str]] = {}
    for path, facts in fields.unsupported(kind).items():
        if path.partition(".")[0] in known and (kind == "task" or path in why):
            state = "blocked" if facts.essential else "no effect"
            rows.setdefault((state, why.get(path, "")), []).append(f"`{path}`")
    if rows:
        yield f"\n## Fields of a `{kind}`\n\n| field | this version | |\n|---|---|---|\n"
    for (state, reason), paths in sorted(rows.items(), key=lambda row: (row[0][0], row[1])):
        yield f"| {', '.join(paths)} | {state} | {reason} |\n"


def _values(kind: str) -> Iterator[str]:
    yield f"\n## Values in a `{kind}`\n\nThe field is supported, but not with this value.\n\n"
    yield "| value | this version | |\n|---|---|---|\n"
    for text in _VALUES[kind]:
        told = _told(f"{_BASE[kind]}{text}\n")
        assert told, f"{text} is supported: remove it from the list"
        state = "no effect" if told[0].code == "no-effect" else "blocked"
        yield f"| `{text}` | {state} | {told[0].detail} |\n"


def _told(text: str) -> list[Problem]:
    """The notes that the document gets."""
    (node,), findings = read_documents(text.encode(), "example.yaml")
    assert not findings, text
    value: Any = plain(node)
    kind = KINDS[value["type"]]
    return list(notes(value, kind, kind.model.model_validate(value)))
