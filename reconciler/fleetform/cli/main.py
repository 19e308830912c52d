"""
The entry point: a table of commands that are loaded when used, and the last word on errors.

Nothing heavy is imported here: shells ask for completion on each key press, and `version`
answers in the time that a person takes for "at once". `tests/house` holds the budget.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import io
import os
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

import click

from fleetform.cli.command import DirectoryOption, note_folders, write_examples
from fleetform.cli.exit import Exit
from fleetform.cli.failure import Failure, explain, report_bug


class Row(NamedTuple):
    """One command: what is typed, the module in `commands` that has it, and its line of help."""

    name: str
    module: str
    help: str
    section: str


ROWS = (
    Row("init", "init", "Create an environment with an example.", "Start"),
    Row("validate", "validate", "Check the documents of the configuration.", "Start"),
    Row("fmt", "fmt", "Format documents.", "Start"),
    Row("render", "render", "Print the resolved configuration.", "Start"),
    Row("plan", "plan", "Show what apply would change, value by value.", "Change"),
    Row("apply", "apply", "Apply the plan and follow the runs.", "Change"),
    Row("destroy", "destroy", "Remove every resource of the environment.", "Change"),
    Row(
        "serve",
        "serve",
        "Apply continuously: watch the configuration and drive the runs.",
        "Change",
    ),
    Row("drain", "drain", "Drain hosts: running jobs finish, no new ones start.", "Change"),
    Row("undrain", "undrain", "Undrain hosts: new jobs start on them again.", "Change"),
    Row(
        "scale",
        "scale",
        "Set the number of hosts of a fleet, or of replicas of a service.",
        "Change",
    ),
    Row(
        "submit", "submit", "Run a file with the files that it needs, and follow the run.", "Change"
    ),
    Row("shell", "shell", "Open a shell in a run of its own.", "Change"),
    Row("keep", "keep", "Move an experiment into the configuration.", "Change"),
    Row("stop", "stop", "Stop runs.", "Change"),
    Row("rerun", "rerun", "Run finished runs again.", "Change"),
    Row(
        "emergency",
        "emergency",
        "Override the configuration for a limited time.",
        "Change",
    ),
    Row("set", "set", "Change fields of a document.", "Change"),
    Row("import", "import_", "Adopt existing volumes and hosts.", "Change"),
    Row("status", "status", "Show the state of the environment on one screen.", "See"),
    Row("ps", "ps", "List the runs and their states.", "See"),
    Row("logs", "logs", "Print the output of runs.", "See"),
    Row("attach", "attach", "Follow a run: its output, and its ports on localhost.", "See"),
    Row("exec", "exec", "Run a command, or a shell, inside a running job.", "See"),
    Row("ssh", "ssh", "Open a shell on a host of an SSH fleet, or in a running job.", "See"),
    Row("why", "why", "Show why a run waits, or how it ended.", "See"),
    Row("events", "events", "List events of runs and of the environment.", "See"),
    Row("drift", "drift", "Show drift: what changed outside fleetform.", "See"),
    Row("history", "history", "List plans and applies.", "See"),
    Row("show", "show", "Show a plan from the history or from a file.", "See"),
    Row("diff", "diff", "Compare two commits, environments or runs.", "See"),
    Row("blame", "blame", "Show who last changed each field of a resource.", "See"),
    Row("fleet", "fleet", "List fleets and their hosts, or show one fleet.", "See"),
    Row("volume", "volume", "List volumes, or show one.", "See"),
    Row("offer", "offer", "List offers of clouds for a requirement, with prices.", "See"),
    Row("cost", "cost", "Show what hosts of clouds have cost, by fleet and run.", "See"),
    Row("convert", "convert", "Convert files of dstack and batch scripts of Slurm.", "Tools"),
    Row("explain", "explain", "Explain a type of document or a field.", "Tools"),
    Row("schema", "schema", "Print, write or check the JSON schemas.", "Tools"),
    Row("lsp", "lsp", "Run the language server for editors.", "Tools"),
    Row("agent", "agent", "List the agents, or show the hardware of this machine.", "Tools"),
    Row(
        "controller",
        "controller",
        "Show the controller, or stop the background controller.",
        "Tools",
    ),
    Row("doctor", "doctor", "Check the programs and credentials that clouds need.", "Tools"),
    Row("ssh-config", "ssh_config", "Print the OpenSSH configuration of running jobs.", "Tools"),
    Row("proxy", "proxy", "Serve SSH for a running job on standard input and output.", "Tools"),
    Row("lock", "lock", "Show which controller manages an environment, or take over.", "Tools"),
    Row("state", "state", "Back up, restore, verify, upgrade or rebuild the ledger.", "Tools"),
    Row("completion", "completion", "Print the completion script of a shell.", "Tools"),
    Row("version", "version", "Print the version.", "Tools"),
)

EXAMPLES = (
    ("fleetform init my-lab", "Create a folder with an environment that is ready to apply"),
    ("fleetform plan -C my-lab", "Show what would be created"),
    ("fleetform apply -C my-lab", "Create it, and follow the runs to their end"),
)


class Commands(click.Group):
    """The table as a click group: help prints it, only the command that is typed is loaded."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [row.name for row in ROWS]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        row = next((row for row in ROWS if row.name == cmd_name), None)
        if row is None:
            return None
        module = importlib.import_module(f"fleetform.cli.commands.{row.module}")
        command: click.Command = module.command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if not name.startswith("-") and all(row.name != name for row in ROWS):
            raise click.UsageError(f"there is no command `{name}`{_did_you_mean(name)}", ctx)
        return super().resolve_command(ctx, args)

    def shell_complete(
        self, ctx: click.Context, incomplete: str
    ) -> list[click.shell_completion.CompletionItem]:
        # click's own would import every command for its line of help.
        from click.shell_completion import CompletionItem

        return [
            CompletionItem(row.name, help=row.help)
            for row in ROWS
            if row.name.startswith(incomplete)
        ]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for section in dict.fromkeys(row.section for row in ROWS):
            with formatter.section(section):
                formatter.write_dl([(row.name, row.help) for row in ROWS if row.section == section])

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        write_examples(EXAMPLES, formatter)


@click.group(
    name="fleetform",
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.option(
    "-C",
    "--directory",
    cls=DirectoryOption,
    type=click.Path(exists=True, file_okay=False),
    metavar="PATH",
    expose_value=False,
    multiple=True,
    callback=note_folders,
    help="Folder of the environment; also allowed after the name of the command.",
)
@click.option("--version", is_flag=True, is_eager=True, hidden=True, expose_value=False,
              callback=lambda ctx, _option, wanted: _print_version(ctx) if wanted else None)  # fmt: skip
def fleetform() -> None:
    """
    GitOps for GPU fleets: a git repository of YAML declares which fleets, volumes and runs should
    exist. `plan` shows how the configuration differs from what exists, `apply` makes the changes.
    """


def main(arguments: Sequence[str] | None = None) -> int:
    """
    Run one command; returns the exit code.

    Never lets an exception through: what a person did gets words, what we did gets a file.
    """
    if arguments is None:
        _settle_process()
    try:
        code = _dispatch(arguments)
        # Output that is still buffered meets a closed pipe here and not at interpreter exit,
        # where Python would print a complaint of its own.
        sys.stdout.flush()
    except BrokenPipeError:
        _drop_output()
        return Exit.BROKEN_PIPE
    except (KeyboardInterrupt, click.Abort):
        sys.stderr.write("interrupted\n")
        return Exit.INTERRUPTED
    except Exception as error:  # noqa: BLE001 -- the shell's last loop: nothing may show a traceback
        _show_findings(error)
        return _say(explain(error) or report_bug(error))
    return code


def _settle_process() -> None:
    """Set what holds for a process that is all ours, and not for one that calls `main`."""
    _open_closed_streams()
    # Classes, documents and rows are made and kept: looking for garbage among them finds none,
    # and took a twentieth of `plan`, and half of reading ten thousand documents.
    gc.set_threshold(50_000)
    # At exit everything goes at once, and the last search would cost another tenth.
    atexit.register(gc.freeze)
    for stream in (sys.stdout, sys.stderr):
        # A terminal or a locale without a letter gets it by number, and not an error.
        if isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors="backslashreplace")
    # Pydantic would read the metadata of every installed distribution for plugins (10 ms), and
    # what is valid is not for whatever else is installed to change.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")


def _open_closed_streams() -> None:
    """
    Open standard streams that the parent closed (`>&-`) on /dev/null.

    Not for our own words alone: the next file that is opened would get the number, and a ledger
    would be written to by whatever prints.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            opened = os.open(os.devnull, os.O_RDWR)
            if opened != number:
                os.dup2(opened, number)
                os.close(opened)
            # As Python leaves the standard ones to those who start processes.
            os.set_inheritable(number, True)
            setattr(sys, name, os.fdopen(number, "w" if number else "r", closefd=False))


def _dispatch(arguments: Sequence[str] | None) -> int:
    # Not `fleetform.main`: click answers a closed pipe with exit code 1, an error here.
    if instruction := os.environ.get("_FLEETFORM_COMPLETE"):
        from click.shell_completion import shell_complete

        return shell_complete(fleetform, {}, "fleetform", "_FLEETFORM_COMPLETE", instruction)
    # Nothing typed is a question: what can be typed?
    typed = list(sys.argv[1:] if arguments is None else arguments) or ["--help"]
    try:
        with fleetform.make_context("fleetform", typed) as ctx:
            result: Any = fleetform.invoke(ctx)
    except click.exceptions.Exit as left:
        return left.exit_code
    return int(result or 0)


def _did_you_mean(name: str) -> str:
    import difflib

    near = difflib.get_close_matches(name, [row.name for row in ROWS], n=2, cutoff=0.6)
    return f"; did you mean {' or '.join(f'`{found}`' for found in near)}?" if near else ""


def _print_version(ctx: click.Context) -> None:
    from fleetform.cli.commands.version import version_line

    click.echo(version_line())
    ctx.exit()


def _say(failure: Failure) -> int:
    from fleetform.cli.screen import error_screen

    screen = error_screen()
    screen.labelled("error", failure.message)
    if failure.advice:
        screen.labelled("help", failure.advice)
    return int(failure.code)


def _show_findings(error: Exception) -> None:
    """Show the findings of an edit, with their places, before the reason why it is refused."""
    findings = getattr(error, "findings", ())
    if findings:
        from fleetform.cli.tree import print_findings

        print_findings(findings)


def _drop_output() -> None:
    # What is left in the buffer has no reader; without this Python complains when it exits.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
