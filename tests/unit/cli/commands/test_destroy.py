"""What asks for everything is answered once, and for what was shown."""

from __future__ import annotations

import io
import sys

import pytest

import applied


class Thinking(io.StringIO):
    """A terminal where something happens before the answer is typed."""

    def __init__(self, answer, meanwhile):
        super().__init__(f"{answer}\n")
        self._meanwhile = meanwhile

    def isatty(self):
        return True

    def readline(self, *limits):
        self._meanwhile()
        return super().readline(*limits)


@pytest.mark.parametrize("happens", ["begins", "ends"])
def test_what_was_listed_goes_however_far_it_is(typed, root, monkeypatch, happens):
    """A run that waited and is now, or over, was agreed to by its name."""
    applied.enter(root)
    meanwhile = {
        "begins": lambda: applied.place_all(root),
        "ends": lambda: applied.run_all(root, exit_codes={}),
    }
    monkeypatch.setattr(sys, "stdin", Thinking("lab", meanwhile[happens]))
    code, out, err = typed("destroy", str(root))
    assert code == 0, err
    assert "Everything is removed" in out
    assert typed("plan", str(root), "--destroy")[1].endswith("Nothing is left to remove.\n")


def test_what_was_not_listed_stays(typed, root, monkeypatch):
    """Somebody applies more meanwhile: that was in no list, and nothing is removed."""
    applied.enter(root)
    tree = root / "tree.yaml"

    def meanwhile():
        tree.write_text(tree.read_text() + "---\ntype: task\nname: late\ncommands: [echo hi]\n")
        applied.enter(root)
        applied.place_all(root)

    monkeypatch.setattr(sys, "stdin", Thinking("lab", meanwhile))
    code, _out, err = typed("destroy", str(root))
    assert code == 5
    assert "plan again" in err
    assert "late" in typed("plan", str(root), "--destroy")[1]


def test_y_alone_does_not_destroy(typed, lab):
    """A flag that people type without thinking is not enough."""
    code, out, err = typed("destroy", "-y")
    assert (code, out) == (1, "")
    assert "--allow-destroy" in err


def test_there_may_be_nothing_to_destroy(typed, root):
    """What was never applied needs no question."""
    code, _out, err = typed("destroy", str(root))
    assert code == 0, err


@pytest.mark.parametrize(
    ("has_run", "said"),
    [(False, ""), (True, " Finished runs keep their results and do not run again.")],
)
def test_results_that_stay_are_named(typed, root, has_run, said):
    """The last line speaks of finished runs only where one was removed."""
    applied.enter(root)
    if has_run:
        applied.run_all(root, exit_codes={})
    code, out, err = typed("destroy", str(root), "-y", "--allow-destroy")
    assert code == 0, err
    assert out.endswith(f"Everything is removed; a later apply creates it again.{said}\n")


def test_what_is_gone_is_not_called_declared(typed, lab):
    """Of an environment that has nothing left it is said that it is empty, twice and truly."""
    code, out, err = typed("destroy", "-y", "--allow-destroy")
    assert code == 0, err
    assert "Everything is removed" in out
    for again in (("destroy", "-y", "--allow-destroy"), ("plan", "--destroy")):
        code, out, err = typed(*again)
        assert code == 0, err
        assert out.endswith("\n\nNothing is left to remove.\n")
        assert "Everything is to be removed" not in out
