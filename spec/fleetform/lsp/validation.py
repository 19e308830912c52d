"""
When an environment is validated: after the last of some edits, in another process, once.

Whoever types makes an edit each 100 ms, and a large environment takes seconds to read. So an
edit is waited out, a reading that an edit has overtaken is given up at the next file it comes
to, and what it found is thrown away: only the newest reading is ever published.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import pickle
import select
import struct
import sys
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import BinaryIO, NamedTuple, TypeAlias

from fleetform.spec.findings import Finding
from fleetform.spec.tree import load_file, load_tree
from fleetform.spec.tree.cache import ReadingCache

__all__ = [
    "HEADER",
    "Answer",
    "Asked",
    "Job",
    "ReadingFailed",
    "Readings",
    "Superseded",
    "Validations",
    "Worker",
    "main",
    "pack",
    "validate",
]


# The process that validates, so that the one that answers is never held up.
#
# A thread would do for small environments. Of ten thousand documents the reading takes seconds,
# of which every request would pay a part for the interpreter that both share, and freeing what
# was read holds that interpreter for half a second in one piece (measured). A process of its own
# costs 40 MB and nothing else.
#
# It is asked over its standard input and answers over its standard output, in pickled frames:
# both ends are this module, of one version. A request for an environment that is being read
# replaces that reading at the next file it comes to. It ends with whoever asks.

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


_log = logging.getLogger(__name__)

DELAY_SECONDS = 0.15
"""
How long nothing may be typed before a reading begins. Between two key presses of a fast typist
lie some 120 ms; what comes within 200 ms feels like an answer to the last of them.
"""


_Answers: TypeAlias = dict[int, "asyncio.Future[tuple[Finding, ...] | None]"]


class ReadingFailed(Exception):
    """The process that validates is gone, and what it was reading with it."""


class Asked(NamedTuple):
    """One validation: of what, and whether a newer one was asked for since."""

    subject: Path
    is_stale: Callable[[], bool]


class Validations:
    """
    The validations that are asked for, by what they are of: an environment, or a lone file.

    `check` reads and publishes one, and looks at `is_stale` before it publishes.
    """

    def __init__(
        self, check: Callable[[Asked], Awaitable[None]], *, delay_seconds: float = DELAY_SECONDS
    ) -> None:
        self._check = check
        self._delay_seconds = delay_seconds
        self._numbers: dict[Path, int] = {}
        self._tasks: dict[Path, asyncio.Task[None]] = {}

    def ask(self, subject: Path) -> None:
        """Validate it once no more is asked for a moment."""
        number = self._numbers[subject] = self._numbers.get(subject, 0) + 1
        before = self._tasks.get(subject)
        if before is not None:
            before.cancel()
        asked = Asked(subject, lambda: self._numbers[subject] != number)
        self._tasks[subject] = asyncio.get_running_loop().create_task(self._run(asked))

    def close(self) -> None:
        """End all of them; waits for none."""
        for subject, task in self._tasks.items():
            self._numbers[subject] += 1
            task.cancel()

    async def _run(self, asked: Asked) -> None:
        await asyncio.sleep(self._delay_seconds)
        try:
            await self._check(asked)
        except Exception:  # noqa: BLE001 -- what fails here must not end the session: the next edit asks again
            _log.exception("validation.failed subject=%s", asked.subject)


class Readings:
    """
    The worker process as this end sees it: jobs out, findings in.

    It is started with the first job, and again when it has died: by the system for want of
    memory, say. What it was reading then is read once more.
    """

    def __init__(self) -> None:
        self._process: asyncio.subprocess.Process | None = None
        self._listener: asyncio.Task[None] | None = None
        # Of the process that runs now: one that has died takes only its own along.
        self._answers: _Answers = {}
        self._number = 0
        self._starting = asyncio.Lock()

    async def read(
        self, root: Path, lone: str, texts: Mapping[str, bytes]
    ) -> tuple[Finding, ...] | None:
        """
        The findings about an environment or one file; None: a newer job replaced this one.

        Raises:
            ReadingFailed: The process died of it twice.
        """
        try:
            return await self._read(root, lone, texts)
        except ReadingFailed:
            return await self._read(root, lone, texts)

    async def _read(
        self, root: Path, lone: str, texts: Mapping[str, bytes]
    ) -> tuple[Finding, ...] | None:
        stdin = await self._started()
        self._number += 1
        number, answers = self._number, self._answers
        answer: asyncio.Future[tuple[Finding, ...] | None]
        answer = answers[number] = asyncio.get_running_loop().create_future()
        try:
            stdin.write(pack(Job(number, root, lone, texts)))
            # Whether it could be written shows in the answer.
            with contextlib.suppress(ConnectionError):
                await stdin.drain()
            return await answer
        finally:
            answers.pop(number, None)

    def close(self) -> None:
        """End the process, whatever it does."""
        if self._process is not None and self._process.returncode is None:
            self._process.kill()
        if self._listener is not None:
            self._listener.cancel()

    async def _started(self) -> asyncio.StreamWriter:
        async with self._starting:
            process = self._process
            if process is None or process.returncode is not None:
                process = self._process = await asyncio.create_subprocess_exec(
                    sys.executable,
                    # Not `-m`: what is pickled there would be of a module named `__main__`.
                    *("-c", "from fleetform.lsp.validation import main; main()"),
                    stdin=asyncio.subprocess.PIPE,
                    stdout=asyncio.subprocess.PIPE,
                )
                self._answers = {}
                self._listener = asyncio.create_task(_listen(process, self._answers))
        assert process.stdin is not None, "it was asked for"
        return process.stdin


async def _listen(process: asyncio.subprocess.Process, answers: _Answers) -> None:
    """Hand out what a process answers until it ends."""
    stdout = process.stdout
    assert stdout is not None, "it was asked for"
    try:
        while True:
            size = HEADER.unpack(await stdout.readexactly(HEADER.size))[0]
            answer: Answer = pickle.loads(await stdout.readexactly(size))  # noqa: S301 -- our own process wrote it
            waiting = answers.get(answer.number)
            if waiting is not None and not waiting.done():
                waiting.set_result(answer.findings)
    except asyncio.IncompleteReadError:
        failed = ReadingFailed(f"the process that validates ended with {await process.wait()}")
        for waiting in answers.values():
            if not waiting.done():
                waiting.set_exception(failed)
