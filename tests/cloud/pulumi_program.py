"""The Pulumi CLI that `tests/services.sh` builds into the user's cache."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
from pathlib import Path

BUILD = Path(__file__).parent / "pulumi_cli" / "build.sh"
_MODULE = BUILD.with_name("go.mod")


def pulumi_version() -> str:
    """Return the version that `go.mod` pins."""
    found = re.search(r"pulumi/pkg/v3 v(\S+)", _MODULE.read_text(encoding="utf-8"))
    assert found is not None
    return found[1]


def pulumi_program() -> Path:
    """Return where the program is once it is built."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "fleetform" / "tests" / f"pulumi-{pulumi_version()}" / "pulumi"


def reason_missing() -> str:
    """Wait for a build that is running; say why there is no program, empty when there is one."""
    program = pulumi_program()
    lock = program.with_name("lock")
    if not program.exists() and lock.exists():
        with lock.open() as held:
            fcntl.flock(held, fcntl.LOCK_SH)
    if program.exists():
        return ""
    go = "" if shutil.which("go") else "install Go 1.26 or newer; "
    return f"not built: {go}`sh tests/cloud/pulumi_cli/build.sh` builds it, as `make test` does"
