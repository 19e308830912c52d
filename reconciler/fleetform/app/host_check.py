"""
Asks every declared host what it is like, and changes none of them.

The configuration says which hosts there are: a fleet need not be applied. What the ledger knows of
a host, such as the key that it had first, counts as it does for the controller.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from fleetform.model.host_check import (
    HostResult,
    HostTarget,
    evaluate,
    mark_same_machines,
    unreached,
)
from fleetform.model.instance import LOCAL, InstanceState
from fleetform.plan.kinds.fleet import elsewhere, is_elsewhere, places_of
from fleetform.providers.contract.errors import PermanentError, ProviderError
from fleetform.providers.contract.hosts import InstanceRequest

if TYPE_CHECKING:
    from fleetform.model.instance import Instance
    from fleetform.providers.contract.checks import HostChecker
    from fleetform.spec.desired import Declared

PARALLEL_MAX = 16
"""Connections opened at a time: jump hosts refuse more (`MaxStartups` of sshd_config is 10:30:100)."""

HOST_SECONDS = 120.0
"""A jump host, a host that wakes up and a GPU driver that starts cold, together."""


class Question(NamedTuple):
    """One host to ask."""

    target: HostTarget
    request: InstanceRequest


def questions_of(fleets: Iterable[Declared], instances: Iterable[Instance]) -> list[Question]:
    """List the hosts of declared fleets; the shares of this machine are one host."""
    known = {(one.fleet, one.name): one for one in instances}
    questions = []
    for declared in fleets:
        fleet = declared.key.name
        places = places_of(fleet, declared.document)
        names = {place["name"] for place in places}
        # A fleet whose hosts follow demand declares the least of them.
        places += [
            {"name": one, **elsewhere(declared.document)}
            for (owner, one), instance in known.items()
            if owner == fleet
            and one not in names
            and instance.is_bought
            and instance.state is not InstanceState.TERMINATING
        ]
        is_local = not is_elsewhere(declared.document)
        for place in places[:1] if is_local else places:
            provider = place.get("provider", LOCAL)
            instance = known.get((fleet, place["name"]))
            endpoint = place.get("endpoint", {})
            if instance is not None and instance.is_bought:
                # It is where it was created, and a document says no address.
                endpoint = instance.endpoint
            target = HostTarget(
                fleet=fleet,
                name="this machine" if is_local else place["name"],
                provider=provider,
                uid=instance.uid if instance else "",
                declared=place.get("declared", {}),
                run_as=declared.document.get("run_as", ""),
            )
            request = InstanceRequest(
                uid=target.uid,
                name=place["name"],
                fleet=fleet,
                declared=target.declared,
                provider=provider,
                endpoint=endpoint,
                host_key=instance.host_key if instance else "",
            )
            questions.append(Question(target, request))
    return questions


async def check_hosts(
    questions: Sequence[Question],
    checker: HostChecker,
    environment_uid: str,
    report: Callable[[int], None] = lambda _done: None,
) -> list[HostResult]:
    """Ask all hosts, in the order of the questions; `report` gets how many have answered."""
    slots = asyncio.Semaphore(PARALLEL_MAX)
    done = 0

    async def ask(question: Question) -> HostResult:
        nonlocal done
        async with slots:
            result = await _ask(question, checker, environment_uid)
        done += 1
        report(done)
        return result

    return mark_same_machines(await asyncio.gather(*(ask(one) for one in questions)))


async def _ask(question: Question, checker: HostChecker, environment_uid: str) -> HostResult:
    target = question.target
    try:
        async with asyncio.timeout(HOST_SECONDS):
            checked = await checker.check(question.request)
    except PermanentError as error:
        result = unreached(
            target, _without_name(question, str(error)), error.advice, where=_location(question)
        )
    except ProviderError as error:
        result = _silent(question, _without_name(question, str(error)))
    except TimeoutError:
        result = _silent(question, f"it does not answer within {HOST_SECONDS:.0f} s")
    else:
        problem = _without_name(question, checked.problem)
        result = evaluate(target, replace(checked, problem=problem), environment_uid)
    return result


def _silent(question: Question, message: str) -> HostResult:
    endpoint = question.request.endpoint
    hostname, port, user = (endpoint.get(name) for name in ("hostname", "port", "user"))
    command = f"ssh -v {f'-p {port} ' if port else ''}{f'{user}@' if user else ''}{hostname}"
    advice = f"check the host, its name or address, and its firewall; try `{command}`"
    if not hostname:
        advice = f"`fleetform fleet show {question.target.fleet}` says how far its creation is"
    return unreached(question.target, message, advice, where=_location(question))


def _location(question: Question) -> str:
    """Write the declared address, and the jump host before it."""
    endpoint = question.request.endpoint
    jump = endpoint.get("proxy_jump")
    return _address(endpoint) + (f" through {_address(jump)}" if jump else "")


def _address(endpoint: Mapping[str, Any]) -> str:
    user, port = endpoint.get("user"), endpoint.get("port")
    name = str(endpoint.get("hostname", ""))
    return (f"{user}@" if user else "") + name + (f" port {port}" if port else "")


def _without_name(question: Question, message: str) -> str:
    # The host is the title of the block.
    return message.removeprefix(f"instance {question.request.name}: ")
