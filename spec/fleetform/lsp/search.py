"""How a few letters find a name: as the searches of editors do, so that neither hides the other's."""

from __future__ import annotations

import re

__all__ = ["search"]


def search(typed: str) -> re.Pattern[str]:
    """What finds the names that have the letters in this order, case aside."""
    letters = [re.escape(letter) for letter in typed if not letter.isspace()]
    return re.compile(".*?".join(letters), re.IGNORECASE | re.DOTALL)
