"""
What fleetform makes of a value, in the words of dstack's own models.

Both sides say memory in gigabytes and time in seconds here, and what dstack's models fill in
where nothing is said is filled in for ours as well, since ours leave it out. So a difference is
one of meaning.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from fleetform.spec import interpolate
from fleetform.spec.findings import Level
from fleetform.spec.kinds import KINDS
from fleetform.spec.kinds.base import Document
from fleetform.spec.kinds.groups import GROUP_NAME
from fleetform.spec.kinds.run_policies import _TRUE as RETRY_TRUE
from fleetform.spec.names import name_problem
from fleetform.spec.quantities import (
    OFF,
    Range,
    parse_cpu,
    parse_disk,
    parse_duration,
    parse_gpu,
    parse_int_range,
    parse_memory,
    parse_memory_range,
)

GB = 2**30
MICRO = 1_000_000

# What dstack's models fill in.
CPU_COUNT = {"min": 2, "max": None}
GPU_COUNT = {"min": 1, "max": None}
RESOURCES = {
    "cpu": {"arch": None, "count": CPU_COUNT},
    "memory": {"min": 8.0, "max": None},
    "shm_size": None,
    "gpu": {
        "vendor": None, "name": None, "count": {"min": 0, "max": None}, "memory": None,
        "total_memory": None, "compute_capability": None,
    },
    "disk": {"size": {"min": 100.0, "max": None}},
}  # fmt: skip
OFFERS = dict.fromkeys(
    ("backends", "regions", "availability_zones", "instance_types", "reservation", "spot_policy",
     "retry", "max_price", "idle_duration", "tags", "backend_options")
)  # fmt: skip
RUN = {
    **OFFERS,
    **dict.fromkeys(
        ("name", "image", "user", "entrypoint", "working_dir", "registry_auth", "python", "nvcc",
         "single_branch", "shell", "priority", "docker", "max_duration", "stop_duration",
         "creation_policy", "utilization_policy", "startup_order", "stop_criteria", "schedule",
         "fleets", "instances")
    ),
    "privileged": False, "home_dir": "/root", "env": {}, "resources": RESOURCES, "volumes": [],
    "repos": [], "files": [], "dstack": False, "setup": [],
}  # fmt: skip
DEFAULTS: Mapping[str, Mapping[str, Any]] = {
    "task": {**RUN, "nodes": None, "groups": None, "ports": [], "commands": []},
    "dev-environment": {
        **RUN, "ide": None, "version": None, "init": [], "inactivity_duration": None, "ports": [],
    },
    "service": {
        **RUN, "gateway": None, "strip_prefix": True, "model": None, "https": None, "auth": True,
        "scaling": None, "rate_limits": [], "probes": None, "replicas": None, "groups": None,
        "commands": [],
    },
    "fleet": {
        **OFFERS, "name": None, "placement": None, "blocks": 1, "nodes": None, "resources": None,
        "ssh_config": None, "env": {},
    },
    "volume": {
        "name": None, "auto_cleanup_duration": None, "tags": None, "size": None,
        "volume_id": None, "availability_zone": None,
    },
    "gateway": {
        "name": None, "default": None, "instance_type": None, "domain": None, "public_ip": True,
        "load_balancer": None, "certificate": {"type": "lets-encrypt"}, "replicas": None, "tags": None,
    },
}  # fmt: skip
CLAIM = {
    "name": None, "auto_cleanup_duration": None, "tags": None, "size": None, "region": "",
    "storage_class_name": None, "access_modes": ["ReadWriteOnce"], "read_only": False,
}  # fmt: skip
SSH = dict.fromkeys(("user", "port", "identity_file", "ssh_key", "proxy_jump", "network"))


class Refused(ValueError):
    """A document has an error."""


def read(document: Mapping[str, Any]) -> Document:
    """The document as its kind's model reads it; named where it has no name."""
    kind = KINDS.get(str(document["type"]))
    if kind is None:
        raise Refused(f"There is no kind {document['type']}.")
    model = kind.model.model_validate({"name": "named-here", **document})
    for problem in model.problems():
        if problem.level is Level.ERROR:
            raise Refused(problem.detail)
    return model


def as_dstack(document: Mapping[str, Any]) -> dict[str, Any]:
    """The whole document, with what dstack fills in."""
    model = read(document)
    type_name = document["type"]
    canonical = {"type": type_name, **model.to_canonical()}
    if "name" in document:
        canonical["name"] = document["name"]
    filled = DEFAULTS[type_name]
    if type_name == "volume" and document.get("backend") == "kubernetes":
        filled = CLAIM
    said = {name: _field(name, value) for name, value in canonical.items()}
    return {**filled, **said}


def _field(name: str, value: Any) -> Any:
    return FIELDS[name](value) if name in FIELDS else value


def of_field(type_name: str, name: str, value: Any, **others: Any) -> Any:
    """One field of an otherwise small document; what is read as nothing is None."""
    whole = {**SMALL[type_name], **others, name: value}
    canonical = read({"type": type_name, **whole}).to_canonical()
    return _field(name, canonical[name]) if name in canonical else None


SMALL: Mapping[str, Mapping[str, Any]] = {
    "task": {"commands": ["true"]},
    "dev-environment": {},
    "service": {"commands": ["true"], "port": 80},
    "fleet": {"nodes": 1},
}


# Fields, from the canonical form


def ends(range_: Range | Mapping[str, Any] | None, unit: int = 1) -> dict[str, float | None] | None:
    if range_ is None:
        return None
    document = range_.document() if isinstance(range_, Range) else range_
    return {end: None if document[end] is None else document[end] / unit for end in ("min", "max")}


def _cpu(cpu: Mapping[str, Any]) -> dict[str, Any]:
    count = ends(cpu, 1000) if "min" in cpu else CPU_COUNT
    return {"arch": cpu.get("arch"), "count": count}


def _gpu(gpu: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "vendor": gpu.get("vendor"),
        "name": gpu.get("name"),
        "count": gpu.get("count", GPU_COUNT),
        "memory": ends(gpu.get("memory"), GB),
        "total_memory": ends(gpu.get("total_memory"), GB),
        "compute_capability": gpu.get("compute_capability"),
    }


RESOURCE_PARTS: Mapping[str, Callable[[Any], Any]] = {
    "cpu": _cpu,
    "memory": lambda value: ends(value, GB),
    "disk": lambda value: {"size": ends(value, GB)},
    "shm_size": lambda value: value / GB,
    "gpu": _gpu,
}


def _resources(resources: Mapping[str, Any]) -> dict[str, Any]:
    said = {name: RESOURCE_PARTS[name](value) for name, value in resources.items()}
    return {**RESOURCES, **said}


def _retry(retry: Mapping[str, Any]) -> Any:
    if set(retry["on"]) == set(RETRY_TRUE) and set(retry) == {"on"}:
        return True
    return {
        "on_events": None if set(retry["on"]) == set(RETRY_TRUE) else retry["on"],
        "duration": retry.get("duration"),
    }


def _fleet_reference(text: str) -> dict[str, str | None]:
    project, slash, name = text.rpartition("/")
    return {"project": project if slash else None, "name": name}


def _user(text: str) -> dict[str, Any]:
    user, _, group = text.partition(":")
    return {
        "uid": int(user) if user.isdigit() else None,
        "gid": int(group) if group.isdigit() else None,
        "username": user if not user.isdigit() else None,
        "groupname": group if group and not group.isdigit() else None,
    }


def _cron(expression: str) -> str:
    """With weekdays in the numbers of dstack, which counts them from Monday."""
    *others, weekdays = expression.split()
    counted = "".join(
        str((int(letter) - 1) % 7) if letter.isdigit() else letter for letter in weekdays
    )
    return " ".join([*others, counted])


def _repo(repo: Mapping[str, Any]) -> dict[str, Any]:
    unsaid = dict.fromkeys(("local_path", "url", "branch", "hash"))
    return {**unsaid, "path": ".", "if_exists": "error", **repo}


FIELDS: Mapping[str, Callable[[Any], Any]] = {
    "certificate": lambda certificate: None if certificate["type"] == "off" else certificate,
    "env": lambda env: {
        name: {"key": name} if text is None else text for name, text in env.items()
    },
    "fleets": lambda names: [_fleet_reference(name) for name in names],
    "instances": lambda listed: [
        {**one, "fleet": _fleet_reference(one["fleet"])} if "fleet" in one else one
        for one in listed
    ],
    "max_price": lambda price: price / MICRO,
    "size": lambda size: size / GB,
    "ports": lambda listed: [{"local_port": None, **one} for one in listed],
    # The port in front of it, 80, is kept by dstack for reasons of its history and never used.
    "port": lambda port: {"local_port": 80, "container_port": port},
    "model": lambda model: {
        "type": "chat", **({"prefix": "/v1"} if model["format"] == "openai" else {}), **model
    },
    "repos": lambda listed: [_repo(one) for one in listed],
    "resources": _resources,
    "retry": _retry,
    "schedule": lambda schedule: {"cron": [_cron(one) for one in schedule["cron"]]},
    "stop_duration": lambda seconds: "off" if seconds == OFF else seconds,
    "inactivity_duration": lambda seconds: None if seconds == OFF else seconds,
    "ssh_config": lambda config: {**SSH, **config},
}  # fmt: skip


# Files of rows: what is written in each, and how it is read here


def _files(value: Any) -> dict[str, str]:
    model = read({"type": "task", "commands": ["true"], "files": [value]})
    (entry,) = model.files
    return {"local_path": entry.local_path, "path": entry.path or entry.local_path}


def _interpolated(text: str) -> dict[str, Any]:
    scope = {"env": {"X": "1"}, "run": {"args": "q"}}
    compiled = interpolate.compile_value(text)
    missing = []
    for problem in interpolate.problems(compiled, scope):
        if problem.level is not Level.ERROR:
            continue
        namespace, _, key = problem.word.partition(".")
        if namespace not in scope or not key:
            raise Refused(problem.detail)
        missing.append(problem.word)
        scope[namespace][key] = ""
    return {"s": interpolate.render(compiled, scope), "missing": missing}


def _sole(type_name: str, name: str) -> Callable[[Any], Any]:
    def as_one(value: Any) -> Any:
        (one,) = of_field(type_name, name, [value])
        return one

    return as_one


def _plain(type_name: str, name: str) -> Callable[[Any], Any]:
    return lambda value: of_field(type_name, name, value)


FILES: Mapping[str, Callable[[Any], Any]] = {
    "blocks": _plain("fleet", "blocks"),
    "combos": as_dstack,
    "cpu": lambda value: _cpu(_cpu_canonical(value)),
    "disk": lambda value: {"size": ends(parse_disk(value), GB)},
    "duration": parse_duration,
    "env": _plain("task", "env"),
    "files": _files,
    "fleet_nodes": _plain("fleet", "nodes"),
    "fleet_server_validation": lambda value: as_dstack({"type": "fleet", **value}),
    "fleets_ref": _sole("task", "fleets"),
    "gpu": lambda value: _gpu(_gpu_canonical(value)),
    "group_name": lambda value: GROUP_NAME.fullmatch(value) is not None,
    "idle_duration": _plain("task", "idle_duration"),
    "inactivity_duration": _plain("dev-environment", "inactivity_duration"),
    "instances_selector": _sole("task", "instances"),
    "int_range": lambda value: ends(parse_int_range(value)),
    "interpolation": _interpolated,
    "max_price": _plain("task", "max_price"),
    "memory": lambda value: parse_memory(value) / GB,
    "memory_range": lambda value: ends(parse_memory_range(value), GB),
    "nodes_task": _plain("task", "nodes"),
    "offable_duration": _plain("task", "stop_duration"),
    "ports": _sole("task", "ports"),
    "priority": _plain("task", "priority"),
    "python": _plain("task", "python"),
    "replicas": lambda value: as_dstack(
        {"type": "service", "commands": ["true"], "port": 80, **value}
    )["replicas"],
    "repos": _sole("task", "repos"),
    "repos_list": _plain("task", "repos"),
    "resource_name": lambda value: name_problem(value) is None,
    "resources": _plain("task", "resources"),
    "retry": _plain("task", "retry"),
    "schedule": _plain("task", "schedule"),
    "service_port": _plain("service", "port"),
    "shell": _plain("task", "shell"),
    "tags": _plain("task", "tags"),
    "user": lambda value: _user(of_field("task", "user", value)),
    "utilization_policy": _plain("task", "utilization_policy"),
    "volume_mounts": _sole("task", "volumes"),
}
"""By the name of a file in `data`."""


def _cpu_canonical(value: Any) -> Mapping[str, Any]:
    cpu = parse_cpu(value)
    return {
        **(cpu.count.document() if cpu.count else {}),
        **({"arch": cpu.arch} if cpu.arch else {}),
    }


def _gpu_canonical(value: Any) -> Mapping[str, Any]:
    from fleetform.spec.quantities import gpu_document

    return gpu_document(parse_gpu(value))


# What dstack's own answer says more than once, or says in two ways

WHOLE = frozenset({"combos", "fleet_server_validation"})
"""Files whose rows are whole documents."""


def filled(document: Mapping[str, Any]) -> dict[str, Any]:
    """A listed document with what dstack fills in."""
    return {**DEFAULTS[document["type"]], **document} | (
        {"ssh_config": {**SSH, **document["ssh_config"]}} if "ssh_config" in document else {}
    )


def their_meaning(file: str, theirs: Any) -> Any:
    """dstack's answer in its one spelling."""
    if file == "retry" and isinstance(theirs, Mapping):
        # Everything that may be retried, which is what `true` says.
        return True if not any(theirs.values()) else theirs
    if file == "fleet_server_validation" and isinstance(theirs, Mapping) and theirs["nodes"]:
        # It leaves out the target where it is the least.
        nodes = {"target": theirs["nodes"]["min"], **theirs["nodes"]}
        return {**theirs, "nodes": nodes}
    return theirs
