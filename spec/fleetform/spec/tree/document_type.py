"""
What a document says it is: its type and name, and what is wrong where it does not say so.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fleetform.spec.desired import FILE_NAME, ResourceKey
from fleetform.spec.findings import Problem
from fleetform.spec.kinds import KINDS
from fleetform.spec.names import bare_word, name_problem, nearest, secret_name_problem
from fleetform.spec.quantities.ranges import shown


def not_a_document(value: Any) -> Problem:
    if value is None:
        return Problem(
            "empty-document", (), "The document is empty.", "Remove it, or declare a resource."
        )
    return Problem(
        "not-a-document",
        (),
        "A document is a mapping of fields to values, and this is not.",
        "Begin with `type: task`, `type: fleet` or `type: volume`.",
    )


def type_problem(value: Mapping[str, Any]) -> Problem:
    """Why the document's type is none that can be read."""
    if "type" not in value and _foreign(value):
        kind = _foreign(value)
        close = _CALLED.get(bare_word(kind))
        return Problem(
            "missing-type",
            ("kind",),
            f"The document is a {shown(kind)} of Kubernetes, which fleetform does not read.",
            f"Write a `type: {close}`; `fleetform explain {close}` shows its fields."
            if close
            else "Keep it outside of this configuration.",
            at_key=True,
        )
    if "type" not in value:
        close = nearest("type", value)
        return Problem(
            "missing-type",
            (close,) if close else (),
            "The document has no `type`, so its kind is unknown.",
            f"Did you mean `type` by {shown(close)}?"
            if close
            else f"Add `type:` with one of {_listed()}. YAML that is data belongs under a name in a run's `files:`.",
            at_key=True,
        )
    named = value["type"]
    if named == "environment":
        return Problem(
            "environment-elsewhere",
            ("type",),
            f"An environment is declared in `{FILE_NAME}` at the top of the configuration only.",
            "Move the document there, or remove it.",
        )
    close = None
    if isinstance(named, str):
        close = _CALLED.get(bare_word(named)) or nearest(named, KINDS)
    return Problem(
        "unknown-type",
        ("type",),
        f"{shown(named)} is not a kind of document.",
        f"Did you mean `{close}`?" if close else f"Choose one of {_listed()}.",
    )


# What others call the same, in small letters and without marks between words.
_CALLED: Mapping[str, str] = {
    **dict.fromkeys(("job", "cronjob", "pod", "batch", "sbatch", "run", "sweep"), "task"),
    **dict.fromkeys(("devenv", "notebook", "workspace", "interactive"), "dev-environment"),
    **dict.fromkeys(("deployment", "endpoint", "statefulset", "inference"), "service"),
    **dict.fromkeys(("cluster", "pool", "nodepool", "nodegroup", "hosts", "instances"), "fleet"),
    **dict.fromkeys(("disk", "pvc", "persistentvolumeclaim", "storage"), "volume"),
    **dict.fromkeys(("ingress", "loadbalancer"), "gateway"),
    **dict.fromkeys(("partition", "localqueue", "clusterqueue"), "queue"),
    **dict.fromkeys(("qos", "resourcequota", "limits", "budget"), "quota"),
    **dict.fromkeys(("account", "namespace", "team", "group"), "project"),
    **dict.fromkeys(("person", "serviceaccount"), "user"),
    "maintenance": "reservation",
}


def _foreign(value: Mapping[str, Any]) -> str:
    """The kind that an object of Kubernetes says it is; empty for anything else."""
    kind = value.get("kind")
    return kind if isinstance(kind, str) and "apiVersion" in value else ""


def _listed() -> str:
    """The types, without those of the two dozen backends, each of which is one."""
    names = sorted(name for name, kind in KINDS.items() if kind.name != "backend")
    return ", ".join(f"`{name}`" for name in names) + ", or a type of backend, such as `aws`"


def declared_keys(value: Mapping[str, Any], kind: str | None) -> tuple[ResourceKey, ...]:
    # A backend is called what it is, unless it has a name.
    name = value.get("name")
    if name is None and kind == "backend":
        name = value.get("type")
    problem = secret_name_problem if kind == "secret" else name_problem
    if not isinstance(name, str) or problem(name) is not None:
        return ()
    return (ResourceKey(kind, name),) if kind else any_kind(name)


def any_kind(name: str) -> tuple[ResourceKey, ...]:
    """A document of unknown kind stands for each: better one resource too many left alone."""
    return tuple(ResourceKey(kind, name) for kind in sorted({kind.name for kind in KINDS.values()}))
