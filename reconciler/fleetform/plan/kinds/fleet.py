"""
A fleet: it changes in place, and its hosts one after the other where they have to be replaced.

A host is removed only once nothing runs on it, so fewer nodes end no work, and neither does
another template, unless `update` says `recreate`. Removing the fleet as a whole removes its hosts,
and is destructive.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from fleetform.model.figures import counted
from fleetform.model.instance import CLOUDS, LOCAL
from fleetform.model.live import LiveResource
from fleetform.model.plan import Action, Change, Permissions, Reason, Step
from fleetform.model.scaling import IDLE_SECONDS
from fleetform.model.verbs import Verb
from fleetform.plan.diff import changed_fields
from fleetform.plan.draft import (
    Proposal,
    declared_arguments,
    make_step,
    propose_change_of,
    propose_change_of_row,
    propose_creation,
    reasons_of,
)
from fleetform.spec.bounds import ROOT_DISK_GB
from fleetform.spec.canonical import digest
from fleetform.spec.checks.hosts import hosts_of, provider_of, source_of
from fleetform.spec.desired import Declared
from fleetform.spec.names import HOSTS_MAX, host_name


def propose_create(declared: Declared) -> Proposal:
    step = make_step(Verb.FLEET_MAKE, declared.key, _arguments(declared))
    return propose_creation(declared, step)


def propose_change(
    declared: Declared, row: LiveResource, _permissions: Permissions
) -> Proposal | None:
    before = row.parsed
    # What was never made in whole has no earlier values.
    changed = changed_fields("fleet", before, declared.document) if was_made(row) else ()
    if not changed and row.digest:
        return None
    if was_made(row) and has_other_source(before, declared.document):
        removal = propose_remove(row).change
        steps = _renewal(declared, removal)
        return propose_change_of(
            row,
            declared,
            Action.REPLACE,
            reasons_of(changed),
            changed,
            *steps,
            destructive=True,
            at_stake=removal.at_stake,
        )
    step = make_step(Verb.FLEET_UPDATE, declared.key, _arguments(declared))
    at_stake = ""
    ends_work = was_made(row) and recreates(before, declared.document)
    if ends_work:
        at_stake = hosts_impact(Action.UPDATE, nodes_wanted(before))
    elif lost := sorted(lost_hosts(declared.document).keys() - lost_hosts(before).keys()):
        at_stake = f"all jobs on host {', '.join(lost)}, which the configuration declares lost"
    return propose_change_of(
        row,
        declared,
        Action.UPDATE,
        # Hosts may have come or gone on the way to a document that is no longer declared.
        reasons_of(changed) or (Reason.UNFINISHED,),
        changed,
        step,
        # What is declared lost is lost already: its jobs cannot be ended once more.
        destructive=ends_work,
        at_stake=at_stake,
    )


def propose_asking_again(declared: Declared, row: LiveResource) -> Proposal:
    """Ask again for the hosts that a cloud has refused; the others stay as they are."""
    step = make_step(Verb.FLEET_UPDATE, declared.key, _arguments(declared))
    return propose_change_of(row, declared, Action.UPDATE, (Reason.UNFINISHED,), (), step)


def was_made(row: LiveResource) -> bool:
    """
    Whether there are hosts by the document of a row, as far as it can tell.

    That it has no digest is no proof of the contrary: a later step has failed, or was broken off,
    and its hosts are there with whatever runs on them. Only what has never been made in whole has
    no document either; which hosts there are of that the ledger alone knows.
    """
    return row.document not in {"", "{}"}


def recreates(before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """Whether hosts are replaced without waiting for the jobs on them."""
    return recreates_at_once(after) and template_of(before) != template_of(after)


def hastens(before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """Whether a rollout that is under way and waits for jobs would wait no longer."""
    return recreates_at_once(after) and not recreates_at_once(before)


def recreates_at_once(document: Mapping[str, Any]) -> bool:
    """Whether a rollout ends the jobs on the hosts that it replaces."""
    return bool((document.get("update") or {}).get("strategy") == "recreate")


def hosts_impact(action: Action, count: int) -> str:
    """Say what goes with so many hosts of a fleet, which are all that it has."""
    hosts = counted(count, "host")
    # A fleet without jobs is removed as well: whose jobs end with it is its stake.
    return _cut_short(hosts) if action is Action.UPDATE else hosts


def recreated_hosts_impact(names: Sequence[str]) -> str:
    """Say what goes with single hosts that are replaced without waiting for the jobs on them."""
    return _cut_short(f"host {', '.join(names)}")


def _cut_short(what: str) -> str:
    return f"{what} and all jobs there, because of `update: {{strategy: recreate}}`"


def propose_remove(row: LiveResource) -> Proposal:
    provider = provider_of(row.parsed)
    cloud = {"cloud": provider} if provider in CLOUDS else {}
    return propose_change_of_row(
        row,
        Action.DELETE,
        Reason.REMOVED,
        make_step(Verb.FLEET_REMOVE, row.key, cloud),
        destructive=True,
        at_stake=hosts_impact(Action.DELETE, nodes_wanted(row.parsed)),
    )


def propose_renew(
    declared: Declared, row: LiveResource, _permissions: Permissions
) -> Proposal | None:
    """Remove all hosts and create them again."""
    removal = propose_remove(row).change
    steps = _renewal(declared, removal)
    return _as_asked(declared, row, Action.REPLACE, steps, at_stake=removal.at_stake)


def _renewal(declared: Declared, removal: Change) -> tuple[Step, Step]:
    """Remove all hosts before the first one is created: they may have the same names."""
    (remove,) = removal.steps
    return remove, make_step(Verb.FLEET_MAKE, declared.key, _arguments(declared), (remove.key,))


def propose_exchange(declared: Declared, row: LiveResource, hosts: Sequence[str]) -> Proposal:
    """Replace these hosts, by name, as `update` says; change what else differs too."""
    before = row.parsed
    arguments = {**_arguments(declared), "exchange": sorted(hosts)}
    step = make_step(Verb.FLEET_UPDATE, declared.key, arguments)
    at_stake = ""
    if recreates_at_once(declared.document):
        all_of_them = was_made(row) and recreates(before, declared.document)
        at_stake = (
            hosts_impact(Action.UPDATE, nodes_wanted(before))
            if all_of_them
            else recreated_hosts_impact(hosts)
        )
    return _as_asked(declared, row, Action.UPDATE, (step,), at_stake=at_stake)


def _as_asked(
    declared: Declared, row: LiveResource, action: Action, steps: tuple[Step, ...], *, at_stake: str
) -> Proposal:
    """Propose what `--replace` asks for; without an impact it is not destructive."""
    changed = changed_fields("fleet", row.parsed, declared.document)
    return propose_change_of(
        row,
        declared,
        action,
        (Reason.REPLACE_ASKED, *reasons_of(changed)),
        changed,
        *steps,
        destructive=bool(at_stake),
        at_stake=at_stake,
    )


def propose_forget(row: LiveResource) -> Proposal:
    """Release the fleet; its hosts stay up, with their agents."""
    return propose_change_of_row(
        row, Action.FORGET, Reason.RELEASED, make_step(Verb.FLEET_FORGET, row.key, {})
    )


def propose_adopt(declared: Declared) -> Proposal:
    """Adopt hosts of this environment that no fleet has; create the others."""
    made = propose_create(declared).change
    step = make_step(Verb.FLEET_ADOPT, declared.key, _arguments(declared))
    return Proposal(replace(made, action=Action.ADOPT, reasons=(Reason.FOUND,), steps=(step,)))


def propose_adopt_hosts(declared: Declared, row: LiveResource) -> Proposal:
    """Adopt released hosts for an existing fleet that lacks hosts."""
    change = propose_adopt(declared).change
    fields = changed_fields("fleet", row.parsed, declared.document)
    return Proposal(replace(change, fields=fields, uid=row.uid, generation=row.generation))


def _arguments(declared: Declared) -> dict[str, Any]:
    document = declared.document
    arguments = {
        **declared_arguments(declared),
        "template": template_of(document),
        "instances": places_of(declared.key.name, document),
    }
    if scaling := scaling_of(document):
        arguments["scaling"] = scaling
    if "aws" in document:
        arguments["shared"] = {"cloud": "aws", "ssh_from": document["aws"]["ssh_from"]}
    lost = lost_hosts(document)
    return {**arguments, "lost": lost} if lost else arguments


def places_of(fleet: str, document: Mapping[str, Any]) -> list[dict[str, Any]]:
    """
    The hosts that are wanted, in a fixed order.

    Hosts over SSH are known by their names: their numbers are the ledger's, so that one that goes
    changes no other. All others are numbered from 0 and named by number. What the field of the
    source says is how a provider elsewhere finds or creates them.
    """
    if config := document.get("ssh_config"):
        return [_ssh_place(host, config, document) for host in hosts_of(document)]
    names = [f"{fleet}-{number}" for number in range(nodes_wanted(document))]
    return [
        {"name": name, "number": number, **elsewhere(document), **_drained(name, document)}
        for number, name in enumerate(names)
    ]


def scaling_of(document: Mapping[str, Any]) -> dict[str, Any] | None:
    """
    Return between which numbers the hosts of a fleet follow demand, and what a new one is; None: they do not.

    `idle_seconds` is how long a host beyond the least number stays without jobs; negative: without limit. `drained` has the
    single hosts on which no job starts, with the reason.
    """
    nodes = document.get("nodes")
    if nodes is None or provider_of(document) not in CLOUDS:
        return None
    least, most = nodes.get("min") or 0, nodes.get("max")
    if most == least:
        return None
    return {
        "min": least,
        "max": HOSTS_MAX if most is None else most,
        "idle_seconds": document.get("idle_duration", IDLE_SECONDS),
        "host": {**elsewhere(document), **_drained("", document)},
        **({"drained": single} if (single := _drained_singly(document)) else {}),
    }


def elsewhere(document: Mapping[str, Any]) -> dict[str, Any]:
    """The provider of hosts that are not shares of this machine, and its field as their endpoint."""
    if not is_elsewhere(document):
        return {}
    endpoint = _aws_endpoint(document) if "aws" in document else document[source_of(document)]
    return {"provider": provider_of(document), "endpoint": endpoint}


NO_CAPACITY = "no-capacity"
"""The event after which a fleet asks for its hosts again."""

NO_LIMIT_SECONDS = -1
"""In place of the duration of a retry that has none."""

ORPHAN_SECONDS = 86_400
"""`orphan_after` of a fleet that does not set it: a controller that is off for a night finds its hosts again."""

_GB = 1 << 30


def _aws_endpoint(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return all that a fleet says of its instances on AWS; the offer is chosen by another pass."""
    endpoint = {
        **document["aws"],
        "region": document["regions"][0],
        "root_gb": root_gb(document),
        "orphan_after": document["aws"].get("orphan_after", ORPHAN_SECONDS),
    }
    retry = document.get("retry") or {}
    if NO_CAPACITY in retry.get("on", ()):
        endpoint["retry_seconds"] = retry.get("duration", NO_LIMIT_SECONDS)
    if document.get("placement") == "cluster":
        endpoint["placement"] = "cluster"
    endpoint |= {name: document[name] for name in ("reservation", "tags") if name in document}
    return endpoint


def root_gb(document: Mapping[str, Any]) -> int:
    """Return the size of the root disk of a new instance."""
    disk = (document.get("resources", {}).get("disk") or {}).get("min")
    return ROOT_DISK_GB if disk is None else -(-disk // _GB)


# What a host over SSH has from its fleet unless it has its own.
_ENDPOINT_FIELDS = ("port", "user", "become", "identity_file", "proxy_jump")


def _ssh_place(
    host: Mapping[str, Any], config: Mapping[str, Any], document: Mapping[str, Any]
) -> dict[str, Any]:
    name = host_name(host["hostname"], host.get("port"))
    endpoint = {"hostname": host["hostname"]}
    for field in _ENDPOINT_FIELDS:
        value = host.get(field, config.get(field))
        if value is not None:
            endpoint[field] = value
    endpoint |= {key: host[key] for key in ("internal_ip",) if key in host}
    shared = ("host_keys", "network", "openssh_config", "agent_dir")
    endpoint |= {key: config[key] for key in shared if key in config}
    place: dict[str, Any] = {"name": name, "provider": "ssh", "endpoint": endpoint}
    if "capacity" in host:
        place["declared"] = host["capacity"]
    if "drain" in host:
        return {**place, "drained": host["drain"]["reason"]}
    return {**place, **_drained(name, document)}


def _drained(name: str, document: Mapping[str, Any]) -> dict[str, str]:
    """Why no job starts on a host of the fleet; empty where jobs do."""
    for entry in document.get("drain", ()):
        if name in entry.get("hosts", (name,)):
            return {"drained": entry["reason"]}
    return {}


def _drained_singly(document: Mapping[str, Any]) -> dict[str, str]:
    """Return why no job starts on single hosts of the fleet, by name."""
    return {
        name: entry["reason"]
        for entry in document.get("drain", ())
        for name in entry.get("hosts", ())
    }


def template_of(document: Mapping[str, Any]) -> str:
    """
    What a host is made from, as a digest: how it is divided among jobs, and what an instance of a cloud is.

    Jobs hold parts of it, so that it cannot change under them; what a host has changes in place.
    """
    divided = {"sharing": document.get("sharing", "exact"), "blocks": document.get("blocks", 1)}
    return digest({**divided, **_bought_as(document)})


def is_elsewhere(document: Mapping[str, Any]) -> bool:
    """Whether the hosts of a fleet are no shares of this machine."""
    return provider_of(document) not in {"", LOCAL}


def has_other_source(before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """
    Whether the hosts come from elsewhere: none of the earlier ones can stay.

    An agent in another folder is another agent: the one there would run on, with its jobs.
    """
    folders = [one.get("ssh_config", {}).get("agent_dir") for one in (before, after)]
    return provider_of(before) != provider_of(after) or folders[0] != folders[1]


_CHOICE = ("regions", "availability_zones", "instance_types", "resources", "reservation")

_AWS_DEFAULTS = {"image_renewal": 0, "orphan_after": ORPHAN_SECONDS, "public_ips": True}
"""To write one of them down replaces no host."""

_NOT_OF_INSTANCES = frozenset({"host_key", "proxy_jump", "ssh_from"})
"""Fields of `aws` that are of the fleet, and hold for its instances without being a part of them."""


def _bought_as(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return what an instance of a cloud is created by: it cannot become another one."""
    if "aws" not in document:
        return {}
    aws = {
        name: value
        for name, value in {**_AWS_DEFAULTS, **document["aws"]}.items()
        if name not in _NOT_OF_INSTANCES
    }
    chosen = {name: document.get(name) for name in _CHOICE}
    return {**chosen, "aws": aws, "placement": document.get("placement", "any")}


def lost_hosts(document: Mapping[str, Any]) -> dict[str, str]:
    """Hosts over SSH that are declared lost, by name, with the reason."""
    return {
        host_name(host["hostname"], host.get("port")): host["lost"]["reason"]
        for host in document.get("ssh_config", {}).get("hosts", ())
        if "lost" in host
    }


def nodes_wanted(document: Mapping[str, Any]) -> int:
    """How many hosts the fleet shall have now; one when the document does not say."""
    if "ssh_config" in document:
        return len(hosts_of(document))
    nodes = document.get("nodes")
    if nodes is None:
        return 1
    wanted = nodes.get("target")
    return int(nodes.get("min") or 0 if wanted is None else wanted)
