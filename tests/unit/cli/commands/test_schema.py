from __future__ import annotations

import json


def test_written_files_are_current_until_they_are_touched(typed, tmp_path):
    """What --write wrote passes --check, and one changed byte does not."""
    folder = tmp_path / "schemas"
    assert typed("schema", "--check", "--into", str(folder))[0] == 1
    assert typed("schema", "--write", "--into", str(folder))[0] == 0
    assert typed("schema", "--check", "--into", str(folder))[0] == 0
    (folder / "task.json").write_text("{}", encoding="utf-8")
    code, _out, err = typed("schema", "--check", "--into", str(folder))
    assert code == 1
    assert f"{folder / 'task.json'} is not current" in err


def test_the_schema_can_be_printed(typed):
    """For an editor that wants one file."""
    assert json.loads(typed("schema")[1])["$schema"].startswith("http")


def test_the_draft_that_editors_read_can_be_printed(typed):
    """The same in draft-07."""
    assert json.loads(typed("schema", "--draft", "07")[1])["$schema"].endswith("draft-07/schema#")


def test_writing_and_checking_exclude_each_other(typed):
    """A check that writes would always pass."""
    assert typed("schema", "--write", "--check")[0] == 1
