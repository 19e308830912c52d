"""
Effects of each kind's steps on hosts: one module a kind, one function a verb, found by their names.

`volume.remove` is carried out by `remove` in `volume`. Verbs that change only the ledger have none.
"""

from __future__ import annotations

import importlib
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from fleetform.apply.host_access import HostAccess
from fleetform.model.apply import Begun
from fleetform.model.plan import Step
from fleetform.model.verbs import ACTS_ON_HOSTS, VERBS, Verb

Performer = Callable[[Step, Begun, HostAccess], Awaitable[Mapping[str, Any] | None]]
"""Carries out one step; what it returns is written down with the result."""


def _performer(verb: Verb) -> Performer:
    module = importlib.import_module(f"{__name__}.{VERBS[verb].kind}")
    performer: Performer = getattr(module, verb.partition(".")[2])
    return performer


PERFORMERS: Mapping[str, Performer] = {verb: _performer(verb) for verb in ACTS_ON_HOSTS}
