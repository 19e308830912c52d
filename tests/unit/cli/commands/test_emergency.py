from __future__ import annotations

from contextlib import closing

import pytest

import applied
from fleetform.app.ledger import open_for_writing
from fleetform.app.plan import make_plan
from fleetform.app.workspace import Workspace
from fleetform.cli.commands.emergency import place_targets, run_targets
from fleetform.cli.failure import Refused
from fleetform.model.plan import Permissions
from fleetform.plan.serialize import dump

FOR = ("--reason", "smoke")


def test_what_is_put_in_force_is_listed_until_it_is_lifted(typed, asked, lab):
    """By number, with who and why; afterwards only `--all` has it."""
    assert typed("emergency", "pause", *FOR)[0] == 0
    (row,) = asked("emergency", "list")
    assert (row["number"], row["kind"], row["state"]) == (1, "pause", "in force")
    assert row["reason"] == "smoke"
    assert abs(row["until_ms"] - row["since_ms"] - 4 * 3_600_000) < 60_000
    assert typed("emergency", "lift", "1")[0] == 0
    assert asked("emergency", "list") == []
    (row,) = asked("emergency", "list", "--all")
    assert row["state"] == "lifted"
    assert row["lifted_by"] == row["who"]


def test_a_reason_of_several_lines_is_one(typed, asked, lab):
    """It stands in sentences and tables, which a pasted message would break."""
    assert typed("emergency", "pause", "--reason", "disk\n\n full\t now\n")[0] == 0
    (row,) = asked("emergency", "list")
    assert row["reason"] == "disk full now"


@pytest.mark.parametrize(
    "arguments",
    [
        ("emergency", "list"),
        ("status",),
        ("events",),
        ("emergency", "lift", "all"),
    ],
)
def test_no_terminal_obeys_a_reason(typed, lab, monkeypatch, arguments):
    """A sequence in it would hide lines of a plan that somebody else reads."""
    monkeypatch.setenv("NO_COLOR", "1")
    code, out, err = typed("emergency", "pause", "--reason", "a\x1b[1A\x1b[2Kb\x9bc", "--for", "1m")
    assert code == 0
    for text in (out + err, "".join(typed(*arguments)[1:])):
        assert not {"\x1b", "\x9b"} & set(text)
        assert "a\\u001b[1A" in text


def test_it_is_shown_before_all_else_in_one_line(typed, lab):
    """In a plan for people and for pull requests, and in `ps`; several take no more lines than one."""
    typed("emergency", "pause", *FOR)
    _shown_everywhere(
        typed, "1 override in force: emergency pause by ", "`fleetform status` lists it"
    )
    typed("emergency", "stop", "next", *FOR)
    typed("emergency", "stop", "bad", *FOR)
    _shown_everywhere(
        typed,
        "3 overrides in force: 1 pause, 2 stop;",
        "`fleetform emergency list` lists them",
    )


def _shown_everywhere(typed, begins, ends):
    plan = typed("plan")[1].splitlines()
    (shown,) = [line for line in plan if "in force" in line]
    assert plan[2] == shown
    (markdown,) = [
        line for line in typed("plan", "--markdown")[1].splitlines() if "in force" in line
    ]
    (listed,) = [line for line in typed("ps")[2].splitlines() if "in force" in line]
    assert shown.startswith(f"! {begins}")
    assert shown.endswith(ends)
    assert begins in markdown
    assert listed.startswith(f"note: {begins}")


def test_a_stop_offers_the_edit_and_changes_no_file(typed, lab):
    """The diff is exact, and writing it is another command's."""
    before = (lab / "tree.yaml").read_bytes()
    code, out, err = typed("emergency", "stop", "next", *FOR)
    assert code == 0
    assert "+state: stopped" in out
    assert "`fleetform stop next --commit` makes it permanent" in err
    assert (lab / "tree.yaml").read_bytes() == before


def test_a_drain_offers_its_edit_too(typed, lab):
    """In the words of the verb that edits the tree."""
    _code, out, err = typed("emergency", "drain", "local/local-0", *FOR)
    assert "+drain:" in out
    assert "`fleetform drain local/local-0 --reason smoke --commit` makes it permanent" in err
    assert "no controller is running" in err


def test_a_broken_tree_stops_no_emergency(typed, asked, lab):
    """What holds must not depend on what the tree says."""
    (lab / "tree.yaml").write_text("type: [")
    code, _out, err = typed("emergency", "stop", "next", *FOR)
    assert code == 0
    assert "cannot be made now" in err
    assert [row["target"] for row in asked("emergency", "list")] == ["run/next"]


def test_a_freeze_refuses_what_was_planned_before(typed, lab, tmp_path):
    """With the code of a policy, and by name."""
    with (lab / "tree.yaml").open("a") as file:
        file.write("---\ntype: task\nname: more\ncommands: [echo hi]\n")
    assert typed("plan", "--out", str(tmp_path / "a.plan"))[0] in {0, 3, 4}
    typed("emergency", "freeze", *FOR)
    code, _out, err = typed("apply", str(tmp_path / "a.plan"), "-y")
    assert code == 7
    assert "emergency freeze by" in err
    assert "fleetform emergency lift 1" in err


def test_a_freeze_names_what_it_comes_too_late_for(typed, lab):
    """Whoever freezes for an audit must not believe that nothing changes from now on."""
    assert "was entered before" not in typed("emergency", "freeze", *FOR)[2]
    typed("emergency", "lift", "all")
    with (lab / "tree.yaml").open("a") as file:
        file.write("---\ntype: volume\nname: more\nfleet: local\npath: more\n")
    workspace = Workspace.open(str(lab))
    with closing(open_for_writing(workspace)) as ledger:
        plan = make_plan(workspace, workspace.load(), Permissions(), now_ms=applied.NOW_MS)
        ledger.accept(plan, dump(plan), who="ada@node1", now_ms=applied.NOW_MS)
    said = f"an apply of ada@node1 (plan {plan.digest[:12]}) was accepted before and continues"
    assert said in typed("emergency", "freeze", *FOR)[2]
    assert said in typed("emergency", "list")[2]
    typed("emergency", "lift", "all")
    assert "was entered before" not in typed("emergency", "list")[2]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("pause",), "Missing option '--reason'"),
        (("pause", "--reason", " "), "--reason is empty"),
        (("pause", *FOR, "--for", "0s"), "would end before it starts"),
        (("pause", *FOR, "--for", "31d"), "30 days at most"),
        (("pause", *FOR, "--for", "soon"), "soon"),
        (("pause", *FOR, "--until", "tomorrow"), "tomorrow"),
        (("pause", *FOR, "--until", "2020-01-01T00:00Z"), "would end before it starts"),
        (("pause", *FOR, "--for", "1h", "--until", "2090-01-01T00:00Z"), "exclude each other"),
        (("stop", "trian", *FOR), "there is no run `trian`"),
        (("stop", "fleet/local", *FOR), "only runs can be stopped"),
        (("stop", "run/", *FOR), "run/"),
        (("drain", "gpu", *FOR), "there is no fleet or host `gpu`"),
        (("lift", "7"), "no override with number 7 is in force"),
        (("lift", "seven"), "not the number of an override"),
    ],
)
def test_what_makes_no_sense_is_refused(typed, asked, lab, arguments, said):
    """Nothing is in force after a refusal."""
    code, _out, err = typed("emergency", *arguments)
    assert code == 1
    assert said in err
    assert asked("emergency", "list") == []


def test_a_near_name_is_offered(typed, lab):
    """Whoever pulls this handle is in a hurry."""
    assert "did you mean `train`?" in typed("emergency", "stop", "trian", *FOR)[2]


def test_targets_are_addresses(lab):
    """Bare names, sweeps, elements, patterns, and what is only in the tree yet."""
    workspace = Workspace.open(str(lab))
    with (lab / "tree.yaml").open("a") as file:
        file.write("---\ntype: task\nname: coming\ncommands: [echo hi]\n")
    typed = ("train", "run/train", "sweep", "sweep[lr=0.1]", "run/*", "coming")
    assert run_targets(workspace, typed) == (
        "run/train",
        "run/sweep",
        "run/sweep[lr=0.1]",
        "run/*",
        "run/coming",
    )
    places = ("local", "fleet/local", "local-0", "local/local-0", "host/*")
    assert place_targets(workspace, places) == ("fleet/local", "host/local-0", "host/*")


def test_before_the_first_apply_there_is_no_host(root):
    """And a run of the tree can be kept from starting all the same."""
    workspace = Workspace.open(str(root))
    assert run_targets(workspace, ["train"]) == ("run/train",)
    with pytest.raises(Refused, match="nothing has been applied"):
        place_targets(workspace, ["local"])


def test_snapshots_are_listed(typed, asked, lab):
    """What was put aside, and whether this machine has it."""
    text = (lab / "tree.yaml").read_text()
    (lab / "tree.yaml").write_text(
        text.replace("path: data\n", "path: data\ndeletion_policy: snapshot\n")
    )
    applied.enter(lab)
    assert asked("volume", "list", "--snapshots") == []
    documents = (lab / "tree.yaml").read_text().split("---\n")
    rest = [one for one in documents if "type: volume" not in one]
    (lab / "tree.yaml").write_text("---\n".join(rest))
    applied.enter(lab)
    (row,) = asked("volume", "list", "--snapshots")
    assert row["volume"] == "data"
    assert "/data.snapshot-data-" in row["place"]
    assert not row["there"]
    assert "not found here" in typed("volume", "list", "--snapshots")[1]
