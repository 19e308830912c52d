"""
The YAML documents in the texts that this project grew from, as they are written there.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
TEXTS = ROOT.parent / "shared" / "seeds"
"""The texts; they lie beside the repository and not in it."""

KEPT = ROOT / "tests" / "data" / "seeds"
"""Their documents, for whoever has the repository alone."""

# A fence may stand in a list, and is indented then with all that is in it.
_BLOCK = re.compile(r"^([ \t]*)```ya?ml[ \t]*\n(.*?)^[ \t]*```[ \t]*$", re.MULTILINE | re.DOTALL)


def extract() -> Iterator[str]:
    """Each document, in the order of the texts."""
    for path in sorted(TEXTS.glob("*.txt")):
        for block in _BLOCK.finditer(path.read_text(encoding="utf-8")):
            yield textwrap.dedent(block[2])


def kept() -> list[str]:
    """Each document that lies here, in the same order."""
    return [path.read_text(encoding="utf-8") for path in sorted(KEPT.glob("*.yaml"))]


def keep() -> None:
    """Write what the texts have."""
    KEPT.mkdir(exist_ok=True)
    for number, text in enumerate(extract(), start=1):
        (KEPT / f"{number:02d}.yaml").write_text(text, encoding="utf-8")
