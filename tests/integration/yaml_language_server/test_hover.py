"""What the real YAML language server shows above a word."""

from __future__ import annotations

from integration.yaml_language_server.editor import CURSOR, Editor

TASK = "type: task\nname: train\ncommands: [python train.py]\n"


def test_a_field_says_what_it_is_and_what_a_change_does(editor: Editor):
    """The words are those of the docstring, with the effect of a change and examples."""
    shown = editor.hover(f"{TASK}resources:\n  g{CURSOR}pu: A100:80GB:1\n")
    assert shown.startswith("#### task\n\nGPUs as `NAME:MEMORY:COUNT`")
    assert (
        "\n\nA change: must re-run; blocked while the run is running. Example: `{name: [A100, H100]"
        in shown
    )
    assert "Example:\n\n```yaml\nA100:80GB:1..8\n```\n" in shown


def test_the_words_of_a_field_are_not_hidden_by_those_of_a_spelling(editor: Editor):
    """A duration in seconds is explained as the field, and not as seconds."""
    for value in ("3600", "1h", "off"):
        shown = editor.hover(f"{TASK}max_dur{CURSOR}ation: {value}\n")
        assert shown.startswith("#### task\n\nThe longest time that an attempt may run"), value


def test_a_part_of_a_short_spelling_has_words_of_its_own(editor: Editor):
    """The long spelling of an amount is explained part by part."""
    shown = editor.hover(f"{TASK}resources:\n  gpu:\n    mem{CURSOR}ory: 40GB..\n    count: 2\n")
    assert "Memory of one GPU, or a range." in shown


def test_a_choice_says_what_each_means(editor: Editor):
    """All choices are listed with their meaning, the one that is set first."""
    shown = editor.hover(f"{TASK}on_chan{CURSOR}ge: restart\n")
    assert "Default: `hold`. A change: updated in place." in shown
    listed = [line for line in shown.splitlines() if line.startswith("* ")]
    assert listed[0].startswith("* `restart`: End the run and re-run it;")
    assert (
        "* `hold`: Block the change until `fleetform apply --allow-restart` permits it." in listed
    )


def test_a_field_is_described_for_its_kind(editor: Editor):
    """The same name is another field in another kind."""
    fleet = editor.hover(f"type: fleet\nname: local\nlocal: true\nno{CURSOR}des: 2\n")
    task = editor.hover(f"{TASK}no{CURSOR}des: 2\n")
    assert "A host is removed only" in fleet
    assert "All nodes start together, or none does." in task
