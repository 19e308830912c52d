"""Every call of a ledger that is protected by a fence, ready to be made and to be seen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from contract.ledgers import (
    Desk,
    carry_out,
    enter,
    fleet_step,
    hello,
    plan_of,
    prepared_gang,
    step,
    submit_step,
    written,
)
from fleetform.agents.protocol.host_report import GpuProcess
from fleetform.agents.protocol.states import JobState
from fleetform.model.apply import StepOutcome
from fleetform.model.decision import AllPrepared, Finish, Placement
from fleetform.model.offers import Refusal
from fleetform.model.override import OverrideKind
from fleetform.model.ports import HostNews, InstanceMark
from fleetform.model.rollout import Exchange, Move, Template
from fleetform.model.run import RunState
from fleetform.model.scaling import IdleHosts
from fleetform.model.volume import DISK, disk_request
from fleetform.providers.contract.hosts import CreatedHost
from fleetform.spec.desired import ResourceKey

Call = Callable[[], Any]


@dataclass(frozen=True)
class Protected:
    """`ready` brings a ledger to where the call is made and returns it, under the desk's fence."""

    name: str
    ready: Callable[[Desk], Call]


def _volume_step() -> Any:
    return step(
        "volume.make", "data", **written({"path": "/data", "fleet": "local"}, type="volume")
    )


def _begin_steps(desk: Desk) -> Call:
    steps = [_volume_step()]
    accepted = enter(desk.ledger, plan_of(desk.ledger, steps))
    return lambda: desk.ledger.begin_steps(
        accepted.apply_uid, steps, fence=desk.fence, now_ms=desk.now_ms
    )


def _finish_steps(desk: Desk) -> Call:
    steps = [submit_step("alpha")]
    accepted = enter(desk.ledger, plan_of(desk.ledger, steps))
    return lambda: desk.ledger.finish_steps(
        accepted.apply_uid,
        steps,
        [StepOutcome(one.key) for one in steps],
        fence=desk.fence,
        now_ms=desk.now_ms,
    )


def _finish_apply(desk: Desk) -> Call:
    accepted = enter(desk.ledger, plan_of(desk.ledger, [submit_step("alpha")]))
    return lambda: desk.ledger.finish_apply(
        accepted.apply_uid, state="done", summary="", fence=desk.fence, now_ms=desk.now_ms
    )


def _commit_placements(desk: Desk) -> Call:
    desk.submit(submit_step("alpha"))
    run, share = desk.run("alpha"), desk.share()
    placement = Placement(run.uid, run.generation, run.attempt, (share,))
    return lambda: desk.ledger.commit_placements([placement], fence=desk.fence, now_ms=desk.now_ms)


def _commit_transitions(desk: Desk) -> Call:
    desk.submit(submit_step("alpha"))
    uid = desk.run("alpha").uid
    verdict = Finish(RunState.STOPPED, "stopped", "")
    return lambda: desk.ledger.commit_transitions(
        [(uid, verdict)], fence=desk.fence, now_ms=desk.now_ms
    )


def _pass_commit_point(desk: Desk) -> Call:
    prepared_gang(desk, "gang")
    uid = desk.run("gang").uid
    return lambda: desk.ledger.commit_transitions(
        [(uid, AllPrepared())], fence=desk.fence, now_ms=desk.now_ms
    )


def _commit_records(desk: Desk) -> Call:
    desk.submit(submit_step("alpha"))
    assert desk.place("alpha")
    record = desk.record("alpha", JobState.RUNNING)
    return lambda: desk.ledger.commit_records(
        desk.instances[0], [record], None, snapshot=False, fence=desk.fence, now_ms=desk.now_ms
    )


def _commit_news(desk: Desk) -> Call:
    desk.submit(submit_step("alpha"))
    assert desk.place("alpha")
    news = [HostNews(desk.instances[0], [desk.record("alpha", JobState.RUNNING)])]
    return lambda: desk.ledger.commit_news(news, fence=desk.fence, now_ms=desk.now_ms)


def _commit_host(desk: Desk) -> Call:
    seen = hello(desk.instances[0], boot="boot-2", records=())
    return lambda: desk.ledger.commit_host(seen, fence=desk.fence, now_ms=desk.now_ms)


def _mark_instance(desk: Desk) -> Call:
    return lambda: desk.ledger.mark_instance(
        desk.instances[0],
        state="unreachable",
        message="silent",
        fence=desk.fence,
        now_ms=desk.now_ms,
    )


def _mark_instances(desk: Desk) -> Call:
    marks = [InstanceMark(desk.instances[0], "unreachable", "silent")]
    return lambda: desk.ledger.mark_instances(marks, fence=desk.fence, now_ms=desk.now_ms)


def _end_unheard(desk: Desk) -> Call:
    desk.submit(submit_step("alpha", on_silence={"action": "stop", "after": 60}))
    assert desk.place("alpha")
    key = desk.record("alpha", JobState.RUNNING).key
    return lambda: desk.ledger.end_unheard([key], fence=desk.fence, now_ms=desk.now_ms)


def _note_gpu_processes(desk: Desk) -> Call:
    uid = desk.instances[0]
    (host,) = [one for one in desk.ledger.read_live().instances if one.uid == uid]
    found = {host.gpus[0].uuid: GpuProcess(123, "ada", "python")}
    return lambda: desk.ledger.note_gpu_processes(uid, found, fence=desk.fence)


def _put_overrides(desk: Desk) -> Call:
    return lambda: desk.ledger.put_overrides(
        OverrideKind.QUARANTINE,
        ["host/local-0"],
        reason="GPU 0 is lost",
        who="the controller",
        now_ms=desk.now_ms,
        until_ms=None,
        fence=desk.fence,
    )


def _note_created(desk: Desk) -> Call:
    created = CreatedHost("i-1", "192.0.2.1", "ssh-ed25519 AAAA")
    return lambda: desk.ledger.note_created(
        desk.instances[0], created, fence=desk.fence, now_ms=desk.now_ms
    )


_OFFER = {"instance_type": "g5.xlarge", "region": "us-east-1"}


def _instance_of_a_cloud(desk: Desk) -> str:
    place = {"name": "gpus-0", "number": 0, "provider": "aws", "endpoint": _OFFER}
    carry_out(
        desk.ledger,
        [
            step(
                "fleet.make",
                "gpus",
                **written({}, type="fleet", instances=[place], offers=[_OFFER]),
            )
        ],
    )
    (instance,) = [one for one in desk.ledger.read_live().instances if one.fleet == "gpus"]
    return instance.uid


def _take_offers(desk: Desk) -> Call:
    uids = [_instance_of_a_cloud(desk)]
    return lambda: desk.ledger.take_offers(uids, fence=desk.fence, now_ms=desk.now_ms)


def _refuse_offers(desk: Desk) -> Call:
    uid = _instance_of_a_cloud(desk)
    desk.ledger.take_offers([uid], fence=desk.fence, now_ms=desk.now_ms)
    refusals = [Refusal(uid, _OFFER, "no capacity", exists=True)]
    return lambda: desk.ledger.refuse_offers(refusals, fence=desk.fence, now_ms=desk.now_ms)


def _note_ended(desk: Desk) -> Call:
    uid = _instance_of_a_cloud(desk)
    desk.ledger.take_offers([uid], fence=desk.fence, now_ms=desk.now_ms)
    created = CreatedHost("i-1", "192.0.2.1", "ssh-ed25519 AAAA")
    desk.ledger.note_created(uid, created, fence=desk.fence, now_ms=desk.now_ms)
    return lambda: desk.ledger.note_ended(
        uid, "i-1 was terminated", fence=desk.fence, now_ms=desk.now_ms
    )


def _note_attachment(desk: Desk) -> Call:
    document: dict[str, object] = {
        "type": "volume", "backend": "aws", "region": "us-east-1",
        "availability_zone": "us-east-1a", "size": 10 << 30, "aws": {"account": "123456789012"},
    }  # fmt: skip
    said = {"fleet": "", "path": "", DISK: disk_request(document, None)}
    carry_out(desk.ledger, [step("volume.make", "disk", **written(document, **said))])
    uid = desk.ledger.read_live().resources[ResourceKey("volume", "disk")].uid
    return lambda: desk.ledger.note_attachment(uid, desk.instances[0], fence=desk.fence)


def _pin_host_key(desk: Desk) -> Call:
    return lambda: desk.ledger.pin_host_key(desk.instances[0], "ssh-ed25519 BBBB", fence=desk.fence)


def _retire(desk: Desk) -> Call:
    steps = [fleet_step("local", 1, "fleet.update")]
    accepted = enter(desk.ledger, plan_of(desk.ledger, steps))
    # The second host of two begins to leave.
    desk.ledger.begin_steps(accepted.apply_uid, steps, now_ms=desk.now_ms)
    return lambda: desk.ledger.retire(desk.instances[1], fence=desk.fence, now_ms=desk.now_ms)


def _commit_exchanges(desk: Desk) -> Call:
    fleet = fleet_step("local", 2, "fleet.update")
    fleet.arguments["template"] = "two"
    carry_out(desk.ledger, [fleet])
    template = Template("two", "drain", 1, (0, 1))
    moves = [Exchange(Move.REST, desk.instances[0])]
    return lambda: desk.ledger.commit_exchanges(
        "local", template, moves, fence=desk.fence, now_ms=desk.now_ms
    )


def _commit_scaling(desk: Desk) -> Call:
    idle = IdleHosts(began=(desk.instances[0],))
    return lambda: desk.ledger.commit_scaling((), idle, fence=desk.fence, now_ms=desk.now_ms)


def _mark_forgotten(desk: Desk) -> Call:
    desk.submit(submit_step("alpha"))
    assert desk.place("alpha")
    record = desk.record("alpha", JobState.FINISHED)
    desk.say(record)
    return lambda: desk.ledger.mark_forgotten([record.key], fence=desk.fence)


PROTECTED = tuple(
    Protected(ready.__name__.removeprefix("_"), ready)
    for ready in (
        _begin_steps,
        _finish_steps,
        _finish_apply,
        _commit_placements,
        _commit_transitions,
        _pass_commit_point,
        _commit_records,
        _commit_news,
        _commit_host,
        _mark_instance,
        _mark_instances,
        _end_unheard,
        _note_gpu_processes,
        _note_created,
        _take_offers,
        _refuse_offers,
        _note_ended,
        _note_attachment,
        _pin_host_key,
        _put_overrides,
        _retire,
        _commit_exchanges,
        _commit_scaling,
        _mark_forgotten,
    )
)
