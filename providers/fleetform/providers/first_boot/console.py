"""The host key that cloud-init prints to the console of a host when it boots for the first time."""

from __future__ import annotations

import re

__all__ = ["printed_host_key"]

_BLOCK = re.compile(
    r"-----BEGIN SSH HOST KEY KEYS-----\s(?P<keys>.*?)-----END SSH HOST KEY KEYS-----", re.DOTALL
)

# The kernel prints between the lines, and a terminal ends them with a carriage return.
_KEY = re.compile(r"^(?P<key>ssh-ed25519 [A-Za-z0-9+/]{68})(?=\s)", re.MULTILINE)


def printed_host_key(output: str) -> str:
    """
    Return type and key of the host, as `known_hosts` has them; empty: it is not printed yet.

    The first block counts: it is of the first boot, before any job could print another one.
    """
    block = _BLOCK.search(output)
    found = _KEY.search(block["keys"]) if block else None
    return found["key"] if found else ""
