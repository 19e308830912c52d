"""How a job is executed: one module a runtime. `process` needs nothing but the host."""

from __future__ import annotations

import importlib
from typing import Any

PROCESS = "process"

RUNTIMES = {PROCESS: "fleetform.agents.host.runtimes.process:ProcessRuntime"}
"""Where the class of each runtime is: `module:class`. It is called with `means.Means`, in each agent."""


def load(name: str) -> Any:
    """Import the class of a runtime; raises KeyError for one that this agent does not have."""
    module, _, cls = RUNTIMES[name].partition(":")
    return getattr(importlib.import_module(module), cls)
