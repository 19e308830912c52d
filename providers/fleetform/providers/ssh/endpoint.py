"""
How a host is reached: `InstanceRequest.endpoint` as a value.

A field that is absent is as the user's own OpenSSH configuration says.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

HostKeys = Literal["known", "first-use"]


@dataclass(frozen=True, slots=True)
class Endpoint:
    """
    One SSH server and the account on it.

    `host_keys`: `known`: the key must be in `known_hosts`. `first-use`: the key that the host has
    when it is first reached is the one that it must have from then on.
    """

    hostname: str
    port: int | None = None
    user: str = ""
    become: str = ""
    """`sudo`: the account becomes root by it; empty: it stays what it is."""
    identity_file: str = ""
    proxy_jump: Endpoint | None = None
    host_keys: HostKeys = "known"
    internal_ip: str = ""
    network: str = ""
    """In CIDR notation: the host's peers reach it at its address there. Empty: where we reach it."""
    reads_config: bool = True
    """Whether the user's own OpenSSH configuration says what is absent here."""

    @classmethod
    def read(cls, fields: Mapping[str, Any]) -> Endpoint:
        """Read an endpoint in canonical form."""
        jump = fields.get("proxy_jump")
        openssh_config = fields.get("openssh_config") or "on"
        return cls(
            hostname=fields["hostname"],
            port=fields.get("port"),
            user=fields.get("user") or "",
            become=fields.get("become") or "",
            identity_file=_expanded(fields.get("identity_file") or ""),
            # The ledger keeps no keys of jump hosts, so theirs must be in `known_hosts`.
            proxy_jump=None
            if not jump
            else cls.read({**jump, "host_keys": "known", "openssh_config": openssh_config}),
            host_keys=fields.get("host_keys") or "known",
            internal_ip=fields.get("internal_ip") or "",
            network=fields.get("network") or "",
            reads_config=openssh_config != "off",
        )


def endpoint_key(fields: Mapping[str, Any]) -> str:
    """Return the same text for the same endpoint."""
    return json.dumps(fields, sort_keys=True)


def _expanded(path: str) -> str:
    # `Path("")` would be the current folder.
    return str(Path(path).expanduser()) if path else ""
