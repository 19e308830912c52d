"""
The verbs of a plan's steps: one table says what each does.

Planner, checker, store and views ask this table, so that a new verb is a row here and the code
that carries it out. Sets of verbs are derived from the rows and have their names here, once.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Any

from fleetform.spec.kinds import CREATED, RESOURCES

__all__ = [
    "ACTS_ON_HOSTS",
    "ADOPTS",
    "BEGINS_USE",
    "CARRIES_DOCUMENT",
    "CREATES",
    "EMPTIES_PATH",
    "ENDS",
    "ENDS_USE",
    "FREES_PATH",
    "KINDS",
    "MAY_DESTROY",
    "ON_HOSTS",
    "PROVIDES",
    "REFERRED",
    "REFERRING",
    "TAKES_PATH",
    "UPDATES",
    "USED_AT_WORK",
    "VERBS",
    "Effect",
    "Verb",
    "VerbFacts",
    "verbs_of",
]


class Verb(enum.StrEnum):
    FLEET_MAKE = "fleet.make"
    FLEET_UPDATE = "fleet.update"
    FLEET_REMOVE = "fleet.remove"
    FLEET_ADOPT = "fleet.adopt"
    FLEET_FORGET = "fleet.forget"
    VOLUME_MAKE = "volume.make"
    VOLUME_ADOPT = "volume.adopt"
    VOLUME_UPDATE = "volume.update"
    VOLUME_WITHDRAW = "volume.withdraw"
    VOLUME_FORGET = "volume.forget"
    VOLUME_REMOVE = "volume.remove"
    VOLUME_SNAPSHOT = "volume.snapshot"
    QUEUE_SET = "queue.set"
    QUEUE_REMOVE = "queue.remove"
    RUN_SUBMIT = "run.submit"
    RUN_UPDATE = "run.update"
    RUN_STOP = "run.stop"
    RUN_ARCHIVE = "run.archive"
    RUN_RESTORE = "run.restore"
    RUN_FORGET = "run.forget"
    RESOURCE_MOVE = "resource.move"
    RULES_SET = "rules.set"


class Effect(enum.Enum):
    """What becomes of the resource."""

    CREATE = enum.auto()
    ADOPT = enum.auto()
    SET = enum.auto()
    """Created, or updated where it exists."""
    UPDATE = enum.auto()
    WITHDRAW = enum.auto()
    """It leaves some of its hosts and stays on the others."""
    RESTORE = enum.auto()
    STOP = enum.auto()
    DELETE = enum.auto()
    RELEASE = enum.auto()
    """The ledger forgets it; hosts and data stay."""
    MOVE = enum.auto()


@dataclass(frozen=True, slots=True)
class VerbFacts:
    """
    What one verb does.

    Attributes:
        kind: Of the resource; empty: any.
        carries_document: Its arguments have the resource's document and digests.
        acts_on_hosts: It acts outside the ledger. A verb that does not needs no recorded intent: its
            effect and its result are one transaction. The release of a volume counts: that it is in
            use by no job is seen on its host.
        takes_path: It needs a directory to itself.
        frees_path: It ends a volume: its directory is another's from then on, or keeps the data.
        may_destroy: Depending on the row, it ends running work or deletes data.
        ends_use: It takes something away from those who use it. The deletion of a fleet is another
            matter: the plan says what work it ends, and the step waits for that end by itself.
        done: What people read when it is done, where the word of its effect says too little.
        doing: The same for while it is carried out.
    """

    kind: str
    effect: Effect
    carries_document: bool = False
    acts_on_hosts: bool = False
    takes_path: bool = False
    frees_path: bool = False
    may_destroy: bool = False
    ends_use: bool = False
    done: str = ""
    doing: str = ""


def _fleet(effect: Effect, **facts: Any) -> VerbFacts:
    return VerbFacts("fleet", effect, **facts)


def _volume(effect: Effect, **facts: Any) -> VerbFacts:
    return VerbFacts("volume", effect, acts_on_hosts=True, **facts)


def _run(effect: Effect, **facts: Any) -> VerbFacts:
    return VerbFacts("run", effect, **facts)


VERBS = {
    Verb.FLEET_MAKE: _fleet(Effect.CREATE, carries_document=True, acts_on_hosts=True),
    Verb.FLEET_UPDATE: _fleet(
        Effect.UPDATE, carries_document=True, acts_on_hosts=True, may_destroy=True
    ),
    Verb.FLEET_REMOVE: _fleet(Effect.DELETE, acts_on_hosts=True, may_destroy=True),
    Verb.FLEET_ADOPT: _fleet(Effect.ADOPT, carries_document=True, acts_on_hosts=True),
    Verb.FLEET_FORGET: _fleet(Effect.RELEASE, ends_use=True, done="released, its hosts stay up"),
    Verb.VOLUME_MAKE: _volume(Effect.CREATE, carries_document=True, takes_path=True),
    Verb.VOLUME_ADOPT: _volume(
        Effect.ADOPT, carries_document=True, takes_path=True, done="adopted with its data"
    ),
    Verb.VOLUME_UPDATE: _volume(Effect.UPDATE, carries_document=True),
    Verb.VOLUME_WITHDRAW: _volume(
        Effect.WITHDRAW, may_destroy=True, ends_use=True, done="withdrawn from hosts"
    ),
    Verb.VOLUME_FORGET: _volume(
        Effect.RELEASE, frees_path=True, ends_use=True, done="released, its data is kept"
    ),
    Verb.VOLUME_REMOVE: _volume(
        Effect.DELETE,
        frees_path=True,
        may_destroy=True,
        ends_use=True,
        done="removed with its data",
    ),
    # The data is put aside under another name, so nothing is destroyed.
    Verb.VOLUME_SNAPSHOT: _volume(
        Effect.DELETE,
        frees_path=True,
        ends_use=True,
        done="kept as a snapshot",
        doing="keeping a snapshot of",
    ),
    Verb.QUEUE_SET: VerbFacts("queue", Effect.SET, carries_document=True),
    Verb.QUEUE_REMOVE: VerbFacts("queue", Effect.DELETE),
    Verb.RUN_SUBMIT: _run(
        Effect.CREATE, carries_document=True, done="submitted", doing="submitting"
    ),
    Verb.RUN_UPDATE: _run(Effect.UPDATE, carries_document=True),
    Verb.RUN_STOP: _run(Effect.STOP, may_destroy=True),
    Verb.RUN_ARCHIVE: _run(Effect.DELETE, done="archived", doing="archiving"),
    Verb.RUN_RESTORE: _run(Effect.RESTORE, carries_document=True, done="restored with its result"),
    Verb.RUN_FORGET: _run(Effect.RELEASE),
    Verb.RESOURCE_MOVE: VerbFacts("", Effect.MOVE),
    Verb.RULES_SET: VerbFacts("environment", Effect.SET, done="rules updated"),
}


def verbs_of(*kinds: str, effects: frozenset[Effect] = frozenset(Effect)) -> frozenset[Verb]:
    """Return the verbs of these kinds that have one of these effects."""
    return frozenset(
        verb for verb, facts in VERBS.items() if facts.kind in kinds and facts.effect in effects
    )


_NEW = frozenset({Effect.CREATE, Effect.ADOPT, Effect.SET})

CREATES = frozenset(verb for verb, facts in VERBS.items() if facts.effect is Effect.CREATE)
"""Creates something, or creates it again: fields that count at the creation count for these."""

ADOPTS = frozenset(verb for verb, facts in VERBS.items() if facts.effect is Effect.ADOPT)

UPDATES = frozenset(verb for verb, facts in VERBS.items() if facts.effect is Effect.UPDATE)

ENDS = frozenset(
    verb for verb, facts in VERBS.items() if facts.effect in {Effect.DELETE, Effect.RELEASE}
)
"""The row is gone afterwards, or archived."""

KINDS = tuple(dict.fromkeys(facts.kind for facts in VERBS.values() if facts.carries_document))
"""Kinds with an actual state: steps create and change them. Of the others a declaration is all."""

ON_HOSTS = frozenset(facts.kind for facts in VERBS.values() if facts.acts_on_hosts)
"""Kinds that are somewhere: what uses one of these can only be there."""


def _depth(kind: str) -> int:
    """How many kinds lie below this one, each of which refers to the next."""
    below = (one for one in RESOURCES[kind].refers.values() if one in CREATED and one != kind)
    return max((1 + _depth(one) for one in below), default=0)


REFERRED = tuple(sorted((kind for kind in KINDS if kind in CREATED), key=_depth, reverse=True))
"""Kinds with an actual state that others refer to; each before those that it refers to itself."""

REFERRING = tuple(kind for kind in KINDS if not CREATED.isdisjoint(RESOURCES[kind].refers.values()))
"""Kinds with an actual state that need what they refer to."""

PROVIDES = verbs_of(*REFERRED, effects=_NEW)
"""Afterwards there is something that others may refer to."""

BEGINS_USE = verbs_of(*REFERRING, effects=_NEW)
"""From then on the resource uses what its document refers to."""

ENDS_USE = frozenset(verb for verb, facts in VERBS.items() if facts.ends_use)

USED_AT_WORK = frozenset(VERBS[verb].kind for verb in ENDS_USE)
"""Kinds that a run uses while it is at work, and not only until it has its place."""

CARRIES_DOCUMENT = frozenset(verb for verb, facts in VERBS.items() if facts.carries_document)

ACTS_ON_HOSTS = frozenset(verb for verb, facts in VERBS.items() if facts.acts_on_hosts)

TAKES_PATH = frozenset(verb for verb, facts in VERBS.items() if facts.takes_path)

FREES_PATH = frozenset(verb for verb, facts in VERBS.items() if facts.frees_path)

EMPTIES_PATH = frozenset(verb for verb in FREES_PATH if VERBS[verb].effect is Effect.DELETE)
"""No data is at the path afterwards."""

MAY_DESTROY = frozenset(verb for verb, facts in VERBS.items() if facts.may_destroy)
