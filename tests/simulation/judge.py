"""
The witness outside the code under test.

It sees what hosts really do: a process of a job begins, ends, is killed. Everything that must
never happen is noted the moment it happens; nothing it holds is ever read by what it judges.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from fleetform.agents.protocol.messages import JobKey
from simulation.witness import Witness


@dataclass(slots=True)
class Judge(Witness):
    """What hosts do: processes of jobs, and what each host has for them."""

    _executions: Counter[JobKey] = field(default_factory=Counter)
    _running: dict[str, dict[JobKey, int]] = field(default_factory=dict)
    _capacity: dict[str, int] = field(default_factory=dict)
    _ended: dict[JobKey, int | None] = field(default_factory=dict)
    _prepared: set[JobKey] = field(default_factory=set)
    _ports: dict[tuple[str, int], str | None] = field(default_factory=dict)

    def host_exists(self, host: str, cpu_millicores: int) -> None:
        self._capacity[host] = cpu_millicores

    def prepared(self, key: JobKey) -> None:
        self._prepared.add(key)

    def began(
        self,
        time: float,
        host: str,
        key: JobKey,
        nodes: int,
        cpu_millicores: int,
        master_port: str | None,
    ) -> None:
        """A process of the job exists; `master_port` is what it was told."""
        self.note(time, f"began {key} on {host}")
        self._executions[key] += 1
        if self._executions[key] > 1:
            self.violate(time, f"{key} was started {self._executions[key]} times")
        for rank in range(nodes):
            if JobKey(key.run_uid, key.attempt, rank) not in self._prepared:
                self.violate(time, f"{key} runs although rank {rank} was never prepared")
        for other in self.alive(key.run_uid):
            if other.attempt != key.attempt:
                self.violate(time, f"{key} runs while {other} of another attempt does")
        self._check_port(time, key, nodes, master_port)
        here = self._running.setdefault(host, {})
        here[key] = cpu_millicores
        if sum(here.values()) > self._capacity[host]:
            self.violate(time, f"{host} runs more than it has: {sorted(map(str, here))}")

    def _check_port(self, time: float, key: JobKey, nodes: int, port: str | None) -> None:
        """The ranks of an attempt on several nodes share a port that no other one has meanwhile."""
        if (port is None) is (nodes > 1):
            self.violate(time, f"{key} of {nodes} nodes is told the master port {port}")
        mine = (key.run_uid, key.attempt)
        if self._ports.setdefault(mine, port) != port:
            self.violate(time, f"{key} is told another master port than a rank before it: {port}")
        for other in (other for here in self._running.values() for other in here):
            theirs = (other.run_uid, other.attempt)
            if port is not None and theirs != mine and self._ports[theirs] == port:
                self.violate(time, f"{key} has the master port {port} while {other} has it")

    def ended(self, time: float, host: str, key: JobKey, exit_code: int | None) -> None:
        """No process of the job exists any more; None: it was killed or the host died."""
        self.note(time, f"ended {key} on {host}: {exit_code}")
        self._running.get(host, {}).pop(key, None)
        self._ended[key] = exit_code

    def alive(self, run_uid: str) -> list[JobKey]:
        return [key for here in self._running.values() for key in here if key.run_uid == run_uid]

    def exit_code(self, key: JobKey) -> int | None:
        return self._ended.get(key)

    def executions(self) -> int:
        return sum(self._executions.values())

    def require(self, time: float, truth: bool, sentence: str) -> None:
        """Note `sentence` as a violation unless it is `truth`."""
        if not truth:
            self.violate(time, sentence)
