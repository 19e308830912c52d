"""
The sentence for each reason why a change is in a plan, and for each thing that holds one.

A plan gives codes to programs and sentences to people. `tests` prove that both tables are
complete.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from fleetform.model.plan import Action, Change, HeldBy, Reason
from fleetform.spec.names import split_element

__all__ = ["HELD_BY", "REASONS", "reason_sentence"]

REASONS: Mapping[Reason, str] = {
    Reason.ABSENT: "it does not exist yet",
    Reason.RETURNED: "it is declared again",
    Reason.EXECUTION_CHANGED: "what it executes changed",
    Reason.CONTROL_CHANGED: "how it is driven changed",
    Reason.COSMETIC_CHANGED: "only what describes it changed",
    Reason.INHERITED_CHANGED: "what it inherits changed: its result is marked stale and kept",
    Reason.ELEMENT_REPLACED: "takes the place of another element of the sweep",
    Reason.RERUN_ASKED: "`rerun` asks for another execution",
    Reason.REMOVED: "it is declared no more",
    Reason.REMOVED_FINISHED: "it is over and declared no more; its result is kept",
    Reason.DESTROY_ASKED: "everything that was made is to go, whatever is declared",
    Reason.RESUMED: "it was stopped before its end and is wanted again",
    Reason.STATE_WANTED: "`state: stopped` asks for its end",
    Reason.MOVED: "`moved` gives it another name; it is the same",
    Reason.FOUND: "`import:` says that it exists: it is taken over as it is",
    Reason.LET_GO: "`removed` lets it go: it stays, and nothing here knows of it any more",
    Reason.REPLACE_ASKED: "`--replace` asks for another one",
    Reason.DRIFTED: "it is not as it was made",
    Reason.WITHDRAWN: "what is at work is declared once more: what waits for its end is withdrawn",
    Reason.UNFINISHED: "an earlier apply began to change it and did not come to its end",
}

_COMES_BACK = "it comes back: its data was kept"

HELD_BY: Mapping[HeldBy, str] = {
    HeldBy.RUNNING_WORK: "running work",
    HeldBy.ENDING: "an end that is under way",
    HeldBy.DESTRUCTIVE: "not permitted",
    HeldBy.BUDGET: "budget of deletions",
    HeldBy.PROTECTION: "protection",
    HeldBy.BROKEN_DOCUMENT: "broken document",
    HeldBy.RECOVERING: "recovering",
    HeldBy.DEPENDENCY: "dependency",
    HeldBy.NOT_CARRIED_OUT: "not carried out yet",
    HeldBy.WINDOW: "freeze window",
    HeldBy.OVERRIDE: "override",
    HeldBy.OWNER: "another environment's",
    HeldBy.DRIFT: "drift",
}


def _sentence(reason: Reason, change: Change) -> str:
    """The sentence of a reason that is another for each change."""
    if reason is Reason.REPLACE_ASKED:
        hosts = [name for step in change.steps for name in step.arguments.get("exchange", ())]
        if not hosts:
            return REASONS[reason]
        others = "another host" if len(hosts) == 1 else "other hosts"
        return f"`--replace` asks for {others} in the place of {', '.join(hosts)}"
    if reason is not Reason.MOVED or not change.moved_from:
        return REASONS[reason]
    before, element = split_element(change.moved_from)
    # Elements that keep their places in a sweep are told together.
    same = element and element == change.element and not change.replaces
    return f"it was called {before if same else change.moved_from} before, and is the same"


_EACH_ITS_OWN = frozenset({Reason.REPLACE_ASKED, Reason.MOVED})


def reason_sentence(change: Change) -> str:
    """Say why, for one change; empty where nobody knows what would change."""
    if _EACH_ITS_OWN.isdisjoint(change.reasons):
        return _shared_sentence(change.key.kind, change.action, change.reasons)
    own = tuple([_sentence(reason, change) for reason in change.reasons])
    return _joined(change.key.kind, change.action, change.reasons, own)


@lru_cache(maxsize=256)  # A hundred thousand changes have a few of them.
def _shared_sentence(kind: str, action: Action, reasons: tuple[Reason, ...]) -> str:
    return _joined(kind, action, reasons, tuple([REASONS[one] for one in reasons]))


def _joined(
    kind: str, action: Action, reasons: tuple[Reason, ...], sentences: tuple[str, ...]
) -> str:
    said = zip(reasons, sentences, strict=True)
    # "Only" would be wrong beside other reasons, and then it says nothing.
    is_left_out = Reason.COSMETIC_CHANGED if len(reasons) > 1 else None
    sentence = "; ".join([one for reason, one in said if reason is not is_left_out])
    if kind == "run" and action is Action.CREATE and Reason.RETURNED in reasons:
        return f"{sentence}: its result is found again and nothing runs"
    if action is Action.ARCHIVE and Reason.DESTROY_ASKED in reasons:
        return f"{sentence}; its result is kept"
    # Environments, fleets and volumes execute nothing.
    if kind != "run":
        sentence = sentence.replace("what it executes changed", "it cannot be changed in place")
        sentence = sentence.replace(REASONS[Reason.RETURNED], _COMES_BACK)
        sentence = sentence.replace("how it is driven changed", "its settings changed")
    return sentence
