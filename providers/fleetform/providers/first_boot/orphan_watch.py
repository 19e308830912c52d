"""
A watch that ends a host which no controller needs any more, as a command of cloud-init for each boot.

A controller may be lost with its ledger, and then its hosts would cost money until a person looks. So each host counts by
itself, from its boot on, and needs neither an agent nor a network for that. Where a shutdown terminates the instance,
nothing of it is left.
"""

from __future__ import annotations

__all__ = ["FOLDER", "orphan_watch"]

FOLDER = "/run/fleetform"
"""`agents.host.orphan` writes there when the host was needed last, in seconds since the boot."""

LOOK_SECONDS = 60


def orphan_watch(
    seconds: int, *, folder: str = FOLDER, look_seconds: float = LOOK_SECONDS
) -> list[str]:
    """Return the command; the host shuts down when it was not needed for so long, at work or asleep."""
    script = (
        "begun=$(cut -d. -f1 /proc/uptime); "
        f"while sleep {look_seconds}; do "
        "now=$(cut -d. -f1 /proc/uptime); "
        f"needed=$(cat {folder}/needed 2>/dev/null || echo $begun); "
        f'if [ "$((now - needed))" -ge {seconds} ]; then shutdown -h now || poweroff; fi; '
        "done"
    )
    # cloud-init waits for its commands, so this one begins the watch and ends.
    return ["sh", "-c", f"mkdir -p {folder}; setsid sh -c '{script}' </dev/null >/dev/null 2>&1 &"]
