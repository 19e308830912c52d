"""
Who may use something: people and projects, by their names.
"""

from __future__ import annotations

from fleetform.spec.kinds.base import Model
from fleetform.spec.kinds.offers import Names


class Allowed(Model):
    """Users and projects. A user is allowed when listed, or as a member of a listed project."""

    users: Names | None = None
    """The allowed users, by the names of their `user` documents. Example: `[ada, grace]`."""

    projects: Names | None = None
    """The allowed projects, with all their members. Example: `[vision]`."""
