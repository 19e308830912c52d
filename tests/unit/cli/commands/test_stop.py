from __future__ import annotations

import pytest

import applied


def test_what_waits_is_to_stop_and_what_is_over_is_not(typed, lab):
    """The document of the one says so, that of the other stays, and both are told."""
    code, out, err = typed("stop", "next", "train")
    assert code == 0
    assert "+state: stopped" in out
    assert "train is over already: done" in err
    text = (lab / "tree.yaml").read_text()
    assert text.count("state: stopped") == 1
    assert "resources: {cpu: 400}\nstate: stopped\n" in text


ARRAY = "---\ntype: task\nname: arr\narray: 1-9\ncommands: [echo hi]\nresources: {cpu: 400}\n"


@pytest.fixture
def arr(lab):
    """An array of nine elements that wait; returns the file of the configuration."""
    tree = lab / "tree.yaml"
    tree.write_text(tree.read_text() + ARRAY)
    applied.enter(lab)
    return tree


def test_single_elements_are_to_stop(typed, asked, arr):
    """The document says so by element, and a plan changes these elements only."""
    assert typed("stop", "arr[3]", "arr[6-7]")[0] == 0
    assert 'state:\n  "3": stopped\n  6-7: stopped\n' in arr.read_text()
    changes = asked("plan")["resource_changes"]
    changed = [one["address"] for one in changes if one["change"]["actions"] != ["no-op"]]
    assert changed == ["run/arr[3]", "run/arr[6]", "run/arr[7]"]


def test_an_element_that_is_over_or_unknown_is_answered(typed, lab):
    """As a whole run is: it is over already, or there is none."""
    before = (lab / "tree.yaml").read_bytes()
    assert "sweep[lr=0.1] is over already: done" in typed("stop", "sweep[lr=0.1]")[2]
    code, _out, err = typed("stop", "sweep[lr=0.7]")
    assert (code, err) == (
        1,
        "error: `sweep` has no element `lr=0.7`\nhelp: its elements are [lr=0.1|0.2]\n",
    )
    assert "it is one run, without elements" in typed("stop", "next[3]")[2]
    assert (lab / "tree.yaml").read_bytes() == before


def test_a_pattern_means_documents_and_elements(typed, arr):
    """Whole documents where all of their elements are meant, else as few entries as possible."""
    assert typed("stop", "*x*", "arr[*]")[0] == 0
    assert arr.read_text().count("state: stopped") == 2
    assert "matches no run" in typed("stop", "nothing-*")[2]


def test_a_rerun_takes_back_the_stop_of_an_element(typed, lab):
    """Its own entry goes; out of an entry of several elements it is an exception."""
    tree = lab / "tree.yaml"
    text = tree.read_text() + ARRAY.replace("400", "0.1")
    tree.write_text(text)
    applied.enter(lab)
    applied.run_all(lab, exit_codes={})
    tree.write_text(text + "state: {3: stopped, 6-7: stopped}\n")
    applied.enter(lab)
    assert typed("rerun", "arr[3]")[0] == 0
    assert "state: {6-7: stopped}\n" in tree.read_text()
    assert typed("rerun", "arr[6]")[0] == 0
    assert 'state: {6-7: stopped, "6": running}\n' in tree.read_text()
    tree.write_text(text + "state: stopped\n")
    code, _out, err = typed("rerun", "arr[5]")
    assert code == 1
    assert "`arr` is `state: stopped` as a whole" in err


def test_several_elements_have_their_numbers_in_one_edit(typed, lab):
    """What the first of them wrote is still there after the second."""
    assert typed("rerun", "sweep[lr=0.1]", "sweep[lr=0.2]")[0] == 0
    assert "rerun:\n  lr=0.1: 1\n  lr=0.2: 1\n" in (lab / "tree.yaml").read_text()


def test_a_submitted_run_is_stopped_at_once(typed, lab, monkeypatch):
    """Its document is in no review, so there is nothing to wait for; beside a reviewed one there is."""
    (lab / "scratch").mkdir()
    (lab / "scratch" / "try.yaml").write_text(
        ARRAY.removeprefix("---\n").replace("name: arr", "name: try")
    )
    applied.enter(lab)
    taken = []

    def take(_workspace, scope, **options):
        taken.append((scope.targets, options["yes"], options["ends_work"]))
        return 0

    monkeypatch.setattr("fleetform.cli.apply_flow.apply_scoped", take)
    assert typed("stop", "try[3]")[0] == 0
    assert taken == [(("run/try[3]",), True, True)]
    assert typed("stop", "try", "next")[0] == 0
    assert len(taken) == 1


def test_one_unknown_name_and_nothing_is_written(typed, lab):
    """Names are found before any of them is edited."""
    before = (lab / "tree.yaml").read_bytes()
    code, _out, err = typed("stop", "next", "nobody")
    assert code == 1
    assert "no run `nobody`" in err
    assert (lab / "tree.yaml").read_bytes() == before


def test_a_run_whose_document_is_gone_says_so(typed, lab):
    """What only the ledger knows is ended by `apply`, or at once."""
    tree = lab / "tree.yaml"
    text = tree.read_text()
    tree.write_text(
        text.replace(
            text[
                text.index("---\ntype: task\nname: next") : text.index(
                    "---\ntype: task\nname: sweep"
                )
            ],
            "",
        )
    )
    code, _out, err = typed("stop", "next")
    assert code == 1
    assert "the document of `next` was removed from the configuration" in err
    assert "fleetform emergency stop next" in err


def test_nothing_to_stop_applies_nothing(typed, lab):
    """`--apply` without a target would mean everything; it means nothing."""
    (lab / "tree.yaml").write_text(
        (lab / "tree.yaml").read_text() + "---\ntype: task\nname: other\ncommands: [echo]\n"
    )
    code, out, _err = typed("stop", "train", "--apply", "-y")
    assert code == 0
    assert "other" not in out


def test_a_stop_that_is_applied_needs_no_other_permission(typed, lab, monkeypatch):
    """Who names the run to end has allowed it to end; nothing else is planned."""
    asked = {}

    def take(_workspace, scope, **options):
        asked.update(options, targets=scope.targets)
        return 0

    monkeypatch.setattr("fleetform.cli.apply_flow.apply_scoped", take)
    assert typed("stop", "next", "--apply", "-y")[0] == 0
    assert asked["targets"] == ("run/next",)
    assert asked["ends_work"]
    assert asked["yes"]


def test_an_address_with_an_open_bracket_is_answered_with_a_whole_one(typed, arr):
    """The error says what is wrong, and the help what to type, once."""
    code, _out, err = typed("stop", "arr[3")
    assert code == 1
    assert err == (
        "error: `arr[3` opens a bracket and does not close it around an element\n"
        "help: write for example `arr[3]` or `arr[lr=0.1]`\n"
    )
