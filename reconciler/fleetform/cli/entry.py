"""
Where the process begins: an interrupt has its words before anything else is imported.

What `main` imports takes a tenth of a second, and a user who presses Ctrl-C within that time
would see where Python was just then.
"""

from __future__ import annotations

import sys


def main() -> int:
    """Run what was typed; returns the exit code."""
    try:
        from fleetform.cli.main import main as run

        return run()
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        # `cli.exit` may be what could not be imported.
        return 130


# The background controller is started by the interpreter's own path: no script need be on PATH.
if __name__ == "__main__":
    sys.exit(main())
