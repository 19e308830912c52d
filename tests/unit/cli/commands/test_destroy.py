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
