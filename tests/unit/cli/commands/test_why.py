from __future__ import annotations

import applied


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


def test_a_host_is_explained_by_its_fleet(typed, lab):
    """A host is no run, and the help names the command that shows it."""
    code, _out, err = typed("why", "local-0")
    assert code == 1
    assert err.startswith(
        "error: `local-0` is a host of fleet local\nhelp: `fleetform fleet show local`"
    )


ARRAY = "---\ntype: task\nname: arr\narray: 1-9\ncommands: [echo hi]\nresources: {cpu: 0.1}\n"
WAITS = "---\ntype: task\nname: big\narray: 1-500\ncommands: [echo hi]\nresources: {cpu: 400}\n"


def test_elements_with_the_same_reasons_are_one_paragraph(typed, asked, lab):
    """Counts first, then each kind of end or wait; JSON has every element."""
    tree = lab / "tree.yaml"
    tree.write_text(tree.read_text() + ARRAY + WAITS)
    applied.enter(lab)
    applied.run_all(lab, exit_codes={"arr[3]": 9, "arr[5]": 3, "arr[6]": 3})
    code, out, _err = typed("why", "arr")
    assert code == 0
    assert out.startswith("arr: 9 runs: 3 failed, 6 done\n")
    assert "\nelements [1-2,4,7-9] are done.\n" in out
    assert "\narr[3] is failed: exited with code 9" in out
    assert "\nelements [5-6] are failed: exited with code 3.\n" in out
    assert "`fleetform logs 'arr[5-6]'`" in out
    assert [one["name"] for one in asked("why", "arr[5-6]")] == ["arr[5]", "arr[6]"]
    _code, out, _err = typed("why", "big")
    assert out.count("elements [1-500] are submitted, for ") == 1
    assert len(out.splitlines()) < 10
