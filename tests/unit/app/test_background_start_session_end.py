"""Which machines are known to end a background process early."""

from __future__ import annotations

from pathlib import Path

import pytest

from fleetform.app.background_start import session_warning

SESSION = "0::/user.slice/user-1000.slice/session-3.scope\n"
MANAGED = "0::/user.slice/user-1000.slice/user@1000.service/app.slice/term.scope\n"
KILLS = "[Login]\nKillUserProcesses=yes\n"


def machine(root: Path, *, group: str, linger: bool = False, **files: str) -> Path:
    """Make the files of a machine; `files` are of logind, by folder, as `etc` or `etc_d`."""
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/self/cgroup").write_text(group)
    if linger:
        (root / "var/lib/systemd/linger").mkdir(parents=True)
        (root / "var/lib/systemd/linger/ada").touch()
    for where, text in files.items():
        folder, _, drop_in = where.partition("_")
        name = {"etc": "etc", "usr": "usr/lib"}[folder]
        file = root / name / "systemd/logind.conf"
        if drop_in:
            file = file.with_name("logind.conf.d") / "50-local.conf"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return root


@pytest.mark.parametrize(
    ("group", "files", "is_warned"),
    [
        (SESSION, {"etc": KILLS}, True),
        (SESSION, {"usr": "#KillUserProcesses=yes\n"}, True),
        (SESSION, {"usr": "#KillUserProcesses=no\n"}, False),
        (SESSION, {"usr": KILLS, "etc_d": "[Login]\nKillUserProcesses=no\n"}, False),
        (SESSION, {"usr": "#KillUserProcesses=no\n", "etc_d": KILLS}, True),
        (SESSION, {"etc": f"{KILLS}KillExcludeUsers=root ada\n"}, False),
        (SESSION, {"etc": f"{KILLS}KillOnlyUsers=bert\n"}, False),
        (SESSION, {}, False),
        ("0::/system.slice/sshd.service\n", {"etc": KILLS}, False),
        ("0::/\n", {"etc": KILLS}, False),
    ],
)
def test_logind_ends_a_session_as_it_is_configured(
    tmp_path: Path, group: str, files: dict[str, str], is_warned: bool
) -> None:
    """The last file that says so counts; a comment is the default that was compiled in."""
    root = machine(tmp_path, group=group, **files)
    said = session_warning({}, root=root, user="ada")
    assert ("KillUserProcesses=yes" in said) == is_warned


@pytest.mark.parametrize("linger", [True, False])
def test_the_user_manager_ends_with_the_last_logout_without_lingering(
    tmp_path: Path, linger: bool
) -> None:
    """What a desktop starts is below it, whatever logind does with sessions."""
    root = machine(tmp_path, group=MANAGED, linger=linger)
    said = session_warning({}, root=root, user="ada")
    assert ("loginctl enable-linger ada" in said) == (not linger)


@pytest.mark.parametrize(
    ("environ", "named"),
    [
        ({"CI": "true", "GITHUB_ACTIONS": "true"}, "GitHub Actions"),
        ({"GITLAB_CI": "1"}, "GitLab CI"),
        ({"CI": "1"}, "a CI job"),
        ({"SLURM_JOB_ID": "17"}, "a job of Slurm"),
    ],
)
def test_a_job_of_a_runner_is_named(tmp_path: Path, environ: dict[str, str], named: str) -> None:
    """By the variable that its runner sets."""
    assert named in session_warning(environ, root=tmp_path, user="ada")


def test_a_variable_that_says_no_is_no_runner(tmp_path: Path) -> None:
    """Some people set `CI=false`; a machine of which nothing is known gets no warning."""
    assert session_warning({"CI": "false"}, root=tmp_path, user="ada") == ""
