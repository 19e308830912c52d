"""
Why nothing carries something out yet, in words: kinds and types as a whole, and single fields.

Which fields those are is said by their rows in `fields`; what is missing here is told in general
words.
"""

from __future__ import annotations

from collections.abc import Mapping

KINDS: Mapping[str, str] = {}
"""By kind or by `type:`: nothing carries any of it out."""

_CONTAINERS = "Runs are processes of the host; nothing starts containers yet."

WHY: Mapping[str, Mapping[str, str]] = {
    "run": {
        **dict.fromkeys(
            ("image", "docker", "privileged", "entrypoint", "registry_auth"), _CONTAINERS
        ),
    },
}
"""By kind and path of the field."""
