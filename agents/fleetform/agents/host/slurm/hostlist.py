"""Lists of nodes in Slurm's notation: `gpu[01-03,7],login` (scontrol(1), "show hostnames")."""

from __future__ import annotations

import re

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
