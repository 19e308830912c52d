"""Fleets whose hosts follow demand: rows of new hosts, marks of idle ones, and what no controller may do."""

from __future__ import annotations

import pytest

from contract.ledgers import Desk, carry_out, enter, fleet_step, plan_of, submit_step
from fleetform.model.apply import StepOutcome
from fleetform.model.instance import InstanceState
from fleetform.model.ports import Ledger
from fleetform.model.rollout import Exchange, Move, Template
from fleetform.model.scaling import IdleHosts, ScaleRequest
from fleetform.providers.contract.hosts import BATCH_MAX, CreatedHost

GPU = {
    "uuid": "offered-0",
    "name": "A10G",
    "memory_bytes": 24 << 30,
    "index": 0,
    "vendor": "nvidia",
}
HOST = {
    "provider": "aws",
    "endpoint": {"region": "us-east-1", "instance_type": "g5.xlarge", "price_micros": 1_006_000},
    "capacity": {"cpu": 4000, "memory": 16 << 30, "gpus": [GPU]},
}


def scaled_step(least: int, target: int, most: int, verb: str = "fleet.make", **document: object):
    made = fleet_step("gpus", target, verb, **document)
    made.arguments["document"]["nodes"] = {"min": least, "target": target, "max": most}
    places = [{**HOST, **place} for place in made.arguments["instances"]]
    limits = {"min": least, "max": most, "idle_seconds": 300, "host": HOST}
    made.arguments.update(instances=places, template="one", scaling=limits)
    return made


def opened(ledger: Ledger, least: int = 0, target: int = 0, most: int = 3) -> Desk:
    carry_out(ledger, [scaled_step(least, target, most)])
    return Desk(ledger, ledger.take_fence(who="test", now_ms=1))


def commit(desk: Desk, hosts: int = 0, *, runs: int = 1, **idle: object) -> None:
    requests = [ScaleRequest("gpus", hosts, runs)] if hosts else []
    desk.ledger.commit_scaling(requests, IdleHosts(**idle), fence=desk.fence, now_ms=desk.now_ms)


def there(ledger: Ledger):
    return ledger.read_book().instances


def names(ledger: Ledger) -> list[str]:
    return [one.name for one in there(ledger)]


def messages(ledger: Ledger) -> list[str]:
    return [one.message for one in ledger.read_events()]


def test_new_hosts_are_one_batch_within_the_limit(ledger: Ledger) -> None:
    """A request for more than the fleet may have brings in what it may, in one stack, and is in the events."""
    desk = opened(ledger)
    assert names(ledger) == []
    commit(desk, 5, runs=7)
    assert names(ledger) == ["gpus-0", "gpus-1", "gpus-2"]
    assert len({one.endpoint["stack"] for one in there(ledger)}) == 1
    assert {one.state for one in there(ledger)} == {InstanceState.PROVISIONING}
    assert "3 hosts are being created for 7 waiting runs" in messages(ledger)
    first = there(ledger)[0].uid
    ledger.note_created(first, CreatedHost("i-1", "192.0.2.1"), fence=desk.fence, now_ms=2)
    uncreated = ledger.read_overview().uncreated
    assert [(one.name, one.state) for one in uncreated] == [
        ("gpus-1", "provisioning"),
        ("gpus-2", "provisioning"),
    ]
    commit(desk, 1)
    assert len(there(ledger)) == 3


def test_a_single_host_is_drained(ledger: Ledger) -> None:
    """One that demand has brought in, and one that demand brings in later, get no jobs if the fleet drains them by name."""
    desk = opened(ledger)
    commit(desk, 1)
    step = scaled_step(0, 0, 3, "fleet.update")
    step.arguments["scaling"]["drained"] = {"gpus-0": "a fan is loud", "gpus-2": "a loose cable"}
    carry_out(ledger, [step])
    commit(desk, 2)
    drained = {one.name: one.drained for one in there(ledger)}
    assert drained == {"gpus-0": "a fan is loud", "gpus-1": "", "gpus-2": "a loose cable"}


def test_an_instance_that_still_fits_gets_the_new_template(ledger: Ledger) -> None:
    """The rollout replaces the other one only."""
    desk = opened(ledger, target=2)
    first, second = there(ledger)
    for host in (first, second):
        ledger.note_created(host.uid, CreatedHost("i-1", "192.0.2.1"), fence=desk.fence, now_ms=2)
    step = scaled_step(0, 2, 3, "fleet.update")
    step.arguments.update(template="two", keeps=[second.uid])
    carry_out(ledger, [step])
    assert {one.uid: one.template_digest for one in there(ledger)} == {
        first.uid: "one",
        second.uid: "two",
    }


def test_a_batch_has_a_hundred_hosts(ledger: Ledger) -> None:
    """More hosts of one request are in several stacks."""
    desk = opened(ledger, most=300)
    commit(desk, BATCH_MAX + 1)
    assert len({one.endpoint["stack"] for one in there(ledger)}) == 2


def test_new_hosts_have_what_their_offer_says(ledger: Ledger) -> None:
    """Until they report it themselves, so that runs are counted on them."""
    desk = opened(ledger)
    commit(desk, 1)
    (new,) = there(ledger)
    assert (new.cpu_millicores, new.memory_bytes, len(new.gpus)) == (4000, 16 << 30, 1)
    (limits,) = ledger.read_book().scaling.values()
    assert (limits.least, limits.most, limits.idle_ms, limits.places) == (0, 3, 300_000, {0})
    assert limits.host.memory_bytes == 16 << 30


def test_later_hosts_are_like_the_one_that_has_reported(ledger: Ledger) -> None:
    """An instance has less memory than its offer says, also after it is gone."""
    desk = opened(ledger)
    commit(desk, 1)
    (new,) = there(ledger)
    ledger.note_created(new.uid, CreatedHost("i-1", "192.0.2.1"), fence=desk.fence, now_ms=2)
    desk.greet(new.uid, cpus=4)
    reported = there(ledger)[0].memory_bytes
    assert reported != 16 << 30
    commit(desk, leaving=(new.uid,))
    ledger.retire(new.uid, fence=desk.fence, now_ms=3)
    assert names(ledger) == []
    assert ledger.read_book().scaling["gpus"].host.memory_bytes == reported


def test_an_idle_host_leaves_and_its_number_is_free_again(ledger: Ledger) -> None:
    """The others stay, and the fleet does not want the place until demand brings in another host."""
    desk = opened(ledger, target=2)
    first, second = there(ledger)
    commit(desk, began=(first.uid,))
    assert [one.idle_since_ms for one in there(ledger)] == [desk.now_ms, None]
    desk.now_ms += 300_000
    commit(desk, leaving=(first.uid,))
    leaving, staying = there(ledger)
    assert (leaving.state, leaving.message) == (InstanceState.TERMINATING, "")
    assert staying == second
    assert "host gpus-0 is being released: it had no jobs for 5m00s" in messages(ledger)
    ledger.retire(first.uid, fence=desk.fence, now_ms=desk.now_ms)
    assert ledger.read_book().templates == {}
    commit(desk, 1)
    assert names(ledger) == ["gpus-0", "gpus-1"]


def test_the_least_number_stays(ledger: Ledger) -> None:
    """Whatever a controller believes."""
    desk = opened(ledger, least=1, target=2)
    commit(desk, leaving=tuple(one.uid for one in there(ledger)))
    states = [one.state for one in there(ledger)]
    assert states == [InstanceState.TERMINATING, InstanceState.PROVISIONING]


def test_a_host_that_has_got_a_job_stays(ledger: Ledger) -> None:
    """The job takes its mark away, and neither a mark nor an end comes back while it has the job."""
    desk = opened(ledger, target=1)
    (uid,) = desk.instances = (there(ledger)[0].uid,)
    desk.greet(uid, cpus=4)
    commit(desk, began=(uid,))
    desk.submit(submit_step("train"))
    assert desk.place("train")
    assert there(ledger)[0].idle_since_ms is None
    commit(desk, began=(uid,), leaving=(uid,))
    (busy,) = there(ledger)
    assert (busy.state, busy.idle_since_ms) == (InstanceState.READY, None)


def test_another_step_keeps_the_hosts_of_now(ledger: Ledger) -> None:
    """Limits change, hosts that demand has brought in stay, and those beyond the new most leave."""
    desk = opened(ledger, target=1)
    commit(desk, 2)
    carry_out(ledger, [scaled_step(0, 0, 3, "fleet.update", description="more")])
    assert names(ledger) == ["gpus-0", "gpus-1", "gpus-2"]
    carry_out(ledger, [scaled_step(0, 0, 2, "fleet.update")])
    states = [one.state for one in there(ledger)]
    assert states == [InstanceState.PROVISIONING] * 2 + [InstanceState.TERMINATING]
    carry_out(ledger, [fleet_step("gpus", 0, "fleet.update")])
    assert {one.state for one in there(ledger)} == {InstanceState.TERMINATING}


def test_a_busy_host_stays_when_the_limit_falls(ledger: Ledger) -> None:
    """Those without jobs leave first, whatever their numbers are."""
    desk = opened(ledger, target=2)
    desk.instances = tuple(one.uid for one in there(ledger))
    for uid in desk.instances:
        desk.greet(uid, cpus=4)
    desk.submit(submit_step("train"))
    assert desk.place("train", desk.share(on=1))
    carry_out(ledger, [scaled_step(0, 0, 1, "fleet.update")])
    assert [one.state for one in there(ledger)] == [InstanceState.TERMINATING, InstanceState.READY]


@pytest.mark.parametrize("verb", ["fleet.update", "fleet.remove"])
def test_a_fleet_with_an_open_step_does_not_scale(ledger: Ledger, verb: str) -> None:
    """What a plan is about to do with it is done first."""
    desk = opened(ledger, target=1)
    (host,) = there(ledger)
    step = scaled_step(0, 0, 3, verb)
    accepted = enter(ledger, plan_of(ledger, [step]))
    ledger.begin_steps(accepted.apply_uid, [step], now_ms=2)
    assert ledger.read_book().scaling == {}
    before = there(ledger)
    commit(desk, 1, leaving=(host.uid,))
    assert there(ledger) == before


def test_a_ledger_that_is_recovering_does_not_scale(ledger: Ledger) -> None:
    """It may not know of hosts that exist, or of jobs on a host."""
    desk = opened(ledger, target=1)
    (host,) = before = there(ledger)
    ledger.begin_recovery("a host remembers more")
    assert ledger.read_book().scaling == {}
    commit(desk, 1, leaving=(host.uid,))
    assert there(ledger) == before


def test_a_changed_template_is_rolled_out(ledger: Ledger) -> None:
    """Hosts of the earlier template stay as they were created until a rollout replaces them, answered or not."""
    desk = opened(ledger, target=2)
    first, second = there(ledger)
    for host in (first, second):
        ledger.note_created(host.uid, CreatedHost("i-1", "192.0.2.1"), fence=desk.fence, now_ms=2)
    desk.greet(first.uid, cpus=4)
    changed = scaled_step(0, 0, 3, "fleet.update")
    other = {**HOST, "endpoint": {**HOST["endpoint"], "image": "ami-2"}}
    changed.arguments.update(
        template="two", scaling={**changed.arguments["scaling"], "host": other}
    )
    carry_out(ledger, [changed])
    assert [one.template_digest for one in there(ledger)] == ["one", "one"]
    (template,) = ledger.read_book().templates.values()
    assert template == Template("two", "drain", 1, (0, 1))
    moves = [Exchange(Move.LEAVE, second.uid)]
    ledger.commit_exchanges("gpus", template, moves, fence=desk.fence, now_ms=3)
    ledger.retire(second.uid, fence=desk.fence, now_ms=4)
    moves = [Exchange(Move.MAKE, number=1)]
    ledger.commit_exchanges("gpus", template, moves, fence=desk.fence, now_ms=5)
    new = there(ledger)[1]
    assert (new.name, new.template_digest) == ("gpus-1", "two")
    assert new.endpoint == other["endpoint"]


def test_idle_hosts_need_a_controller(ledger: Ledger) -> None:
    """A controller must release them when their time is over."""
    desk = opened(ledger, target=1)
    (host,) = there(ledger)
    desk.greet(host.uid, cpus=4)
    assert not ledger.read_overview().needs_controller
    commit(desk, began=(host.uid,))
    assert ledger.read_overview().needs_controller


def test_instances_of_a_fleet_that_failed_need_a_controller(ledger: Ledger) -> None:
    """One that exists is to get its agent, and the controller tries to create the others again."""
    step = scaled_step(1, 1, 1)
    accepted = enter(ledger, plan_of(ledger, [step]), now_ms=1)
    ledger.begin_steps(accepted.apply_uid, [step], now_ms=1)
    failed = StepOutcome(step.key, error="AWS refused the credentials")
    ledger.finish_steps(accepted.apply_uid, [step], [failed], now_ms=1)
    ledger.finish_apply(accepted.apply_uid, state="failed", summary="", now_ms=1)
    assert ledger.read_overview().joining_count == 1
    assert ledger.read_overview().needs_controller


def test_a_host_that_was_not_created_is_named(ledger: Ledger) -> None:
    """Until its creation fails it is one that comes."""
    desk = opened(ledger, 0, 1)
    (host,) = there(ledger)
    assert ledger.read_overview().troubled_hosts == ()
    ledger.mark_instance(
        host.uid, state=InstanceState.PROVISIONING, message="AWS refused the credentials",
        fence=desk.fence, now_ms=desk.now_ms,
    )  # fmt: skip
    seen = ledger.read_overview()
    assert seen.hosts == {"not created": 1}
    (named,) = seen.troubled_hosts
    assert (named.name, named.state) == ("gpus-0", "not created")
    assert named.message == "AWS refused the credentials"


def test_idle_time_counts_from_the_first_answer(ledger: Ledger) -> None:
    """A boot may take longer than `idle_duration`; a later connection changes nothing."""
    desk = opened(ledger, target=1)
    (host,) = there(ledger)
    commit(desk, began=(host.uid,))
    assert there(ledger)[0].idle_since_ms is not None
    desk.greet(host.uid, cpus=4)
    assert there(ledger)[0].idle_since_ms is None
    commit(desk, began=(host.uid,))
    desk.greet(host.uid, cpus=4)
    assert there(ledger)[0].idle_since_ms is not None


def test_a_host_that_cannot_be_released_is_named(ledger: Ledger) -> None:
    """Nothing says that it does not answer."""
    desk = opened(ledger, 0, 1)
    (host,) = there(ledger)
    commit(desk, began=(host.uid,), leaving=(host.uid,))
    ledger.mark_instance(
        host.uid, state=InstanceState.UNREACHABLE, message="AWS refused the credentials",
        fence=desk.fence, now_ms=desk.now_ms,
    )  # fmt: skip
    (named,) = ledger.read_overview().troubled_hosts
    assert (named.name, named.state) == ("gpus-0", "leaving and not released")


def test_fleets_that_get_no_hosts_are_known(ledger: Ledger) -> None:
    """A range that begins at 0 may bring hosts; `nodes: 0` brings none."""
    opened(ledger)
    assert ledger.read_book().hostless_fleets == frozenset()
    none = fleet_step("gpus", 0, "fleet.update")
    none.arguments["template"] = "one"
    carry_out(ledger, [none])
    assert ledger.read_book().hostless_fleets == {"gpus"}
    assert ledger.read_book(()).hostless_fleets == {"gpus"}
