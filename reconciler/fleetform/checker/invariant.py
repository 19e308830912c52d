"""The invariants of a plan, each with its own sentence, and what breaks one."""

from __future__ import annotations

import enum
from dataclasses import dataclass


class Invariant(enum.StrEnum):
    """What no plan may break; the value is a stable code."""

    RIGHT_PLACE = "right-place"
    RECOVERING_CHANGES_NOTHING = "recovering-changes-nothing"
    RECOVERING_TOLD = "recovering-told"
    ONE_CHANGE_A_RESOURCE = "one-change-a-resource"
    HELD_IS_NOT_DONE = "held-is-not-done"
    LEFT_IS_LEFT = "left-is-left"
    NOTHING_FORGOTTEN = "nothing-forgotten"
    SCOPE_KEPT = "scope-kept"
    NOTHING_BESIDE_SCOPE = "nothing-beside-scope"
    EXCHANGED_IS_ASKED_FOR = "exchanged-is-asked-for"
    OVERRIDES_TOLD = "overrides-told"
    OVERRIDES_KEPT = "overrides-kept"
    WINDOWS_KEPT = "windows-kept"
    OWNERS_KEPT = "owners-kept"
    MOVED_IS_THE_SAME = "moved-is-the-same"
    MOVED_IS_KEPT = "moved-is-kept"
    LET_GO_IS_KEPT = "let-go-is-kept"
    FOUND_IS_ASKED_FOR = "found-is-asked-for"
    RETURNS_ITS_OWN = "returns-its-own"
    BROKEN_STAYS = "broken-stays"
    UNREAD_REMOVES_NOTHING = "unread-removes-nothing"
    PROTECTED_STAYS = "protected-stays"
    FINISHED_STAYS_FINISHED = "finished-stays-finished"
    ONE_EXECUTION_AT_A_TIME = "one-execution-at-a-time"
    RUNNING_KEEPS_ITS_EXECUTION = "running-keeps-its-execution"
    DESTRUCTION_PERMITTED = "destruction-permitted"
    DESTRUCTION_DECLARED = "destruction-declared"
    WITHIN_BUDGET = "within-budget"
    STAKE_TOLD = "stake-told"
    POLICY_OBEYED = "policy-obeyed"
    SNAPSHOT_BESIDE = "snapshot-beside"
    LOSS_SEEN = "loss-seen"
    REMOVAL_ORDERED = "removal-ordered"
    SUCCESSOR_WAITS = "successor-waits"
    REFERRED_TO_STAYS = "referred-to-stays"
    BEGINS_ON_SOMETHING = "begins-on-something"
    BEGINS_ON_DECLARED = "begins-on-declared"
    PLACE_IS_FREE = "place-is-free"
    USED_STAYS = "used-stays"
    STEPS_NAMED_ONCE = "steps-named-once"
    STEPS_NEEDS_EXIST = "steps-needs-exist"
    STEPS_ACYCLIC = "steps-acyclic"
    STEPS_FIT_ACTION = "steps-fit-action"
    DOCUMENTS_AS_DECLARED = "documents-as-declared"
    ROWS_PINNED = "rows-pinned"
    WORK_PINNED = "work-pinned"
    UNATTACHED_PINNED = "unattached-pinned"
    RULES_PINNED = "rules-pinned"
    LEDGER_PINNED = "ledger-pinned"
    RULES_APPLIED_LAST = "rules-applied-last"
    DIGEST_RIGHT = "digest-right"

    @property
    def sentence(self) -> str:
        return _SENTENCES[self]


_SENTENCES = {
    Invariant.RIGHT_PLACE: "a plan applies to one environment and one ledger",
    Invariant.RECOVERING_CHANGES_NOTHING: "a plan changes nothing while the ledger is recovering",
    Invariant.RECOVERING_TOLD: "a plan states whether its ledger is recovering",
    Invariant.ONE_CHANGE_A_RESOURCE: "a plan has one change for each resource, in the order of kinds and names",
    Invariant.HELD_IS_NOT_DONE: "a plan does not apply a blocked change",
    Invariant.LEFT_IS_LEFT: "a deferred change is neither applied nor blocked",
    Invariant.NOTHING_FORGOTTEN: "every difference is a change, blocked or deferred",
    Invariant.SCOPE_KEPT: "a plan applies no excluded change, and defers no change that `--target` selects",
    Invariant.NOTHING_BESIDE_SCOPE: "a plan with `--target` changes only the targets and the resources that they need",
    Invariant.EXCHANGED_IS_ASKED_FOR: "a plan replaces a single host only where `--replace` names it",
    Invariant.OVERRIDES_TOLD: "a plan lists exactly the overrides in force",
    Invariant.OVERRIDES_KEPT: "a plan changes nothing that an override forbids",
    Invariant.WINDOWS_KEPT: "a plan changes nothing that an open freeze window blocks",
    Invariant.OWNERS_KEPT: "a plan uses a directory only if it exists where needed, and no other environment owns it",
    Invariant.MOVED_IS_THE_SAME: "a renamed resource is the same resource under its new name",
    Invariant.MOVED_IS_KEPT: "a renamed resource is neither removed nor created again",
    Invariant.LET_GO_IS_KEPT: "a plan releases only resources that `removed:` lists, and only when no work on them ends",
    Invariant.FOUND_IS_ASKED_FOR: "a plan adopts only resources that `import:` lists",
    Invariant.RETURNS_ITS_OWN: "a volume gets back only the data that was released under its name and at its path",
    Invariant.BROKEN_STAYS: "a plan changes no resource that has or needs an invalid document",
    Invariant.UNREAD_REMOVES_NOTHING: "a plan removes nothing while a file cannot be read",
    Invariant.PROTECTED_STAYS: "a plan does not remove, replace or end a protected resource",
    Invariant.FINISHED_STAYS_FINISHED: "a finished run re-runs only if its execution changed or a person requests it",
    Invariant.ONE_EXECUTION_AT_A_TIME: "a run starts again only after its earlier run has ended",
    Invariant.RUNNING_KEEPS_ITS_EXECUTION: "a run keeps its execution while it runs",
    Invariant.DESTRUCTION_PERMITTED: "a destructive change needs a permission",
    Invariant.DESTRUCTION_DECLARED: "a destructive change is marked as destructive",
    Invariant.WITHIN_BUDGET: "a plan deletes only as many resources as the budget allows",
    Invariant.STAKE_TOLD: "a destructive change states its impact",
    Invariant.POLICY_OBEYED: "the `deletion_policy` that was applied last decides about the data",
    Invariant.SNAPSHOT_BESIDE: "a snapshot has a name of its own next to the directory of its volume",
    Invariant.LOSS_SEEN: "a missing directory is created again only where `--replace` names its volume",
    Invariant.REMOVAL_ORDERED: "a plan ends the use of a resource before it removes the resource",
    Invariant.SUCCESSOR_WAITS: "a replacement waits until the earlier resource has ended",
    Invariant.REFERRED_TO_STAYS: "a plan removes nothing that a remaining resource refers to",
    Invariant.BEGINS_ON_SOMETHING: "all that a new resource needs exists, or the plan creates it first",
    Invariant.BEGINS_ON_DECLARED: "nothing starts on a resource whose replacement is blocked or deferred",
    Invariant.PLACE_IS_FREE: "the directory of a volume does not overlap with the directory of another",
    Invariant.USED_STAYS: "a plan removes nothing that a run uses unless the plan ends the run first",
    Invariant.STEPS_NAMED_ONCE: "no two steps have the same key",
    Invariant.STEPS_NEEDS_EXIST: "a step waits only for steps of its plan",
    Invariant.STEPS_ACYCLIC: "no step waits for itself",
    Invariant.STEPS_FIT_ACTION: "the steps of a change fit its action",
    Invariant.DOCUMENTS_AS_DECLARED: "steps contain the declared documents",
    Invariant.ROWS_PINNED: "a plan has a predicate for each resource that it changes",
    Invariant.WORK_PINNED: "a plan that removes a fleet names the runs on it and ends no others",
    Invariant.UNATTACHED_PINNED: "a plan that removes a volume names the runs that it ends first, and no other run mounts the volume",
    Invariant.RULES_PINNED: "a destructive plan has a predicate for the rules that it was judged by",
    Invariant.LEDGER_PINNED: "a plan has a predicate for its ledger",
    Invariant.RULES_APPLIED_LAST: "a plan is judged by the rules applied last",
    Invariant.DIGEST_RIGHT: "the digest of a plan matches its content",
}


@dataclass(frozen=True, slots=True)
class Violation:
    """One break of one invariant; `detail` says where and how."""

    invariant: Invariant
    detail: str

    @property
    def sentence(self) -> str:
        return f"{self.detail}, but {self.invariant.sentence}"
