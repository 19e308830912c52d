"""
What names this host, its boot, and this life of the agent.

A boot id tells whether processes of before can still exist. The machine's id tells a disk that
was copied into another machine, whose jobs run elsewhere if at all.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Mapping

BOOT_VARIABLE = "FLEETFORM_AGENT_BOOT_ID"
"""Stands in for the kernel's, so that a reboot can be tried without one."""

_BOOT = "/proc/sys/kernel/random/boot_id"

# The first is systemd's; the others are where there is none (machine-id(5), SMBIOS).
_MACHINE = ("/etc/machine-id", "/var/lib/dbus/machine-id", "/sys/class/dmi/id/product_uuid")


def boot_id(environment: Mapping[str, str]) -> str:
    """Return the id of this boot; the same until the kernel starts again."""
    return environment.get(BOOT_VARIABLE) or _read(_BOOT)


def machine_id() -> str:
    """Return the machine's id; empty where it has none, and then no copy is recognised."""
    for path in _MACHINE:
        try:
            found = _read(path)
        except OSError:
            continue
        if found:
            return found
    return ""


def mint() -> str:
    """Return 32 hex digits that were never used before."""
    return uuid.UUID(bytes=os.urandom(16), version=4).hex


def _read(path: str) -> str:
    with open(path, encoding="ascii") as file:
        return file.read().strip()
