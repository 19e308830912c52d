"""What the real YAML language server offers in an environment that `init` made."""

from __future__ import annotations

import re

import pytest

from fleetform.spec.kinds import KINDS
from fleetform.spec.nodes import plain
from fleetform.spec.schema import MODELS, snippets
from fleetform.spec.syntax import read_documents
from integration.yaml_language_server.editor import CURSOR, Editor, documentation

TASK = "type: task\nname: train\ncommands: [python train.py]\n"


def value_of(text: str):
    """The only document of a text."""
    (node,), findings = read_documents(text.encode(), "typed.yaml")
    assert not findings, (text, findings)
    return plain(node)


def test_every_type_is_offered_with_what_it_is(editor: Editor):
    """Behind `type:` stand all types, each with the sentence of its model."""
    offered = editor.completions(f"type: {CURSOR}")
    assert set(offered) == set(MODELS)
    assert documentation(offered["task"]).startswith("Commands that run to their end:")


def test_fields_of_gpu_are_offered_with_what_they_are(editor: Editor):
    """Below `resources.gpu` stand its parts, and what a change of each does."""
    offered = editor.completions(f"{TASK}resources:\n  gpu:\n    {CURSOR}")
    assert {"vendor", "name", "memory", "count"} <= set(offered)
    assert documentation(offered["memory"]).startswith("Memory of one GPU, or a range.")
    assert "A change: must re-run" in documentation(offered["count"])


def test_values_of_gpu_are_offered(editor: Editor):
    """Behind `gpu:` stand the examples of the field, short and long ones."""
    offered = editor.completions(f"{TASK}resources:\n  gpu: {CURSOR}")
    assert "A100:80GB:1..8" in offered
    assert "{name: [A100, H100], count: 8}" in offered
    assert "[object Object]" not in offered


@pytest.mark.parametrize(
    ("text", "meanings"),
    [
        (f"{TASK}on_change: {CURSOR}", {
            "hold": "Block the change until `fleetform apply --allow-restart` permits it.",
            "restart": "End the run and re-run it; this applies once a plan has applied"
            " `on_change: restart`.",
            "after-finish": "Re-run it after it has ended.",
        }),
        (f"{TASK}retry:\n  on: [{CURSOR}]", {"preemption": "Another run took its place."}),
        (f"type: fleet\nname: local\nlocal: true\nsharing: {CURSOR}", {"whole": "One run at a time."}),
    ],
)  # fmt: skip
def test_choices_are_offered_with_what_they_mean(editor: Editor, text, meanings):
    """Each choice has its own documentation, where an expression may stand as well."""
    offered = editor.completions(text)
    assert {label: documentation(offered[label]) for label in meanings} == meanings


def test_a_second_spelling_is_not_offered(editor: Editor):
    """`on_events` is read, and `on` is what an editor proposes."""
    offered = editor.completions(f"{TASK}retry:\n  {CURSOR}")
    assert "on" in offered
    assert "on_events" not in offered


def test_documents_are_offered_in_an_empty_file_only(editor: Editor):
    """A file that has a type is not offered another document's fields."""
    assert {"sweep", "array", *KINDS} <= set(editor.completions(CURSOR))
    assert "sweep" not in editor.completions(f"type: task\nname: train\n{CURSOR}")


@pytest.mark.parametrize(
    ("kind", "label"),
    [(kind, one["label"]) for kind in KINDS for one in snippets.document_snippets(kind)],
)
def test_an_offered_document_is_valid_as_it_stands(editor: Editor, kind, label):
    """Chosen in an empty file and left as it is, it is a document without a finding."""
    text = editor.accept(CURSOR, label)
    MODELS[kind].model_validate(value_of(text))
    assert editor.findings(text.partition("\n")[2]) == []


@pytest.mark.parametrize("field", ["resources", "retry", "checkpoint", "concurrency", "matrix"])
def test_an_offered_value_is_valid_as_it_stands(editor: Editor, field):
    """Every value that is offered behind a field is accepted by it."""
    base = f"{TASK}{field}: {CURSOR}"
    for label in editor.completions(base):
        text = editor.accept(base, label)
        MODELS["task"].model_validate(value_of(text))


def test_nothing_is_offered_that_is_garbled(editor: Editor):
    """No field of a task inserts what is no YAML, or an expression that the editor would eat."""
    for label, item in editor.completions(f"{TASK}{CURSOR}").items():
        inserted = item["textEdit"]["newText"]
        assert "[object Object]" not in inserted, label
        assert not re.search(r"(?<!\\)\$\{\{", inserted), label
