"""
Takes the output of jobs into the log store, and says what of it is there.

A host keeps its copy until the job is forgotten, which needs the whole output.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass

from fleetform.agents.protocol.messages import JobRecord, LogData
from fleetform.model.ports import Clock, LedgerUnavailable, LogStore, Progress
from fleetform.model.run import Job
from fleetform.providers.contract.errors import TemporaryError
from fleetform.providers.contract.hosts import Host


@dataclass(frozen=True, slots=True)
class LogAddress:
    run_uid: str
    attempt: int
    rank: int
    run_name: str


class Output:
    """
    The output of all jobs that this manager knows.

    Attributes:
        last_ms: When a host last sent output, by the clock of people.
    """

    def __init__(self, logs: LogStore, clock: Clock, progress: Progress) -> None:
        self.last_ms = 0
        self._logs = logs
        self._clock = clock
        self._progress = progress
        self._addresses: dict[str, LogAddress] = {}

    def know_job(self, job: Job, run_name: str) -> None:
        """Say whose output `job.uid` is, before the host can send any."""
        self._addresses[job.uid] = LogAddress(
            job.key.run_uid, job.key.attempt, job.key.rank, run_name
        )

    def forget_job(self, job: Job) -> None:
        self._addresses.pop(job.uid, None)

    def is_complete(self, job: Job, record: JobRecord | None) -> bool:
        """Tell whether all that the job wrote is in the log store."""
        # The row of a job that was proven dead does not know what the host tells when it is back.
        written = job.log_bytes or (0 if record is None else record.log_bytes)
        return written == 0 or self._logs.is_complete(
            job.key.run_uid, job.key.attempt, job.key.rank
        )

    async def follow(self, host: Host, record: JobRecord) -> None:
        """After a reconnect, ask for the output that is not here yet."""
        if record.tombstone:
            return
        key = record.key
        if self._logs.is_complete(key.run_uid, key.attempt, key.rank):
            return
        self._addresses.setdefault(
            record.job_uid,
            # The record's own name: this manager may never have sent the job.
            LogAddress(key.run_uid, key.attempt, key.rank, record.run_name),
        )
        size = self._logs.size(key.run_uid, key.attempt, key.rank)
        await host.follow_log(record.job_uid, size)

    def take(self, piece: LogData) -> str | None:
        """
        Store a piece; returns the uid of the run whose job may be forgotten now.

        Raises:
            TemporaryError: It cannot be decoded.
            LedgerUnavailable: It cannot be stored.
        """
        address = self._addresses.get(piece.job_uid)
        if address is None:
            return None  # A job that this ledger does not know; its record shows as foreign.
        try:
            data = base64.b64decode(piece.data, validate=True)
        except ValueError as problem:
            raise TemporaryError(f"it sends invalid output: {problem}") from problem
        if not data and not piece.offset:
            return None  # It wrote nothing, and nothing is kept of that.
        try:
            self._logs.append(
                address.run_uid,
                address.attempt,
                address.rank,
                piece.offset,
                data,
                complete=piece.complete,
            )
        except OSError as problem:
            raise LedgerUnavailable(f"its output cannot be stored: {problem.strerror}") from problem
        if data:
            self.last_ms = self._clock.now_ms()
            self._progress.output(address.run_name, address.rank, data)
        # The end of the job has been known for a while.
        return address.run_uid if piece.complete else None
