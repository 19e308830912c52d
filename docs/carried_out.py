"""
What this version carries out: the page that tells it kind by kind, and field by field.

Nothing is written down here but examples. Which kinds and fields these are, and why nothing
carries them out, is asked of the code that writes the findings; an example that gets none fails.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fleetform.spec import fields, schema
from fleetform.spec.documents import read_documents
from fleetform.spec.fields.backend import TYPES as BACKENDS
from fleetform.spec.findings import Problem
from fleetform.spec.kinds import KINDS
from fleetform.spec.kinds.unbuilt import KINDS as UNBUILT_KINDS
from fleetform.spec.kinds.unbuilt import WHY
from fleetform.spec.nodes import plain
from fleetform.spec.tree.unbuilt import notes

_INTRODUCTION = """\
# What is carried out

The whole language loads: every kind and field is checked, completed and compared. This version carries out what runs
on one machine. The rest is of one of two kinds, and `fleetform validate` says which at its line, in a finding of level `note`:

- **held** (`not-carried-out`): without it, something else would be made than was declared. `fleetform plan` shows it in a
  section of its own, and `fleetform apply` leaves it alone; what runs on it or waits for it is held too.
- **no effect** (`no-effect`): it goes on without.

"""

_FLEETS = {
    "`local`": "local: true",
    "`ssh_config`": "ssh_config: {user: me, hosts: [node-1.example.com]}",
    "`kubernetes`": "kubernetes: {context: lab}",
    "`slurm`": "slurm: {cluster: lab}",
    "none of these: in a cloud": "nodes: 0..2",
}

_VOLUMES = {
    "`fleet` with `path`": "fleet: local\npath: data",
    "`backend`": "backend: aws\nregion: eu-west-1\nsize: 100GB",
}

# What a field says that this version carries out for other values.
_VALUES = {
    "task": (
        "runtime: container",
        "stop_duration: off",
        "on_silence: stop after 10m",
        "startup_order: workers-first",
        "stop_criteria: master-done",
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
        why = UNBUILT_KINDS.get(name, UNBUILT_KINDS.get(KINDS[name].name if name in KINDS else ""))
        if why is not None:
            yield f"| `{name}` | held | {why} |\n"
        elif name == "fleet":
            yield from _makes(name, _FLEETS)
        elif name == "volume":
            yield from _makes(name, _VOLUMES)
        else:
            rest = ", but for what is below" if fields.unbuilt(name) else ""
            yield f"| `{name}` | carried out{rest} | |\n"
    listed = ", ".join(f"`{name}`" for name in BACKENDS)
    yield f"| {listed} | held | {UNBUILT_KINDS['backend']} |\n"


def _makes(kind: str, sources: dict[str, str]) -> Iterator[str]:
    """A kind of which it depends on where it lies."""
    for source, text in sources.items():
        told = _told(f"type: {kind}\nname: example\n{text}\n")
        state, why = ("held", told[0].detail) if told else ("carried out", "")
        yield f"| `{kind}`, {source} | {state} | {why} |\n"


def _fields(kind: str) -> Iterator[str]:
    """
    Fields that nothing carries out, those of one reason in a row.

    Of a fleet, those that one of this machine may have; the others say where hosts come from.
    """
    known = schema.MODELS[kind].model_fields
    why = WHY.get(KINDS[kind].name, {})
    rows: dict[tuple[str, str], list[str]] = {}
    for path, facts in fields.unbuilt(kind).items():
        if path.partition(".")[0] in known and (kind == "task" or path in why):
            state = "held" if facts.essential else "no effect"
            rows.setdefault((state, why.get(path, "")), []).append(f"`{path}`")
    if rows:
        yield f"\n## Fields of a `{kind}`\n\n| field | this version | |\n|---|---|---|\n"
    for (state, reason), paths in sorted(rows.items(), key=lambda row: (row[0][0], row[1])):
        yield f"| {', '.join(paths)} | {state} | {reason} |\n"


def _values(kind: str) -> Iterator[str]:
    yield f"\n## Values in a `{kind}`\n\nThe field is carried out, and not with this value.\n\n"
    yield "| value | this version | |\n|---|---|---|\n"
    for text in _VALUES[kind]:
        told = _told(f"{_BASE[kind]}{text}\n")
        assert told, f"{text} is carried out: take it from the list"
        state = "no effect" if told[0].code == "no-effect" else "held"
        yield f"| `{text}` | {state} | {told[0].detail} |\n"


def _told(text: str) -> list[Problem]:
    """The notes that the document gets."""
    (node,), findings = read_documents(text.encode(), "example.yaml")
    assert not findings, text
    value: Any = plain(node)
    kind = KINDS[value["type"]]
    return list(notes(value, kind, kind.model.model_validate(value)))
