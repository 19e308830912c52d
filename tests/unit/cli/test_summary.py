from __future__ import annotations

import re
from contextlib import closing
from dataclasses import replace

import pytest

import applied
from fleetform.app.apply import ApplyResult
from fleetform.app.ledger import open_for_writing
from fleetform.app.plan import make_plan
from fleetform.app.workspace import Workspace
from fleetform.cli.summary import quoted, show_interrupted, show_summary
from fleetform.model.apply import StepOutcome
from fleetform.model.leadership import Holder
from fleetform.model.override import OverrideKind
from fleetform.model.plan import Permissions
from fleetform.model.run import RunState
from fleetform.plan.serialize import dump
from fleetform.views.controllers import controller_row


@pytest.fixture
def summary(lab, capsys):
    """Shows the summary of some runs of the lab; returns what was printed."""
    workspace = Workspace.open(str(lab))

    def show(*states, began_ms=0, left_blocked=0, finished="Applied.", **values):
        reader = workspace.reader()
        runs = tuple(each for each in reader.read_runs() if each.run.state in states)
        reader.close()
        result = ApplyResult(**{"state": "done", "exit_code": 0, "runs": runs, **values})
        show_summary(
            workspace,
            result,
            began_ms=began_ms,
            finished=finished,
            left_blocked=left_blocked,
        )
        return capsys.readouterr()

    return show


def test_success_is_counted(summary):
    """A table with the names of hosts, and one sentence."""
    out = summary(RunState.DONE).out
    assert "local-0" in out
    assert out.endswith("Done: 3 runs succeeded.\n")


def test_a_large_array_is_one_row_as_in_ps(summary, lab):
    """Its elements would fill the screen, and hide the runs beside it."""
    reader = Workspace.open(str(lab)).reader()
    one = reader.read_runs()[0]
    reader.close()
    elements = [
        replace(
            one,
            run=replace(
                one.run,
                name=f"arr[{number}]",
                state=RunState.SUBMITTED,
                finished_at_ms=None,
                template=replace(one.run.template, parent="arr", element=str(number)),
            ),
        )
        for number in range(1, 31)
    ]
    other = replace(one, run=replace(one.run, name="other", state=RunState.RUNNING))
    out = summary(runs=(*elements, other)).out
    assert "30 elements" in out
    assert "arr[" not in out.split("31 runs:")[0]
    assert re.search("(?m)^other +running", out)
    assert "31 runs: 30 submitted, 1 running" in out


def test_what_is_still_ending_is_not_told_as_over(summary, lab):
    """Who does not wait for runs hears which of them are on the way to their end."""
    reader = Workspace.open(str(lab)).reader()
    one = reader.read_runs()[0]
    reader.close()
    ending = replace(one, run=replace(one.run, state=RunState.FINISHING, finished_at_ms=None))
    out = summary(runs=(ending,)).out
    assert f"Applied; {one.run.name} is still finishing; `fleetform ps` shows the state." in out


def test_what_was_removed_is_not_to_be_rerun(summary, lab):
    """A run that was stopped can be run once more while it is in the tree, and no longer."""
    reader = Workspace.open(str(lab)).reader()
    one = reader.read_runs()[0]
    reader.close()
    stopped = replace(one, run=replace(one.run, state=RunState.STOPPED))
    assert (
        "1 run stopped before the end; `fleetform rerun RUN` runs one again."
        in summary(runs=(stopped,)).out
    )
    assert summary(runs=(replace(stopped, archived=True),)).out.endswith("\nApplied.\n")


def test_what_was_removed_has_not_failed(summary, lab):
    """However it came to its end: it was to. Of what nobody knows that is not so."""
    reader = Workspace.open(str(lab)).reader()
    (bad,) = (each for each in reader.read_runs() if each.run.state is RunState.FAILED)
    reader.close()
    assert "1 run failed" in summary(runs=(bad,)).out
    assert "failed;" not in summary(runs=(replace(bad, archived=True),)).out
    unknown = replace(bad, archived=True, run=replace(bad.run, state=RunState.UNKNOWN))
    assert (
        "1 run waits for an unreachable host; see `fleetform why bad`."
        in summary(runs=(unknown,)).out
    )


def test_a_run_that_was_to_stop_asks_for_nothing(summary, lab):
    """`state: stopped` is what its document says: there is nothing to rerun, and nothing failed."""
    reader = Workspace.open(str(lab)).reader()
    one = reader.read_runs()[0]
    reader.close()
    meant = replace(one.run.template, wanted="stopped")
    stopped = replace(one, run=replace(one.run, state=RunState.STOPPED, template=meant))
    assert summary(runs=(stopped,)).out.endswith("\nApplied.\n")


def test_only_an_apply_of_runs_points_to_them(summary, lab):
    """An apply of a fleet names no list in which there is nothing new."""
    assert summary(finished="").out == "\nApplied.\n"
    reader = Workspace.open(str(lab)).reader()
    one = reader.read_runs()[0]
    reader.close()
    waiting = replace(one, run=replace(one.run, state=RunState.SUBMITTED, finished_at_ms=None))
    assert summary(runs=(waiting,), finished="").out.endswith(
        "\nApplied; `fleetform ps` shows the runs.\n"
    )


def test_what_was_done_before_is_not_told_again(summary):
    """A change of priority follows a run that is over, and nothing ran."""
    assert summary(RunState.DONE, began_ms=1 << 50).out == "\nApplied; nothing had to run.\n"


def test_a_failed_run_comes_first_with_its_last_lines(summary):
    """What went wrong is at the top, what it said below, and the next command at the end."""
    out = summary(RunState.DONE, RunState.FAILED, exit_code=4).out
    assert out.splitlines()[2].startswith("bad ")
    assert "bad printed last:\n  one\n  two\n" in out
    assert out.endswith("1 run failed; see `fleetform logs bad`.\n")


def test_a_run_that_cannot_start_has_not_failed(summary, lab):
    """The last line says how each run ended."""
    reader = Workspace.open(str(lab)).reader()
    (failed,) = (one for one in reader.read_runs() if one.run.state is RunState.FAILED)
    reader.close()
    huge = replace(failed, run=replace(failed.run, name="huge", state=RunState.UNSCHEDULABLE))
    out = summary(runs=(huge,), exit_code=4).out
    assert out.endswith("1 run is unschedulable; see `fleetform why huge`.\n")
    out = summary(runs=(huge, failed, huge), exit_code=4).out
    assert "\n1 run failed, 2 unschedulable; see " in out


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"state": "handed-over"}, "still being applied; `fleetform history`"),
        ({"exit_code": 3, "left_blocked": 1}, "\nNothing was applied; 1 change is blocked.\n"),
        ({"exit_code": 3, "left_blocked": 2}, "\nNothing was applied; 2 changes are blocked.\n"),
        ({"exit_code": 3}, "except for what is blocked: the plan says why"),
        ({"failed_steps": ("fleet/x: no",), "exit_code": 1}, "run the command again"),
        ({}, "Applied."),
    ],
)
def test_every_end_has_its_sentence(summary, values, sentence):
    """Without runs there is still an answer to what happened."""
    assert sentence in summary(**values).out


def test_failed_steps_go_to_standard_error(summary):
    """A pipe of the summary does not swallow errors."""
    assert summary(failed_steps=("fleet/x: no disk",)).err == "error: fleet/x: no disk\n"


def test_an_element_is_quoted_for_the_shell():
    """Brackets are a pattern there, and what is printed is copied."""
    assert (quoted("sweep[lr=0.1]"), quoted("train")) == ("'sweep[lr=0.1]'", "train")


def test_an_interrupted_apply_names_what_is_to_end_and_may_work_on(lab, capsys):
    """Nobody brings it about once the apply has gone."""
    workspace = Workspace.open(str(lab))
    show_interrupted(workspace, None)
    assert "asked to stop" not in capsys.readouterr().err
    applied.write_tree(lab, applied.FLEET, "type: task\nname: more\ncommands: [sleep 60]\n")
    applied.enter(lab)
    applied.place_all(lab)
    with closing(open_for_writing(workspace)) as ledger:
        put = ledger.put_overrides(
            OverrideKind.STOP, ["run/more"], reason="smoke", who="ada",
            now_ms=applied.NOW_MS, until_ms=applied.NOW_MS + 60_000,
        )  # fmt: skip
    assert put.ending == ("more",)
    show_interrupted(workspace, None)
    assert "more is asked to stop and may continue" in capsys.readouterr().err


def test_an_interrupted_apply_names_what_the_plan_still_changes(lab, capsys):
    """An accepted plan is not withdrawn, and somebody carries out the rest of it."""
    applied.write_tree(lab, applied.FLEET, "type: task\nname: more\ncommands: [sleep 60]\n")
    workspace = Workspace.open(str(lab))
    plan = make_plan(workspace, workspace.load(), Permissions(), now_ms=applied.NOW_MS)
    with closing(open_for_writing(workspace)) as ledger:
        accepted = ledger.accept(plan, dump(plan), who="ada@node1", now_ms=applied.NOW_MS)
        show_interrupted(workspace, None)
        told = capsys.readouterr().err
        assert (
            "run/more, run/next and 4 more are not changed yet: the next `fleetform apply`" in told
        )
        outcomes = [StepOutcome(step.key) for step in plan.steps]
        ledger.finish_steps(accepted.apply_uid, plan.steps, outcomes, now_ms=applied.NOW_MS)
        show_interrupted(workspace, None)
        assert "not changed yet" not in capsys.readouterr().err


def test_a_manager_that_has_not_said_yet_who_it_is_has_no_name(lab, capsys):
    """Its lock is taken a moment before its name is written."""
    show_interrupted(Workspace.open(str(lab)), controller_row(Holder(0, "", "", 0, "")))
    assert "help: another command drives the runs" in capsys.readouterr().err
