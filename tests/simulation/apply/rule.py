"""What must hold in every seed, each with its own sentence."""

from __future__ import annotations

import enum

__all__ = ["Rule"]


class Rule(enum.StrEnum):
    """A promise of apply; the value is the sentence that a verdict quotes."""

    CHECKED = "the second reader accepts every plan"
    UNCHANGED = "a plan is applied only to what it was made for"
    APPLIED_ONCE = "a plan is applied at most once"
    INTENDED = "nothing is done in the world before its intent is written down"
    ONCE = "nothing is done twice for one operation"
    ALONE = "a place holds one instance, a path one volume, a name one execution at a time"
    PROTECTED = "nothing protected is removed or replaced"
    KEPT = "data that is to be kept is never lost, and never another volume's"
    GIVES_WAY = "a host that gives way ends what is at work there only where that was planned"
    IN_USE = "what is at work keeps what it uses, whichever run its name stands for by now"
    SEEN = "what leaves the tree leaves nothing at work behind that nobody has asked to end"
    PERMITTED = "nothing is destroyed without permission"
    BUDGET = "no more is destroyed than the rules last applied allow"
    REASON = "a finished run is executed again only for a reason"
    RECOVERING = "a ledger that is not the newest causes nothing"
    FENCED = "whoever was taken over causes nothing"
    OVERRIDDEN = "what an override keeps from beginning does not begin before it is over"
    STOPPED = "what an emergency has stopped does not run before that is lifted"
    FROZEN = "no plan is entered while a freeze holds"
    RESTING = "whoever manages for long causes nothing that it begins after being taken over"
    WINDOW = "no plan is entered with what an open freeze window holds"
    DRIFT = "what has drifted is told, and put right unless that would hide a loss"
    HISTORY = "every apply has an outcome"
    CONVERGED = "once faults end, a plan is soon empty"
    WORLD = "in the end the world is as the ledger says"
    TREE = "in the end the ledger is as the tree says"
