"""Who runs, who ran, and how it ended: what hosts really did."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

__all__ = ["Executions"]

_Key = tuple[str, int]


@dataclass(slots=True)
class Executions:
    """Keys are run uid and attempt; a name is a label, which `rename` changes."""

    total: int = 0
    _times: Counter[_Key] = field(default_factory=Counter)
    _alive: dict[_Key, str] = field(default_factory=dict)
    _ended: dict[str, str] = field(default_factory=dict)

    def begin(self, name: str, run_uid: str, attempt: int) -> tuple[int, list[str]]:
        """Returns how often this very job has begun, and who of its name runs beside it."""
        key = (run_uid, attempt)
        others = [f"{uid[:8]}/{n}" for (uid, n), other in self._alive.items() if other == name]
        self._alive[key] = name
        self._ended.pop(run_uid, None)
        self._times[key] += 1
        self.total += 1
        return self._times[key], others

    def end(self, run_uid: str, attempt: int, how: str) -> None:
        self._alive.pop((run_uid, attempt), None)
        self._ended[run_uid] = how

    def requeued(self, run_uid: str) -> None:
        """Its last attempt was not its last: it is not over."""
        self._ended.pop(run_uid, None)

    def rename(self, before: str, after: str) -> None:
        for key, name in self._alive.items():
            if name == before:
                self._alive[key] = after

    def forget_how_often(self) -> None:
        """No ledger and no host is left that knows of it."""
        self._times.clear()

    def is_alive(self, run_uid: str) -> bool:
        return any(uid == run_uid for uid, _ in self._alive)

    def alive(self) -> dict[str, str]:
        """Names of what runs, by the uid of the run."""
        return {uid: name for (uid, _), name in self._alive.items()}

    def end_of(self, run_uid: str) -> str | None:
        """How a run's last execution ended; None where there was none, or it is not over."""
        return self._ended.get(run_uid)
