from __future__ import annotations

import subprocess
import sys

from fleetform.cli.exit import Exit

# As if Ctrl-C came while `fleetform.cli.main` is imported, which the first of it stands for.
INTERRUPTED = """
import builtins, signal, sys
real = builtins.__import__
def interrupted(name, *rest, **named):
    if name == "click":
        builtins.__import__ = real
        signal.raise_signal(signal.SIGINT)
    return real(name, *rest, **named)
builtins.__import__ = interrupted
from fleetform.cli.entry import main
assert "fleetform.cli.main" not in sys.modules
sys.exit(main())
"""


def test_an_interrupt_while_it_starts_has_words():
    """Second thoughts within the first tenth of a second show no traceback either."""
    ended = subprocess.run(
        [sys.executable, "-c", INTERRUPTED], capture_output=True, text=True, check=False
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (Exit.INTERRUPTED, "", "interrupted\n")
    assert ended.returncode == 130
