"""How a job is executed: one module a runtime, loaded on use. `process` needs nothing but the host."""

from __future__ import annotations

import importlib
from typing import Any

RUNTIMES = {"process": "fleetform.agents.host.runtimes.process:ProcessRuntime"}
"""Where the class of each runtime is: `module:class`."""


def load(name: str) -> Any:
    """Import the class of a runtime; raises KeyError for one that this agent does not have."""
    module, _, cls = RUNTIMES[name].partition(":")
    return getattr(importlib.import_module(module), cls)
