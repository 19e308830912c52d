"""
`kill -9` of the controller, of the runner and of the CLI while a fleet on AWS grows and shrinks.

The list of the front is the witness: it has every instance that was ever created, with its tags.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Sequence

import pytest

from cloud import faults
from fleetform.agents.host import processes
from integration.cloud.aws_site import Site, own_groups

pytestmark = [pytest.mark.waits, pytest.mark.crash]

KILLS = int(os.environ.get("FLEETFORM_TEST_AWS_KILLS", "10"))
"""`make crash` makes a hundred."""

ROUND = 5
"""So many applies are killed, one after the other, before one may end and everything must be right."""

VICTIMS = ("controller", "runner", "cli")

CHANGES = (
    "RunInstances",
    "TerminateInstances",
    "CreateSecurityGroup",
    "DeleteSecurityGroup",
    "ImportKeyPair",
    "DeleteKeyPair",
)

PATIENCE_SECONDS = 300.0
"""A runner that has lost its controller ends within half a minute, and a failed call is tried again after one."""


class Killing:
    """Applies of one environment that are cut off at random moments."""

    def __init__(self, site: Site, dice: random.Random) -> None:
        self.site = site
        self.dice = dice
        self.kills: Counter[str] = Counter()
        self.output = site.root.parent / "commands.log"
        """A file takes what a pipe that is not read would not."""
        site.list_soon()

    def cut_off(self, victim: str) -> None:
        """Start an apply, and kill the victim some time after its start or after a change of the cloud."""
        changes = len(self.site.cloud.calls(*CHANGES))
        apply = self.start("apply", "-y", "--allow-destroy")
        try:
            if self.dice.random() < 0.7:
                self.wait(lambda: len(self.site.cloud.calls(*CHANGES)) > changes, apply)
                pause = self.dice.uniform(0, 1.5)
            else:
                pause = self.dice.uniform(0, 6)
            self.wait(lambda: False, apply, seconds=pause)
            if apply.poll() is None and self.kill(apply.pid, victim):
                self.kills[victim] += 1
                # What does a controller with the loss of a runner? It has some time for it.
                self.wait(lambda: False, apply, seconds=self.dice.uniform(0, 3))
        finally:
            apply.kill()
            apply.wait()
        self.kills["controller"] += (apply.returncode == -signal.SIGKILL) + self.end_background()

    def end_background(self) -> bool:
        """Kill the controller that an apply has left behind."""
        folder = str(self.site.root.parent / "state").encode()
        found = [
            pid
            for pid in processes.all_pids()
            if b"controller" in (words := _command_line(pid))
            and any(word.startswith(folder) for word in words)
        ]
        processes.send(found, signal.SIGKILL)
        return bool(found)

    def kill(self, apply: int, victim: str) -> bool:
        if victim == "controller":
            return False
        wanted = b"/pulumi" if victim == "cli" else b"fleetform.providers.pulumi.engine.runner"
        below = [pid for pid in processes.descendants(apply) if _runs(pid, wanted)]
        processes.send(below, signal.SIGKILL)
        return bool(below)

    def wait(
        self,
        is_done: Callable[[], bool],
        apply: subprocess.Popen[bytes],
        *,
        seconds: float = PATIENCE_SECONDS,
    ) -> None:
        deadline = time.monotonic() + seconds
        while not is_done() and apply.poll() is None and time.monotonic() < deadline:
            time.sleep(0.02)

    def start(self, *words: str) -> subprocess.Popen[bytes]:
        with self.output.open("ab") as output:
            return subprocess.Popen(
                [self.site.python, "-m", "fleetform.cli.entry", *words],
                cwd=self.site.root,
                env=self.site.variables,
                start_new_session=True,
                stdout=output,
                stderr=output,
                stdin=subprocess.DEVNULL,
            )

    def settle(self, nodes: int) -> None:
        """Let an apply end, and the controller that it leaves behind; everything must be as declared."""
        with self.start("apply", "-y", "--allow-destroy") as apply:
            apply.wait(PATIENCE_SECONDS)
        assert apply.returncode == 0, self.said()
        wanted = [f"gpus-{number}" for number in range(nodes)]
        deadline = time.monotonic() + PATIENCE_SECONDS
        while (self.names(), len(own_groups(self.site.cloud))) != (wanted, int(nodes > 0)):
            assert time.monotonic() < deadline, f"{wanted} {self.names()}\n{self.said()}"
            time.sleep(0.2)
        assert self.site.plan()["resource_changes"] == []

    def said(self) -> str:
        logs = [self.output, *self.site.root.parent.glob("state/environments/*/background.log")]
        return "\n".join(log.read_text()[-5000:] for log in logs)

    def names(self) -> list[str]:
        return sorted(one.tags["Name"] for one in self.site.cloud.instances())


def test_kills_lose_and_double_no_instance(pulumi, cloud, image, tmp_path, count):
    """Each instance is created once and no other than the declared are left, whatever was killed, and in the end nothing is."""
    site = Site(tmp_path, cloud, image)
    killing = Killing(site, random.Random(KILLS))
    cloud.inject(faults.slow_create(0.6))
    number = 0
    while sum(killing.kills.values()) < KILLS:
        number += 1
        nodes = killing.dice.randint(0, 4)
        site.declare(nodes)
        killing.cut_off(VICTIMS[number % len(VICTIMS)])
        assert_nothing_is_double(cloud)
        if number % ROUND == 0:
            killing.settle(nodes)
            assert_nothing_is_double(cloud)
            killing.end_background()
    site.declare(0)
    killing.settle(0)
    killing.end_background()
    assert_nothing_is_double(cloud)
    count(
        "kills of fleets on AWS", {**killing.kills, "instances": len(cloud.instances(ended=True))}
    )


def test_a_paused_runner_wakes_up(pulumi, cloud, image, tmp_path):
    """Its controller is dead: the next one waits for it, and finds what it created."""
    killing = Killing(Site(tmp_path, cloud, image), random.Random(1))
    killing.site.declare(2)
    creating = cloud.inject(faults.held("RunInstances"))
    first = killing.start("apply", "-y")
    killing.wait(creating.arrived.is_set, first)
    below = processes.descendants(first.pid)
    processes.send(below, signal.SIGSTOP)
    first.kill()
    first.wait()
    second = killing.start("apply", "-y")
    try:
        killing.wait(lambda: False, second, seconds=5)
        assert second.poll() is None
        assert cloud.instances() == []
    finally:
        cloud.remove(creating)
        processes.send(below, signal.SIGCONT)
    second.wait(PATIENCE_SECONDS)
    assert second.returncode == 0, killing.said()
    killing.end_background()
    killing.settle(2)
    assert_nothing_is_double(cloud)
    killing.end_background()
    killing.site.declare(0)
    killing.settle(0)
    killing.end_background()


def assert_nothing_is_double(cloud):
    """No uid was ever created twice, even for a moment."""
    uids = Counter(one.tags["fleetform:uid"] for one in cloud.instances(ended=True))
    assert [uid for uid, number in uids.items() if number > 1] == []
    assert len(own_groups(cloud)) <= 1


def _runs(pid: int, what: bytes) -> bool:
    return any(word.endswith(what) for word in _command_line(pid)[:5])


def _command_line(pid: int) -> Sequence[bytes]:
    try:
        return processes.command_line(pid)
    except OSError:
        return ()
