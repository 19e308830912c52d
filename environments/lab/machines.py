"""
Whole machines for a lab: Debian with systemd, in User Mode Linux or systemd-nspawn.

User Mode Linux is a kernel of its own that runs as a process: it has control groups of version 2, a
boot id, and users' managers of systemd, whatever this machine has. systemd-nspawn is a container: it
starts faster, and its control groups are those of this machine.

The files of all machines come from one root folder, which is installed once for this user and is
named by its contents. A container writes into a folder of its own, above that one (overlayfs). A
kernel has a disk of its own: a copy on write of an image of the root folder. It could not have the
folder itself, for what it writes there (hostfs) belongs to the account that runs the kernel.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import platform
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

SUITE = "bookworm"
MIRROR = "http://deb.debian.org/debian"
PACKAGES = (
    "cron", "dbus", "dbus-user-session", "iproute2", "kmod", "libpam-systemd", "openssh-server",
    "polkitd", "procps", "python3", "sudo", "systemd", "systemd-sysv", "udev",
)  # fmt: skip
LAYOUT = 4
"""Counts up when `_finish` changes: an older root folder is then installed anew."""

KINDS = ("uml", "nspawn")
PROGRAMS = {"uml": "linux.uml", "nspawn": "systemd-nspawn"}
DEBIAN = {
    "debootstrap": "debootstrap",
    "linux.uml": "user-mode-linux",
    "systemd-nspawn": "systemd-container",
}

MOUNT = "/mnt/root"
"""Where `machine.sh` mounts the files of a machine, in a mount namespace of its own."""

_MEMORY = "512M"
_MODULES = Path("/usr/lib/uml/modules")
IMAGE_SIZE = "3G"
"""Of the disk of a kernel: it takes 0.4 GB of this machine, and what a machine writes."""

# What differs between two machines is in a folder of this machine, and is read at each boot.
_INIT = """\
#!/bin/sh
mount -t hostfs -o "$lab_files" none /mnt && cp -a /mnt/etc/. /etc/
[ -e /home/lab ] || cp -a /mnt/home/. /home/
umount /mnt
chown -R root:root /etc/ssh /etc/lab-network /etc/hosts /etc/hostname /etc/machine-id
exec /sbin/init
"""

# Not systemd-networkd: it takes a second of the boot, and the address never changes.
_NETWORK_UNIT = """\
[Unit]
DefaultDependencies=no
Before=network.target ssh.service

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/bin/sh /etc/lab-network

[Install]
WantedBy=multi-user.target
"""

_SSHD_CONFIG = """\
AuthorizedKeysFile .ssh/authorized_keys /etc/ssh/lab_keys
HostKey /etc/ssh/ssh_host_ed25519_key
UsePAM yes
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
Subsystem sftp internal-sftp
"""


class MachineError(Exception):
    """What is wrong, and the next command."""


class Address(NamedTuple):
    """What a machine has in the network of its lab."""

    address: str
    length: int
    mac: str


def choose_kind() -> str:
    """Return the kind that works here: User Mode Linux where it is installed."""
    wanted = os.environ.get("FLEETFORM_LAB_MACHINES", "")
    if wanted and wanted not in KINDS:
        raise MachineError(f"FLEETFORM_LAB_MACHINES is {wanted}; write {' or '.join(KINDS)}")
    for kind in (wanted,) if wanted else KINDS:
        if shutil.which(PROGRAMS[kind]) is not None:
            return kind
    names = [DEBIAN[PROGRAMS[kind]] for kind in ((wanted,) if wanted else KINDS)]
    raise MachineError(
        "neither User Mode Linux nor systemd-nspawn is installed; as root on Debian, run"
        f" `apt-get install {' or '.join(names)}`"
    )


# -- the root folder of all machines ---------------------------------------------------------------


def cache_folder() -> Path:
    home = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(home) / "fleetform/tests"


def root_folder() -> Path:
    """Return where the root folder of this version is, or will be."""
    version = json.dumps([SUITE, PACKAGES, LAYOUT, platform.machine(), _uml_version()])
    return cache_folder() / f"machine-{hashlib.sha256(version.encode()).hexdigest()[:12]}"


def install_root() -> Path:
    """Return the root folder; installs it with debootstrap where it is missing, in two minutes."""
    root = root_folder()
    root.parent.mkdir(parents=True, exist_ok=True)
    with _locked(root.with_name(f"{root.name}.lock")):
        if root.is_dir():
            return root
        if shutil.which("debootstrap") is None:
            raise MachineError(
                "debootstrap is not installed; as root on Debian, run `apt-get install debootstrap`"
            )
        new = root.with_name(f"{root.name}.new")
        shutil.rmtree(new, ignore_errors=True)
        # In mount namespaces of its own: what debootstrap mounts is gone with it, however it ends.
        done = subprocess.run(
            ["unshare", "--mount", "debootstrap", "--variant=minbase",
             f"--include={','.join(PACKAGES)}", SUITE, str(new), MIRROR],
            capture_output=True,
            text=True,
            check=False,
        )  # fmt: skip
        if done.returncode:
            last = "\n".join((done.stdout + done.stderr).strip().splitlines()[-5:])
            raise MachineError(f"debootstrap cannot install {SUITE} into {new}:\n{last}")
        _finish(new)
        _make_image(new)
        new.rename(root)
    return root


def image() -> Path:
    """Return the image of the root folder, for kernels."""
    return install_root() / "image"


def _make_image(root: Path) -> None:
    """Write a file system with the files of the root folder into one file beside them."""
    if choose_kind() != "uml":
        return
    target = root.with_name(f"{root.name}.image")
    target.unlink(missing_ok=True)
    subprocess.run(["mkfs.ext4", "-q", "-F", "-d", str(root), str(target), IMAGE_SIZE], check=True)
    target.rename(root / "image")


def _finish(root: Path) -> None:
    """Make the installed system one that boots fast, reaches the lab, and is no machine yet."""
    shutil.rmtree(root / "var/cache/apt", ignore_errors=True)
    shutil.rmtree(root / "var/lib/apt/lists", ignore_errors=True)
    for path in (*(root / "etc/ssh").glob("ssh_host_*"), root / "etc/hostname"):
        path.unlink(missing_ok=True)
    (root / "etc/machine-id").unlink(missing_ok=True)
    if _MODULES.is_dir():
        shutil.copytree(_MODULES, root / "usr/lib/modules", dirs_exist_ok=True)
    (root / "etc/fstab").write_text("")
    (root / "lab-init").write_text(_INIT)
    (root / "lab-init").chmod(0o755)
    (root / "etc/ssh/sshd_config").write_text(_SSHD_CONFIG)
    units = root / "etc/systemd/system"
    (units / "lab-network.service").write_text(_NETWORK_UNIT)
    wants = units / "multi-user.target.wants"
    (wants / "lab-network.service").symlink_to("../lab-network.service")
    # No person sits at a machine of the lab, and nothing there is upgraded by itself.
    for unit in (
        "apt-daily.timer", "apt-daily-upgrade.timer", "console-getty.service", "dpkg-db-backup.timer",
        "e2scrub_all.timer", "e2scrub_reap.service", "fstrim.timer", "getty.target",
        "systemd-timesyncd.service", "systemd-networkd-wait-online.service",
        # There are no devices to find, and finding none takes half of the boot.
        "systemd-udevd.service", "systemd-udev-trigger.service", "systemd-udevd-control.socket",
        "systemd-udevd-kernel.socket", "systemd-binfmt.service", "proc-sys-fs-binfmt_misc.automount",
        "sys-kernel-config.mount", "sys-kernel-debug.mount", "sys-kernel-tracing.mount",
        "sys-fs-fuse-connections.mount", "systemd-pstore.service", "systemd-remount-fs.service",
        "modprobe@configfs.service", "modprobe@drm.service", "modprobe@fuse.service",
        "systemd-sysctl.service", "systemd-sysusers.service",
    ):  # fmt: skip
        path = units / unit
        path.unlink(missing_ok=True)
        path.symlink_to("/dev/null")


def _uml_version() -> str:
    try:
        return ",".join(sorted(path.name for path in _MODULES.iterdir()))
    except OSError:
        return ""


# -- one machine -----------------------------------------------------------------------------------


def write_network(folder: Path, address: Address) -> None:
    """Write the address of a machine into its folder `etc`."""
    # The kernel of User Mode Linux names its link so. A container has an address when it begins.
    (folder / "lab-network").write_text(
        "[ -e /sys/class/net/vec0 ] || exit 0\n"
        f"ip address add {address.address}/{address.length} dev vec0\n"
        "ip link set vec0 up\n"
    )


def boot_words(kind: str, name: str, namespace: str, disk: Path, address: Address) -> list[str]:
    """Return the command that boots a machine of this folder; `machine.sh` has mounted its files."""
    if kind == "uml":
        return [
            PROGRAMS[kind], f"mem={_MEMORY}", "root=/dev/ubda", f"ubd0={disk / 'disk'},{image()}",
            "rw", "quiet", "con=null", "con0=null,fd:1", "init=/lab-init",
            f"lab_files={disk / 'root'}",
            f"vec0:transport=tap,ifname={name},depth=64,gro=1,mac={address.mac}",
            "systemd.unified_cgroup_hierarchy=1",
        ]  # fmt: skip
    return [
        PROGRAMS[kind], "--quiet", "--register=no", "--keep-unit", f"--machine={namespace}",
        f"--directory={MOUNT}", f"--network-namespace-path=/run/netns/{namespace}",
        "--console=pipe", "--boot",
    ]  # fmt: skip


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
