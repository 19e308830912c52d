"""A command of the tests is as one that a user starts, although it is a fork."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

import forkserver
from forkserver import FLEETFORM


def shell(
    script: str, program: Path, folder: Path, **how: object
) -> subprocess.CompletedProcess[str]:
    path = f"{program.parent}:{os.environ['PATH']}"
    return subprocess.run(
        ["bash", "-c", script], cwd=folder, env={**os.environ, "PATH": path}, capture_output=True,
        text=True, timeout=60, check=False, stdin=subprocess.DEVNULL, **how,
    )  # fmt: skip


@pytest.mark.parametrize(
    "script",
    [
        "fleetform version",
        "fleetform nothing",
        "fleetform schema task | head -n 1",
        "fleetform validate -C /nonexistent; echo $?",
        "fleetform init made >&2; cd made && fleetform plan --color always && NO_COLOR=1 fleetform plan",
        "fleetform version >&-; echo $?",
        "fleetform explain task 5>kept >&5; cat kept",
        "umask 027; fleetform init made; stat -c %a made/environment.yaml",
    ],
)
def test_a_fork_prints_what_the_command_prints(script: str, program: Path, tmp_path: Path) -> None:
    done = []
    for which in (program, FLEETFORM):
        folder = tmp_path / str(len(done))
        folder.mkdir()
        one = shell(script, which, folder)
        done.append((one.stdout, one.stderr, one.returncode))
    assert done[0] == done[1]
    assert any(done[0][:2])


def test_what_a_fork_can_not_have_is_run_by_the_command_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Here that is a program that is not there, so that its absence shows."""
    monkeypatch.setattr(forkserver, "FLEETFORM", tmp_path / "absent")
    with forkserver.serving() as program:
        forked = shell("fleetform version", program, tmp_path)
        limited = shell("ulimit -n 128; fleetform version", program, tmp_path)
        elsewhere = shell("LANG=en_US.UTF-8 fleetform version", program, tmp_path)
    assert forked.stdout.startswith("fleetform ")
    assert forked.returncode == 0
    for itself in (limited, elsewhere):
        assert "No such file" in itself.stderr
    assert forkserver.program() != program


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_signals_reach_the_command(number: signal.Signals, program: Path, tmp_path: Path) -> None:
    """Both end as one, and the command has ended by then, or is killed."""
    ends = []
    for which in (program, FLEETFORM):
        folder = tmp_path / f"{len(ends)}"
        state = {**os.environ, "FLEETFORM_STATE_HOME": str(folder / "state")}
        subprocess.run([which, "init", "--name", "made", folder], check=True, capture_output=True)
        with subprocess.Popen(
            [which, "serve", "-C", folder],
            env=state,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        ) as serving:
            assert serving.stdout is not None
            serving.stdout.readline()
            serving.send_signal(number)
            # The output ends only when every process has closed it.
            serving.stdout.read()
            ends.append(serving.wait(60))
    assert ends[0] == ends[1]
