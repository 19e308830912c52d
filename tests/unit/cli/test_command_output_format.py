"""One option says how a command prints: its formats, its old spellings, its contradictions."""

from __future__ import annotations

import json

import click
import pytest

from fleetform.cli.main import fleetform

OLD = ("--json", "--markdown", "--sarif", "--junit", "--github")


def options_of_commands():
    """Every command that has options for its output, with them by their spelling."""

    def walk(command, typed):
        if isinstance(command, click.Group):
            for name in command.list_commands(click.Context(command)):
                yield from walk(command.get_command(click.Context(command), name), [*typed, name])
        else:
            flags = {flag: option for option in command.params for flag in option.opts}
            if {"--format", *OLD} & set(flags):
                yield " ".join(typed), flags

    return dict(walk(fleetform, []))


COMMANDS = options_of_commands()
FORMATS = {name: flags["--format"].type.choices for name, flags in COMMANDS.items() if "--format" in flags}  # fmt: skip


@pytest.mark.parametrize("typed", COMMANDS)
def test_help_shows_one_way_to_choose_a_format(typed):
    """`--format` is the option that help shows, and the flags of earlier releases are hidden."""
    flags = COMMANDS[typed]
    assert not flags["--format"].hidden
    assert [flag for flag in OLD if flag in flags and not flags[flag].hidden] == []
    assert "--json" in flags


def test_formats_have_the_same_names_everywhere():
    """No command has a name of its own for a format, and all can print JSON."""
    names = {"text", "yaml", "json", "markdown", "github", "sarif", "junit"}
    assert FORMATS["validate"] == ("text", "json", "github", "sarif", "junit")
    assert FORMATS["plan"] == FORMATS["show"] == ("text", "json", "markdown")
    assert all({"json"} <= set(formats) <= names for formats in FORMATS.values())


@pytest.mark.parametrize(
    ("command", "form"), [("ps", "json"), ("validate", "json"), ("plan", "markdown")]
)
def test_an_old_spelling_prints_the_same(lab, typed, command, form):
    """Scripts written for an earlier release go on to work."""
    code, out, err = typed(command, "--format", form)
    assert code == 0
    assert typed(command, f"--{form}") == (code, out, err)
    assert typed(command, f"--{form}", "--format", form) == (code, out, err)


def test_text_is_a_format_like_others(lab, typed):
    """Whoever names the default gets the default."""
    assert typed("ps", "--format", "text") == typed("ps")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("ps", "--json", "--format", "text"), "--json and --format text"),
        (("plan", "--format", "markdown", "--json"), "--format markdown and --json"),
        (("plan", "--json", "--markdown"), "--json and --markdown"),
        (("plan", "--format", "json", "--format", "text"), "--format json and --format text"),
        (("render", "--format", "yaml", "--json"), "--format yaml and --json"),
    ],
)
def test_two_formats_contradict_each_other(lab, typed, arguments, said):
    """A command prints in one format, and says which two were asked for."""
    code, out, err = typed(*arguments)
    assert (code, out) == (1, "")
    assert err.startswith(f"error: {said} contradict each other\n")
    assert "help: pass one of: --format " in err


def test_an_unknown_format_is_answered_with_the_known_ones(lab, typed):
    """The error lists what this command can print."""
    code, out, err = typed("plan", "--format", "sarif")
    assert (code, out) == (1, "")
    assert "'sarif' is not one of 'text', 'json', 'markdown'" in err


def test_a_group_passes_the_format_to_what_it_lists(lab, typed):
    """`fleet` alone lists, and so `fleet list --format json` is the same as with the flag."""
    rows = json.loads(typed("fleet", "list", "--format", "json")[1])
    assert [row["name"] for row in rows] == ["local"]
