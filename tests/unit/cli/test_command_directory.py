"""Naming the environment: `-C PATH` on each command that has one, and the older spellings."""

from __future__ import annotations

import click
import pytest

from fleetform.cli.command import DirectoryOption
from fleetform.cli.exit import Exit
from fleetform.cli.main import ROWS, fleetform, main

WITHOUT = {"agent probe", "completion", "controller run", "convert", "explain", "init", "lock list",
           "lsp", "schema", "version"}  # fmt: skip
"""Commands that work on no environment, or make one."""


def _commands():
    ctx = click.Context(fleetform)
    for row in ROWS:
        command = fleetform.get_command(ctx, row.name)
        if isinstance(command, click.Group):
            yield from ((f"{row.name} {verb}", below) for verb, below in command.commands.items())
        else:
            yield row.name, command


COMMANDS = dict(_commands())


@pytest.fixture
def elsewhere(root, tmp_path, monkeypatch):
    """The folder beside the environment `lab`, which belongs to none."""
    monkeypatch.chdir(tmp_path)
    return root


@pytest.mark.parametrize("typed", COMMANDS)
def test_each_command_that_has_an_environment_takes_it_by_the_same_option(typed):
    """Whoever knows `-C` of one command knows it of all; help names no other way."""
    command = COMMANDS[typed]
    options = [one for one in command.params if isinstance(one, DirectoryOption)]
    assert [one.opts for one in options] == ([] if typed in WITHOUT else [["-C", "--directory"]])
    if options:
        context = click.Context(command, info_name=typed, **command.context_settings)
        help_text = command.get_help(context)
        assert "-C, --directory PATH" in help_text
        assert "--path" not in help_text
        assert "[PATH]" not in help_text.replace("fmt [OPTIONS] [PATH]...", "")


@pytest.mark.parametrize(
    "line",
    ["plan -C lab", "plan --directory lab", "-C lab plan", "--directory=lab plan", "plan lab",
     "-C lab plan -C ./lab", "blame run/train --path lab", "-C lab blame run/train",
     "ps lab", "render lab run/train", "render -C lab run/train", "validate lab", "-C lab validate",
     "-C lab fmt --diff", "status lab", "-C lab lock show"],
)  # fmt: skip
def test_an_environment_is_named_before_or_after_the_command(typed, elsewhere, line):
    """Each spelling finds the same environment, and the older ones keep working."""
    code, _out, err = typed(*line.split())
    assert "environment.yaml here" not in err
    assert "no such option" not in err.lower()
    assert code == Exit.OK or "nothing has been applied" in err


def test_the_older_argument_of_apply_is_an_environment_or_a_plan(typed, elsewhere):
    """A folder is an environment, as before; a file is a plan, of the environment after `-C`."""
    assert typed("plan", "-C", "lab", "--out", "today.plan")[0] == Exit.OK
    for line in (("apply", "lab"), ("apply", "-C", "lab"), ("-C", "lab", "apply")):
        _code, out, err = typed(*line)
        assert "cannot ask for confirmation" in err
        assert "+ fleet local" in out
    assert "no environment.yaml" in typed("apply", "today.plan")[2]


@pytest.mark.parametrize(
    "line",
    [
        "plan lab -C other",
        "-C lab plan -C other",
        "render lab -C other",
        "apply -C lab other",
        "plan -C lab -C other",
        "-C lab -C other plan",
        "plan -C other -C lab",
        "plan --path lab --path other",
    ],
)
def test_two_environments_are_refused(typed, elsewhere, tmp_path, line):
    """Which one is meant is not guessed, least of all by `apply`."""
    (tmp_path / "other").mkdir()
    code, _out, err = typed(*line.split())
    assert code == Exit.ERROR
    assert err.startswith("error: two environments are named: `")
    assert "help: name one, with -C PATH" in err


def test_a_command_without_an_environment_takes_none(typed, elsewhere):
    """An option that a command would ignore is refused, with what to type instead."""
    code, _out, err = typed("-C", "lab", "version")
    assert code == Exit.ERROR
    assert err == "error: `fleetform version` does not work on an environment\nhelp: leave -C out\n"


def test_a_folder_without_an_environment_says_what_to_do(typed, elsewhere, tmp_path):
    """Outside an environment the two ways on are named: -C and init."""
    code, _out, err = typed("plan")
    assert code == Exit.ERROR
    assert "fleetform init" in err
    assert "-C PATH" in err
    (tmp_path / "empty").mkdir()
    assert "empty is not an environment" in typed("plan", "-C", "empty")[2]
    assert "does not exist" in typed("plan", "-C", "nowhere")[2]


def test_completion_looks_in_the_environment_that_is_named(lab, monkeypatch, tmp_path, capsys):
    """Names of runs come from the environment before the command as from the one after it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("_FLEETFORM_COMPLETE", "bash_complete")
    for words in ("-C lab why ", "why -C lab ", "why --path lab "):
        monkeypatch.setenv("COMP_WORDS", f"fleetform {words}")
        monkeypatch.setenv("COMP_CWORD", "4")
        main([])
        assert "train" in capsys.readouterr().out, words
