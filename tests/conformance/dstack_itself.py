"""
dstack's own documents, and what the installed dstack makes of them.

They are in the source archive of its release, in examples and in its documentation. This project
has no copy of them: `make compare` fetches them, and sets `FLEETFORM_TEST_DSTACK` to a folder with

    source/   the unpacked archive
    venv/     a virtual environment with the same release
"""

from __future__ import annotations

import functools
import json
import os
import re
import subprocess
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from conformance import shape

FOLDER = Path(os.environ.get("FLEETFORM_TEST_DSTACK") or "/nonexistent")

_BLOCK = re.compile(
    r"^([ \t>]*)(`{3,})[ \t]*(?:ya?ml)?[^\n]*\n(.*?)^[ \t>]*\2[ \t]*$", re.MULTILINE | re.DOTALL
)

_ASK = """
import json, sys
from dstack._internal.core.models.configurations import parse_apply_configuration
for line in sys.stdin:
    try:
        answer = parse_apply_configuration(json.loads(line)).model_dump_json()
    except Exception:
        answer = "null"
    print(answer)
"""


class Example(NamedTuple):
    """A document of dstack, and its reading as JSON values."""

    path: str
    document: dict[str, Any]
    reading: dict[str, Any]


@functools.cache
def examples() -> tuple[Example, ...]:
    """Each document that dstack accepts, once."""
    found: dict[str, tuple[str, dict[str, Any]]] = {}
    for path in sorted((FOLDER / "source").rglob("*")):
        if path.suffix in {".md", ".yml", ".yaml"} and path.is_file():
            for document in _documents(path):
                found.setdefault(json.dumps(document, sort_keys=True), (str(path), document))
    answers = subprocess.run(
        [FOLDER / "venv" / "bin" / "python", "-c", _ASK],
        input="\n".join(json.dumps(document) for _, document in found.values()),
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    read = zip(found.values(), map(json.loads, answers), strict=True)
    return tuple(Example(*one, answer) for one, answer in read if answer is not None)


def _documents(path: Path) -> Iterator[dict[str, Any]]:
    text = path.read_text(encoding="utf-8", errors="replace")
    blocks = [text]
    if path.suffix == ".md":
        blocks = [textwrap.dedent(block[3]) for block in _BLOCK.finditer(text)]
    for block in blocks:
        try:
            documents = list(yaml.safe_load_all(block))
            json.dumps(documents)
        except (yaml.YAMLError, TypeError):
            continue
        yield from (
            one for one in documents if isinstance(one, dict) and one.get("type") in shape.DEFAULTS
        )


# Both readings in one spelling


def differences(example: Example) -> dict[str, tuple[Any, Any]]:
    """The fields that mean something else here: our reading, and that of dstack."""
    ours = shape.as_dstack(example.document)
    if (files := getattr(shape.read(example.document), "files", None)) is not None:
        # Their canonical form has the digests of the files, which are not here.
        ours["files"] = [
            {"local_path": file.local_path, "path": file.path or file.local_path} for file in files
        ]
    both = {
        name: (_said(OURS.get(name, _same)(ours.get(name))), _said(THEIRS.get(name, _same)(value)))
        for name, value in example.reading.items()
    }
    return {name: (here, there) for name, (here, there) in both.items() if here != there}


def _same(value: Any) -> Any:
    return value


def _said(value: Any) -> Any:
    """The value without what is null or empty."""
    if isinstance(value, Mapping):
        pruned = {key: _said(item) for key, item in value.items()}
        return {key: item for key, item in pruned.items() if item not in (None, [], {})}
    return [_said(item) for item in value] if isinstance(value, list) else value


def _without(value: Mapping[str, Any], **defaults: Any) -> dict[str, Any]:
    return {key: item for key, item in value.items() if (key, item) not in defaults.items()}


def _scaling(scaling: Any) -> Any:
    return scaling and _without(scaling, scale_up_delay=300, scale_down_delay=600)


def _limits(limits: Any) -> Any:
    defaults = {"prefix": "/", "key": {"type": "ip_address"}, "burst": 0}
    return [_without(limit, **defaults) for limit in limits or ()]


def _by_path(mounts: Any) -> Any:
    listed = [_without(mount, optional=False) for mount in mounts or ()]
    return sorted(listed, key=lambda mount: str(mount["path"]))


def _parts(value: Any, **parts: Any) -> dict[str, Any]:
    return {**value, **{name: read(value[name]) for name, read in parts.items() if name in value}}


def _rate(field: str) -> Any:
    return lambda value: value and {**value, field: value[field] / shape.MICRO}


def _our_group(group: Mapping[str, Any]) -> dict[str, Any]:
    resources = shape.FIELDS["resources"](group.get("resources", {}))
    return {
        **_parts(group, scaling=OURS["scaling"], volumes=_by_path),
        "resources": resources,
    }


def _their_group(number: int, group: Mapping[str, Any]) -> dict[str, Any]:
    named = _without(group, name=f"{number}")
    return _parts(named, scaling=_scaling, volumes=_by_path, router=_router)


def _router(router: Any) -> Any:
    # dstack stores the name that its older servers know.
    return router and {**router, "type": router["type"].replace("sglang", "smg")}


def _ssh(config: Any) -> Any:
    hosts = [
        {"hostname": host} if isinstance(host, str) else host for host in (config or {})["hosts"]
    ]
    return {**config, "hosts": sorted(hosts, key=lambda host: (host["hostname"], host.get("port")))}


def _nodes(nodes: Any) -> Any:
    return {"target": nodes["min"], **nodes} if isinstance(nodes, Mapping) else nodes


def _events(retry: Any) -> Any:
    if not isinstance(retry, Mapping):
        return retry
    return {**retry, "on_events": sorted(retry["on_events"] or ())}


OURS: Mapping[str, Any] = {
    "groups": lambda groups: [_our_group(group) for group in groups or ()],
    "rate_limits": lambda limits: _limits([_rate("rps")(limit) for limit in limits or ()]),
    "retry": _events,
    "scaling": lambda scaling: _scaling(_rate("target")(scaling)),
    "volumes": _by_path,
}
THEIRS: Mapping[str, Any] = {
    "gateway": lambda value: "/".join(value.values()) if isinstance(value, Mapping) else value,
    "groups": lambda groups: [_their_group(*one) for one in enumerate(groups or ())],
    "nodes": _nodes,
    "rate_limits": _limits,
    "retry": _events,
    "scaling": _scaling,
    "ssh_config": lambda config: config and _ssh(config),
    "volumes": _by_path,
}
