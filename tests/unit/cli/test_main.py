from __future__ import annotations

import os
import subprocess
import sys

import pytest

import applied
from fleetform.cli.exit import Exit
from fleetform.cli.main import ROWS, main


def test_help_lists_every_command(capsys):
    """The table is the help: a command cannot be left out of one of them."""
    assert main(["--help"]) == Exit.OK
    printed = capsys.readouterr().out
    assert all(row.name in printed and row.help in printed for row in ROWS)


def test_an_unknown_command_is_answered_with_the_near_one(capsys):
    """A slip of the finger costs one look."""
    assert main(["aply"]) == Exit.ERROR
    printed = capsys.readouterr().err
    assert printed.startswith("error: there is no command `aply`; did you mean `apply`?\n")


@pytest.mark.parametrize("arguments", [["plan", "--nonsense"], ["logs"], ["version", "extra"]])
def test_a_wrong_command_line_is_an_error_and_not_changes(arguments, capsys):
    """Exit code 2 belongs to `plan --detailed-exitcode` alone."""
    assert main(arguments) == Exit.ERROR
    printed = capsys.readouterr().err
    assert printed.startswith("error: ")
    assert "see `fleetform" in printed.partition("\nhelp: ")[2]


def test_outside_an_environment_the_advice_is_to_make_one(capsys, monkeypatch, tmp_path):
    """The first thing that many people type is answered with the next thing to type."""
    monkeypatch.chdir(tmp_path)
    assert main(["plan"]) == Exit.ERROR
    assert "fleetform init" in capsys.readouterr().err


def test_a_reader_that_leaves_is_no_error_of_ours():
    """`fleetform --help | head -1` prints no complaint."""
    read, write = os.pipe()
    os.close(read)
    finished = subprocess.run(
        [sys.executable, "-c", "import sys; from fleetform.cli.main import main; sys.exit(main())",
         "--help"],
        stdout=write, stderr=subprocess.PIPE, text=True, check=False,
    )  # fmt: skip
    os.close(write)
    assert finished.stderr == ""
    assert finished.returncode == Exit.BROKEN_PIPE


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&- <&-"])
def test_a_stream_that_is_closed_leads_to_nowhere(closed, tmp_path):
    """A job of cron may have none: exit codes stay, and no file takes the stream's number."""
    program = "import sys; from fleetform.cli.main import main; sys.exit(main())"
    for arguments, code in (("version", 0), ("explain", 0), ("nosuch", 1), ("init lab", 0)):
        finished = subprocess.run(
            ["sh", "-c", f'exec "$0" -c "$1" {arguments} {closed}', sys.executable, program],
            cwd=tmp_path, capture_output=True, text=True, check=False, timeout=180,
        )  # fmt: skip
        assert finished.returncode == code, finished.stderr
        assert "Traceback" not in finished.stderr
    written = [file.read_text() for file in (tmp_path / "lab").rglob("*.yaml")]
    assert written
    assert not [text for text in written if "error:" in text]


@pytest.mark.parametrize("encoding", ["ascii", "utf-8"])
def test_a_letter_that_a_stream_lacks_is_shown_by_its_number(encoding, tmp_path):
    """What people write in their documents breaks no command, wherever its output goes."""
    applied.write_tree(tmp_path, "type: fleet\nname: local\nlocal: {cpu: 1}\nnodes: 1\n"
                       "description: Müllers\n")  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-c", "import sys; from fleetform.cli.main import main; sys.exit(main())",
         "plan", str(tmp_path)],
        env={**os.environ, "PYTHONIOENCODING": encoding, "FLEETFORM_STATE_HOME": str(tmp_path / "s")},
        capture_output=True,
        timeout=180,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert ("Müllers" if encoding == "utf-8" else "M\\xfcllers").encode(encoding) in done.stdout
