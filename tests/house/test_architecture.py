"""The page on the architecture names modules that exist."""

from __future__ import annotations

import re
from pathlib import Path

HOUSE = Path(__file__).resolve().parents[2]
PAGE = HOUSE / "docs" / "architecture.md"
PORTIONS = [
    HOUSE / portion / "fleetform" for portion in ("agents", "providers", "reconciler", "spec")
]
NAMED = re.compile(r"`([a-z_]+/[a-z_/]*)\*?`")


def test_every_module_that_is_named_exists():
    """A newcomer who follows the page finds each room where it says."""
    named = set(NAMED.findall(PAGE.read_text(encoding="utf-8")))
    assert named, "the page names no module: the pattern is wrong"
    lost = [
        path
        for path in sorted(named)
        if not any(_is_there(root, path.rstrip("/")) for root in (*PORTIONS, HOUSE))
    ]
    assert lost == []


def _is_there(root: Path, path: str) -> bool:
    return (root / path).is_dir() or (root / path).with_suffix(".py").is_file()
