"""Steps that were written down as done: whether they might, and what is believed from then on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from fleetform.model.plan import Step
from fleetform.spec.desired import ResourceKey
from simulation.apply.entries import Entries, Entry
from simulation.apply.evidence import Evidence
from simulation.apply.instances import Instances
from simulation.apply.overrides import Overrides
from simulation.apply.record import GONE, Applied, mentions
from simulation.apply.rule import Rule
from simulation.apply.volumes import Volumes

__all__ = ["Outcomes"]


class Outcomes:
    """Where time has passed since a plan was entered, it is looked at once more, step by step."""

    def __init__(
        self,
        evidence: Evidence,
        above: Overrides,
        entries: Entries,
        instances: Instances,
        volumes: Volumes,
    ) -> None:
        self._evidence = evidence
        self._above = above
        self._entries = entries
        self._instances = instances
        self._volumes = volumes

    def finished(
        self,
        apply_uid: str,
        steps: Sequence[Step],
        errors: Mapping[str, str],
        known: Iterable[str],
        run_uids: Mapping[str, str],
        hosts: Mapping[str, str],
    ) -> None:
        """
        Outcomes were written.

        `known` are keys that had been written as done before; `run_uids` what submitted runs have
        become, by name; `hosts` who belongs to a fleet by now, names by uid.
        """
        before = set(known)
        seen, entered = self._evidence, self._entries.of.get(apply_uid)
        if entered is not None and not before and any(not errors.get(one.key) for one in steps):
            # The first of it: an apply of which everything failed may be tried again.
            self._entries.carried_out[entered.digest] += 1
        for step in steps:
            error = errors.get(step.key, "")
            seen.note(seen.now, f"{'failed' if error else 'done'} {step.key} {error}".rstrip())
            if error and step.verb == "volume.make":
                # It may be there all the same, marked and empty; only a next try looks.
                seen.record.left_paths.add(step.arguments["path"])
            if error or step.key in before:
                continue
            # What was planned of an older copy is over with it, also once that is rebuilt.
            founded = seen.outgrown or apply_uid not in self._entries.unfounded
            seen.require(Rule.RECOVERING, founded, f"{step.key} of an older copy's plan was done")
            self._check_step(entered, step)
            self._take_over_names(step)
            if step.resource.kind == "fleet":
                change = None if entered is None else entered.changes.get(step.key)
                told = change is not None and change.destructive
                self._instances.take_fleet(step, hosts, told=told)
            self._take(step, run_uids.get(step.resource.name, ""))

    def _take(self, step: Step, run_uid: str) -> None:
        record = self._evidence.record
        record.take(step, run_uid, self._volumes.at(step.arguments.get("path", "")))
        if step.resource.kind == "run" and "document" in step.arguments:
            submitted = record.resources[step.resource].run_uid
            self._evidence.uses.submitted(submitted, step.arguments["document"])

    def _take_over_names(self, step: Step) -> None:
        """What is said of names outside of the record, and concerns this step."""
        if step.verb == "resource.move":
            before = ResourceKey(step.resource.kind, step.arguments["from"])
            if before.kind == "run":
                self._evidence.executions.rename(before.name, step.resource.name)
            self._evidence.uses.renamed(before, step.resource)
            self._above.rename(str(before), str(step.resource))
        if step.verb == "fleet.forget":
            self._instances.forget_fleet(step.resource.name)

    def _check_step(self, known: Entry | None, step: Step) -> None:
        seen, said = self._evidence, step.arguments
        before = seen.record.resources.get(step.resource)
        self._entries.check_protected(step)
        if step.verb in {"volume.make", "volume.adopt"}:
            self._check_volume(step)
        if step.verb in GONE and step.resource.kind == "volume":
            seen.require_unused(seen.uses.of_path(said["path"]), step.key)
        if step.verb in GONE and step.resource.kind == "fleet":
            seen.require_unused(seen.uses.of_fleet(step.resource.name), step.key)
        if known is not None and seen.destroys(step):
            change = known.changes[step.key]
            self._entries.check_permitted(change, step, known.permissions, known.rules)
        # One that ran when it was decided to restart it may have ended by itself since.
        alive = known is not None and before is not None and before.run_uid in known.alive
        if step.verb == "run.submit" and before is not None and not alive:
            self._check_reason(step, before)

    def _check_volume(self, step: Step) -> None:
        """A directory is one volume's: nobody else has it, by our own record."""
        path = step.arguments["path"]
        others = [
            str(key)
            for key, one in self._evidence.record.resources.items()
            if key.kind == "volume" and key != step.resource and one.document.get("path") == path
        ]
        self._evidence.require(
            Rule.KEPT, not others, f"{step.resource} comes to {path} of {others}"
        )
        if step.arguments.get("returns"):
            self._evidence.happened("volume that comes back")

    def _check_reason(self, step: Step, before: Applied) -> None:
        """Find in our own record why a run that is over may be executed again."""
        said = step.arguments
        end = self._evidence.executions.end_of(before.run_uid)
        if end is None:
            return  # Its earlier execution never began, or is not over: that is `ALONE`.
        other = said["execution_digest"] != before.execution_digest
        stopped = before.document.get("state") == "stopped"
        reasons = (
            mentions(said["document"], before.former),
            other and (before.archived or said["own_digest"] != before.own_digest),
            said["document"].get("rerun", 0) > before.mark,
            # Lost with its host, it may have been asked to end before anybody knew.
            end in {"stopped", "lost"} and (before.archived or stopped),
        )
        self._evidence.require(Rule.REASON, any(reasons), f"{step.resource} had ended ({end})")
