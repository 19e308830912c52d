"""
One machine's worth of world: hosts with the jobs on them, and directories that are volumes.

It does what real hosts do and no more: an agent obeys the highest epoch and fence that it has
heard, a directory keeps the mark of whose it is, a job runs to its end whoever is watching.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from fleetform.agents.protocol.host_report import HostReport
from fleetform.agents.protocol.messages import Cursor, JobKey, JobRecord
from fleetform.agents.protocol.states import Cause, JobState
from fleetform.providers.contract.errors import OwnedElsewhere, PermanentError, TemporaryError
from fleetform.providers.contract.hosts import Identity, InstanceRequest
from fleetform.providers.contract.observed import HostSeen, InstanceSeen, PlaceSeen, VolumeSeen
from simulation.apply.documents import HOST_CPU_MILLICORES, HOST_MEMORY_BYTES
from simulation.apply.judge import Judge
from simulation.apply.ports import Disk

__all__ = ["Machine", "SimulatedHost", "Work"]


@dataclass(frozen=True, slots=True)
class Work:
    """One job that runs: when it ends by itself, and with which code."""

    run_name: str
    until: float
    exit_code: int


@dataclass(slots=True)
class SimulatedHost:
    """One instance. `session` counts hellos: what an older session still sends is not heard."""

    uid: str
    name: str
    fleet: str
    ledger_id: str = ""
    epoch: int = 0
    fence: int = 0
    commits: int = 0
    """Of its ledger, when it was told last that something is written down, in this epoch."""
    session: int = 0
    boot_id: str = ""
    """Of this installation: a host that was released and is made again has another."""
    records: dict[JobKey, JobRecord] = field(default_factory=dict)
    work: dict[JobKey, Work] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Mark:
    """
    A directory, and whose it says it is; `volume_uid` is empty where its mark has gone.

    `identity` tells it from another directory at its path.
    """

    volume_uid: str
    name: str
    identity: str


@dataclass(slots=True)
class Machine:
    """Everything that exists outside of the ledger."""

    source: random.Random
    judge: Judge
    disk: Disk
    time: Callable[[], float]
    hosts: dict[str, SimulatedHost] = field(default_factory=dict)
    volumes: dict[str, _Mark] = field(default_factory=dict)
    snapshots: dict[str, str] = field(default_factory=dict)
    paces: tuple[float, ...] = (0.1, 1.0, 5.0, 30.0)
    """How long a job may take, seconds."""
    _made: int = 0

    # -- instances ------------------------------------------------------------------------

    def ensure(self, request: InstanceRequest) -> None:
        """Make the instance exist; nothing when it does."""
        if request.uid in self.hosts:
            return
        row = self.disk.ask("SELECT state FROM instances WHERE uid = ?", (request.uid,))
        names = dict(self.disk.ask("SELECT uid, name FROM instances"))
        self.judge.instances.made(
            request.uid,
            request.name,
            written=bool(row) and row[0][0] != "terminated",
            others={uid: names.get(uid, host.name) for uid, host in self.hosts.items()},
        )
        self._made += 1
        self.hosts[request.uid] = SimulatedHost(
            request.uid, request.name, request.fleet, boot_id=f"boot-{self._made}"
        )

    def hello(self, uid: str, identity: Identity) -> HostSeen:
        """
        Begin a session.

        Raises:
            TemporaryError: There is no such host, or somebody newer speaks to it.
            OwnedElsewhere: It obeys another ledger.
        """
        host = self.hosts.get(uid)
        if host is None:
            raise TemporaryError(f"no host {uid[:8]}")
        if host.ledger_id and (host.ledger_id, host.epoch) != (identity.ledger_id, identity.epoch):
            if identity.epoch <= host.epoch:
                raise OwnedElsewhere(
                    f"host {host.name} obeys another ledger", owner=identity.environment_uid
                )
            host.commits = 0
        elif identity.fence < host.fence:
            raise TemporaryError(f"somebody with the newer fence {host.fence} has taken over")
        host.ledger_id, host.epoch = identity.ledger_id, identity.epoch
        host.fence = identity.fence
        host.session += 1
        return self.see(host)

    def see(self, host: SimulatedHost) -> HostSeen:
        self.advance(host)
        return HostSeen(
            instance_uid=host.uid,
            install_id=f"install of {host.boot_id}",
            boot_id=host.boot_id,
            machine_id="machine",
            ledger_id=host.ledger_id,
            epoch=host.epoch,
            cursor=Cursor(f"log of {host.boot_id}", 0),
            records=tuple(host.records.values()),
            report=_REPORT,
        )

    def release(self, uid: str) -> None:
        """End an instance and whatever runs there."""
        host = self.hosts.pop(uid, None)
        if host is None:
            return
        row = self.disk.ask("SELECT state FROM instances WHERE uid = ?", (uid,))
        leaving = bool(row) and row[0][0] in {"terminating", "terminated"}
        self.advance(host)
        ends = {key.run_uid: work.run_name for key, work in host.work.items()}
        for key, work in host.work.items():
            self.judge.ended(work.run_name, key.run_uid, key.attempt, how="lost")
        self.judge.instances.released(uid, host.name, fleet=host.fleet, leaving=leaving, ends=ends)

    def inventory(self, environment_uid: str) -> tuple[InstanceSeen, ...]:
        return tuple(
            InstanceSeen(
                uid=host.uid,
                name=host.name,
                fleet=host.fleet,
                environment_uid=environment_uid,
                ledger_id=host.ledger_id,
                epoch=host.epoch,
                alive=True,
                fence=host.fence,
                commits=host.commits,
            )
            for host in sorted(self.hosts.values(), key=lambda host: host.name)
        )

    def is_ahead_of_ledger(self) -> bool:
        """Tell whether some host was made since, has obeyed somebody newer, or has run more."""
        ((fence, epoch, serial),) = self.disk.ask("SELECT fence, epoch, serial FROM meta")
        instances = {uid for (uid,) in self.disk.ask("SELECT uid FROM instances")}
        runs = {uid for (uid,) in self.disk.ask("SELECT uid FROM runs")}
        return any(
            host.uid not in instances
            or (host.epoch, host.fence) > (epoch, fence)
            or (host.epoch == epoch and host.commits > serial)
            or any(key.run_uid not in runs for key in host.records)
            for host in self.hosts.values()
        )

    def reset_sessions(self) -> None:
        """What was sent and not yet heard is lost."""
        for host in self.hosts.values():
            host.session += 1

    # -- volumes --------------------------------------------------------------------------

    def make_volume(
        self, operation_uid: str, volume_uid: str, name: str, path: str, take: str
    ) -> None:
        mark = self.volumes.get(path)
        if mark is None:
            if take == "found":
                raise PermanentError(f"{path} is no directory, so there is nothing to import")
            if take == "kept":
                raise PermanentError(f"{path} is gone, and with it the data of volume {name}")
            self._made += 1
            self.volumes[path] = _Mark(volume_uid, name, f"inode {self._made}")
            self.judge.volumes.made(path, volume_uid, operation_uid)
        elif mark.volume_uid != volume_uid:
            if take == "new" or (take != "found" and mark.volume_uid):
                raise PermanentError(f"{path} belongs to volume {mark.name}")
            self.volumes[path] = replace(mark, volume_uid=volume_uid, name=name)
            if take == "found":
                self.judge.volumes.adopted(path, volume_uid, operation_uid)
            else:
                self.judge.volumes.marked(path, volume_uid, operation_uid)

    def remove_volume(self, operation_uid: str, volume_uid: str, path: str) -> None:
        mark = self.volumes.get(path)
        if mark is None:
            return
        if mark.volume_uid != volume_uid:
            raise PermanentError(f"{path} belongs to volume {mark.name}")
        del self.volumes[path]
        self.judge.volumes.removed(path, volume_uid, operation_uid)

    def snapshot_volume(self, operation_uid: str, volume_uid: str, path: str, into: str) -> None:
        mark = self.volumes.get(path)
        aside = self.snapshots.get(into) == volume_uid
        if mark is None or (aside and mark.volume_uid != volume_uid):
            return
        if aside:
            # It was made anew since: what is there now goes beside what was.
            into = f"{into}-{operation_uid[:12]}"
        if mark.volume_uid != volume_uid:
            raise PermanentError(f"{path} belongs to volume {mark.name}")
        del self.volumes[path]
        self.snapshots[into] = volume_uid
        self.judge.volumes.put_aside(path, volume_uid, operation_uid)

    def volume_at(self, path: str) -> VolumeSeen | None:
        mark = self.volumes.get(path)
        if mark is None or not mark.volume_uid:
            return None
        return VolumeSeen(mark.volume_uid, mark.name, path)

    def place_at(self, environment_uid: str, path: str) -> PlaceSeen:
        mark = self.volumes.get(path)
        if mark is None:
            return PlaceSeen(path, exists=False)
        return PlaceSeen(
            path,
            exists=True,
            environment_uid=environment_uid if mark.volume_uid else "",
            volume_uid=mark.volume_uid,
            volume_name=mark.name if mark.volume_uid else "",
            identity=mark.identity,
            is_empty=False,
        )

    def marked_volumes(self) -> tuple[VolumeSeen, ...]:
        return tuple(
            VolumeSeen(mark.volume_uid, mark.name, path)
            for path, mark in self.volumes.items()
            if mark.volume_uid
        )

    # -- behind everybody's back ----------------------------------------------------------------

    def vanish(self, uid: str) -> None:
        """A host is gone, and with it what ran there, and how it ended where nobody has heard."""
        host = self.hosts.pop(uid)
        heard = set(self.disk.ask("SELECT run_uid, attempt FROM jobs WHERE state = 'finished'"))
        for key, record in host.records.items():
            if (key.run_uid, key.attempt) not in heard:
                self.judge.ended(record.run_name, key.run_uid, key.attempt, how="lost")

    def lose_directory(self, path: str) -> None:
        del self.volumes[path]
        self.judge.volumes.lost(path)

    def lose_mark(self, path: str) -> None:
        self.volumes[path] = replace(self.volumes[path], volume_uid="")
        self.judge.volumes.lost_mark(path)

    def mark_again(self, path: str, volume_uid: str) -> None:
        """A person puts the mark back where no plan will: what it was on is to go."""
        self.volumes[path] = replace(self.volumes[path], volume_uid=volume_uid)

    # -- jobs -----------------------------------------------------------------------------

    def start(self, host: SimulatedHost, record: JobRecord) -> None:
        """Run a job unless it is known; how long and how it ends is drawn here."""
        if record.key in host.records:
            return
        source = self.source
        code = 0 if source.random() < 0.75 else 1
        host.records[record.key] = record
        host.work[record.key] = Work(record.run_name, self.time() + source.choice(self.paces), code)
        self.judge.began(record.run_name, record.key.run_uid, record.key.attempt, host.fleet)

    def stop(self, host: SimulatedHost, record: JobRecord) -> None:
        """End a job, or see to it that it never starts."""
        self.advance(host)
        known = host.records.get(record.key)
        if known is None:
            host.records[record.key] = replace(
                record, state=JobState.FINISHED, cause=Cause.NEVER_STARTED, tombstone=True
            )
        elif known.state is not JobState.FINISHED:
            del host.work[record.key]
            host.records[record.key] = replace(
                known, state=JobState.FINISHED, cause=Cause.STOPPED, gen=record.gen
            )
            self.judge.ended(known.run_name, known.key.run_uid, known.key.attempt, how="stopped")

    def advance(self, host: SimulatedHost) -> None:
        """Let what has come to its end by now have ended."""
        now = self.time()
        for key, work in list(host.work.items()):
            if work.until > now:
                continue
            del host.work[key]
            host.records[key] = replace(
                host.records[key],
                state=JobState.FINISHED,
                cause=Cause.EXITED,
                exit_code=work.exit_code,
                started_at_ms=0,
                finished_at_ms=int(work.until * 1000),
            )
            how = "failed" if work.exit_code else "done"
            self.judge.ended(work.run_name, key.run_uid, key.attempt, how=how)

    def last_end(self) -> float | None:
        """When the last of what runs now ends by itself."""
        return max(
            (work.until for host in self.hosts.values() for work in host.work.values()),
            default=None,
        )


_REPORT = HostReport(
    hostname="simulated",
    cpu_millicores=HOST_CPU_MILLICORES,
    memory_bytes=HOST_MEMORY_BYTES,
    disk_bytes=1 << 40,
    disk_free_bytes=1 << 40,
    memory_free_bytes=HOST_MEMORY_BYTES,
    load_1m_milli=0,
    gpus=(),
    python="3.11",
    kernel="simulated",
)
