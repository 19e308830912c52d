"""What all commands have in common that edit the configuration."""

from __future__ import annotations

import pytest


def contents(root):
    """Every file of the environment, by path."""
    return {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    "verb",
    [
        ("rerun", "bad"),
        ("rerun", "bad", "--commit"),
        ("stop", "next"),
        ("scale", "local", "2"),
        ("set", "train", "priority=5"),
        ("drain", "local", "--reason", "Fan 3 is loud"),
        ("undrain", "local"),
        ("import", "volume/other", "--fleet", "local", "--at", "/srv/other"),
    ],
    ids=" ".join,
)
def test_an_edit_that_cannot_be_confirmed_is_not_written(typed, lab, verb):
    """Without a terminal, `--apply` needs `-y`: the error names it, and every file is as it was."""
    if verb[0] == "undrain":
        assert typed("drain", "local", "--reason", "Fan 3 is loud")[0] == 0
    before = contents(lab)
    code, out, err = typed(*verb, "--apply")
    assert code == 1
    assert "cannot ask for confirmation: standard input is not a terminal" in err
    assert "nothing was written; look at the diff above, then pass -y to write and apply it" in err
    assert "\n+" in out or "\n-" in out
    assert contents(lab) == before


def test_what_is_declared_already_needs_no_answer_to_write(typed, lab):
    """Where the edit changes no file, nothing is asked before the plan."""
    assert typed("set", "train", "priority=5")[0] == 0
    before = contents(lab)
    _code, out, _err = typed("set", "train", "priority=5", "--apply")
    assert "the configuration already contains this change" in out
    assert contents(lab) == before


def test_a_takeover_that_cannot_be_confirmed_does_not_begin(typed, lab):
    """`serve` is not paused for an apply that would then be refused."""
    takeover = ("--takeover", "--for", "1h", "--reason", "GPU swap")
    code, _out, err = typed("apply", *takeover)
    assert code == 1
    assert "nothing was taken over; pass -y" in err
    assert "GPU swap" not in typed("status")[1]
