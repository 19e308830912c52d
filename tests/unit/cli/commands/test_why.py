from __future__ import annotations


def test_a_waiting_run_gives_its_reasons_with_figures(typed, asked, lab):
    """What is asked for and what there is stand in one sentence."""
    why = asked("why", "next")
    assert why["reasons"]
    _code, out, _err = typed("why", "next")
    assert "400" in out


def test_a_run_that_ended_says_how(typed, lab):
    """The exit code is in the sentence."""
    _code, out, _err = typed("why", "bad")
    assert out.startswith("bad is failed")
    assert "exited with code 3" in out


def test_an_unknown_name_is_answered_with_the_near_ones(typed, lab):
    """A typing error costs one look."""
    code, _out, err = typed("why", "trian")
    assert code == 1
    assert err == "error: there is no run `trian`\nhelp: did you mean `train`?\n"


def test_a_sweep_is_answered_with_its_elements(typed, lab):
    """What has elements has as many answers: one must be named."""
    code, _out, err = typed("why", "sweep")
    assert code == 1
    assert "`sweep[lr=0.1]`, `sweep[lr=0.2]`" in err
