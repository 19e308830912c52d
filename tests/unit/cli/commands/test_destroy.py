from __future__ import annotations


def test_y_alone_does_not_destroy(typed, lab):
    """A flag that people type without thinking is not enough."""
    code, out, err = typed("destroy", "-y")
    assert (code, out) == (1, "")
    assert "--allow-destroy" in err


def test_there_may_be_nothing_to_destroy(typed, root):
    """What was never applied needs no question."""
    code, _out, err = typed("destroy", str(root))
    assert code == 0, err


def test_what_is_gone_is_not_called_declared(typed, lab):
    """Of an environment that has nothing left it is said that it is empty, twice and truly."""
    code, out, err = typed("destroy", "-y", "--allow-destroy")
    assert code == 0, err
    assert out.endswith(
        "Everything is removed; a later apply makes it anew, and runs what had not finished.\n"
    )
    for again in (("destroy", "-y", "--allow-destroy"), ("plan", "--destroy")):
        code, out, err = typed(*again)
        assert code == 0, err
        assert out.endswith("\n\nNothing is left to remove.\n")
        assert "Everything is to be removed" not in out
