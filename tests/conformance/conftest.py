"""What is collected here."""

from __future__ import annotations

from conformance import dstack_itself

# `make compare` fetches dstack: an installation of 200 packages is too much for each run of the tests.
collect_ignore = [] if dstack_itself.FOLDER.is_dir() else ["test_dstack_itself.py"]
