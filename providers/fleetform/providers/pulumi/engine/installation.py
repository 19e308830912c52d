"""
Where the Pulumi CLI and its plugins are, and their installation.

The CLI is the one of PATH, else the one in Pulumi's own folder, where its installer puts it. Nothing of Pulumi is imported
here: the library that downloads the CLI runs in a process of its own (`installer`).
"""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
from pathlib import Path

from fleetform.providers.contract.errors import PermanentError

__all__ = ["cli_version", "install_cli", "plugins", "pulumi_home", "pulumi_program"]

INSTALL_SECONDS = 600.0
"""The download has some 100 MB."""

_VERSION_SECONDS = 30.0

_LAST_LINES = 2


def pulumi_home() -> Path:
    return Path(os.environ.get("PULUMI_HOME") or Path.home() / ".pulumi")


def pulumi_program() -> str | None:
    """Return the path of the CLI; None: there is none."""
    return shutil.which("pulumi") or shutil.which("pulumi", path=str(pulumi_home() / "bin"))


def plugins(name: str) -> list[str]:
    """Name the installed plugins of a package, as `v7.1.0` or as the path of one on PATH."""
    prefix = f"resource-{name}-"
    installed = (pulumi_home() / "plugins").glob(f"{prefix}v*")
    found = sorted(path.name.removeprefix(prefix) for path in installed if path.is_dir())
    ambient = shutil.which(f"pulumi-resource-{name}")
    return [*found, *([ambient] if ambient else [])]


async def cli_version(program: str) -> str:
    """
    Ask the CLI for its version.

    Raises:
        PermanentError: It does not run.
    """
    code, output = await _run(program, "version", seconds=_VERSION_SECONDS)
    if code:
        raise PermanentError(f"{program} does not run: {_last(output)}", advice="install it again")
    return output.strip().removeprefix("v")


async def install_cli() -> str:
    """
    Download the CLI of the version of the library into Pulumi's folder, and return its path.

    Raises:
        PermanentError: It cannot be downloaded or installed.
    """
    module = "fleetform.providers.pulumi.engine.installer"
    words = (sys.executable, "-m", module, str(pulumi_home()))
    code, output = await _run(*words, seconds=INSTALL_SECONDS)
    program = pulumi_program()
    if code or program is None:
        raise PermanentError(
            f"the Pulumi CLI could not be installed: {_last(output)}",
            advice="allow connections to get.pulumi.com, or install it by hand and put `pulumi` on PATH",
        )
    return program


async def _run(*words: str, seconds: float) -> tuple[int, str]:
    process = await asyncio.create_subprocess_exec(
        *words,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env={**os.environ, "PULUMI_SKIP_UPDATE_CHECK": "1"},
    )
    try:
        async with asyncio.timeout(seconds):
            output, _ = await process.communicate()
    except TimeoutError:
        process.kill()
        await process.wait()
        return 1, f"it took longer than {seconds:.0f} s"
    assert process.returncode is not None
    return process.returncode, output.decode(errors="replace")


def _last(output: str) -> str:
    return " ".join(output.strip().splitlines()[-_LAST_LINES:]) or "it printed nothing"
