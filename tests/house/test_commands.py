from __future__ import annotations

import click
import pytest

from fleetform.cli.command import Command, Group
from fleetform.cli.main import EXAMPLES, ROWS, fleetform

# What lists something for people must list it for scripts as well.
LISTS = ["agent list", "cost", "events", "explain", "fleet hosts", "fleet list", "fleet show", "plan", "ps", "render", "status",
         "validate", "volume list", "volume show", "why"]  # fmt: skip


def commands():
    """Every command with what is typed for it, groups and what is below them."""
    ctx = click.Context(fleetform)
    for name in fleetform.list_commands(ctx):
        found = fleetform.get_command(ctx, name)
        yield name, found
        if isinstance(found, click.Group):
            yield from ((f"{name} {verb}", below) for verb, below in found.commands.items())


COMMANDS = dict(commands())


@pytest.mark.parametrize("typed", COMMANDS)
def test_a_command_shows_how_it_is_used(typed):
    """Its help has a sentence and at least one example of that very command."""
    command = COMMANDS[typed]
    assert isinstance(command, Command | Group)
    assert (command.help or "").strip()
    assert any(f"fleetform {typed}" in example for example, _meaning in command.examples)
    assert all(meaning for _example, meaning in command.examples)


@pytest.mark.parametrize("typed", COMMANDS)
def test_an_option_says_what_it_does(typed):
    """An option without help is one that nobody finds."""
    silent = [
        parameter.name
        for parameter in COMMANDS[typed].params
        if isinstance(parameter, click.Option) and not parameter.help
    ]
    assert silent == []


@pytest.mark.parametrize("typed", LISTS)
def test_what_lists_also_lists_for_scripts(typed):
    """Nobody has to parse a table."""
    options = {parameter.name: parameter.type for parameter in COMMANDS[typed].params}
    assert "json" in options["format"].choices


@pytest.mark.parametrize("typed", COMMANDS)
def test_examples_can_be_parsed(typed):
    """What people copy from the help is understood by the command."""
    for example, _meaning in COMMANDS[typed].examples:
        line = example.partition(" >")[0].partition("$(")[2].rstrip(')"') or example
        words = line.partition(" >")[0].partition(" |")[0].replace("'", "").split()
        assert words[0] == "fleetform", example
        command, rest = fleetform, words[1:]
        ctx = click.Context(fleetform)
        while isinstance(command, click.Group):
            _name, command, rest = command.resolve_command(ctx, rest)
        known = {flag for parameter in command.params for flag in parameter.opts}
        # A dash alone is standard input; behind two of them stand a script's own arguments.
        own = rest[: rest.index("--")] if "--" in rest else rest
        typed_flags = {word for word in own if word.startswith("-") and word != "-"}
        assert typed_flags <= known, f"an unknown option in the example `{example}`"


def test_the_table_and_the_commands_agree():
    """A row's name is the command's own, and its line of help is not empty."""
    for row in ROWS:
        assert COMMANDS[row.name].name == row.name
        assert row.help.endswith(".")
    assert all(meaning for _example, meaning in EXAMPLES)
