"""
The document of an interactive run: a job that waits for a terminal, and ends with it.

The terminal is a command inside the job, which writes its pid to a file of the job. The job itself waits
for that process. So the run ends also when the program that showed the terminal was killed, or its
machine was: the agent ends the command, and the job sees it.
"""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Final

__all__ = ["NAME", "TERMINAL", "document", "remove_documents"]

NAME: Final = "shell"

_OPENING_SECONDS = 600
"""How long a job waits for its terminal: a host may be reached again after a while."""

_END_EARLY_SECONDS = 5
"""A job that ends by itself before its limit is done; one that is ended at the limit has failed."""

_MARK = '"$TMPDIR/terminal"'

_COMMENT = "# The terminal of `fleetform shell` is a command inside this job."
"""The first line of the job, by which its document is known."""

_SHELL = 'export SHELL="$(command -v bash || command -v sh)"; exec "$SHELL"'

TERMINAL: Final = ("sh", "-c", f"echo $$ > {_MARK}.new; mv {_MARK}.new {_MARK}; {_SHELL}")
"""The command of the terminal: a shell for people, whose pid the job finds whole or not at all."""

_WAIT = """\
end=$(($(date +%s) + {seconds})); opening=$(($(date +%s) + {opening}))
until [ -s {mark} ]; do
  if [ "$(date +%s)" -ge "$opening" ]; then echo "no terminal was opened"; exit 1; fi
  sleep 0.5
done
read pid < {mark}
while kill -0 "$pid" 2>/dev/null && [ "$(date +%s)" -lt "$end" ]; do sleep 0.5; done
"""


def document(seconds: int, limit: str, *, keep: bool) -> str:
    """
    Write the document of a run that lasts as long as its terminal, and at most so many seconds.

    `limit` is the same time as a person wrote it. With `keep`, it lasts so long with or without a terminal.
    """
    own = max(seconds - _END_EARLY_SECONDS, seconds // 2)
    wait = _WAIT.format(seconds=own, opening=min(_OPENING_SECONDS, own), mark=_MARK)
    command = f"{_COMMENT}\n{shlex.join(['exec', 'sleep', str(own)]) if keep else wait}"
    # JSON is YAML, and no line of it depends on what is in it.
    fields = {"type": "task", "name": NAME, "commands": [command], "max_duration": limit}
    return "".join(f"{name}: {json.dumps(value)}\n" for name, value in fields.items())


def remove_documents(root: Path) -> None:
    """Remove the documents of all interactive runs: a terminal that was ended does not come back."""
    # Here: most applies remove no environment.
    from fleetform.app.submit import SCRATCH

    for file in sorted((root / SCRATCH).glob("*.yaml")):
        if _COMMENT in file.read_text(encoding="utf-8", errors="replace"):
            file.unlink(missing_ok=True)
