"""
What cloud-init does when a host boots for the first time, as the document that it reads.

The document creates the account that fleetform signs in to, and gives the host the key by which it
is recognised. It installs and downloads nothing: a host may have no way out of its network.
"""

from __future__ import annotations

import json
from typing import Any

from fleetform.providers.first_boot.host_key import FirstKey
from fleetform.providers.first_boot.orphan_watch import orphan_watch

__all__ = ["ACCOUNT", "DOCUMENT_BYTES_MAX", "cloud_config"]

ACCOUNT = "fleetform"
"""The images of clouds name their accounts differently; this one is the same on all of them."""

DOCUMENT_BYTES_MAX = 16384
"""EC2's limit of user data before base64; that of GCP is larger."""


def cloud_config(
    authorized_key: str,
    host_key: FirstKey | None,
    *,
    account: str = ACCOUNT,
    orphan_seconds: int | None = None,
) -> str:
    """
    Return the user data of an instance; with a host key it is a secret.

    Args:
        authorized_key: Public key that may sign in to the account, which becomes root by sudo.
        host_key: The key for the first connection. None: the host makes its own, and cloud-init
            prints it to the console, where `console.printed_host_key` finds it.
        account: Created unless the image has it. The account of the image stays.
        orphan_seconds: The host shuts down when no controller has needed it for so long; None: never.
    """
    document: dict[str, Any] = {
        "users": [
            "default",
            {
                "name": account,
                "gecos": "fleetform",
                "shell": "/bin/bash",
                "lock_passwd": True,
                "sudo": "ALL=(ALL) NOPASSWD:ALL",
                "ssh_authorized_keys": [authorized_key.strip()],
            },
        ],
        "ssh_pwauth": False,
        # An image may have keys that other hosts of it have as well.
        "ssh_deletekeys": True,
        # Some images update packages, and would wait for servers that they cannot reach.
        "package_update": False,
        "package_upgrade": False,
    }
    if orphan_seconds is not None:
        document["bootcmd"] = [orphan_watch(orphan_seconds)]
    if host_key is None:
        document["ssh_genkeytypes"] = ["ed25519"]
        document["ssh"] = {"emit_keys_to_console": True}
    else:
        # With keys given, cloud-init generates no others.
        document["ssh_keys"] = {
            "ed25519_private": host_key.private,
            "ed25519_public": host_key.public,
        }
    # Each JSON text is YAML, and needs no rules of quoting.
    text = f"#cloud-config\n{json.dumps(document, indent=2)}\n"
    assert len(text.encode()) <= DOCUMENT_BYTES_MAX, "the user data is too long"
    return text
