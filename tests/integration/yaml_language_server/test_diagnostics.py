"""What the real YAML language server underlines: nothing in what loads, and slips where they are."""

from __future__ import annotations

from pathlib import Path

import pytest

from integration.yaml_language_server.editor import Editor

ROOT = Path(__file__).parents[3]
# Files of patches have fields of documents, and are none.
GOOD = sorted(
    [
        *(ROOT / "tests" / "data" / "kinds").glob("*.yaml"),
        *(
            path
            for path in (ROOT / "environments").rglob("*.yaml")
            if path.parent.name != "patches"
        ),
    ]
)
TASK = "type: task\nname: train\ncommands: [python train.py]\n"


@pytest.mark.parametrize("path", GOOD, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_document_that_loads_is_not_underlined(editor: Editor, path):
    """Every example of every kind, and the environments of this repository."""
    assert editor.findings(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    ("text", "underlined", "message"),
    [
        (f"{TASK}resources:\n  gpus: 1\n", "gpus", "Property gpus is not allowed."),
        (f"{TASK}resources:\n  memory: 8Gi\n", "8Gi",
         "Does not match the format of this field. Write for example `8GB..` or `16GB`."),
        (f"{TASK}nodes: 0\n", "0", "Value is below the minimum of 1."),
        (f"{TASK}on_change: never\n", "never",
         'Value is not accepted. Valid values: "hold", "restart", "after-finish".'),
        ("type: tsk\n", "tsk", "Value is not accepted."),
        ("name: train\n", "n", 'Missing property "type".'),
    ],
)  # fmt: skip
def test_a_slip_is_underlined_where_it_is(editor: Editor, text, underlined, message):
    """The range is the word itself, and the message says what would do."""
    (finding,) = editor.findings(text)
    assert finding.underlined == underlined
    assert finding.message.startswith(message)


def test_a_missed_field_is_told_at_the_document(editor: Editor):
    """What is not there is told where the document begins, with the name of the field."""
    found = editor.findings("type: fleet\n")
    assert ('Missing property "name".', 0, 0) in {
        (one.message, one.line, one.start) for one in found
    }


def test_several_documents_in_a_file_are_told_apart(editor: Editor):
    """Each is judged by its own type: what a task has, a fleet has not."""
    fleet = "type: fleet\nname: local\nlocal: true\ncommands: [x]\n"
    (finding,) = editor.findings(f"{TASK}---\n{fleet}")
    assert finding.message == "Property commands is not allowed."
    assert finding.line == 7


def test_settings_name_the_schema_where_no_line_does(editor: Editor):
    """`init` has told VS Code which files are meant; others are nobody's business."""
    text = f"{TASK}nodes: 0\n"
    assert len(editor.findings(text, folder="tasks", modeline="")) == 1
    assert editor.findings(text, folder="charts", modeline="") == []
