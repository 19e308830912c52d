"""
The stand-in for `scontrol` (scontrol(1)): host names of a list, and the facts of this job.

Lists of nodes are in Slurm's notation: `gpu[01-03,7],login` ("show hostnames"). It asks no
controller: what it says is in the job's own variables.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping, Sequence

NODES_MAX = 65_536
"""As many as Slurm itself has in one list; `a[0-999999999]` must not fill the host's memory."""

_PART = re.compile(r"([^,\[\]]*)\[([^\[\]]*)\]|([^,\[\]]+)")
_SPAN = re.compile(r"(\d+)(?:-(\d+))?")


def expand(text: str) -> list[str]:
    """
    Return the names of a list, in its order.

    Raises:
        ValueError: It is no such list; the message says why.
    """
    names: list[str] = []
    for item in _items(text):
        names.extend(_expand_item(item))
        if len(names) > NODES_MAX:
            raise ValueError(f"more than {NODES_MAX} nodes")
    return names


def _items(text: str) -> list[str]:
    """Split at the commas that are outside of brackets."""
    items = re.findall(r"(?:[^,\[\]]|\[[^\[\]]*\])+", text)
    if ",".join(items) != text.strip(","):
        raise ValueError(f"the brackets of {text!r} do not match")
    return items


def _expand_item(item: str) -> list[str]:
    names = [""]
    for match in _PART.finditer(item):
        before, spans, plain = match.groups()
        ends = [plain] if plain is not None else [before + one for one in _numbers(spans)]
        if len(names) * len(ends) > NODES_MAX:
            raise ValueError(f"more than {NODES_MAX} nodes")
        names = [name + end for name in names for end in ends]
    return names


def _numbers(spans: str) -> list[str]:
    """`01-03,7` as `01`, `02`, `03`, `7`: a number is as wide as the first of its span."""
    numbers: list[str] = []
    for span in spans.split(","):
        match = _SPAN.fullmatch(span)
        if match is None:
            raise ValueError(f"{span!r} is neither a number nor a range of numbers")
        first, last = match[1], match[2] or match[1]
        if int(last) - int(first) >= NODES_MAX:
            raise ValueError(f"more than {NODES_MAX} nodes")
        numbers.extend(str(one).zfill(len(first)) for one in range(int(first), int(last) + 1))
    return numbers


_FLAGS = frozenset({"-a", "--all", "-d", "--details", "-o", "--oneliner", "-Q", "--quiet"})
"""They change how much is printed, or how; there is one line here, and all of it is printed."""


class ScontrolError(Exception):
    """The command cannot be carried out; the message says why and what to do."""


def main(arguments: Sequence[str]) -> int:
    try:
        lines = run([one for one in arguments if one not in _FLAGS], os.environ)
    except ScontrolError as error:
        sys.stderr.write(f"scontrol: error: {error}\n")
        return 1
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    return 0


def run(words: Sequence[str], env: Mapping[str, str]) -> list[str]:
    """Return the lines that the command prints."""
    if words[:1] != ["show"] or len(words) not in (2, 3):
        raise ScontrolError(
            f"`{' '.join(words)}` is not supported: only `show hostnames [LIST]` and `show job` are."
            " `fleetform` commands outside of the job change a run"
        )
    if words[1] in ("hostname", "hostnames"):
        text = words[2] if len(words) == 3 else env.get("SLURM_JOB_NODELIST", "")
        try:
            return expand(text)
        except ValueError as error:
            raise ScontrolError(f"{text!r} is not a list of nodes: {error}") from error
    if words[1] in ("job", "jobs"):
        return [_job(words[2] if len(words) == 3 else "", env)]
    raise ScontrolError(
        f"`show {words[1]}` is not supported: only `show hostnames [LIST]` and `show job` are"
    )


def _job(asked: str, env: Mapping[str, str]) -> str:
    own = env.get("SLURM_JOB_ID", "")
    element = f"{env.get('SLURM_ARRAY_JOB_ID', '')}_{env.get('SLURM_ARRAY_TASK_ID', '')}"
    if asked not in ("", own, element):
        raise ScontrolError(
            f"job {asked} is not this job ({own}), and a job sees only itself: `fleetform ps` lists runs"
        )
    facts = (
        ("JobId", own),
        ("ArrayJobId", env.get("SLURM_ARRAY_JOB_ID")),
        ("ArrayTaskId", env.get("SLURM_ARRAY_TASK_ID")),
        ("JobName", env.get("SLURM_JOB_NAME")),
        ("UserId", f"{env.get('SLURM_JOB_USER', '')}({env.get('SLURM_JOB_UID', '')})"),
        ("Account", env.get("SLURM_JOB_ACCOUNT")),
        ("JobState", "RUNNING"),
        ("Restarts", env.get("SLURM_RESTART_COUNT", "0")),
        ("Partition", env.get("SLURM_JOB_PARTITION")),
        ("NodeList", env.get("SLURM_JOB_NODELIST")),
        ("NumNodes", env.get("SLURM_JOB_NUM_NODES")),
        ("NumTasks", env.get("SLURM_NTASKS")),
        ("CPUs/Task", env.get("SLURM_CPUS_PER_TASK")),
        ("WorkDir", env.get("SLURM_SUBMIT_DIR")),
    )
    return " ".join(f"{name}={value}" for name, value in facts if value is not None)
