"""
Tells why this machine may end a background process early: a login manager, a CI or batch job.

A background controller has a session of its own in the sense of setsid(2). Login managers and job
runners do not go by that: they end each process of a control group, or each descendant.
"""

from __future__ import annotations

import os
import pwd
from collections.abc import Iterable, Mapping
from pathlib import Path

__all__ = ["JOB_VARIABLES", "session_warning"]

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
"""In rising precedence (logind.conf(5)); so are the folders `logind.conf.d` beside them."""

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
    user = _account() if user is None else user
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


def _account() -> str:
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:  # A container's user need not be in its passwd.
        return f"uid-{os.getuid()}"


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
