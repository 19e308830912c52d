"""Why a file is not edited."""

from __future__ import annotations


class EditRefused(Exception):
    """
    The text cannot be changed as asked, and nothing was.

    `message` is a clause for people, `advice` what they can do themselves.
    """

    def __init__(self, message: str, advice: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.advice = advice
