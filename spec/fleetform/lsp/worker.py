"""
The process that validates, so that the one that answers is never held up.

A thread would do for small environments. Of ten thousand documents the reading takes seconds,
of which every request would pay a part for the interpreter that both share, and freeing what
was read holds that interpreter for half a second in one piece (measured). A process of its own
costs 40 MB and nothing else.

It is asked over its standard input and answers over its standard output, in pickled frames:
both ends are this module, of one version. A request for an environment that is being read
replaces that reading at the next file it comes to. It ends with whoever asks.
"""

from __future__ import annotations

import os
import pickle
import select
import struct
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import BinaryIO, NamedTuple

from fleetform.spec.findings import Finding
from fleetform.spec.tree import load_file, load_tree
from fleetform.spec.tree.cache import ReadingCache

__all__ = ["HEADER", "Answer", "Job", "Superseded", "Worker", "main", "pack", "validate"]

HEADER = struct.Struct(">Q")
"""In front of each frame: how many bytes it has."""


class Job(NamedTuple):
    """
    One reading that is asked for.

    Attributes:
        number: Rises from one to the next; the answer has it.
        lone: A file of `root` to read by itself; empty for the environment `root`.
        texts: Unsaved texts by file, relative to `root`.
    """

    number: int
    root: Path
    lone: str
    texts: Mapping[str, bytes]

    @property
    def subject(self) -> Path:
        """What is read: a newer job of the same subject replaces this one."""
        return self.root / self.lone


class Answer(NamedTuple):
    """What a job came to; None when a newer one replaced it."""

    number: int
    findings: tuple[Finding, ...] | None


class Superseded(Exception):
    """A newer reading was asked for."""


class Buffers(dict[str, bytes]):
    """
    Unsaved texts by file, which end the reading once it is of no use any more.

    The loader asks for every file whether there is a newer text of it. That is the one moment
    in which a reading can be stopped without harm.
    """

    def __init__(self, texts: Mapping[str, bytes], is_stale: Callable[[], bool]) -> None:
        super().__init__(texts)
        self._is_stale = is_stale

    def __bool__(self) -> bool:
        """True: even with no texts in it, it has to be asked."""
        return True

    def get(self, key: str, default: bytes | None = None) -> bytes | None:  # type: ignore[override]  # dict's is overloaded for any default
        if self._is_stale():
            raise Superseded
        return super().get(key, default)


def validate(job: Job, cache: ReadingCache, is_stale: Callable[[], bool]) -> tuple[Finding, ...]:
    """
    All findings about what the job names.

    Raises:
        Superseded: `is_stale` said so before the last file was read.
    """
    buffers = Buffers(job.texts, is_stale)
    if job.lone:
        return load_file(job.root, job.lone, buffers=buffers).findings
    return load_tree(job.root, cache=cache, buffers=buffers).findings


def pack(value: Job | Answer) -> bytes:
    """One frame."""
    body = pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
    return HEADER.pack(len(body)) + body


class Worker:
    """The jobs that wait, the newest of each subject, and the answers to them."""

    def __init__(self, asked: BinaryIO, answers: BinaryIO) -> None:
        self._asked = asked
        self._answers = answers
        self._waiting: dict[Path, Job] = {}
        self._caches: dict[Path, ReadingCache] = {}

    def serve(self) -> None:
        """Work until the last client is gone."""
        try:
            while True:
                self._take(wait=True)
                while self._waiting:
                    self._answer(self._waiting.pop(next(iter(self._waiting))))
        except EOFError:
            return

    def _answer(self, job: Job) -> None:
        try:
            cache = self._caches.setdefault(job.root, ReadingCache())
            findings = validate(job, cache, lambda: self._is_stale(job))
        except Superseded:
            self._say(Answer(job.number, None))
        else:
            self._say(Answer(job.number, findings))

    def _is_stale(self, job: Job) -> bool:
        self._take(wait=False)
        return job.subject in self._waiting

    def _take(self, *, wait: bool) -> None:
        """Read the requests: at least one job, or all that have arrived."""
        while wait or select.select([self._asked], [], [], 0)[0]:
            wait = False
            size = HEADER.unpack(self._read(HEADER.size))[0]
            job: Job = pickle.loads(self._read(size))  # noqa: S301 -- our own process wrote it
            before = self._waiting.pop(job.subject, None)
            if before is not None:
                self._say(Answer(before.number, None))
            self._waiting[job.subject] = job

    def _read(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            more = self._asked.read(size - len(data))
            if not more:
                raise EOFError
            data += more
        return data

    def _say(self, answer: Answer) -> None:
        self._answers.write(pack(answer))
        self._answers.flush()


def main() -> None:
    """Serve the parent process."""
    # Unbuffered: what waits in a buffer of ours, `select` would not see.
    with os.fdopen(os.dup(0), "rb", buffering=0) as asked, os.fdopen(os.dup(1), "wb") as answers:
        # What anything else prints would be no frame.
        os.dup2(2, 1)
        Worker(asked, answers).serve()
