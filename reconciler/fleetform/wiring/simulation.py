"""Gives the simulation a ledger: the real statements and schema on SQLite in memory."""

from __future__ import annotations

from fleetform.model.ports import Ids
from fleetform.simulate.seed import Verdict, play
from fleetform.store.ledger import SqliteLedger
from fleetform.store.opening import ledger_in_memory


def play_seed(seed: int) -> Verdict:
    """Play one seed of the simulation with the store that production uses."""
    return play(seed, _ledger)


def _ledger(environment_uid: str, ids: Ids) -> SqliteLedger:
    return ledger_in_memory(environment_uid, ids, now_ms=0)
