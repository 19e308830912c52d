"""
Shared file systems: EFS by NFS 4.1, and FSx for Lustre, mounted as they are.

Other hosts and other environments use them at the same time, so nothing here formats, marks or changes one.
"""

from __future__ import annotations

import os
import shutil

from fleetform.agents.host.disks import FULL_PATH, mount_at, require_root, run
from fleetform.agents.host.volumes import VolumeError, checked
from fleetform.agents.protocol.messages import MountFileSystem

MOUNT_SECONDS = 40
"""For how long a server may not answer: less than the controller waits for this agent."""

_NFS = "nfsvers=4.1,rsize=1048576,wsize=1048576,hard,timeo=600,retrans=2,noresvport"
"""What AWS recommends for EFS (docs.aws.amazon.com/efs/latest/ug/mount-helper-setting.html)."""

_LUSTRE = "relatime,flock"
"""What AWS recommends for FSx (docs.aws.amazon.com/fsx/latest/LustreGuide/mounting-ec2-instance.html)."""

_CLIENTS = {
    "efs": ("nfs4", "an NFS client", "install nfs-common or nfs-utils in its image"),
    "lustre": ("lustre", "a Lustre client", "install it in its image"),
}

_PORTS = {"efs": "port 2049", "lustre": "ports 988 and 1018 to 1023"}


def mount(command: MountFileSystem) -> None:
    """
    Mount a file system; nothing where it is mounted.

    EFS is mounted by its own helper, which encrypts the connection, if the host has it, and else by NFS.

    Raises:
        VolumeError: The host lacks the client, or the server does not answer.
        OSError: The directory cannot be created.
    """
    path = checked(command.path)
    require_root()
    if mount_at(path):
        return
    type_, options = _how(command.kind)
    os.makedirs(path, exist_ok=True)
    # `timeout` ends the helper of mount too.
    limit = ("timeout", "--kill-after=5", str(MOUNT_SECONDS))
    try:
        run(*limit, "mount", "-t", type_, "-o", options, command.source, path)
    except VolumeError as problem:
        raise VolumeError(
            "invalid",
            f"{problem}: the security groups must let this host reach {command.source} at"
            f" {_PORTS[command.kind]}",
        ) from None


def _how(kind: str) -> tuple[str, str]:
    """Return the type and the options of mount for a kind."""
    if kind == "efs" and _has("efs"):
        return "efs", "tls"
    type_, client, advice = _CLIENTS[kind]
    if not _has(type_):
        raise VolumeError("invalid", f"this host lacks {client} (mount.{type_}): {advice}")
    return type_, _NFS if kind == "efs" else _LUSTRE


def _has(type_: str) -> bool:
    return shutil.which(f"mount.{type_}", path=FULL_PATH) is not None
