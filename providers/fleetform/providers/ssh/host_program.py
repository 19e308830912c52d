"""
The program that sets a host up, sent over SSH to the host's own Python.

It runs on the host with Python 3.9 or newer, imports the standard library only, and is called as
`run(REQUEST)` with the name of an operation and its arguments. It prints one JSON object: the
answer, or `error` with a sentence for people, `advice`, `is_temporary`, and in `found_uid` the instance
whose agent is in the way.

All files are below one folder, `~/.local/state/fleetform` unless the fleet names another: `agents/`
has the bundles of the agent by digest, and `hosts/<environment uid>/<instance name>` is the root
folder of one agent. `host_service` keeps the agent running.
"""

from __future__ import annotations

import base64
import contextlib
import errno
import fcntl
import hashlib
import json
import os
import shutil
import signal
import socket
import sys
import tempfile
import time
import zlib
from typing import Any

from fleetform.providers import host_service

STATE = ".local/state/fleetform"

_READY_SECONDS = 10.0
"""How long an agent that has just been started elsewhere may take until it listens."""

SHARED = "/var/lib/fleetform"
"""What jobs of other accounts reach where the agent is root: as in `agents.host.layout`."""

_END_SECONDS = 10.0
_END_LOOK_SECONDS = 0.02
_REMOVALS_MAX = 40
_REMOVAL_SECONDS = 0.05
_RELEASED = ".released-"


class Refused(Exception):
    def __init__(
        self, message: str, advice: str = "", is_temporary: bool = False, found_uid: str = ""
    ) -> None:
        super().__init__(message)
        self.answer = {"error": message, "advice": advice, "is_temporary": is_temporary}
        if found_uid:
            self.answer["found_uid"] = found_uid


def run(request: dict[str, Any]) -> None:
    """Carry out one operation and print its answer."""
    os.umask(0o077)
    try:
        answer = _OPERATIONS[request["operation"]](request)
    except Refused as refusal:
        answer = refusal.answer
    except OSError as error:
        answer = _refusal(error, request).answer
    sys.stdout.write(json.dumps(answer) + "\n")


def claim(request: dict[str, Any]) -> dict[str, Any]:
    """Make the root folder this instance's; tell whether the bundle is missing, and whether it serves."""
    wanted = {name: request[name] for name in ("uid", "name", "fleet", "environment_uid")}
    root = _root(request)
    found = _identity(root)
    if found.get("uid", request["uid"]) != request["uid"]:
        raise Refused(
            "an earlier agent of this environment exists on this host, and the ledger does not know it:"
            " the host was declared lost, or its fleet was released, or the ledger was lost",
            "if the ledger was lost, `fleetform state rebuild` adopts it with its jobs; if its jobs are not"
            f" needed, end them and remove {root} on the host; then apply again",
            found_uid=str(found["uid"]),
        )
    os.makedirs(root, mode=0o700, exist_ok=True)
    # Only this user may reach the agent's socket, and with it start processes.
    os.chmod(root, 0o700)
    _refuse_noexec(root)
    if found != wanted:
        _refuse_unusable(root)
        _write(os.path.join(root, "instance.json"), json.dumps(wanted).encode())
    place = _described(request, root)
    serves = place["is_sound"] and _running(root)[1] == place["bundle"] and _listens(root)
    return {**place, "is_ready": serves}


def find(request: dict[str, Any]) -> dict[str, Any]:
    """Tell where the instance is, without changing anything."""
    root = _root(request)
    if _identity(root).get("uid") != request["uid"]:
        return {"root": ""}
    return _described(request, root)


def list_instances(request: dict[str, Any]) -> dict[str, Any]:
    """List the environment's instances on this host, without changing anything."""
    environment = os.path.join(_state(request), "hosts", request["environment_uid"])
    found = []
    for name in sorted(_names(environment)):
        root = os.path.join(environment, name)
        identity = {} if name.startswith(".") else _identity(root)
        if identity:
            entry = {field: str(identity[field]) for field in ("uid", "name", "fleet")}
            found.append({**entry, "is_alive": bool(_running(root)[1])})
    return {"instances": found}


def store(request: dict[str, Any]) -> dict[str, Any]:
    """Keep the bundle of the agent; what was received must have its digest."""
    content = base64.b64decode(request["content"])
    if hashlib.sha256(content).hexdigest() != request["sha256"]:
        raise Refused("the agent arrived damaged on the host", is_temporary=True)
    path = _bundle(request)
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    _write(path, content)
    return {"bundle": path}


def start(request: dict[str, Any]) -> dict[str, Any]:
    """
    Have an agent of the bundle run; it goes on when this SSH session ends.

    An agent of another bundle ends first; its jobs go on, and the new one finds them. Where the new
    one does not start, the earlier one is started again: `failure` says why, `bundle` which one runs.
    With `is_update` false one that runs stays.
    """
    root, bundle = request["root"], request["bundle"]
    pid, serving = _running(root)
    if (
        serving
        and (serving == bundle or not request.get("is_update", True))
        and _await_socket(root)
    ):
        return {"bundle": serving, "failure": "", "notes": []}
    earlier = serving or host_service.bundle_of(root)
    if serving and not host_service.stop(root):
        _end(pid, root)
    try:
        notes = host_service.start(root, _state(request), bundle)
    except host_service.ServiceError as error:
        if earlier in {"", bundle} or not os.path.exists(earlier):
            raise Refused(f"the agent does not start: {error}", is_temporary=True) from None
        try:
            notes = host_service.start(root, _state(request), earlier)
        except host_service.ServiceError as again:
            raise Refused(
                f"neither the agent of this release starts ({error}) nor"
                f" {os.path.basename(earlier)}: {again}",
                is_temporary=True,
            ) from None
        return {"bundle": earlier, "failure": str(error), "notes": notes}
    return {"bundle": bundle, "failure": "", "notes": notes}


def _await_socket(root: str) -> bool:
    """Tell whether the agent that runs listens, or does so soon."""
    deadline = time.monotonic() + _READY_SECONDS
    while not _listens(root):
        if time.monotonic() > deadline or not _running(root)[1]:
            return False
        time.sleep(_END_LOOK_SECONDS)
    return True


def _listens(root: str) -> bool:
    before = os.open(".", os.O_RDONLY)
    try:
        # By a short name: the address of a socket holds 107 bytes.
        os.chdir(root)
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.connect("agent.sock")
    except OSError:
        return False
    finally:
        os.fchdir(before)
        os.close(before)
    return True


def _running(root: str) -> tuple[int, str]:
    """Return the process id and the bundle of the agent that serves a folder; empty without one."""
    try:
        with open(os.path.join(root, "agent.pid"), encoding="ascii") as file:
            pid = int(file.read())
        return pid, _bundle_of(pid, root)
    except (OSError, ValueError):
        return 0, ""


def _bundle_of(pid: int, root: str) -> str:
    """Return the bundle that a process runs; empty unless it is the agent of the folder."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            words = [os.fsdecode(word) for word in file.read().split(b"\0")]
    except OSError:
        return ""
    # PYTHON -I -S BUNDLE daemon --root ROOT
    is_agent = "daemon" in words and root in words
    return words[words.index("daemon") - 1] if is_agent else ""


def _end(pid: int, root: str) -> None:
    """End an agent and wait until it has; jobs do not need it."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            return
        deadline = time.monotonic() + _END_SECONDS
        while time.monotonic() < deadline:
            if not _bundle_of(pid, root):
                return
            time.sleep(_END_LOOK_SECONDS)


def remove(request: dict[str, Any]) -> dict[str, Any]:
    """Remove the root folder of an agent that has ended, and the bundles that no agent uses now."""
    root = _root(request)
    if _identity(root).get("uid") == request["uid"]:
        host_service.remove(root)
        # It leaves its name first: half a folder would otherwise pass for an instance.
        leaving = os.path.join(os.path.dirname(root), _RELEASED + os.path.basename(root))
        _remove_tree(leaving)
        os.replace(root, leaving)
        _remove_tree(leaving)
        _remove_shared(root)
    with contextlib.suppress(OSError):
        os.rmdir(os.path.dirname(root))
    state, volumes = _state(request), _volumes(request)
    # Data that stays keeps them: they go only when they are empty.
    with contextlib.suppress(OSError):
        os.rmdir(os.path.join(volumes, request["environment_uid"]))
    with contextlib.suppress(OSError):
        os.rmdir(volumes)
    with contextlib.suppress(OSError):
        os.rmdir(SHARED)
    with contextlib.suppress(OSError):
        os.rmdir(os.path.join(state, "hosts"))
        # That succeeds only where no instance of any environment is left.
        host_service.end_linger(state)
        shutil.rmtree(os.path.join(state, "agents"))
        os.rmdir(state)
    return {}


def _remove_shared(root: str) -> None:
    """Remove the working directories of other accounts' jobs; named as in `agents.host.layout`."""
    number = zlib.crc32(os.fsencode(root))
    _remove_tree(os.path.join(SHARED, "jobs", f"{os.path.basename(root)}-{number:08x}"))
    with contextlib.suppress(OSError):
        os.rmdir(os.path.join(SHARED, "jobs"))
        # That succeeds only where no agent has such jobs: nobody needs the programs for them.
        for name in ("slurm", "launcher"):
            shutil.rmtree(os.path.join(SHARED, name), ignore_errors=True)
        os.rmdir(SHARED)


_OPERATIONS = {
    "claim": claim,
    "find": find,
    "list": list_instances,
    "store": store,
    "start": start,
    "remove": remove,
}


def _described(request: dict[str, Any], root: str) -> dict[str, Any]:
    path = _bundle(request)
    is_sound = _digest(path) == request["sha256"]
    serving = _running(root)[1]
    earlier = serving or host_service.bundle_of(root)
    others = _bundles(request) if not is_sound else []
    # Any bundle passes bytes to an agent: to look at a host needs no upload. That of the agent that
    # runs is known to work.
    usable = [one for one in (serving,) if one and os.path.exists(one)] or others or [path]
    return {
        "root": root,
        "bundle": path,
        "is_sound": is_sound,
        "any_bundle": usable[0],
        "earlier": earlier if os.path.exists(earlier) else "",
        "volumes": _volumes(request),
    }


def _volumes(request: dict[str, Any]) -> str:
    """Say where volumes are: other accounts than root's must be able to reach theirs."""
    own = os.path.join(_state(request), "volumes")
    is_shared = os.geteuid() == 0 and not os.path.isdir(own)
    return os.path.join(SHARED, "volumes") if is_shared else own


def _root(request: dict[str, Any]) -> str:
    """
    Say where the instance is: below its name, or below the one it was made under.

    A folder keeps its name when its instance gets another: jobs run in there, by their paths.
    """
    environment = os.path.join(_state(request), "hosts", request["environment_uid"])
    named = os.path.join(environment, request["name"])
    found = _identity(named)
    if found.get("uid") == request["uid"]:
        return named
    for name in sorted(_names(environment)):
        path = os.path.join(environment, name)
        if not name.startswith(".") and _identity(path).get("uid") == request["uid"]:
            return path
    if found and found.get("name") != request["name"]:
        return f"{named}.{request['uid'][:8]}"
    return named


def _state(request: dict[str, Any]) -> str:
    """Return the folder of all agents of the account."""
    folder = os.path.expanduser(request.get("folder") or os.path.join("~", STATE))
    if not os.path.isabs(folder):
        raise Refused(
            "the account has no home folder", "set HOME for it, or `agent_dir` of the fleet"
        )
    return os.path.normpath(folder)


def _bundle(request: dict[str, Any]) -> str:
    return os.path.join(_state(request), "agents", f"fleetform-agent-{request['sha256'][:16]}.pyz")


def _bundles(request: dict[str, Any]) -> list[str]:
    folder = os.path.join(_state(request), "agents")
    return [os.path.join(folder, name) for name in sorted(_names(folder)) if name.endswith(".pyz")]


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except (FileNotFoundError, NotADirectoryError):
        return []


def _digest(path: str) -> str:
    try:
        with open(path, "rb") as file:
            return hashlib.sha256(file.read()).hexdigest()
    except OSError:
        return ""


def _identity(root: str) -> dict[str, Any]:
    path = os.path.join(root, "instance.json")
    advice = "restore it: it names the owner of the instance"
    try:
        with open(path, encoding="utf-8") as file:
            value = json.load(file)
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except ValueError as error:
        raise Refused(f"{path} cannot be read: {error}", advice) from error
    if not isinstance(value, dict):
        raise Refused(f"{path} is not a JSON object", advice)
    return value


def _refuse_noexec(root: str) -> None:
    if os.statvfs(root).f_flag & os.ST_NOEXEC:
        raise Refused(
            f"{root} is on a file system that is mounted noexec, so jobs cannot run there",
            f"mount it with `exec`, or {_ELSEWHERE}",
        )


def _refuse_unusable(root: str) -> None:
    """Refuse a file system that has no locks or sockets: the agent would fail later."""
    before = os.open(".", os.O_RDONLY)
    try:
        # By a short name: the address of a socket holds 107 bytes.
        os.chdir(root)
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as one, open(".try", "w") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            one.bind(".try.sock")
    except OSError as error:
        if error.errno not in _REFUSED_BY_SERVERS:
            raise
        raise Refused(
            f"the file system of {root} refuses locks or sockets: {error.strerror}", _ELSEWHERE
        ) from None
    finally:
        for name in (".try", ".try.sock"):
            with contextlib.suppress(OSError):
                os.unlink(os.path.join(root, name))
        os.fchdir(before)
        os.close(before)


_REFUSED_BY_SERVERS = frozenset(
    {errno.ENOLCK, errno.EOPNOTSUPP, errno.EPERM, errno.ENOSYS, errno.EINVAL}
)

_ELSEWHERE = (
    "set `agent_dir` in `ssh_config` of the fleet to a folder on a local disk, such as"
    " /var/lib/fleetform"
)


def _refusal(error: OSError, request: dict[str, Any]) -> Refused:
    place = error.filename or request.get("folder") or STATE
    known = {
        errno.ENOSPC: (f"no space is left for {place}", "free space on the disk of the host"),
        errno.EDQUOT: (f"the disk quota is used up for {place}", "raise the quota of the account"),
        errno.EROFS: (
            f"{place} is on a read-only file system",
            f"mount it with `rw`, or {_ELSEWHERE}",
        ),
        # The server of a network file system may also take root for a stranger (root squash).
        errno.EACCES: (
            f"the account may not write {place}",
            f"change the owner of the folder, or {_ELSEWHERE}",
        ),
    }
    known[errno.EPERM] = known[errno.EACCES]
    message, advice = known.get(error.errno or 0, (f"{place}: {error.strerror or error}", ""))
    # A full disk has space again when other work ends; a mount is changed by a person only.
    return Refused(message, advice, error.errno in {errno.ENOSPC, errno.EDQUOT, errno.EIO})


def _remove_tree(path: str) -> None:
    """Remove a tree in which an agent that is just ending may still remove and write."""
    for _ in range(_REMOVALS_MAX):
        shutil.rmtree(path, ignore_errors=True)
        if not os.path.lexists(path):
            return
        time.sleep(_REMOVAL_SECONDS)
    # Once more, for the reason why it cannot be removed.
    shutil.rmtree(path)


def _write(path: str, content: bytes) -> None:
    """Write a file so that its name has the old content or the new one, also after a power cut."""
    descriptor, name = tempfile.mkstemp(dir=os.path.dirname(path), prefix=".new-")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise
