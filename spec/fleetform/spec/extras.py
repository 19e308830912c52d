"""How the extras of fleetform are installed: from its clone, because no package index has a release of it."""

from __future__ import annotations

__all__ = ["install_extra"]


def install_extra(name: str) -> str:
    """Return the advice for a command that needs the packages of an extra in `pyproject.toml`."""
    return f"in the clone of fleetform, run `pip install '.[{name}]'`"
