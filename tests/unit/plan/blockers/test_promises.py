"""What no flag gets past, whatever is declared and whatever is live."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fleetform.checker import check
from fleetform.model.live import Live
from fleetform.model.override import OverrideKind
from fleetform.model.plan import Permissions, Scope
from fleetform.model.run import FINAL, RunState
from fleetform.plan.planner import plan as make_plan
from fleetform.spec.desired import Desired
from unit.plan.blockers.guards import NARROW, OPEN, SHUT, override
from unit.plan.test_promises import situations
from unit.plan.trees import NOW_MS, carry_out

OVERRIDES = st.lists(
    st.builds(
        override,
        st.sampled_from([one for one in OverrideKind if one is not OverrideKind.TAKEOVER]),
        st.sampled_from(["run/*", "run/sweep", "run/a*"]),
        st.sampled_from([None, NOW_MS, NOW_MS + 1]),
    ),
    max_size=2,
)


@st.composite
def guarded(draw: st.DrawFn) -> tuple[Desired, Live, Permissions, Scope]:
    """A situation with everything that stands above it, and with each flag that there is."""
    desired, live, permissions = draw(situations())
    windows = draw(st.lists(st.sampled_from([OPEN, NARROW, SHUT]), max_size=2, unique=True))
    if live.rules is not None:
        live = replace(live, rules=replace(live.rules, freeze=tuple(windows)))
    removed = [key for key in live.resources if key not in desired.resources]
    let_go = draw(st.lists(st.sampled_from(removed), max_size=2, unique=True)) if removed else []
    known = sorted({f"{key.kind}/{key.name[0]}*" for key in (*live.resources, *desired.resources)})
    scope = Scope(
        targets=tuple(draw(st.lists(st.sampled_from(known), max_size=2))) if known else (),
        excludes=tuple(draw(st.lists(st.sampled_from(known), max_size=1))) if known else (),
        replaces=tuple(draw(st.lists(st.sampled_from(known), max_size=2))) if known else (),
    )
    return (
        replace(desired, removed=tuple(let_go)),
        replace(live, overrides=tuple(draw(OVERRIDES))),
        permissions,
        scope if not permissions.destroy else Scope(),
    )


@settings(max_examples=150, suppress_health_check=list(HealthCheck), deadline=None)
@given(guarded())
def test_no_flag_gets_past_the_guards(case: tuple[Desired, Live, Permissions, Scope]) -> None:
    """
    Nothing protected is lost or ended, nothing is done under a freeze or in a window.

    And a second reader agrees, whatever flags, targets, replacements and `removed:` were given.
    """
    desired, live, permissions, scope = case
    plan = make_plan(desired, live, permissions=permissions, scope=scope, now_ms=NOW_MS)
    assert check(plan, desired, live, permissions, scope) == ()
    ended = {step.resource for step in plan.steps if step.verb == "run.stop"}
    after, started = carry_out(plan, live)
    for key, old in live.resources.items():
        if old.protected and not old.archived:
            assert not after.resources[key].archived
            assert after.resources[key].uid == old.uid
            assert old.run is None or old.run.state in FINAL or key not in ended or _waits(old)
            assert key.kind != "run" or key.name not in started
    if any(one.kind is OverrideKind.FREEZE for one in plan.overrides):
        assert plan.is_empty


def _waits(old: object) -> bool:
    run = getattr(old, "run", None)
    return run is not None and run.state in {RunState.PENDING, RunState.SUBMITTED}
