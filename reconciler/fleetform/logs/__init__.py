"""Output of jobs, kept after their hosts forgot them."""

from fleetform.logs.files import FileLogStore

__all__ = ["FileLogStore"]
