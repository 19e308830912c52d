"""
Hosts that exist already and are reached over SSH.

A host is identified by its name and port, in upper or lower case: two entries for one machine would
allocate its GPUs twice.
"""

from __future__ import annotations

import ipaddress
import itertools
import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    WithJsonSchema,
)

from fleetform.spec.field_facts import SECRET, UNSUPPORTED
from fleetform.spec.findings import Problem
from fleetform.spec.kinds.base import (
    Guarded,
    Model,
    Tags,
    add_spellings,
    one_or_many,
    read_by,
    refuse,
    warn_in_clear,
)
from fleetform.spec.kinds.offers import Text
from fleetform.spec.kinds.ports import PORT_MAX, Port
from fleetform.spec.kinds.resources import HostCapacity, text
from fleetform.spec.kinds.schedules import Window, window
from fleetform.spec.names import HOSTS_MAX, host_name
from fleetform.spec.quantities.ranges import exact_text, from_one_to, parse_count, shown, unfit

PORT = 22
# A host has at most some hundred CPUs and some sixteen GPUs to divide.
BLOCKS_MAX = 1024

# The characters of a name or an address. A leading dash would be an option to `ssh`.
_LETTER = "[A-Za-z0-9_.:%-]"
_NAME = f"[A-Za-z0-9_]{_LETTER}{{0,254}}"
_JUMP_NAME = "[A-Za-z0-9_][A-Za-z0-9_.-]*"
_NUMBERS = r"\s*([0-9]{1,9})(?:-([0-9]{1,9}))?\s*"
# The begin of a placeholder in a template; nothing connects to it.
_PLACEHOLDER = "<$"

_HOSTNAME = re.compile(_NAME)
_JUMP = re.compile(rf"(?:({_JUMP_NAME})@)?({_JUMP_NAME})(?::([0-9]{{1,5}}))?")
_BRACKETS = re.compile(r"([^\[\]]*)\[([0-9,\-\s]+)\]([^\[\]]*)")
_SPAN = re.compile(_NUMBERS)
_RANGE_EXAMPLE = "Write for example `gpu[01-16]`."

_HOSTNAME_TEXT = exact_text(
    rf"{_NAME}|(?:[A-Za-z0-9_]{_LETTER}*)?\[{_NUMBERS}(?:,{_NUMBERS})*\]{_LETTER}*"
    rf"|[{_PLACEHOLDER}][\s\S]*"
)
_JUMP_TEXT = exact_text(rf"(?:{_JUMP_NAME}@)?{_JUMP_NAME}(?::{from_one_to(PORT_MAX)})?")


def _hostname(value: str) -> str:
    if all(_HOSTNAME.fullmatch(name) for name in host_names(value)):
        return value
    user, at, name = value.rpartition("@")
    if at and _HOSTNAME.fullmatch(name):
        raise refuse(
            "bad-value",
            f"{shown(value)} has a user in front of the host's name.",
            f"Write `{{hostname: {name}, user: {user}}}`.",
        )
    if value.startswith(tuple(_PLACEHOLDER)):
        return value
    raise refuse("bad-value", f"{shown(value)} is not a host's name or address.")


Hostname = Annotated[
    str,
    Field(min_length=1),
    AfterValidator(_hostname),
    WithJsonSchema({"type": "string", "pattern": _HOSTNAME_TEXT}),
]


def _private(value: str) -> str:
    try:
        address = ipaddress.ip_address(value)
    except ValueError:
        raise refuse("bad-value", f"{shown(value)} is not an IP address.") from None
    if not address.is_private:
        raise refuse(
            "bad-value",
            f"{shown(value)} is a public address; traffic between nodes would leave the internal network.",
            "Write the address that the host has in the fleet's own network.",
        )
    return value


def _agent_dir(value: str) -> str:
    # The shell of the host reads nothing of it, but these could not be written into units and crontabs.
    if value.startswith(("/", "~/")) and not set(value) & set("'\"\\!\n") and len(value) <= 200:
        return value.rstrip("/") or "/"
    raise refuse(
        "bad-value",
        f"{shown(value)} is not an absolute path without quotes, backslashes and `!`.",
        "Write for example `/var/lib/fleetform` or `~/fleetform`.",
    )


def _network(value: str) -> str:
    try:
        network = ipaddress.ip_network(value, strict=False)
    except ValueError:
        raise refuse(
            "bad-value", f"{shown(value)} is not a network.", "Write for example `10.0.0.0/24`."
        ) from None
    if not network.is_private:
        raise refuse(
            "bad-value",
            f"{shown(value)} is a public network; nodes reach each other in a private one.",
            "Write for example `10.0.0.0/24`.",
        )
    return str(network)


def _blocks(value: Any) -> int | str:
    if value == "auto":
        return "auto"
    try:
        count = parse_count(value)
    except ValueError as exc:
        raise refuse("bad-value", str(exc), "Write a number, or `auto` for one per GPU.") from None
    if not 1 <= count <= BLOCKS_MAX:
        bound = "too small; the least is 1" if count < 1 else f"too large; the most is {BLOCKS_MAX}"
        raise refuse("bad-value", f"{shown(value)} is {bound}.")
    return count


Blocks = Annotated[
    int | Literal["auto"],
    *read_by(
        _blocks,
        {
            "anyOf": [
                {"type": "integer", "minimum": 1, "maximum": BLOCKS_MAX},
                text(from_one_to(BLOCKS_MAX)),
                {"enum": ["auto"]},
            ]
        },
    ),
]


class SshKey(Guarded):
    """A key pair, in the format of dstack."""

    public: Text
    """The public key. Example: `ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIB gpu`."""

    private: Annotated[Text | None, SECRET] = None
    """
    The private key, as a reference to a secret. To name a file instead, use `identity_file`.
    Example: `${{ secrets.ssh_key }}`.
    """


class ProxyJump(Model):
    """A jump host."""

    hostname: Hostname
    """The host name or address. Example: `login.example.com`."""

    port: Port | None = None
    """The port. Default: 22. Example: `2222`."""

    user: Text | None = None
    """The user to sign in as. Example: `ubuntu`."""

    identity_file: Text | None = None
    """
    The file with the private key for the jump host, on the machine that runs fleetform. Example:
    `~/.ssh/jump`.
    """

    ssh_key: Annotated[SshKey | None, UNSUPPORTED] = None
    """
    The key pair itself, in the format of dstack. Example: `{public: ssh-ed25519 AAAA, private: "${{
    secrets.jump_key }}"}`.
    """


def _jump(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    match = _JUMP.fullmatch(value)
    if match is None:
        raise refuse(
            "bad-value", f"{shown(value)} is not a host.", "Write for example `user@host:22`."
        )
    user, hostname, port = match.groups()
    said = {"hostname": hostname, "user": user, "port": port}
    return {name: part for name, part in said.items() if part is not None}


_JumpText = Annotated[str, Field(pattern=_JUMP_TEXT)]
Jump = Annotated[ProxyJump, BeforeValidator(_jump, json_schema_input_type=_JumpText | ProxyJump)]


class Reason(Model):
    """A reason, shown to users who wait for the host."""

    reason: Text
    """The reason as a sentence. Example: `Fan 3 is loud`."""


def _reason(value: Any) -> Any:
    return {"reason": value} if isinstance(value, str) else value


ReasonSpec = Annotated[Reason, BeforeValidator(_reason, json_schema_input_type=str | Reason)]


def _add_ends(schema: dict[str, Any]) -> None:
    add_spellings(schema, from_="begin", to="end")
    schema.pop("required", None)


class Maintenance(Window):
    """A maintenance of a host: jobs that could not end before it begins do not start there."""

    model_config = ConfigDict(json_schema_extra=_add_ends)

    reason: Text | None = None
    """The reason as a sentence. Example: `New power supply`."""


def _topology(value: Any) -> Any:
    if not isinstance(value, Mapping):
        raise refuse("wrong-type", str(unfit(value, "a mapping, such as `{rack: r1}`")))
    return {
        key: str(item) if isinstance(item, int) and not isinstance(item, bool) else item
        for key, item in value.items()
    }


Topology = Annotated[
    dict[str, Text], BeforeValidator(_topology, json_schema_input_type=dict[str, str | int])
]


class Host(Model):
    """One host, and its differences from the other hosts of the fleet."""

    hostname: Hostname
    """
    The host name or address. A range such as `[01-16]` declares several hosts. Example:
    `gpu-node01.example.com`.
    """

    port: Port | None = None
    """The port. Default: `port` of the fleet, or 22. Example: `2222`."""

    user: Text | None = None
    """The user to sign in as. Default: `user` of the fleet. Example: `ubuntu`."""

    become: Literal["sudo"] | None = None
    """
    How the account to sign in as becomes root, so that the agent runs as root and starts jobs as
    their owners. `sudo`: by `sudo -n`, which must ask for no password. Default: `become` of
    the fleet. Example:
    `sudo`.
    """

    identity_file: Text | None = None
    """
    The file with the private key, on the machine that runs fleetform. Default: `identity_file` of
    the fleet. Example: `~/.ssh/id_ed25519`.
    """

    ssh_key: Annotated[SshKey | None, UNSUPPORTED] = None
    """The key pair itself, in the format of dstack. Example: `{public: ssh-ed25519 AAAA}`."""

    proxy_jump: Jump | None = None
    """
    The jump host through which this host is reached. Default: `proxy_jump` of the fleet. Example:
    `ubuntu@login.example.com`.
    """

    internal_ip: Annotated[str, AfterValidator(_private)] | None = None
    """The address in the internal network of the fleet. Default: detected. Example: `10.0.0.11`."""

    blocks: Annotated[Blocks | None, UNSUPPORTED] = None
    """
    Number of equal blocks of the host. Default: `blocks` of the fleet. `auto`: one block per GPU.
    Example: `8`, `auto`.
    """

    capacity: HostCapacity | None = None
    """
    The resources of the host. Default: detected. Example: `{cpu: 64, memory: 512GB, gpu:
    A100:80GB:8}`.
    """

    topology: Annotated[Topology | None, UNSUPPORTED] = None
    """
    The position of the host, by levels with names of your choice. Example: `{rack: r1, switch:
    s3}`.
    """

    tags: Annotated[Tags | None, UNSUPPORTED] = None
    """Labels by which queues and runs choose hosts. Example: `{interconnect: ib}`."""

    drain: ReasonSpec | None = None
    """
    Drain the host: running jobs finish, and no new ones start. Example: `{reason: Fan 3 is loud}`.
    """

    maintenance: Annotated[Annotated[Maintenance, BeforeValidator(window)] | None, UNSUPPORTED] = (
        None
    )
    """
    The next maintenance of the host. Example: `{from: 2026-12-24T18:00Z, to: 2026-12-24T20:00Z,
    reason: New disks}`.
    """

    lost: ReasonSpec | None = None
    """
    Declare that the host never returns: its jobs have ended. Example: `{reason: Returned to the
    vendor}`.
    """

    @property
    def name(self) -> str:
        """What people call the host: in `drain`, in lists and in messages."""
        return host_name(self.hostname, self.port)

    @property
    def identity(self) -> tuple[str, int | None]:
        """Equal for one machine in two spellings; the port if it is set for this host."""
        return self.hostname.casefold().rstrip("."), self.port


def _entries(value: Any) -> Any:
    listed = one_or_many(value)
    if not isinstance(listed, list | tuple):
        raise refuse("wrong-type", str(unfit(value, "a list of hosts")))
    return [{"hostname": item} if isinstance(item, str) else item for item in listed]


def _written_out(hosts: tuple[Host, ...]) -> tuple[Host, ...]:
    """Replace each range of names by its hosts, which have equal fields otherwise."""
    found: list[Host] = []
    for host in hosts:
        names = host_names(host.hostname)
        if len(names) > 1 and host.internal_ip is not None:
            raise refuse(
                "contradiction",
                f"{shown(host.hostname)} stands for {len(names)} hosts, and they cannot all have"
                f" the address {shown(host.internal_ip)}.",
                "Name the hosts one by one, or leave the address out.",
            )
        found.extend(host.model_copy(update={"hostname": name}) for name in names)
    if len(found) > HOSTS_MAX:
        raise refuse("bad-value", f"The ranges name {len(found)} hosts; the most is {HOSTS_MAX}.")
    return tuple(found)


def host_names(text: str) -> list[str]:
    """`gpu[01-03]` as `gpu01`, `gpu02`, `gpu03`: the notation of Slurm (sinfo(1))."""
    match = _BRACKETS.fullmatch(text)
    if match is None:
        return [text]
    before, spans, after = match.groups()
    return [f"{before}{number}{after}" for span in spans.split(",") for number in _span(span, text)]


def _span(text: str, whole: str) -> list[str]:
    bounds = _SPAN.fullmatch(text)
    if bounds is None:
        raise refuse("bad-value", f"{shown(whole)} is not a range of names.", _RANGE_EXAMPLE)
    first, last = bounds[1], bounds[2] or bounds[1]
    if int(last) < int(first):
        raise refuse("bad-value", f"{shown(whole)} has an end before its begin.", _RANGE_EXAMPLE)
    if int(last) - int(first) >= HOSTS_MAX:
        raise refuse("bad-value", f"{shown(whole)} names more than {HOSTS_MAX} hosts.")
    return [f"{number:0{len(first)}d}" for number in range(int(first), int(last) + 1)]


class SshConfig(Model):
    """Existing hosts, and how they are reached over SSH."""

    user: Text | None = None
    """The user to sign in as. Example: `ubuntu`."""

    become: Literal["sudo"] | None = None
    """
    How the account to sign in as becomes root, so that the agent runs as root and starts jobs as
    their owners. `sudo`: by `sudo -n`, which must ask for no password. Default: the account
    stays what it is. Example:
    `sudo`.
    """

    port: Port | None = None
    """The port. Default: 22. Example: `2222`."""

    identity_file: Text | None = None
    """
    The file with the private key, on the machine that runs fleetform. Example: `~/.ssh/id_ed25519`.
    """

    ssh_key: Annotated[SshKey | None, UNSUPPORTED] = None
    """The key pair itself, in the format of dstack. Example: `{public: ssh-ed25519 AAAA}`."""

    proxy_jump: Jump | None = None
    """
    The jump host through which all hosts are reached. Default: none. Example: `{hostname:
    login.example.com, user: ubuntu}`.
    """

    hosts: Annotated[
        tuple[Host, ...],
        BeforeValidator(_entries, json_schema_input_type=Hostname | Host | list[Hostname | Host]),
        AfterValidator(_written_out),
    ]
    """
    The hosts: names, ranges of names, or mappings. Example: `["gpu[01-16]", {hostname: gpu17,
    blocks: 4}]`.
    """

    network: Annotated[str, AfterValidator(_network)] | None = None
    """
    The network in which nodes reach each other, in CIDR notation. Default: detected. Example:
    `10.0.0.0/24`.
    """

    openssh_config: Literal["on", "off"] | None = None
    """
    The use of `~/.ssh/config` on the machine that runs fleetform. `on`: it applies to what the fleet does
    not set. `off`: it is ignored. Default: `on`. Example: `off`.
    """

    host_keys: Literal["known", "first-use"] | None = None
    """
    How the key of a host is checked. `known`: it must be in `known_hosts`. `first-use`: the first
    key is trusted and stored, and a different one is refused. Example: `known`.
    """

    agent_dir: Annotated[str, AfterValidator(_agent_dir)] | None = None
    """
    The folder on the hosts for the agent, its jobs, their output, and volumes with relative paths.
    It must be on a local disk that is not mounted `noexec`. A change removes the hosts from the
    fleet and sets them up again. Default: `~/.local/state/fleetform`. Example:
    `/var/lib/fleetform`.
    """

    def to_canonical(self) -> dict[str, Any]:
        canonical = super().to_canonical()
        # A set: the number of a host does not depend on its position in the list.
        canonical["hosts"].sort(key=lambda host: (host["hostname"], host.get("port", PORT)))
        return canonical

    def problems(self) -> Iterator[Problem]:
        """Report hosts that are named twice, and plaintext keys; paths begin below `ssh_config`."""
        claimed = sorted(
            (host.identity[0], host.port or self.port or PORT, number)
            for number, host in enumerate(self.hosts)
        )
        for one, following in itertools.pairwise(claimed):
            if one[:2] == following[:2]:
                name = self.hosts[following[2]].hostname
                yield Problem(
                    "said-twice",
                    ("hosts",),
                    f"The host {shown(name)} is named twice; its GPUs would be allocated twice.",
                    "Remove one of the two.",
                    word=name,
                )
        yield from warn_in_clear(
            self._keys(), "Name a file outside of the configuration: `identity_file: ~/.ssh/KEY`."
        )

    def _keys(self) -> Iterator[tuple[tuple[str | int, ...], SshKey | None]]:
        yield ("ssh_key",), self.ssh_key
        if self.proxy_jump:
            yield ("proxy_jump", "ssh_key"), self.proxy_jump.ssh_key
        for host in self.hosts:
            yield ("hosts",), host.ssh_key
            if host.proxy_jump:
                yield ("hosts",), host.proxy_jump.ssh_key
