"""
Drives runs: one round reads what moved, decides, commits, and sends.

Every round starts from rows, never from the event that woke it. What to do is decided by the
pure rooms (`lifecycle`, `schedule`); this module reads and commits, and `sending` says it to
hosts, in an order in which a crash between any two leaves rows that the next manager goes on
from.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from fleetform.agents.protocol.states import JobState
from fleetform.controllers.announced import Announced
from fleetform.controllers.disks import Disks
from fleetform.controllers.first_answers import FirstAnswers
from fleetform.controllers.host_health import Suspects
from fleetform.controllers.hosts import HostSessions
from fleetform.controllers.mirror import Mirror
from fleetform.controllers.scaling import FleetScaling
from fleetform.controllers.sending import Sender
from fleetform.controllers.task_group import TaskGroup
from fleetform.lifecycle import advance, as_ended
from fleetform.model.decision import Decisions, Finish, Next, Requeue, Wait
from fleetform.model.instance import InstanceState
from fleetform.model.lineage import DEPENDENCY
from fleetform.model.ports import (
    BlobStore,
    Clock,
    Gate,
    HostNews,
    Ledger,
    LedgerUnavailable,
    Progress,
)
from fleetform.model.run import FINAL, AttemptState, Run, RunState, RunUid
from fleetform.schedule import Policies, queue_from_state, schedule

UNSETTLED = frozenset(
    {
        AttemptState.RESERVED,
        AttemptState.ABORTING,
        AttemptState.STARTING,
        AttemptState.STOPPING,
    }
)
"""Attempts that a deadline may move although nothing happened."""

DEADLINE_CHECK_MS = 1000

SILENCE_CHECK_MS = 1000

ACCOUNTS_CHECK_MS = 15_000
"""A person who has created an account looks at the run within a minute."""


class RunController:
    """All runs of one environment, as long as this process is their manager."""

    def __init__(
        self,
        *,
        ledger: Ledger,
        gate: Gate,
        hosts: HostSessions,
        disks: Disks,
        blobs: BlobStore,
        clock: Clock,
        progress: Progress,
        task_group: TaskGroup,
        fence: int,
        starts: bool = True,
    ) -> None:
        self._starts = starts
        self.mirror = Mirror()
        self._ledger = ledger
        self._gate = gate
        self._hosts = hosts
        self._clock = clock
        self._progress = progress
        self._fence = fence
        self._serial: int | None = None
        self._has_plan = False
        self._shown: dict[RunUid, RunState] = {}
        self._ended: dict[RunUid, Run] = {}
        self._deadline_check_ms = 0
        self._silence_check_ms = 0
        self._accounts_check_ms = 0
        self._announced = Announced(progress)
        self._first_answers = FirstAnswers(hosts=hosts, clock=clock, progress=progress)
        self._suspects = Suspects(
            ledger=ledger, gate=gate, clock=clock, progress=progress, fence=fence
        )
        self._scaling = FleetScaling(
            hosts=hosts, ledger=ledger, gate=gate, clock=clock, fence=fence
        )
        self._sender = Sender(
            ledger=ledger,
            gate=gate,
            hosts=hosts,
            disks=disks,
            blobs=blobs,
            mirror=self.mirror,
            progress=progress,
            task_group=task_group,
            unavailable=self.reload,
        )
        self.next_at_ms: int | None = None

    def reload(self) -> None:
        """Read everything again in the next round."""
        self._serial = None

    @property
    def is_growing(self) -> bool:
        """Whether hosts were asked for in the last round, so that runs may seem to have none."""
        return self._scaling.is_growing

    @property
    def last_output_ms(self) -> int:
        return self._hosts.output.last_ms

    def owes_output(self) -> bool:
        """Tell whether a finished job's output is still on a host that answers."""
        for job in self.mirror.all_jobs():
            if job.state is not JobState.FINISHED or self._hosts.output_complete(job):
                continue
            session = self._hosts.session(job.instance_uid)
            if session is not None and session.host is not None:
                return True
        return False

    def owed_stops(self) -> tuple[tuple[str, str], ...]:
        """
        Return runs that are to end and whose hosts have not taken that yet, with those hosts.

        By name, sorted. A host that has not answered so far may be one of them.
        """
        owed = {
            (job.key.run_uid, job.instance_uid)
            for job in self.mirror.all_jobs()
            if job.stop_wanted and self._sender.owes_stop(job)
        }
        if not owed:
            return ()
        hosts = {one.uid: one.name for one in self.mirror.instances}
        runs = self.mirror.runs
        return tuple(
            sorted(
                (runs[RunUid(uid)].name, hosts[host])
                for uid, host in owed
                if uid in runs and host in hosts
            )
        )

    async def round(self, *, has_plan: bool = False) -> None:
        """
        Read what moved, decide, commit and send; returns when all is on its way.

        While this process has a plan to execute (`has_plan`), its steps may write any instance.
        """
        self._has_plan = has_plan
        touched = await self._refresh()
        touched |= await self._end_unheard()
        touched |= await self._judge(touched)
        # Before runs are placed anew: they would be sent to the same hosts.
        await self._suspects.mark(self.mirror)
        if self._starts:
            touched |= await self._place()
        self._sender.send_due(touched)

    # -- taking in ------------------------------------------------------------------------------

    async def _refresh(self) -> dict[RunUid, None]:
        await self._write_said()
        touched = {RunUid(uid): None for uid in self._hosts.touched}
        self._hosts.touched.clear()
        changed, self._hosts.changed = self._hosts.changed, {}
        serial = await self._gate(self._ledger.serial)
        if serial != self._serial or self._hosts.rows_changed:
            self._hosts.rows_changed = False
            self._serial = serial
            book = await self._gate(self._ledger.read_book)
            gone = [uid for uid in self.mirror.runs if uid not in book.runs]
            self.mirror.replace(book)
            self._sender.resources_changed()
            touched.update(dict.fromkeys((*gone, *self.mirror.runs)))
            touched.update({RunUid(uid): None for uid in self.mirror.lingering_by_run})
            self._show(touched)
        elif touched or changed:
            await self._reread(touched, changed)
        if self._starts:
            self._announced.tell(self.mirror.overrides, now_ms=self._clock.now_ms())
        self._hosts.watch(self.mirror.instances, self._occupied())
        touched.update(self._take_greeted())
        return touched

    def _take_greeted(self) -> dict[RunUid, None]:
        """Return the runs with jobs on hosts that have said hello: all of them are compared."""
        greeted, self._hosts.greeted = self._hosts.greeted, {}
        for instance_uid in greeted:
            self._suspects.greeted(instance_uid)
        broken, self._hosts.broken = self._hosts.broken, {}
        for instance_uid, why in broken.items():
            self._suspects.note_broken(instance_uid, why)
        jobs = self.mirror.all_jobs() if greeted else ()
        return {RunUid(job.key.run_uid): None for job in jobs if job.instance_uid in greeted}

    def _occupied(self) -> set[str]:
        """Say which instances are occupied, where some leave and it matters."""
        leaving = any(one.state is InstanceState.TERMINATING for one in self.mirror.instances)
        return self.mirror.occupied() if leaving else set()

    async def _write_said(self) -> None:
        """Write down what hosts answered to what was sent."""
        if answers := self._sender.take_answers():
            for instance_uid, record in answers:
                session = self._hosts.session(instance_uid)
                if session is not None:
                    session.records[record.key] = record
            try:
                moved = await self._gate(
                    lambda: self._ledger.commit_news(
                        [HostNews(uid, [record]) for uid, record in answers],
                        fence=self._fence,
                        now_ms=self._clock.now_ms(),
                    )
                )
            except LedgerUnavailable:
                # A host is not asked again for what it has answered.
                self._sender.give_back(answers)
                raise
            self._hosts.touched.update(dict.fromkeys(key.run_uid for key in moved))
        if keys := self._sender.take_forgotten():
            self._hosts.touched.update(dict.fromkeys(key.run_uid for key in keys))
            await self._gate(lambda: self._ledger.mark_forgotten(keys, fence=self._fence))

    async def _reread(self, touched: Iterable[RunUid], changed: Iterable[str] = ()) -> None:
        """Read these runs and instances; all instances while there is a plan."""
        uids = tuple(touched)
        instances = None if self._has_plan else tuple(changed)
        book = await self._gate(lambda: self._ledger.read_book(uids, instances))
        names = {uid: self.mirror.runs[uid] for uid in uids if uid in self.mirror.runs}
        self.mirror.merge(uids, instances, book)
        self._show(touched, names)

    def _show(self, touched: Iterable[RunUid], before: Mapping[RunUid, Run] | None = None) -> None:
        """Report states that people have not seen yet."""
        for uid in touched:
            run = self.mirror.runs.get(uid) or self._ended.pop(uid, None)
            if run is None and before is not None and (old := before.get(uid)) is not None:
                # Ended by somebody else's hand; only its state is known here.
                state = self.mirror.state_of(old.name)
                run = replace(old, state=state) if state in FINAL and state is not None else None
            if run is None or self._shown.get(uid) is run.state:
                continue
            if run.state in FINAL:
                # Nothing comes after it; `serve` sees too many runs to remember each.
                self._shown.pop(uid, None)
            else:
                self._shown[uid] = run.state
            self._progress.run_changed(run, run.message)

    async def _end_unheard(self) -> dict[RunUid, None]:
        """
        End jobs that their hosts have ended by now, as `on_silence` says, and cannot say so.

        Nothing is sent between the look and the reading of the rows that this leads to, so no job is
        started whose row has ended.
        """
        if (boot_ms := self._clock.boot_ms()) < self._silence_check_ms:
            return {}
        self._silence_check_ms = boot_ms + SILENCE_CHECK_MS
        dead = [
            job.key
            for job in self.mirror.all_jobs()
            if job.silence is not None
            and job.instance_uid
            # Without a supervisor nothing ends it in time.
            and job.state not in {JobState.FINISHED, JobState.UNKNOWN}
            and self._hosts.unheard_ms(job.instance_uid) >= job.silence.proof_ms
        ]
        if not dead:
            return {}
        ended = await self._gate(
            lambda: self._ledger.end_unheard(dead, fence=self._fence, now_ms=self._clock.now_ms())
        )
        moved = {RunUid(key.run_uid): None for key in ended}
        await self._reread(moved)
        return moved

    # -- deciding ---------------------------------------------------------------------------------

    async def _judge(self, touched: Mapping[RunUid, None]) -> dict[RunUid, None]:
        """Let `lifecycle` say what happens next to each run that moved or is overdue."""
        now = self._clock.now_ms()
        transitions: list[tuple[RunUid, Next]] = []
        for uid in self._to_judge(touched):
            run, attempt = self.mirror.runs[uid], self.mirror.attempts[uid]
            verdict = advance(run, attempt, now_ms=now)
            if not isinstance(verdict, Wait):
                transitions.append((uid, verdict))
            if isinstance(verdict, Requeue | Finish):
                self._suspects.note(run, attempt, now_ms=now)
        return await self._commit_transitions(transitions, now)

    def _to_judge(self, touched: Mapping[RunUid, None]) -> Sequence[RunUid]:
        uids = dict.fromkeys(uid for uid in touched if uid in self.mirror.attempts)
        # By a clock that nobody sets: after one was set back, none would be looked at for as long.
        if (boot_ms := self._clock.boot_ms()) >= self._deadline_check_ms:
            self._deadline_check_ms = boot_ms + DEADLINE_CHECK_MS
            uids.update(
                dict.fromkeys(
                    uid
                    for uid, attempt in self.mirror.attempts.items()
                    if attempt.state in UNSETTLED
                )
            )
        return tuple(uids)

    async def _commit_transitions(
        self, transitions: Sequence[tuple[RunUid, Next]], now: int
    ) -> dict[RunUid, None]:
        if not transitions:
            return {}
        await self._gate(
            lambda: self._ledger.commit_transitions(transitions, fence=self._fence, now_ms=now)
        )
        for uid, verdict in transitions:
            if isinstance(verdict, Finish) and (run := self.mirror.runs.get(uid)) is not None:
                self._ended[uid] = as_ended(run, self.mirror.attempts.get(uid), verdict, now)
        moved = dict.fromkeys(uid for uid, _ in transitions)
        await self._reread(moved)
        return moved

    def _look_for_accounts(self, decisions: Decisions, now: int) -> None:
        """Have hosts say again which accounts they have while a run waits for one."""
        if not any(one.code == "account" for found in decisions.waiting.values() for one in found):
            return
        if (boot_ms := self._clock.boot_ms()) >= self._accounts_check_ms:
            self._accounts_check_ms = boot_ms + ACCOUNTS_CHECK_MS
            self._hosts.look_again()
        self._look_by(now + self._accounts_check_ms - boot_ms)

    def _look_by(self, at_ms: int | None) -> None:
        """Have the next round by then, Unix milliseconds; None: whenever it is."""
        if at_ms is not None:
            self.next_at_ms = at_ms if self.next_at_ms is None else min(self.next_at_ms, at_ms)

    async def _place(self) -> dict[RunUid, None]:
        """Start what can start; end what never can."""
        now = self._clock.now_ms()
        queue = queue_from_state(self.mirror.as_scheduler_state())
        if wait_ms := self._first_answers.wait_ms(queue.runs, self.mirror.instances):
            self.next_at_ms = now + wait_ms
            return {}
        decisions = schedule(
            queue,
            self._first_answers.placeable(self.mirror.instances),
            Policies(),
            now_ms=now,
        )
        self.next_at_ms = decisions.next_at_ms
        self._look_for_accounts(decisions, now)
        self._look_by(await self._scaling.carry_out(decisions, self.mirror))
        ends: list[tuple[RunUid, Next]] = [
            (
                one.run_uid,
                Finish(RunState.UNSCHEDULABLE, "impossible", "; ".join(one.reasons)),
            )
            # A step of the plan may be about to write the rows of hosts that could take it.
            for one in (() if self._has_plan else decisions.impossible)
        ]
        ends.extend(
            (uid, Finish(RunState.ABORTED, DEPENDENCY, sentence))
            for uid, sentence in decisions.aborts.items()
        )
        moved = await self._commit_transitions(ends, now)
        if decisions.starts:
            starts = decisions.starts
            await self._gate(
                lambda: self._ledger.commit_placements(starts, fence=self._fence, now_ms=now)
            )
            placed = dict.fromkeys(placement.run_uid for placement in starts)
            await self._reread(placed)
            moved.update(placed)
        if ends:
            # Somebody may have waited for one of these: look again at once.
            self.next_at_ms = now
        return moved
