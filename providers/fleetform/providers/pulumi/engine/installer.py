"""
Installs the Pulumi CLI by the Automation API: `python -m fleetform.providers.pulumi.engine.installer FOLDER`.

The library downloads the installer of Pulumi, which puts the CLI of the version of the library into `FOLDER/bin`.
"""

from __future__ import annotations

import subprocess
import sys
import urllib.error

from pulumi import automation


def main(folder: str) -> int:
    try:
        automation.PulumiCommand.install(root=folder)
    except (OSError, urllib.error.URLError) as problem:
        sys.stderr.write(f"{getattr(problem, 'reason', problem)}\n")
        return 1
    except subprocess.CalledProcessError as problem:
        sys.stderr.write(f"{problem.output.decode(errors='replace')}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
