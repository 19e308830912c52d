"""
What stands for an environment where its uid must not be shown, since that is a key (`redaction`).

A fingerprint where programs compare, and the beginning of the uid where people are to find out
whose something is: they have the names of their environments, and look for those digits there.
"""

from __future__ import annotations

import hashlib

from fleetform.agents.protocol.naming import short_uid

__all__ = ["fingerprint", "short_uid"]

_DOMAIN = b"fleetform environment\0"
"""So that it is no digest of a uid that stands anywhere else."""


def fingerprint(environment_uid: str) -> str:
    """
    Give 32 hex digits, from which the uid cannot be found; no text for no uid.

    Two plans are of one environment when it is the same.
    """
    if not environment_uid:
        return ""
    return hashlib.sha256(_DOMAIN + environment_uid.encode()).hexdigest()[:32]
