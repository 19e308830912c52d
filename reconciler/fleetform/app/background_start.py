"""
Starts a background controller, and returns once it has the manager lease or has said why not.

The new process has nothing of the one that starts it: a session of its own and no terminal, so
that a closed terminal does not end it; the folder `/`, so that no file system stays busy; and few
environment variables, so that no secret of a shell is kept for days.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from fleetform.app.account import this_account
from fleetform.app.controllers import read_controller
from fleetform.app.ledger import provider_variables
from fleetform.app.paths import FILE_VARIABLE
from fleetform.app.problems import Problem
from fleetform.model.ledger import LedgerStatus
from fleetform.spec.private_folder import make_private_folder

if TYPE_CHECKING:
    from fleetform.app.workspace import Workspace
    from fleetform.views.controllers import ControllerRow


USUAL_VARIABLES = ("HOME", "LANG", "PATH", "TZ", "USER")

_PREFIX = "FLEETFORM_"

START_SECONDS = 60.0
"""A start takes half a second; a machine that does much else takes twenty times as long."""

_LOG_LINES = 3


def leave_background(workspace: Workspace, *, who: str) -> ControllerRow | None:
    """
    Start a background controller where work is left and no controller is running.

    Returns:
        The controller that drives what is left; None where no work is left.

    Raises:
        Problem: It could not be started; the message has its reason.
        LedgerUnavailable: The ledger does not answer now.
    """
    if not has_work(workspace):
        return None
    if workspace.manager() is None:
        _start(workspace, who=who)
    return read_controller(workspace)


def has_work(workspace: Workspace) -> bool:
    """Tell whether a plan is not carried out, a run can change, or a host leaves."""
    found = workspace.read(lambda reader: reader.read_overview(), None)
    # While it is recovering, no controller may do anything.
    return (
        found is not None and found.status is not LedgerStatus.RECOVERING and found.needs_controller
    )


def child_environment(
    environ: Mapping[str, str], named: tuple[str, ...]
) -> tuple[dict[str, str], tuple[str, ...]]:
    """
    Choose the environment variables of a background controller.

    Args:
        environ: Those of this process.
        named: Names that providers and the ledger's driver read.

    Returns:
        The variables, and the names of those besides the usual ones, sorted.
    """
    extra = tuple(sorted(name for name in set(named) - {*USUAL_VARIABLES} if name in environ))
    kept = {
        name: value
        for name, value in environ.items()
        if name in USUAL_VARIABLES or name.startswith(_PREFIX) or name in extra
    }
    if file := kept.get(FILE_VARIABLE):
        # Relative to a folder that the child is not in.
        kept[FILE_VARIABLE] = str(Path(file).absolute())
    return kept, extra


def _start(workspace: Workspace, *, who: str) -> None:
    named = provider_variables(workspace) + workspace.backend().driver_variables
    variables, extra = child_environment(os.environ, named)
    variables["FLEETFORM_STATE_HOME"] = str(workspace.state)
    command = [
        *(sys.executable, "-P", "-m", "fleetform.cli.entry", "controller", "run"),
        *("--who", who, "--name", workspace.environment.name),
        *(word for name in extra for word in ("--variable", name)),
        *("--warning", session_warning()),
        str(workspace.paths.environment),
    ]
    log = workspace.paths.background_log
    try:
        said = _said_by(command, variables, log)
    except OSError as problem:
        raise _failed(f"{problem.filename or log}: {problem.strerror}", log) from problem
    if said is None:
        raise _failed(f"it has not reported for {START_SECONDS:.0f} s", log)
    if not said:
        raise _failed(_last_lines(log) or "it ended without a message", log)
    report = json.loads(said)
    if report.get("error"):
        raise Problem(
            f"no background controller could be started: {report['error']}",
            report.get("advice", ""),
        )


def _said_by(command: list[str], variables: Mapping[str, str], log: Path) -> bytes | None:
    """Start it, and return its first line, as `_first_line` does."""
    with (
        _opened(log) as errors,
        subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            cwd="/",
            env=variables,
            start_new_session=True,
            umask=0o077,
        ) as child,
    ):
        assert child.stdout is not None
        return _first_line(child.stdout.fileno())


@contextlib.contextmanager
def _opened(log: Path) -> Iterator[int]:
    # With a ledger on PostgreSQL, nothing of the environment may be on this machine yet.
    make_private_folder(log.parent)
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _first_line(descriptor: int) -> bytes | None:
    """Read up to the end of a line or of the file; None where nothing comes for long."""
    waiting = select.poll()
    waiting.register(descriptor, select.POLLIN)
    until = time.monotonic() + START_SECONDS
    said = b""
    while not said.endswith(b"\n"):
        if not waiting.poll(max(0.0, until - time.monotonic()) * 1000):
            return None
        piece = os.read(descriptor, 4096)
        if not piece:
            return b""
        said += piece
    return said


def _failed(why: str, log: Path) -> Problem:
    return Problem(f"no background controller could be started: {why}", f"its log is {log}")


def _last_lines(log: Path) -> str:
    try:
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    return " / ".join(lines[-_LOG_LINES:])


# Tells why this machine may end a background process early: a login manager, a CI or batch job.
# A background controller has a session of its own in the sense of setsid(2). Login managers and job
# runners do not go by that: they end each process of a control group, or each descendant.

JOB_VARIABLES = {
    "GITHUB_ACTIONS": "a job of GitHub Actions",
    "GITLAB_CI": "a job of GitLab CI",
    "JENKINS_URL": "a build of Jenkins",
    "BUILDKITE": "a job of Buildkite",
    "CIRCLECI": "a job of CircleCI",
    "TF_BUILD": "a job of Azure Pipelines",
    "CI": "a CI job",
    "SLURM_JOB_ID": "a job of Slurm",
}
"""By the variable that is set in it; the first that is set names it."""

_OFF = {"", "0", "false", "no", "off"}

_LOGIND = ("usr/lib/systemd/logind.conf", "run/systemd/logind.conf", "etc/systemd/logind.conf")
"""In rising precedence (logind.conf(5)); so are the folders `logind.conf.d` next to them."""

_OPTION = "KillUserProcesses"


def session_warning(
    environ: Mapping[str, str] | None = None,
    *,
    root: Path = Path("/"),
    user: str | None = None,
) -> str:
    """
    Say why a background process that is started here may end early; empty where nothing is known.

    Args:
        environ: Of the process that starts it; this one's by default.
        root: Where the machine's files are.
        user: Name of the account; that of this process by default.
    """
    environ = os.environ if environ is None else environ
    for variable, job in JOB_VARIABLES.items():
        if environ.get(variable, "").lower() not in _OFF:
            return (
                f"this is {job} ({variable} is set), which ends its background processes when it"
                " ends: apply without --detach, or run `fleetform serve` on a machine that stays"
            )
    group = _control_group(root)
    user = this_account() if user is None else user
    if ".scope" in group and "/session-" in group and _kills(root, user):
        return (
            f"systemd-logind ends the processes of this login session at logout ({_OPTION}=yes):"
            " start it with `systemd-run --user --scope fleetform apply --detach` after"
            f" `loginctl enable-linger {user}`, or run `fleetform serve` as a service"
        )
    if "/user@" in group and not (root / "var/lib/systemd/linger" / user).exists():
        return (
            f"systemd ends the processes of {user} at the last logout, since lingering is off:"
            f" `loginctl enable-linger {user}` keeps them"
        )
    return ""


def _control_group(root: Path) -> str:
    """Return this process's group of version 2, or of systemd's own hierarchy of version 1."""
    try:
        lines = (root / "proc/self/cgroup").read_text(encoding="utf-8").splitlines()
    except OSError:
        return ""
    return next(
        (
            line.split(":", 2)[2]
            for line in lines
            if line.startswith("0::/") or ":name=systemd:" in line
        ),
        "",
    )


def _kills(root: Path, user: str) -> bool:
    """Tell whether logind ends this account's session processes at logout."""
    default = ""
    options = {"KillOnlyUsers": "", "KillExcludeUsers": "root"}
    for line in _lines(root):
        name, equals, value = line.partition("=")
        if equals and name.strip() in {_OPTION, *options}:
            options[name.strip()] = value.strip()
        elif name.removeprefix("#").strip() == _OPTION:
            # What a distribution has compiled in stands in its file as a comment.
            default = default or value.strip()
    if options.get(_OPTION, default).lower() not in {"yes", "1", "true", "on"}:
        return False
    only, exempt = options["KillOnlyUsers"].split(), options["KillExcludeUsers"].split()
    return user not in exempt and (not only or user in only)


def _lines(root: Path) -> Iterable[str]:
    """Read the files of logind's configuration, those of higher precedence last."""
    main = [root / name for name in _LOGIND]
    # Drop-ins are sorted by name, whichever folder they are in, and come after every main file.
    beside = sorted(
        (file for name in _LOGIND for file in (root / f"{name}.d").glob("*.conf")),
        key=lambda file: file.name,
    )
    for file in (*main, *beside):
        try:
            yield from file.read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            continue
