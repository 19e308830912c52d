"""Names: whatever is kept by one follows it, and what is let go is known and nobody's."""

from __future__ import annotations

import pytest

from contract.ledgers import (
    Desk,
    carry_out,
    enter,
    fleet_step,
    move_step,
    plan_of,
    step,
    submit_step,
    written,
)
from fleetform.model.apply import StepOutcome
from fleetform.model.override import OverrideKind
from fleetform.model.plan import Step
from fleetform.model.ports import Ledger
from fleetform.spec.desired import ResourceKey


def test_a_renamed_fleet_keeps_its_hosts(ledger: Ledger) -> None:
    """Hosts are numbered in their fleet and named by it; who they are does not change."""
    desk = Desk.of(ledger, nodes=2)
    carry_out(ledger, [move_step("fleet", "local", "main")])
    instances = ledger.read_live().instances
    assert [(one.fleet, one.name) for one in instances] == [("main", "main-0"), ("main", "main-1")]
    assert [one.uid for one in instances] == list(desk.instances)
    said = [str(one.resource) for one in ledger.read_events() if one.kind == "resource.moved"]
    assert said == ["fleet/local", "fleet/main"]


def test_what_mentions_it_follows(ledger: Ledger) -> None:
    """A run that waits, and one that runs, are for the fleet by the name that it has."""
    desk = Desk.of(ledger)
    desk.submit(submit_step("a", fleets=["local"]), submit_step("b", fleets=["local"]))
    carry_out(ledger, [move_step("fleet", "local", "main")])
    assert {run.template.fleets for run in ledger.read_book().runs.values()} == {("main",)}
    rows = ledger.read_live().resources
    said = written({"type": "task", "commands": ["true"], "fleets": ["main"]})
    assert rows[ResourceKey("run", "a")].digest == said["digest"]


def test_a_renamed_run_keeps_its_history(ledger: Ledger) -> None:
    """All runs of a name go with it, the earlier ones too."""
    carry_out(ledger, [submit_step("a")])
    carry_out(ledger, [submit_step("a", commands=["again"])])
    before = {history.run.uid for history in ledger.read_runs(["a"], earlier=True)}
    carry_out(ledger, [move_step("run", "a", "b")])
    assert {history.run.uid for history in ledger.read_runs(["b"], earlier=True)} == before
    assert ledger.read_runs(["a"], earlier=True) == ()


def test_elements_move_with_their_sweep(ledger: Ledger) -> None:
    """Who waits for the sweep as a whole waits for it by its new name."""
    carry_out(
        ledger,
        [
            submit_step("s[1]", parent="s", element="1"),
            submit_step("after", depends_on={"runs": [{"run": "s"}]}),
        ],
    )
    carry_out(ledger, [move_step("run", "s[1]", "g[1]", parent="g", element="1", sweep="s")])
    runs = {run.name: run for run in ledger.read_book().runs.values()}
    assert runs["g[1]"].template.parent == "g"
    assert [one.run for one in runs["after"].template.depends_on] == ["g"]


def test_an_override_follows(ledger: Ledger) -> None:
    """What people have put above the tree holds, whatever a run or a host is called."""
    desk = Desk.of(ledger)
    desk.submit(submit_step("aa"))
    for kind, target in ((OverrideKind.STOP, "run/aa"), (OverrideKind.DRAIN, "host/local-0")):
        ledger.put_overrides(
            kind, [target], reason="smoke", who="ada", now_ms=desk.now_ms, until_ms=None
        )
    carry_out(ledger, [move_step("run", "aa", "bb"), move_step("fleet", "local", "main")])
    assert [one.target for one in ledger.read_live().overrides] == ["run/bb", "host/main-0"]


def test_an_override_of_a_whole_sweep_follows(ledger: Ledger) -> None:
    """It names none of the elements, and stops each of them under their new names as well."""
    carry_out(ledger, [submit_step(f"{n}[1]", parent=n, element="1") for n in ("aa", "bb")])
    ledger.put_overrides(
        OverrideKind.STOP, ["run/aa"], reason="smoke", who="ada", now_ms=1, until_ms=None
    )
    carry_out(
        ledger,
        [
            move_step("run", "aa[1]", "bb[1]", parent="bb", element="1", sweep="aa"),
            move_step("run", "bb[1]", "aa[1]", parent="aa", element="1", sweep="bb"),
        ],
    )
    assert [one.target for one in ledger.read_live().overrides] == ["run/bb"]


def test_a_plan_that_renames_keeps_others_off(ledger: Ledger) -> None:
    """Until it is over, nobody else changes what is renamed, by neither name."""
    carry_out(ledger, [submit_step("a")])
    enter(ledger, plan_of(ledger, [move_step("run", "a", "b")]))
    for name in ("a", "b"):
        with pytest.raises(Exception, match=f"run/{name} is being changed"):
            enter(ledger, plan_of(ledger, [step("run.stop", name)]))


def test_a_forgotten_fleet_leaves_its_hosts(ledger: Ledger) -> None:
    """No fleet has them, nobody places anything there, and the ledger has heard of them."""
    desk = Desk.of(ledger, nodes=2)
    carry_out(ledger, [step("fleet.forget", "local")])
    live = ledger.read_live()
    assert live.instances == ()
    assert live.resources == {}
    assert live.released_hosts == set(desk.instances)


def test_let_go_hosts_are_taken_in_again(ledger: Ledger) -> None:
    """They are who they were, and get the places that the fleet has; what is missing is made."""
    desk = Desk.of(ledger, nodes=2)
    carry_out(ledger, [step("fleet.forget", "local")])
    adopt = fleet_step("other", 3)
    key = ResourceKey("fleet", "other")
    taken = Step(f"fleet.adopt:{key}", "fleet.adopt", key, (), adopt.arguments)
    carry_out(ledger, [taken])
    live = ledger.read_live()
    assert [one.name for one in live.instances] == ["other-0", "other-1", "other-2"]
    assert {one.uid for one in live.instances} > set(desk.instances)
    assert live.released_hosts == frozenset()


def test_nothing_is_adopted_where_nothing_was_let_go(ledger: Ledger) -> None:
    """A fleet that cannot be adopted leaves no row behind that would have to be removed."""
    key = ResourceKey("fleet", "other")
    taken = Step(f"fleet.adopt:{key}", "fleet.adopt", key, (), fleet_step("other").arguments)
    accepted = enter(ledger, plan_of(ledger, [taken]))
    ledger.begin_steps(accepted.apply_uid, [taken], now_ms=1)
    outcome = StepOutcome(taken.key, "there is none")
    ledger.finish_steps(accepted.apply_uid, [taken], [outcome], now_ms=1)
    assert ledger.read_live().resources == {}


def test_let_go_hosts_are_taken_in_over_a_fleet_that_was_begun(ledger: Ledger) -> None:
    """Rows that were written for others of their names, and that no host answered for, give way."""
    desk = Desk.of(ledger, nodes=2)
    carry_out(ledger, [step("fleet.forget", "local")])
    made = fleet_step("local", 3)
    accepted = enter(ledger, plan_of(ledger, [made]))
    ledger.begin_steps(accepted.apply_uid, [made], now_ms=1)
    outcome = StepOutcome(made.key, "local-0 exists on this machine as another")
    ledger.finish_steps(accepted.apply_uid, [made], [outcome], now_ms=1)
    ledger.finish_apply(accepted.apply_uid, state="failed", summary="", now_ms=1)
    assert ledger.read_live().released_host_names == {"local-0", "local-1"}
    key = ResourceKey("fleet", "local")
    carry_out(ledger, [Step(f"fleet.adopt:{key}", "fleet.adopt", key, (), made.arguments)])
    live = ledger.read_live()
    assert [one.name for one in live.instances] == ["local-0", "local-1", "local-2"]
    assert [one.uid for one in live.instances[:2]] == list(desk.instances)
    assert live.released_hosts == frozenset()


def test_a_forgotten_run_is_new_when_it_comes_back(ledger: Ledger) -> None:
    """Its tombstone is gone; what it did stays in the history."""
    carry_out(ledger, [submit_step("a")])
    carry_out(ledger, [step("run.forget", "a")])
    assert ledger.read_live().resources == {}
    assert len(ledger.read_runs(["a"], earlier=True)) == 1
