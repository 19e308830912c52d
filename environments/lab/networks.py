"""Networks, namespaces and links of the lab."""

from __future__ import annotations

import ipaddress
import json
import secrets
from pathlib import Path

from processes import LabError, call

NETWORK = "10.213.7.0/24"
NAMESPACES = Path("/run/netns")
NETWORK_IN_USE = 3
"""The exit code for a network that this machine already has: tests then try another one."""


class NetworkInUseError(LabError):
    code = NETWORK_IN_USE


def choose_prefix() -> str:
    """Return letters that begin no name of a namespace or link: 9, of the 15 that a link may have."""
    while True:
        prefix = f"lab{secrets.token_hex(3)}"
        taken = [*NAMESPACES.glob(f"{prefix}*"), *Path("/sys/class/net").glob(f"{prefix}*")]
        if not taken:
            return prefix


def refuse_used(network: ipaddress.IPv4Network) -> None:
    """
    Refuse a network that this machine already has.

    A wider route, such as that of a VPN for 10.0.0.0/8, is no hindrance: the narrower one wins.
    """
    for link in json.loads(call("ip", "-json", "-4", "address")):
        for address in link.get("addr_info", ()):
            found = f"{address['local']}/{address['prefixlen']}"
            if ipaddress.IPv4Network(found, strict=False).overlaps(network):
                _refuse(network, f"the link {link['ifname']} has the address {found}")
    for route in json.loads(call("ip", "-json", "-4", "route")):
        if route["dst"] != "default" and ipaddress.IPv4Network(route["dst"]).subnet_of(network):
            _refuse(network, f"there is a route to {route['dst']}")


def _refuse(network: ipaddress.IPv4Network, reason: str) -> None:
    raise NetworkInUseError(
        f"the network {network} is in use: {reason}; choose another one:"
        " `lab.py up --network 10.214.7.0/24`"
    )


def delete_namespace(name: str) -> None:
    if (NAMESPACES / name).exists():
        call("ip", "netns", "delete", name)


def delete_link(name: str, namespace: str = "") -> None:
    where = ("-n", namespace) if namespace else ()
    present = json.loads(call("ip", *where, "-json", "link") or "[]")
    if any(link["ifname"] == name for link in present):
        call("ip", *where, "link", "delete", "dev", name)
