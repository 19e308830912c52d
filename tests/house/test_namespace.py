from __future__ import annotations

from collections import Counter
from pathlib import Path

HOUSE = Path(__file__).parents[2]
PORTIONS = [HOUSE / name / "fleetform" for name in ("spec", "agents", "providers", "reconciler")]


def modules():
    """Every module as its path below `fleetform/`, with the portion it stands in."""
    for portion in PORTIONS:
        for path in sorted(portion.rglob("*.py")):
            yield portion, path.relative_to(portion)


def test_the_namespace_has_no_init():
    """With one, only one portion would be found, while mypy stays green."""
    assert [portion for portion in PORTIONS if (portion / "__init__.py").exists()] == []


def test_every_room_below_has_one():
    """A folder without `__init__` is left out of the wheel by some tools and not by others."""
    folders = {portion / path.parent for portion, path in modules()}
    assert [folder for folder in sorted(folders) if not (folder / "__init__.py").exists()] == []


def test_there_is_one_mark_of_being_typed():
    """Type checkers take the portions together: one `py.typed` speaks for all."""
    marks = [path for portion in PORTIONS for path in portion.rglob("py.typed")]
    assert marks == [HOUSE / "reconciler" / "fleetform" / "py.typed"]


def test_no_module_stands_in_two_portions():
    """Which of the two would be imported depends on the order of folders on the path."""
    counts = Counter(path for _portion, path in modules())
    assert [path for path, count in counts.items() if count > 1] == []


def test_unit_tests_mirror_modules():
    """
    A test's path says what it tests, so that nobody searches for either.

    A room's address is one folder, `agents_protocol`; `test_plain_many` is of `plain`. Of a room
    as a whole are `test_promises`, and what is named after the room.
    """
    unit = HOUSE / "tests" / "unit"
    strays = []
    for test in sorted(unit.rglob("test_*.py")):
        room, *below = test.relative_to(unit).with_suffix("").parts
        folder = Path(*room.split("_"), *below[:-1])
        if below[-1] in {"test_promises", f"test_{folder.name}"}:
            continue
        words = below[-1].removeprefix("test_").split("_")
        names = ["_".join(words[:count]) for count in range(len(words), 0, -1)]
        if not any(is_module(folder / name) for name in names):
            strays.append(str(test.relative_to(HOUSE)))
    assert strays == []


def is_module(path):
    return any(
        (portion / path).with_suffix(".py").exists() or (portion / path / "__init__.py").exists()
        for portion in PORTIONS
    )
