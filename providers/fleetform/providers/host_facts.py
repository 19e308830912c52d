"""
The program that reads what a host is like, and changes nothing there.

For this machine it is called; to a host over SSH its source is sent, for the host's own Python. It
runs with Python 3.9 or newer and imports the standard library only. What cannot be read is None:
the reader of the facts decides what that means.
"""

from __future__ import annotations

import contextlib
import glob
import json
import os
import platform
import pwd
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

from fleetform.providers import host_service

_NVIDIA = "0x10de"
_DISPLAY_CLASSES = ("0x0300", "0x0302")
"""VGA and 3D controllers: `class` in sysfs, as PCI assigns it."""


def run(request: dict[str, Any]) -> None:
    """Print the facts as one line of JSON."""
    sys.stdout.write(json.dumps(read_facts(request)) + "\n")


def read_facts(request: dict[str, Any]) -> dict[str, Any]:
    """
    Read the facts of this host.

    Args:
        request: `folder`: where fleetform keeps its files, from the home folder on or absolute.
            `person`: the account of the person who asks.

    Returns:
        The fields of `contract.checks.HostFacts`.
    """
    now_ms = time.time_ns() // 1_000_000
    account = _account()
    folder = os.path.join(account["home"], os.path.expanduser(request["folder"]))
    service = host_service.expected()
    facts = {
        "now_ms": now_ms,
        "hostname": platform.node(),
        "machine_id": _text("/etc/machine-id").strip(),
        "boot_id": _text("/proc/sys/kernel/random/boot_id").strip(),
        "account": account["name"],
        "home": account["home"],
        "is_root": os.geteuid() == 0,
        "has_sudo": _has_sudo(),
        "person": request["person"],
        "has_person": _has_account(request["person"]),
        "python": sys.executable,
        "python_version": platform.python_version(),
        "system": _system_name(),
        "kernel": platform.release(),
        "machine": platform.machine(),
        "cpus": len(os.sched_getaffinity(0)),
        "memory_bytes": os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"),
        "open_files_max": resource.getrlimit(resource.RLIMIT_NOFILE)[1],
        "memory_limit": _memory_limit(service),
        "service": service,
        "folder": _folder(folder),
        "logout": _logout(account["name"]),
        "gpu": _gpu(),
        "agents": _agents(folder),
    }
    # Asking a sick GPU driver takes long, and is no sign of a clock that is slow.
    return {**facts, "took_ms": time.time_ns() // 1_000_000 - now_ms}


def account_name() -> str:
    """Return the account of this process by its user id; in a container it may have no name."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return f"uid-{os.getuid()}"


# -- the account ------------------------------------------------------------------------------


def _account() -> dict[str, str]:
    try:
        entry = pwd.getpwuid(os.geteuid())
        name, home = entry.pw_name, entry.pw_dir
    except KeyError:
        # Of a directory service that the host's Python does not ask.
        name, home = os.environ.get("USER", str(os.geteuid())), ""
    return {"name": name, "home": os.environ.get("HOME") or home}


def _has_account(name: str) -> bool:
    try:
        pwd.getpwnam(name)
    except (KeyError, ValueError):
        return False
    return True


def _has_sudo() -> bool:
    # With -k it neither believes in an earlier password nor leaves a time stamp behind: sudo(8).
    return os.geteuid() != 0 and host_service.call("sudo", "-k", "-n", "true") is not None


def _logout(account: str) -> dict[str, Any]:
    """Read what systemd ends or removes when the last session of the account ends."""
    found: dict[str, Any] = {
        "has_systemd": os.path.isdir("/run/systemd/system"),
        "lingers": os.path.exists("/var/lib/systemd/linger/" + account),
        "kills_processes": None,
        "removes_ipc": None,
    }
    if not found["has_systemd"]:
        return found
    # Without the name of a session it shows the properties of the manager: loginctl(1).
    names = (*host_service.LOGOUT_PROPERTIES, "RemoveIPC")
    output = host_service.call(
        "loginctl", "show-session", *("--property=" + name for name in names)
    )
    found["kills_processes"] = host_service.kills_at_logout(account, output or "")
    values = dict(line.split("=", 1) for line in (output or "").splitlines() if "=" in line)
    if "RemoveIPC" in values:
        # Accounts of the system keep theirs: logind.conf(5).
        found["removes_ipc"] = values["RemoveIPC"] == "yes" and os.geteuid() >= _first_uid()
    return found


def _first_uid() -> int:
    for line in _text("/etc/login.defs").splitlines():
        words = line.split()
        if len(words) == 2 and words[0] == "UID_MIN" and words[1].isdigit():
            return int(words[1])
    return 1000


# -- the system -------------------------------------------------------------------------------


def _system_name() -> str:
    for line in _text("/etc/os-release").splitlines():
        name, _, value = line.partition("=")
        if name == "PRETTY_NAME":
            return value.strip().strip('"')
    return platform.system()


def _memory_limit(service: str) -> str:
    """
    Name the way in which the agent can limit the memory of jobs: `cgroup2`, `cgroup1` or `count`.

    The agent tries it, in `agents.host.cgroups`; this looks at what is writable, and at what systemd
    would delegate to a unit of jobs.
    """
    uid = os.geteuid()
    manager = "" if service == "system" else f"user.slice/user-{uid}.slice/user@{uid}.service/"
    controllers = _text(f"/sys/fs/cgroup/{manager}cgroup.controllers").split()
    if service in {"system", "user"} and "memory" in controllers:
        return "cgroup2"
    for kind, controller in (("cgroup2", ""), ("cgroup", "memory")):
        path = _group(kind, controller)
        if path is None:
            continue
        if kind == "cgroup":
            if os.access(path, os.W_OK):
                return "cgroup1"
            continue
        for place in (path, os.path.dirname(path)):
            controllers = _text(place + "/cgroup.subtree_control").split()
            if "memory" in controllers and os.access(place, os.W_OK):
                return "cgroup2"
    return "count"


def _group(kind: str, controller: str) -> str | None:
    """Return the folder of this process's control group."""
    group = None
    for line in _text("/proc/self/cgroup").splitlines():
        _, names, path = line.split(":", 2)
        if controller in names.split(","):
            group = path
    if group is None:
        return None
    for mount in _mounts():
        if mount["type"] == kind and (not controller or controller in mount["options"]):
            below = os.path.relpath(group, mount["root"])
            if not below.startswith(".."):
                return os.path.normpath(os.path.join(mount["path"], below))
    return None


def _mounts() -> Iterator[dict[str, Any]]:
    """Read /proc/self/mountinfo: proc_pid_mountinfo(5)."""
    for line in _text("/proc/self/mountinfo").splitlines():
        before, separator, after = line.partition(" - ")
        fields, rest = before.split(" "), after.split(" ")
        if separator and len(fields) >= 6 and len(rest) >= 3:
            yield {
                "root": _unescaped(fields[3]),
                "path": _unescaped(fields[4]),
                "type": rest[0],
                "source": _unescaped(rest[1]),
                "options": rest[2].split(","),
            }


def _unescaped(text: str) -> str:
    for code, character in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        text = text.replace(code, character)
    return text


# -- the folder -------------------------------------------------------------------------------


def _folder(path: str) -> dict[str, Any]:
    """Read what is known of the file system that has the folder, or will have it."""
    place = path
    while not os.path.lexists(place) and place != os.path.dirname(place):
        place = os.path.dirname(place)
    real = os.path.realpath(place)
    found: dict[str, Any] = {
        "path": path,
        "nearest": place,
        "file_system": "",
        "source": "",
        "is_folder": os.path.isdir(place),
        "is_writable": os.access(place, os.W_OK | os.X_OK),
        "is_read_only": False,
        "is_noexec": False,
        "free_bytes": None,
        "free_files": None,
        "files": None,
    }
    # The last of several mounts on one path is the one that shows.
    for mount in _mounts():
        inside = real == mount["path"] or real.startswith(mount["path"].rstrip("/") + "/")
        if inside and len(mount["path"]) >= len(found.get("mount", "")):
            found.update(mount=mount["path"], file_system=mount["type"], source=mount["source"])
    with contextlib.suppress(OSError):
        seen = os.statvfs(place)
        found["is_read_only"] = bool(seen.f_flag & os.ST_RDONLY)
        found["is_noexec"] = bool(seen.f_flag & os.ST_NOEXEC)
        found["free_bytes"] = seen.f_bavail * seen.f_frsize
        # Some file systems make room for files as they need it, and report 0 of 0.
        found["free_files"], found["files"] = seen.f_favail, seen.f_files
    found.setdefault("mount", "")
    return found


# -- GPUs -------------------------------------------------------------------------------------


def _gpu() -> dict[str, Any]:
    tool = host_service.find_tool("nvidia-smi")
    found: dict[str, Any] = {
        "cards": _cards(),
        "tool": tool or "",
        "driver": "",
        "names": [],
        "complaint": "",
        "users": [],
        "devices": [],
    }
    if tool is None:
        return found
    columns = "driver_version,name,memory.total,index,uuid"
    query = ["--query-gpu=" + columns, "--format=csv,noheader,nounits"]
    try:
        done = host_service.run_tool(tool, *query)
    except (OSError, subprocess.TimeoutExpired) as error:
        found["complaint"] = str(error)
        return found
    for line in done.stdout.splitlines():
        fields = [field.strip() for field in line.split(",")]
        # A card that has failed shows words in place of numbers.
        if len(fields) == 5 and fields[2].isdigit() and fields[3].isdigit():
            found["driver"] = fields[0]
            found["names"].append(fields[1])
            found["devices"].append({"index": int(fields[3]), "uuid": fields[4]})
        elif line.strip():
            found["complaint"] = line.strip()
    if done.returncode and not found["complaint"]:
        found["complaint"] = done.stderr.strip() or f"exit code {done.returncode}"
    if found["names"]:
        found["users"] = _gpu_users(tool)
    return found


def _gpu_users(tool: str) -> list[dict[str, Any]]:
    """List the processes that use a GPU, without those of jobs of fleetform."""
    query = ["--query-compute-apps=pid,process_name", "--format=csv,noheader"]
    try:
        lines = host_service.run_tool(tool, *query).stdout.splitlines()
    except (OSError, subprocess.TimeoutExpired):
        return []
    found = {}
    for line in lines:
        pid, _, program = (part.strip() for part in line.partition(","))
        if pid.isdigit() and os.path.isdir("/proc/" + pid) and not _is_job(pid):
            # In a container it is the path there.
            name = os.path.basename(program) or "unknown"
            found[int(pid)] = {"pid": int(pid), "user": _owner(pid), "program": name}
    return [found[pid] for pid in sorted(found)]


def _is_job(pid: str) -> bool:
    """Tell whether a process is of a job of any environment; of another account's that is not known."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return b"FLEETFORM_RUN_UID=" in file.read()
    except OSError:
        return False


def _owner(pid: str) -> str:
    try:
        uid = os.stat("/proc/" + pid).st_uid
    except OSError:
        return "unknown"
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def _cards() -> int:
    """Count the cards of NVIDIA in the machine, whether or not there is a driver."""
    return sum(
        _text(path).strip() == _NVIDIA
        and _text(os.path.dirname(path) + "/class").startswith(_DISPLAY_CLASSES)
        for path in glob.glob("/sys/bus/pci/devices/*/vendor")
    )


# -- agents -----------------------------------------------------------------------------------


def _agents(folder: str) -> list[dict[str, Any]]:
    """List the agents of this account: every environment, and whether each runs."""
    running = _running()
    agents = []
    for path in sorted(glob.glob(glob.escape(folder) + "/hosts/*/*/instance.json")):
        try:
            identity = json.loads(_text(path))
            root = os.path.realpath(os.path.dirname(path))
            agents.append(
                {
                    **{key: str(identity[key]) for key in ("uid", "name", "fleet")},
                    "environment_uid": str(identity["environment_uid"]),
                    "is_running": root in running,
                    "bundle": running.get(root, ""),
                }
            )
        except (ValueError, KeyError, TypeError):
            continue
    return agents


def _running() -> dict[str, str]:
    """Return the file that each running agent was started from, by its root folder."""
    found = {}
    for path in glob.glob("/proc/[0-9]*/cmdline"):
        words = _text(path).split("\0")
        if "daemon" in words and "--root" in words[:-1]:
            place = words.index("daemon")
            root = os.path.realpath(words[words.index("--root") + 1])
            found[root] = os.path.basename(words[place - 1])
    return found


# -- reading ----------------------------------------------------------------------------------


def _text(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""
