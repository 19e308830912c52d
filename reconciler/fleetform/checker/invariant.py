"""The invariants of a plan, each with its own sentence, and what breaks one."""

from __future__ import annotations

import enum

from fleetform.spec.dataclass import dataclass


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
    Invariant.RIGHT_PLACE: "a plan is of one environment and one ledger",
    Invariant.RECOVERING_CHANGES_NOTHING: "a recovering ledger changes nothing",
    Invariant.RECOVERING_TOLD: "a plan says that its ledger is recovering",
    Invariant.ONE_CHANGE_A_RESOURCE: "each resource has one change, in order of keys",
    Invariant.HELD_IS_NOT_DONE: "what is held is not carried out",
    Invariant.LEFT_IS_LEFT: "what is left for another plan is neither done nor held",
    Invariant.NOTHING_FORGOTTEN: "every difference is a change, held, or left out on purpose",
    Invariant.SCOPE_KEPT: "only what nobody asked for is left out, and nothing excluded is done",
    Invariant.NOTHING_BESIDE_SCOPE: "only what was asked for is changed, and what that needs",
    Invariant.EXCHANGED_IS_ASKED_FOR: "a single host makes room only where somebody asked for it",
    Invariant.OVERRIDES_TOLD: "a plan tells of what is in force above the tree",
    Invariant.OVERRIDES_KEPT: "nothing is done against an override",
    Invariant.WINDOWS_KEPT: "nothing is changed that an open freeze window holds",
    Invariant.OWNERS_KEPT: "what somebody else owns is left alone",
    Invariant.MOVED_IS_THE_SAME: "what was renamed is the same under its new name",
    Invariant.MOVED_IS_KEPT: "what was renamed neither goes nor is made anew",
    Invariant.LET_GO_IS_KEPT: "what is let go is left as it is",
    Invariant.FOUND_IS_ASKED_FOR: "only what may be imported is taken as it is found",
    Invariant.RETURNS_ITS_OWN: "only what was let go under that name and there comes back",
    Invariant.BROKEN_STAYS: "what a broken document declares is left alone",
    Invariant.UNREAD_REMOVES_NOTHING: "nothing goes while a file cannot be read",
    Invariant.PROTECTED_STAYS: "nothing protected is removed, replaced or ended",
    Invariant.FINISHED_STAYS_FINISHED: "a finished run runs again only for a reason",
    Invariant.ONE_EXECUTION_AT_A_TIME: "a run starts anew only after its earlier run is over",
    Invariant.RUNNING_KEEPS_ITS_EXECUTION: "what runs is not given another execution in place",
    Invariant.DESTRUCTION_PERMITTED: "what destroys has been permitted",
    Invariant.DESTRUCTION_DECLARED: "what destroys says so",
    Invariant.WITHIN_BUDGET: "no more is destroyed than the budget allows",
    Invariant.STAKE_TOLD: "what destroys tells what is lost",
    Invariant.POLICY_OBEYED: "data goes as the policy last applied says",
    Invariant.SNAPSHOT_BESIDE: "what is put aside is found beside where it lay",
    Invariant.LOSS_SEEN: "a directory that is gone is made anew only where somebody asked for it",
    Invariant.REMOVAL_ORDERED: "what uses something ends before that goes",
    Invariant.SUCCESSOR_WAITS: "what takes a place waits until it is free",
    Invariant.REFERRED_TO_STAYS: "what something that stays refers to stays",
    Invariant.BEGINS_ON_SOMETHING: "what begins finds what it needs, or the plan makes that first",
    Invariant.BEGINS_ON_DECLARED: "what begins finds what it needs as it is declared",
    Invariant.PLACE_IS_FREE: "no volume comes into, around or within the directory of another",
    Invariant.USED_STAYS: "what somebody at work uses stays until a plan has ended them",
    Invariant.STEPS_NAMED_ONCE: "each step has a key of its own",
    Invariant.STEPS_NEEDS_EXIST: "each step waits for steps of this plan",
    Invariant.STEPS_ACYCLIC: "no step waits for itself",
    Invariant.STEPS_FIT_ACTION: "a change has the steps that its action calls for",
    Invariant.DOCUMENTS_AS_DECLARED: "steps carry the documents that are declared",
    Invariant.ROWS_PINNED: "every row that is touched is pinned",
    Invariant.WORK_PINNED: "a fleet that goes says who is at work on it, and nobody else ends",
    Invariant.UNATTACHED_PINNED: "a volume that goes says whose end comes first, and nobody else has it",
    Invariant.RULES_PINNED: "the rules that judged what is destroyed are pinned",
    Invariant.LEDGER_PINNED: "the ledger is pinned",
    Invariant.RULES_APPLIED_LAST: "a plan is judged by the rules applied last",
    Invariant.DIGEST_RIGHT: "a plan's digest is that of what it says",
}


@dataclass(frozen=True, slots=True)
class Violation:
    """One break of one invariant; `detail` says where and how."""

    invariant: Invariant
    detail: str

    @property
    def sentence(self) -> str:
        return f"{self.detail}, but {self.invariant.sentence}"
