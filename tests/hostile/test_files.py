"""
A tree with a hostile file loads in limited time, gives findings, and changes nothing else.

The most dangerous ones, `TELLING`, are loaded once, by the command: see `test_command`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from fleetform.spec.findings import Level, render_findings
from fleetform.spec.tree import load_tree
from fleetform.spec.tree.budget import FINDINGS_MAX
from hostile.processor_time import processor_seconds
from hostile.rows import ENCODINGS, FILES, SYNTAX, TELLING, Row
from unit.spec.trees import ENVIRONMENT, load

SECONDS_MAX = 30
"""Of the processor, so that a busy machine fails no test; the worst row takes a fifth of it."""


@pytest.mark.parametrize(
    "row", [row for row in FILES if row.name not in TELLING], ids=lambda row: row.name
)
def test_a_hostile_file_is_a_finding(tmp_path: Path, row: Row):
    """It has the finding that says what is wrong, in bounded time and words, and no exception."""
    (tmp_path / "environment.yaml").write_text(ENVIRONMENT)
    (tmp_path / "x.yaml").write_bytes(row.data())
    with processor_seconds(SECONDS_MAX):
        loaded = load_tree(tmp_path)
        text = render_findings(loaded.findings)
    codes = {finding.code for finding in loaded.findings if finding.place.file == "x.yaml"}
    assert row.codes <= codes if row.codes else codes <= {"empty-field"}, loaded.findings[:5]
    assert loaded.desired is not None  # Of this file nothing is known; the environment is sound.
    for level in Level:
        assert sum(one.level is level for one in loaded.findings) <= FINDINGS_MAX + 52
    for finding in loaded.findings:
        assert max(map(len, (finding.detail, finding.advice, finding.address))) <= 2100, (
            finding.code
        )
    assert all(letter.isprintable() or letter == "\n" for letter in text)


@pytest.mark.parametrize("row", [*ENCODINGS, *SYNTAX], ids=lambda row: row.name)
def test_a_hostile_environment_is_a_finding(tmp_path: Path, row: Row):
    """As `environment.yaml` it leaves nothing declared, and says so."""
    (tmp_path / "environment.yaml").write_bytes(row.data())
    with processor_seconds(SECONDS_MAX):
        loaded = load_tree(tmp_path)
    assert loaded.desired is None
    assert loaded.errors


@pytest.mark.parametrize(
    "text",
    [
        "type: gcp\nname: Prod\n",
        "type: gcp\nname: 7\n",
        "type: fleet\nname: Prod\nlocal: true\nnodes: 1\n",
        "type: nonsense\nname: [prod]\n",
        "type: task\ncommands: [a]\n",
        "- type: task\n  name: prod\n",
    ],
)
def test_whose_name_is_wrong_removes_nothing(tmp_path: Path, text: str):
    """What a document was called before its name went wrong is not known, and so not removed."""
    loaded = load(tmp_path, text)
    assert loaded.errors
    assert loaded.desired is not None
    assert loaded.desired.resources == {}
    assert loaded.desired.unread == ("tree.yaml",)


def test_a_name_may_be_one_of_the_environment(tmp_path: Path):
    """An expression for a name is filled in, and two that come to one are told."""
    fleet = "type: fleet\nname: ${{ values.x }}\nlocal: true\nnodes: 1\n"
    environment = f"{ENVIRONMENT}values: {{x: gpus}}\n"
    loaded = load(tmp_path, fleet, environment=environment)
    assert loaded.desired is not None
    assert [str(key) for key in loaded.desired.resources] == ["fleet/gpus"]
    loaded = load(tmp_path, f"{fleet}---\n{fleet}", environment=environment)
    assert {one.code for one in loaded.errors} == {"duplicate-name"}
