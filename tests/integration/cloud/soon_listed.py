"""
Python for a cloud whose lists are never late: recovery waits a second for an instance, not ten minutes.

    python soon_listed.py PYTHON -m MODULE WORD…

`PYTHON` is a program that does this, for the processes that the module starts.
"""

from __future__ import annotations

import runpy
import sys

from fleetform.providers.pulumi.recovery import recover

WAIT = {"settle_seconds": 1.0, "look_seconds": 0.2}

if __name__ == "__main__":
    for function in (recover.recover, recover.listed, recover.require_listed):
        shared = WAIT.keys() & function.__kwdefaults__.keys()
        assert "settle_seconds" in shared
        function.__kwdefaults__.update({name: WAIT[name] for name in shared})
    sys.executable = sys.argv[1]
    module = sys.argv.index("-m") + 1
    sys.argv = sys.argv[module:]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
