"""
What keeps an agent running on its host: a unit of systemd, or a line in its account's crontab.

It runs on the host with Python 3.9 or newer and imports the standard library only; `host_program`
decides when. The way is chosen at the start of an agent and kept in `service.json` of its root folder:

- `system`: units of the system's manager, where the account is root and systemd runs.
- `user`: units of the account's own manager, which lingers: it starts with the machine, and no logout ends it.
- `cron`: a daemon that detaches itself, and a line `@reboot` where cron runs.
- `daemon`: a daemon that detaches itself. After a reboot the controller starts it.

An agent under systemd has two units in the slice of its environment. The unit of the jobs has a
delegated control group, which holds the spawner, the supervisors and the jobs; a process that sleeps
keeps it. So a restart of the agent's unit ends no job, and no job needs a call to systemd.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import pwd
import re
import shutil
import subprocess
import sys

RECORD = "service.json"
START_LOG = "start.log"
"""What the agent printed on standard error before it detached itself: why it did not start."""

JOBS_UNIT_VARIABLE = "FLEETFORM_AGENT_JOBS_UNIT"
"""Tells the agent the unit of its jobs, which is next to its own; see `agents.host.cgroups`."""

_START_SECONDS = 90.0
"""Above the 60 s of the unit, so that systemd says first what is wrong."""

_CALL_SECONDS = 20.0
"""A cold NVIDIA driver without persistence mode takes about 2 s a card to initialise."""

_TOOL_FOLDERS = (
    "/usr/local/nvidia/bin:/usr/lib/wsl/lib:/usr/local/sbin:/usr/sbin:/sbin:/usr/bin:/bin"
)

_LINGER = "lingers"
"""A file next to the folder `hosts`: fleetform made the account linger, and ends that with its last agent."""

_JOBS = """\
[Unit]
Description=Jobs of {title}
After=network.target remote-fs.target

[Service]
Slice={slice}
ExecStart=/bin/sleep infinity
ExecStartPost=/bin/sh -c 'group=/sys/fs/cgroup$$(sed -n s/^0:://p /proc/$MAINPID/cgroup); \\
if [ -w $$group/cgroup.subtree_control ]; then mkdir -p $$group/keeper; \\
echo $MAINPID >$$group/keeper/cgroup.procs; echo +memory >$$group/cgroup.subtree_control; fi; true'
Delegate=yes
OOMPolicy=continue
TasksMax=infinity
"""

# Jobs are in another unit; where that could not be entered, `process` leaves them alone.
_AGENT = """\
[Unit]
Description=Agent of {title}
Wants={jobs}
After=network.target remote-fs.target {jobs}
StartLimitIntervalSec=0

[Service]
Type=forking
Slice={slice}
Environment={variable}={jobs}
ExecStart={command}
PIDFile={root}/agent.pid
StandardError=append:{root}/start.log
KillMode=process
Restart=on-failure
RestartSec=2
TimeoutStartSec=60
TasksMax=infinity

[Install]
WantedBy={target}
"""


class ServiceError(Exception):
    """The agent did not start; the text is what it said last."""


def start(root: str, state: str, bundle: str) -> list[str]:
    """
    Start an agent that does not run, and have it start after a reboot.

    Returns:
        What a person should know about this host, a sentence each.

    Raises:
        ServiceError: It does not start.
    """
    names = _Names(root)
    notes: list[str] = []
    kind = _choose(state, notes)
    if kind in {"system", "user"}:
        failure = _start_units(kind, names, bundle)
        if not failure:
            _record(root, kind, bundle)
            return notes
        # Where the daemon starts by itself, it is systemd that refused; else this says why it does not.
        _remove_agent_unit(kind, names)
        start_daemon(root, bundle)
        notes.append(f"systemd does not start the agent, so it runs without a unit: {failure}")
        kind = "cron"
    else:
        # The unit of an earlier start would start a second agent.
        _remove_agent_unit(_unit_kind(), names)
        start_daemon(root, bundle)
    if kind == "cron" and not _write_cron(names, bundle):
        kind = "daemon"
    _record(root, kind, bundle)
    return notes


def stop(root: str) -> bool:
    """Stop the unit of an agent; returns whether it has one. Its jobs go on."""
    kind = kind_of(root)
    if kind not in {"system", "user"}:
        return False
    _systemctl(kind, "stop", _Names(root).agent, seconds=_START_SECONDS)
    return True


def remove(root: str) -> None:
    """Remove what starts the agent of a root folder, and end what is left of its jobs."""
    names = _Names(root)
    # Whatever was chosen last: an earlier start may have left the other.
    _remove_units(_unit_kind(), names)
    _edit_cron(names, None)


def end_linger(state: str) -> None:
    """Undo the linger that fleetform asked for; called when the account has no agent left."""
    marker = os.path.join(state, _LINGER)
    if os.path.exists(marker):
        call("loginctl", "disable-linger", _account())
        os.unlink(marker)


def kind_of(root: str) -> str:
    """Return what keeps the agent of a root folder; `daemon` where nothing is written down."""
    return _recorded(root, "kind") or "daemon"


def bundle_of(root: str) -> str:
    """Return the bundle with which the agent was started last, or nothing."""
    return _recorded(root, "bundle")


def _recorded(root: str, field: str) -> str:
    try:
        with open(os.path.join(root, RECORD), encoding="utf-8") as file:
            return str(json.load(file)[field])
    except (OSError, ValueError, KeyError, TypeError):
        return ""


def start_daemon(root: str, bundle: str) -> None:
    """Start the agent as a process that detaches itself from this session."""
    try:
        done = subprocess.run(
            _command(root, bundle),
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
            timeout=_START_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise ServiceError(f"it has not started within {_START_SECONDS:.0f} s") from None
    if done.returncode:
        raise ServiceError(
            _last_line(done.stderr.decode("utf-8", "replace")) or f"exit code {done.returncode}"
        )


# -- the choice -------------------------------------------------------------------------------


def expected() -> str:
    """
    Say what would keep an agent running here, without changing anything.

    `linger`: it depends on whether systemd lets the account linger when fleetform asks for that.
    """
    if os.path.isdir("/run/systemd/system") and find_tool("systemctl") is not None:
        if os.geteuid() == 0:
            return "system"
        return "user" if _lingers(_account()) else "linger"
    return "cron" if _has_cron() else "daemon"


def _choose(state: str, notes: list[str]) -> str:
    if not os.path.isdir("/run/systemd/system") or find_tool("systemctl") is None:
        return "cron" if _has_cron() else "daemon"
    if os.geteuid() == 0:
        return "system"
    account = _account()
    if not _lingers(account):
        if call("loginctl", "enable-linger", account) is None or not _lingers(account):
            notes.append(_linger_refused(account))
            return "cron" if _has_cron() else "daemon"
        with open(os.path.join(state, _LINGER), "w", encoding="utf-8"):
            pass
    if _systemctl("user", "show-environment"):
        notes.append("the account's own systemd does not answer, so the agent runs without a unit")
        return "cron" if _has_cron() else "daemon"
    return "user"


def _lingers(account: str) -> bool:
    return os.path.exists("/var/lib/systemd/linger/" + account)


def _linger_refused(account: str) -> str:
    names = ("--property=" + name for name in LOGOUT_PROPERTIES)
    kills = kills_at_logout(account, call("loginctl", "show-session", *names) or "")
    ends = {
        None: "; jobs end at logout if logind has `KillUserProcesses=yes`",
        True: "; jobs end at logout, because logind has `KillUserProcesses=yes`",
        False: "",
    }
    return (
        f"systemd does not let the account {account} linger, so the agent runs without a unit"
        f"{ends[kills]}; have an administrator run `loginctl enable-linger {account}`, then apply again"
    )


LOGOUT_PROPERTIES = ("KillUserProcesses", "KillExcludeUsers", "KillOnlyUsers")


def kills_at_logout(account: str, output: str) -> bool | None:
    """
    Tell whether systemd ends the processes of an account at its logout; None where it does not say.

    `output` is what `loginctl show-session` prints of `LOGOUT_PROPERTIES`.
    """
    values = dict(line.split("=", 1) for line in output.splitlines() if "=" in line)
    if "KillUserProcesses" not in values:
        return None
    excluded = values.get("KillExcludeUsers", "").split()
    chosen = values.get("KillOnlyUsers", "").split()
    is_chosen = account not in excluded and (not chosen or account in chosen)
    return values["KillUserProcesses"] == "yes" and is_chosen


def _unit_kind() -> str:
    return "system" if os.geteuid() == 0 else "user"


def _record(root: str, kind: str, bundle: str) -> None:
    with open(os.path.join(root, RECORD), "w", encoding="utf-8") as file:
        json.dump({"kind": kind, "bundle": bundle}, file)


# -- systemd ----------------------------------------------------------------------------------


class _Names:
    """The names of the units of one agent; a person finds host and environment in the description."""

    def __init__(self, root: str) -> None:
        self.root = root
        environment, name = root.split(os.sep)[-2:]
        tag = hashlib.sha256(root.encode()).hexdigest()[:8]
        short = re.sub("[^A-Za-z0-9]", "", environment)[:8] or "environment"
        plain = re.sub("[^A-Za-z0-9_.]", "_", name)[:64]
        self.title = f"fleetform, host {plain}, environment {short}"
        self.slice = f"fleetform-{short}.slice"
        self.agent = f"fleetform-agent-{plain}-{tag}.service"
        self.jobs = f"fleetform-jobs-{plain}-{tag}.service"
        self.mark = f"# fleetform {tag}"


def _unit_folder(kind: str) -> str:
    if kind == "system":
        return "/etc/systemd/system"
    home = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
    return os.path.join(home, "systemd/user")


def _start_units(kind: str, names: _Names, bundle: str) -> str:
    """Write the units and start them; returns why the agent does not run, or nothing."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(os.path.join(names.root, START_LOG))
    values = {
        "title": names.title,
        "slice": names.slice,
        "jobs": names.jobs,
        "variable": JOBS_UNIT_VARIABLE,
        "command": " ".join(_escaped(word) for word in _command(names.root, bundle)),
        "root": names.root.replace("%", "%%"),
        "target": "multi-user.target" if kind == "system" else "default.target",
    }
    folder = _unit_folder(kind)
    try:
        os.makedirs(folder, mode=0o755, exist_ok=True)
        for name, text in ((names.jobs, _JOBS), (names.agent, _AGENT)):
            path = os.path.join(folder, name)
            with open(path, "w", encoding="utf-8") as file:
                file.write(text.format(**values))
            os.chmod(path, 0o644)
    except OSError as error:
        return f"{error.filename}: {error.strerror}"
    for words in (
        ("daemon-reload",),
        ("reset-failed", names.agent),
        ("enable", "--quiet", names.agent),
        ("restart", names.agent),
    ):
        failure = _systemctl(kind, *words, seconds=_START_SECONDS)
        # A unit that never failed has nothing to reset.
        if failure and words[0] != "reset-failed":
            return _said(names.root) or failure
    return ""


def _said(root: str) -> str:
    """Return the last line that an agent printed before it ended."""
    try:
        with open(os.path.join(root, START_LOG), encoding="utf-8", errors="replace") as file:
            return _last_line(file.read())
    except OSError:
        return ""


def _remove_agent_unit(kind: str, names: _Names) -> None:
    """Remove the unit of the agent; that of the jobs stays, for to stop it would end them."""
    path = os.path.join(_unit_folder(kind), names.agent)
    if os.path.exists(path):
        _systemctl(kind, "disable", "--quiet", names.agent)
        _systemctl(kind, "stop", names.agent, seconds=_START_SECONDS)
        os.unlink(path)
        _systemctl(kind, "daemon-reload")


def _remove_units(kind: str, names: _Names) -> None:
    """Stop the units, with what is left of the jobs, and remove them."""
    folder = _unit_folder(kind)
    paths = [os.path.join(folder, name) for name in (names.agent, names.jobs)]
    if not any(map(os.path.exists, paths)):
        return
    _remove_agent_unit(kind, names)
    _systemctl(kind, "stop", names.jobs, seconds=_START_SECONDS)
    with contextlib.suppress(FileNotFoundError):
        os.unlink(os.path.join(folder, names.jobs))
    _systemctl(kind, "daemon-reload")
    _systemctl(kind, "reset-failed", names.agent, names.jobs)
    # A slice ends with the last of its units; to stop one that has others would stop those.
    for name in (names.slice, "fleetform.slice"):
        if not any(_is_in_slice(os.path.join(folder, one), name) for one in os.listdir(folder)):
            _systemctl(kind, "stop", name)
    if kind == "user":
        # Folders that have other units stay.
        for below in ("default.target.wants", "", ".."):
            with contextlib.suppress(OSError):
                os.rmdir(os.path.normpath(os.path.join(folder, below)))


def _is_in_slice(path: str, name: str) -> bool:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            # The slice of all fleetform has those of environments, whose names begin with its own.
            return f"\nSlice={name[:-6]}" in file.read()
    except OSError:
        return False


def _systemctl(kind: str, *words: str, seconds: float = _CALL_SECONDS) -> str:
    """Call systemctl; returns why it failed, or nothing."""
    path = find_tool("systemctl")
    if path is None:
        return "systemctl is missing"
    if kind == "user":
        # A session over SSH may not name the account's own manager.
        os.environ.setdefault("XDG_RUNTIME_DIR", f"/run/user/{os.geteuid()}")
    command = [path, *(("--user",) if kind == "user" else ()), "--no-pager", *words]
    try:
        done = run_tool(*command, seconds=seconds)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    if not done.returncode:
        return ""
    return _last_line(done.stderr) or f"{' '.join(words)}: exit code {done.returncode}"


def _escaped(word: str) -> str:
    """Write a word for ExecStart=: systemd.service(5), "Command lines"."""
    for character, code in (("\\", "\\\\"), ('"', '\\"'), ("%", "%%"), ("$", "$$")):
        word = word.replace(character, code)
    return f'"{word}"'


# -- cron -------------------------------------------------------------------------------------


def _has_cron() -> bool:
    """Tell whether cron runs and the account may have a crontab."""
    if find_tool("crontab") is None:
        return False
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/comm", encoding="utf-8", errors="replace") as file:
                    if file.read().strip() in {"cron", "crond"}:
                        return True
            except OSError:
                continue
    return False


def _write_cron(names: _Names, bundle: str) -> bool:
    if not _has_cron():
        return False
    words = " ".join(
        "'" + word.replace("'", "'\\''") + "'" for word in _command(names.root, bundle)
    )
    # cron reads a % as the end of the command: crontab(5).
    line = f"@reboot {words} >/dev/null 2>&1 {names.mark}".replace("%", "\\%")
    return _edit_cron(names, line)


def _edit_cron(names: _Names, line: str | None) -> bool:
    """Replace the line of an agent in the crontab of the account; returns whether that worked."""
    path = find_tool("crontab")
    if path is None:
        return False
    # Without a crontab it fails, and has no lines.
    before = call("crontab", "-l") or ""
    kept = [one for one in before.splitlines() if not one.endswith(names.mark)]
    lines = [*kept, line] if line else kept
    if lines == before.splitlines():
        return True
    words, text = (["-"], "\n".join(lines) + "\n") if lines else (["-r"], "")
    done = subprocess.run(
        [path, *words],
        input=text,
        capture_output=True,
        timeout=_CALL_SECONDS,
        check=False,
        encoding="utf-8",
        errors="surrogateescape",
    )
    return done.returncode == 0


# -- calls ------------------------------------------------------------------------------------


def _command(root: str, bundle: str) -> list[str]:
    return [sys.executable, "-I", "-S", bundle, "daemon", "--root", root, "--idle-exit", "0"]


def _account() -> str:
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return os.environ.get("USER", str(os.geteuid()))


def find_tool(name: str) -> str | None:
    """Return the path of a program, also where the search path of an SSH command does not name it."""
    return shutil.which(name, path=f"{os.environ.get('PATH', os.defpath)}:{_TOOL_FOLDERS}")


def call(name: str, *words: str) -> str | None:
    """Return the output of a command; None where it fails or is missing."""
    path = find_tool(name)
    if path is None:
        return None
    try:
        # A crontab is written back as it was read.
        done = run_tool(path, *words, errors="surrogateescape")
    except (OSError, subprocess.TimeoutExpired):
        return None
    return None if done.returncode else done.stdout


def run_tool(
    *words: str, seconds: float = _CALL_SECONDS, errors: str = "replace"
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end; raises OSError or subprocess.TimeoutExpired."""
    return subprocess.run(
        words,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=seconds,
        check=False,
        encoding="utf-8",
        errors=errors,
    )


def _last_line(text: str) -> str:
    return text.strip().split("\n")[-1][:300]
