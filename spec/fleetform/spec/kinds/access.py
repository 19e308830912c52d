"""
Who may use something: people and projects, by their names.
"""

from __future__ import annotations

from fleetform.spec.kinds.base import Model
from fleetform.spec.kinds.offers import Names


class Allowed(Model):
    """People and projects; whoever is in either list may."""

    users: Names | None = None
    """People. Example: `[ada, grace]`."""

    projects: Names | None = None
    """Projects, for everybody who belongs to them. Example: `[vision]`."""
