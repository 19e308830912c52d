"""
cloud-init as a host runs it when it boots, from Debian's package, for hosts that are namespaces.

The datasource is NoCloud: the document lies on the disk. The modules are those that act on accounts,
keys and the console; others would want disks, packages or systemd.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

INSTALL = Path(__file__).with_name("install.sh")

_PYTHON = "/usr/bin/python3"
"""That of the distribution, for which the modules are built."""

_ON_HOST = "srv/cloud-init"

PROGRAMS_ON_HOST = f"{_ON_HOST}/usr/bin"
"""What lies here on the disk is on the search path of the host."""

_PARTS = ("usr/bin/cloud-init", "usr/lib/cloud-init", "usr/lib/python3/dist-packages")

_CONFIGURATION = {
    "datasource_list": ["NoCloud"],
    # No look at the disks of this machine.
    "datasource": {"NoCloud": {"fs_label": None}},
    "network": {"config": "disabled"},
    "cloud_init_modules": ["bootcmd", "write-files", "users-groups", "ssh"],
    "cloud_config_modules": ["set-passwords", "runcmd"],
    "cloud_final_modules": ["package-update-upgrade-install", "scripts-user", "ssh-authkey-fingerprints", "keys-to-console"],
}  # fmt: skip

_BOOT = f"""\
#!/bin/sh
# The stages of cloud-init in their order; what they print is the console of the host.
exec >>/var/log/console 2>&1
if [ -e /dev/console ]; then mount --bind /var/log/console /dev/console; fi
# As if the packages were installed: cloud-init looks for its programs there.
mount -t overlay -o lowerdir=/{_ON_HOST}/usr:/usr overlay /usr
for stage in 'init --local' init 'modules --mode=config' 'modules --mode=final'; do
    {_PYTHON} /usr/bin/cloud-init $stage || echo "cloud-init $stage ended with $?"
done
"""

_SSHD = """\
ListenAddress 0.0.0.0
HostKey /etc/ssh/ssh_host_ed25519_key
PidFile none
UsePAM yes
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
"""


def reason_missing() -> str:
    """Say why cloud-init cannot be run here; empty when it can."""
    if _unpacked() is None:
        return (
            "cloud-init is not unpacked; `sh tests/services.sh cloud` does it, on Debian and Ubuntu"
        )
    return ""


def check_schema(document: str, folder: Path) -> str:
    """Let cloud-init judge a document by its schema; return what it says, empty when it is valid."""
    file = folder / "document"
    file.write_text(document)
    unpacked = _unpacked()
    assert unpacked is not None
    done = subprocess.run(
        [_PYTHON, str(unpacked / "usr/bin/cloud-init"), "schema", "-c", str(file)],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(unpacked / "usr/lib/python3/dist-packages")},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    file.unlink()
    return "" if done.returncode == 0 else done.stdout + done.stderr


def write_disk(root: Path, identity: str, document: str) -> None:
    """Write what a host needs so that it runs cloud-init when it boots, with this document."""
    unpacked = _unpacked()
    assert unpacked is not None
    for part in _PARTS:
        target = root / _ON_HOST / part
        target.parent.mkdir(parents=True, exist_ok=True)
        copy = shutil.copy2 if (unpacked / part).is_file() else shutil.copytree
        copy(unpacked / part, target)
    configuration = root / "etc/cloud"
    configuration.mkdir(parents=True)
    shutil.copy2(unpacked / "etc/cloud/cloud.cfg", configuration)
    folder = configuration / "cloud.cfg.d"
    folder.mkdir()
    (folder / "tests.cfg").write_text(json.dumps(_CONFIGURATION))
    seed = root / "var/lib/cloud/seed/nocloud"
    seed.mkdir(parents=True)
    (seed / "meta-data").write_text(json.dumps({"instance-id": identity}))
    (seed / "user-data").touch(mode=0o600)
    (seed / "user-data").write_text(document)
    (root / "var/log").mkdir(parents=True)
    (root / "var/log/console").touch(mode=0o600)
    (root / "etc/ssh").mkdir()
    (root / "etc/ssh/sshd_config").write_text(_SSHD)
    (root / "etc/rc.local").write_text(_BOOT)
    (root / "etc/rc.local").chmod(0o755)


def _unpacked() -> Path | None:
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    # The newest, by the time at which it was unpacked.
    found = sorted(
        (path for path in (cache / "fleetform/tests").glob("cloud-init-*") if path.is_dir()),
        key=lambda path: path.stat().st_mtime,
    )
    return found[-1] if found else None
