"""`fleetform validate` on hostile trees, as people run it: a gigabyte, a minute, and no traceback."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from fleetform.spec.tree.budget import FINDINGS_MAX
from hostile.bounded import Measured, fleetform
from hostile.rows import FILES, TASK, TELLING
from unit.spec.trees import ENVIRONMENT

MEMORY_MAX = 2**30
SECONDS_MAX = 60
PEAK_MAX = 700 * 2**20
"""The worst row takes two thirds of it; the address space has room for libraries besides."""

FINDING = re.compile(r"^([^\s:]*)\S* ?(error|warning|note)\[([a-z0-9-]+)\]: ", re.MULTILINE)
"""The first line of a finding: its file, its level and its code."""

ROWS = {row.name: row for row in FILES}


def tree(folder: Path, **files: bytes) -> Path:
    root = folder / "tree"
    root.mkdir()
    (root / "environment.yaml").write_text(ENVIRONMENT)
    for name, data in files.items():
        (root / f"{name}.yaml").write_bytes(data)
    return root


def check_bounds(measured: Measured) -> None:
    """It said what it had to say and left by its own will."""
    assert measured.code in {0, 1}, measured.stderr[-2000:]
    assert "Traceback" not in measured.stderr
    assert "this is a bug" not in measured.stderr
    assert 0 < measured.peak_bytes < PEAK_MAX
    assert measured.cpu_seconds < SECONDS_MAX


@pytest.mark.parametrize("name", TELLING)
def test_validate_is_bounded(
    tmp_path: Path, name: str, count: Callable[[str, dict[str, int]], None]
):
    """Whatever the file, the command ends within its memory and time, and tells what is wrong."""
    row = ROWS[name]
    measured = fleetform(
        "validate", tree(tmp_path, x=row.data()),
        home=tmp_path / "home", memory_max=MEMORY_MAX, cpu_seconds_max=SECONDS_MAX,
    )  # fmt: skip
    check_bounds(measured)
    findings = FINDING.findall(measured.stderr)
    codes = {code for file, _, code in findings if file == "x.yaml"}
    assert row.codes <= codes if row.codes else codes <= {"empty-field"}, measured.stderr[:2000]
    assert "error" not in {level for file, level, _ in findings if file != "x.yaml"}
    for level, number in Counter(level for _, level, _ in findings).items():
        assert number <= FINDINGS_MAX + 52, level
    assert len(measured.stderr) < 1_000_000
    assert max(map(len, measured.stderr.split("\n\n"))) <= 5000
    assert all(letter.isprintable() or letter == "\n" for letter in measured.stderr)
    count("hostile files through `validate`", {"files": 1})


@pytest.mark.parametrize(
    "arguments", [["--format", "json"], ["--format", "sarif"], ["--format", "junit"]]
)
def test_machines_can_read_it_too(tmp_path: Path, arguments: list[str]):
    """What is printed for programs is what they can read, whatever stands in files and names."""
    root = tree(tmp_path, x=ROWS["NUL bytes"].data())
    for name in (b"\xff.yaml", b"a\nb.yaml", b"\x1b[2J.yaml"):
        (root / os.fsdecode(name)).write_text('type: "\\e[31m\\u202e\\uFFFE"\nname: \'<&"]]>\'\n')
    measured = fleetform("validate", root, *arguments, home=tmp_path / "home")
    check_bounds(measured)
    assert measured.stdout.encode().decode("utf-8")
    assert "\x1b" not in measured.stdout
    if "junit" in arguments:
        import xml.etree.ElementTree as ET

        ET.fromstring(measured.stdout)
    else:
        assert json.loads(measured.stdout)


@pytest.mark.parametrize("command", ["plan", "ps", "why", "render"])
def test_other_commands_are_bounded_too(tmp_path: Path, command: str):
    """Every command that reads the tree reads it the same way."""
    root = tree(tmp_path, x=ROWS["billion laughs"].data(), y=TASK.encode())
    arguments = ["train", root] if command == "why" else [root]
    measured = fleetform(command, *arguments, home=tmp_path / "home")
    assert "Traceback" not in measured.stderr
    assert "this is a bug" not in measured.stderr
    assert measured.code != 0 or command != "plan"


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: path.symlink_to("/dev/zero")])
def test_an_environment_that_never_ends(tmp_path: Path, make: Callable[[Path], None]):
    """A pipe or an endless device for `environment.yaml` is not waited for."""
    root = tree(tmp_path)
    (root / "environment.yaml").unlink()
    make(root / "environment.yaml")
    for command in ("validate", "plan", "ps"):
        measured = fleetform(command, root, home=tmp_path / "home", cpu_seconds_max=20)
        assert measured.code == 1
        assert "Traceback" not in measured.stderr
        assert "this is a bug" not in measured.stderr
