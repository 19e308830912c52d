"""
A fleet: a pool of hosts of one make, and how runs share each of them.

Hosts come from one of these places: this machine, a list of hosts that are reached over SSH, AWS, a
Kubernetes cluster, a Slurm cluster, or else the other clouds. Each node of a local fleet is an agent of its
own, with an equal part of what the machine has, or with the capacity declared here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import (
    BeforeValidator,
    ConfigDict,
    Field,
)

from fleetform.spec.field_facts import OnChange, control, of_hosts
from fleetform.spec.findings import Problem
from fleetform.spec.kinds.aws import AwsHosts
from fleetform.spec.kinds.backend import KubernetesHosts, SlurmHosts
from fleetform.spec.kinds.base import (
    Model,
    Tags,
    Whole,
    contradiction,
    listed,
    not_supported,
    read_by,
    refuse,
)
from fleetform.spec.kinds.commands import Variables, warn_of_secrets, without_value
from fleetform.spec.kinds.container import Runtime
from fleetform.spec.kinds.fleet_on_aws import fleet_on_aws_problems
from fleetform.spec.kinds.hosts import Blocks, SshConfig
from fleetform.spec.kinds.offers import OfferChoice, Price, Text
from fleetform.spec.kinds.resources import Capacity, Resources, mapping, text
from fleetform.spec.kinds.run_policies import RetrySpec
from fleetform.spec.names import HOSTS_MAX
from fleetform.spec.quantities import Range, parse_int_range
from fleetform.spec.quantities.ranges import from_one_to, parse_count, range_of, shown, unfit


class Nodes(Model):
    """Number of hosts: at least `min`, `target` when the fleet is created, at most `max`."""

    min: int
    target: int
    max: int | None

    def to_canonical(self) -> dict[str, Any]:
        # An open upper end is a value here, not a field left out.
        return {"min": self.min, "target": self.target, "max": self.max}


_COUNT = {"type": "integer", "minimum": 0, "maximum": HOSTS_MAX}
_COUNT_TEXT = rf"0+|{from_one_to(HOSTS_MAX)}"
_END = {"anyOf": [_COUNT, text(_COUNT_TEXT), {"type": "null"}]}
_NODES_SCHEMA = {
    "anyOf": [
        _COUNT,
        text(range_of(_COUNT_TEXT), "0..2"),
        mapping(dict.fromkeys(("min", "target", "max"), _END)),
    ]
}


def _nodes(value: Any) -> Nodes:
    if isinstance(value, Mapping):
        value = {key: item for key, item in value.items() if item is not None}
    if not isinstance(value, Mapping) or "target" not in value:
        count = parse_int_range(value)
        least = count.min or 0
        return _ordered(least, least, count.max)
    rest = {key: item for key, item in value.items() if key != "target"}
    target = parse_count(value["target"])
    count = parse_int_range(rest) if rest else Range(0, None)
    return _ordered(count.min or 0, target, count.max)


def _ordered(least: int, target: int, most: int | None) -> Nodes:
    if (whole := max(least, target, most or 0)) > HOSTS_MAX:
        raise refuse("bad-value", f"{whole} is too large; the most is {HOSTS_MAX}.")
    if target < least or (most is not None and target > most):
        raise refuse("bad-value", "`target` is not between `min` and `max`.")
    return Nodes(min=least, target=target, max=most)


class Local(Capacity):
    """
    The resources of each node of a local fleet. Resources that are not set are detected and divided
    equally.
    """


def _local(value: Any) -> Any:
    if value is True:
        return {}
    if isinstance(value, Mapping | Local):
        return value
    raise refuse(
        "wrong-type",
        str(unfit(value, "`true`, or what each node has: `{cpu: 8, memory: 32GB}`")),
        "Remove the document if you do not want the fleet." if value is False else "",
    )


def _cluster(value: Any) -> Any:
    return {} if value is True else value


class Update(Model):
    """How hosts are replaced after the template of the fleet changed."""

    strategy: Literal["drain", "surge", "recreate"] | None = None
    """
    The order of the replacement. `drain`: wait until the jobs of a host have ended, then replace
    it. `surge`: create the new host before the old one is removed. `recreate`: remove the old host
    at once and end its jobs. Example: `surge`.
    """

    max_unavailable: Annotated[Whole, Field(ge=1)] | None = None
    """The number of hosts that are replaced at a time. Default: 1. Example: `2`."""


class Drain(Model):
    """Hosts on which no new jobs start."""

    reason: Text
    """The reason, shown to users whose runs wait for these hosts. Example: `New disks`."""

    hosts: Annotated[tuple[Text, ...], *listed(str, "host")] | None = None
    """The hosts to drain, by name. Default: all hosts of the fleet. Example: `[local-1]`."""


DrainSpec = Annotated[tuple[Drain, ...], *listed(str | Drain, short="reason")]

# What only makes sense where hosts are had from somewhere, and may be given back.
_CLOUD_FIELDS = (
    "backends",
    "regions",
    "availability_zones",
    "instance_types",
    "reservation",
    "spot_policy",
    "max_price",
    "idle_duration",
    "backend_options",
    "retry",
)
# A batch system keeps no host of its own for us, but says when it gives one back.
_CLUSTER_UNFIT = frozenset(_CLOUD_FIELDS) - {"idle_duration", "retry"}


class Source(NamedTuple):
    """
    Where hosts come from.

    Attributes:
        words: Completes "the hosts of this fleet are".
        unfit: Fields that mean nothing there.
        unsupported: Why no plan creates them yet; empty: plans do.
    """

    words: str
    unfit: frozenset[str]
    unsupported: str = ""


SOURCES: Mapping[str, Source] = {
    "local": Source("on this machine", frozenset({*_CLOUD_FIELDS, "resources"})),
    "ssh_config": Source("reached over SSH", frozenset({*_CLOUD_FIELDS, "resources", "nodes"})),
    "aws": Source("on AWS", frozenset({"backend_options"})),
    "kubernetes": Source(
        "of a Kubernetes cluster",
        _CLUSTER_UNFIT,
        "Hosts of a Kubernetes cluster are not supported yet.",
    ),
    "slurm": Source(
        "of a Slurm cluster", _CLUSTER_UNFIT, "Hosts of a Slurm cluster are not supported yet."
    ),
}
"""By the field that says so; without any of them, hosts come from clouds."""


def _add_sources(schema: dict[str, Any]) -> None:
    """Refuse each field that the source of the hosts excludes, unless it is null."""
    null = {"type": "null"}
    schema["dependentSchemas"] = {
        source: {
            "if": {"properties": {source: {"not": null}}},
            "then": {
                "properties": dict.fromkeys(
                    sorted({*SOURCES[source].unfit, *SOURCES} - {source}), null
                )
            },
        }
        for source in SOURCES
    }


class Fleet(OfferChoice):
    """
    A pool of hosts on which runs start.

    Example:
        type: fleet
        name: local
        local: true
    """

    model_config = ConfigDict(json_schema_extra=_add_sources)

    type: Literal["fleet"]
    """The kind of the document: `fleet`."""

    tags: Annotated[Tags | None, of_hosts("store", OnChange.NEW_HOSTS)] = None
    """
    Labels by which people and commands find and group resources, and tags of instances on AWS and
    of their disks. Keys have up to 60 letters, digits, `-` and `_`, values up to 256 characters.
    Example: `{team: vision, cost-center: "42"}`.
    """

    nodes: (
        Annotated[Nodes, *read_by(_nodes, _NODES_SCHEMA), control("providers", default=1)] | None
    ) = None
    """
    Number of hosts, or a range. On AWS the hosts of a range follow demand: one is created when a
    waiting run needs it, and released after `idle_duration` without jobs. A host is removed only
    after its jobs have ended. Example: `2`, `0..2`, `{min: 1, target: 2, max: 4}`.
    """

    local: (
        Annotated[
            Local,
            BeforeValidator(_local, json_schema_input_type=Literal[True] | Local),
            control("providers.local"),
        ]
        | None
    ) = None
    """
    Use this machine. `true`: detect its resources and divide them equally among the nodes. A
    mapping sets the resources of each node. Example: `true`, `{cpu: 256, memory: 256GB, gpu:
    "A100:80GB:8"}`.
    """

    ssh_config: Annotated[SshConfig | None, control("providers.ssh")] = None
    """
    Existing hosts that are reached over SSH. Example: `{user: ubuntu, identity_file:
    ~/.ssh/id_ed25519, hosts: ["gpu[01-16]"]}`.
    """

    aws: Annotated[AwsHosts | None, of_hosts("providers.aws")] = None
    """
    Create instances on AWS. Their type is the cheapest in `regions` that satisfies `resources` and
    `instance_types` and that AWS has. Example: `{account: "123456789012", ssh_from:
    [203.0.113.7/32]}`.
    """

    kubernetes: (
        Annotated[
            KubernetesHosts,
            BeforeValidator(_cluster, json_schema_input_type=Literal[True] | KubernetesHosts),
            control(),
        ]
        | None
    ) = None
    """Nodes of a Kubernetes cluster. Example: `true`, `{namespace: research}`."""

    slurm: (
        Annotated[
            SlurmHosts,
            BeforeValidator(_cluster, json_schema_input_type=Literal[True] | SlurmHosts),
            control(),
        ]
        | None
    ) = None
    """Allocations of a Slurm cluster. Example: `{partitions: [gpu], account: vision}`."""

    resources: Annotated[Resources | None, of_hosts("plan", OnChange.UNFIT_HOSTS)] = None
    """
    The resources that each host must have, where there is a choice of hosts. Example: `{gpu:
    A100:80GB:8, memory: 200GB..}`.
    """

    retry: Annotated[RetrySpec | None, control("lifecycle")] = None
    """
    Whether to request hosts again that no offer had, every 10 minutes for `duration`. Without it
    the next apply requests them. Default: `false`. Example: `true`, `{duration: 2d}`.
    """

    placement: Annotated[
        Literal["any", "cluster"] | None, of_hosts("spec.checks", default="any")
    ] = None
    """
    How close to each other the hosts are. `any`: anywhere. `cluster`: in one network that is suited
    to runs on several nodes; without it `validate` warns of such runs on hosts over SSH, which no change
    of it replaces. Example: `cluster`.
    """

    env: Annotated[Variables | None, control("agents.host")] = None
    """
    Environment variables of all jobs on the fleet. `env` of a run outranks them. A change applies
    to later attempts. Example: `{NCCL_SOCKET_IFNAME: eth0}`.
    """

    sharing: Annotated[
        Literal["whole", "blocks", "exact"] | None, of_hosts("schedule", default="exact")
    ] = None
    """
    How runs share a host. `whole`: one run at a time. `blocks`: in equal blocks, as many as
    `blocks` says. `exact`: each run receives the least that it requires. Example: `exact`.
    """

    blocks: Annotated[Blocks | None, of_hosts("schedule")] = None
    """
    Number of equal blocks of each host, with `sharing: blocks`. `auto`: one block per GPU. Example:
    `8`, `auto`.
    """

    price: Annotated[Price | None, control("plan")] = None
    """
    The price of one host, in US dollars per hour. Plans add it up; it chooses nothing. For hosts of
    clouds the offer sets the price, up to `max_price`. Example: `1.20`.
    """

    drain: Annotated[DrainSpec | None, control("schedule")] = None
    """
    Drain the fleet: running jobs finish, and no new ones start. Either a reason, or a mapping with
    the reason and the hosts. Example: `{reason: New disks, hosts: [local-1]}`, `Power is cut on
    Friday`.
    """

    update: Annotated[Update | None, control("lifecycle")] = None
    """
    How hosts are replaced after the template of the fleet changed. Example: `{strategy: surge,
    max_unavailable: 2}`.
    """

    run_as: Annotated[Literal["agent", "owner", "root"] | None, control("agents.host")] = None
    """
    The account of the jobs on a host. `owner`: the account with the name of the person who applied
    the run; the agent must be root. `agent`: the account of the agent, which must not be root on
    hosts over SSH. `root`: root; `grants` of the environment must permit it. Default: `owner` on
    hosts over SSH whose agent is root, else `agent`. Example: `owner`.
    """

    gpu_isolation: Annotated[Literal["enforced", "advisory"] | None, control()] = None
    """
    Whether a run can access GPUs of other runs. `enforced`: it cannot; a host that cannot enforce
    this is not shared. `advisory`: it only learns which GPUs are its own. Example: `advisory`.
    """

    runtime: Annotated[Runtime | None, control("agents.host")] = None
    """
    How commands run when the run does not set `runtime`. `process`: as processes of the host.
    `container`: in a container. Example: `process`.
    """

    @property
    def source(self) -> str:
        """Where the hosts come from, as the field that says so; empty for clouds."""
        return next((name for name in SOURCES if getattr(self, name) is not None), "")

    def whole(self) -> Problem | None:
        what = (
            "Hosts in clouds other than AWS are not supported yet, and a fleet on AWS needs `aws`."
        )
        if self.source:
            what = SOURCES[self.source].unsupported
        if not what:
            return None
        return not_supported(
            (self.source or "type",),
            what,
            "Until then, plans block the fleet and its runs. `aws:` declares a fleet on AWS, `local: true` one"
            " on this machine.",
        )

    def beyond(self) -> Iterator[Problem]:
        if self.aws is not None:
            yield from self._beyond_on_aws()
        if self.blocks == "auto":
            yield not_supported(
                ("blocks",), "`auto` is not supported yet.", "Write the number of blocks."
            )
        if self.runtime not in {None, "process"}:
            yield not_supported(
                ("runtime",),
                "A runtime of a fleet other than `process` is not supported yet.",
                "Set `runtime` of runs.",
            )
        yield from without_value(self.env)

    def _beyond_on_aws(self) -> Iterator[Problem]:
        if self.resources is not None and self.resources.shm_size is not None:
            yield not_supported(
                ("resources", "shm_size"),
                "Shared memory of hosts on AWS is that of their image.",
                "Remove it, and set `shm_size` of runs.",
            )

    def problems(self) -> Iterator[Problem]:
        yield from super().problems()
        yield from self._source_problems()
        yield from self._sharing_problems()
        yield from self._drain_problems()
        yield from warn_of_secrets(self.env)
        if self.ssh_config is not None:
            for problem in self.ssh_config.problems():
                yield problem.below("ssh_config")
        if self.local is not None and self.nodes is not None and self.nodes.max is None:
            yield Problem(
                "bad-value",
                ("nodes",),
                "A local fleet needs a maximum.",
                f"Write a number, or a range such as `{self.nodes.min}..{self.nodes.min + 1}`.",
            )

    def _source_problems(self) -> Iterator[Problem]:
        said = [name for name in SOURCES if getattr(self, name) is not None]
        for name in said[1:]:
            yield contradiction(
                name,
                f"The hosts come from `{said[0]}` already; all hosts of a fleet have one source.",
                "Declare one fleet per source.",
            )
        if said in ([], ["aws"]) and self.price is not None:
            yield contradiction(
                "price",
                "The price of a host in a cloud is that of its offer.",
                "Use `max_price` to limit it.",
            )
        if said == ["ssh_config"] and self.update is not None and self.update.strategy == "surge":
            yield Problem(
                "contradiction",
                ("update", "strategy"),
                "`surge` needs a spare host for each that is replaced, and the hosts of this fleet"
                " are the ones that `ssh_config` names.",
                "Write `drain` or `recreate`.",
            )
        if said == ["aws"]:
            yield from fleet_on_aws_problems(self)
        if len(said) == 1:
            for name in sorted(SOURCES[said[0]].unfit):
                if getattr(self, name) is not None:
                    yield self._unfit(name, said[0])

    @staticmethod
    def _unfit(name: str, source: str) -> Problem:
        advice = "Remove one of the two."
        if name == "nodes":
            advice = "Remove it: the named hosts are all hosts of the fleet."
        elif name == "resources" and source == "local":
            advice = "Set the resources of each node under `local:`."
        return contradiction(
            name,
            f"`{name}` chooses among available hosts, but the hosts of this fleet are"
            f" {SOURCES[source].words}.",
            advice,
        )

    def _drain_problems(self) -> Iterator[Problem]:
        """Hosts that are drained twice, and such as the fleet does not have."""
        known = self._host_names()
        seen: set[str] = set()
        for number, entry in enumerate(self.drain or ()):
            path = ("drain", number, "hosts")
            for name in entry.hosts or ():
                if known is not None and name not in known:
                    yield Problem(
                        "unknown-reference",
                        path,
                        f"The fleet has no host {shown(name)}.",
                        self._names_advice(),
                        word=name,
                    )
                elif name in seen:
                    yield Problem(
                        "said-twice",
                        path,
                        f"The host {shown(name)} is drained twice.",
                        "Keep one entry, with both reasons.",
                        word=name,
                    )
                seen.add(name)
        if len(self.drain or ()) > 1 and any(entry.hosts is None for entry in self.drain or ()):
            yield contradiction(
                "drain",
                "One entry drains all hosts, and others single ones.",
                "Keep one of the two.",
            )

    def _host_names(self) -> frozenset[str] | None:
        """Names that a host of the fleet can have; None where they are not known from here."""
        if self.source == "local":
            count = 1 if self.nodes is None else self.nodes.max
            # Without an upper end the fleet is refused for that.
            return None if count is None else frozenset(f"{self.name}-{n}" for n in range(count))
        if self.ssh_config is not None:
            return frozenset(host.name for host in self.ssh_config.hosts)
        return None

    def _names_advice(self) -> str:
        if self.source != "local":
            return "Name it as `ssh_config.hosts` does."
        return f"Their names are `{self.name}-0` and so on."

    def _sharing_problems(self) -> Iterator[Problem]:
        if self.sharing == "blocks" and self.blocks is None:
            yield Problem(
                "contradiction",
                ("sharing",),
                "`sharing: blocks` needs the number of blocks per host.",
                "Add `blocks:` with their number.",
                for_lack_of=("blocks",),
            )
        if self.blocks is not None and self.sharing not in {None, "blocks"}:
            yield Problem(
                "contradiction",
                ("blocks",),
                f"`blocks` has no effect with `sharing: {self.sharing}`.",
                "Remove one of the two.",
            )
