"""
How commands run: as processes of the host, or in a container.

One type for whoever may say so: a run for itself, a profile, fleet or queue for runs that do not.
What the container is made from is said elsewhere (`container`).
"""

from __future__ import annotations

from typing import Literal, TypeAlias

Runtime: TypeAlias = Literal["process", "container"]
