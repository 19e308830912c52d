"""
Access of a step to hosts: instances by fleet, and hosts that answer.

The port keeps `apply` from knowing who holds the sessions; the manager of runs does.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from fleetform.model.instance import Instance
from fleetform.providers.contract.errors import ProviderError
from fleetform.providers.contract.hosts import Host, Report
from fleetform.providers.contract.volumes import VolumeProvider, VolumeRequest


class HostAccess(Protocol):
    @property
    def environment_uid(self) -> str: ...

    async def instances(self, fleet: str) -> Sequence[Instance]:
        """Return the fleet's instances that are not terminated, as the ledger has them now."""

    async def is_exchanging(self, fleet: str) -> bool:
        """Tell whether hosts of the fleet make room for others: where none is there, one will be."""

    async def create(self, instance: Instance) -> bool:
        """
        Create the instance of a cloud, unless that is done; its id and address are in the ledger then.

        False: the cloud has no capacity now, and its fleet retries. Another one may have its place by then:
        a batch of a cluster that was refused in part is released and asked for elsewhere.

        Raises:
            ProviderError: It does not exist; the message says why.
        """

    async def reach(self, instance: Instance) -> Host:
        """
        Make the instance exist and say hello, or return the open session.

        Raises:
            ProviderError: It cannot be reached; the message says why.
        """

    async def reach_some(self, instances: Sequence[Instance]) -> Mapping[str, Host]:
        """
        Reach hosts of other machines, as `reach` does, and return those that answer soon, by uid.

        The others are named in a notice, and asked again until they answer.

        Raises:
            ProviderError: None of them can be reached; the message says why not the first.
        """

    async def depart(self, instance: Instance) -> None:
        """
        End a terminating instance for good, once the jobs that are being ended there have ended.

        A job that was not asked to end is not waited for, and lost with the instance. Returns at once
        when it is gone already.

        Raises:
            ProviderError: It cannot be released; the message says why.
        """

    async def update_shared(self, fleet: str, shared: Mapping[str, Any]) -> None:
        """
        Change in place what the hosts of a fleet on a cloud share, as a step of it says; nothing where it is so.

        Raises:
            ProviderError: It may be changed in part; asking again continues.
        """

    async def forget_fleet(self, cloud: str, fleet: str) -> None:
        """See `providers.contract.hosts.HostCreator.forget_fleet`."""

    async def unmounted(self, volume: str, fleet: str) -> None:
        """
        Return once no running job has the volume mounted; it is on the hosts of `fleet`.

        Ends that were asked for are waited for, however long they take.

        Raises:
            ProviderError: A job continues that was not asked to end, or it is unknown whether all
                have ended.
        """

    def volume_provider(self, name: str) -> VolumeProvider:
        """Return the provider of the network volumes of a cloud."""

    async def detached(self, request: VolumeRequest) -> None:
        """
        Return once the disk is unmounted from its host and detached.

        Raises:
            ProviderError: It is still attached; the message says why.
        """

    def report(self, volume: str) -> Report:
        """Return what takes sentences about the progress of a network volume."""

    def ends_asked(self) -> None:
        """Take note that ends of runs were written down: they are brought about while we wait."""


# Several calls of one step, made side by side.
# A step is over when all of its calls are. One that went on after another had failed would cause
# effects under a step that is written down as failed, at the same time as its own second try, or under the fence
# of a manager that has gone.

PARALLEL_MAX = 64
"""Calls in flight: enough to fill one host's connection, few enough to keep its queue short."""


T = TypeVar("T")


async def together(calls: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """
    Return the answers in the order of the calls, once every call has come to its end.

    Raises:
        Exception: The first in order that is no `ProviderError`, for it ends more than the step;
            else the first of those.
    """
    answers = await asyncio.gather(*calls, return_exceptions=True)
    problems = [one for one in answers if isinstance(one, BaseException)]
    for problem in problems:
        if not isinstance(problem, ProviderError):
            raise problem
    if problems:
        raise problems[0]
    return [one for one in answers if not isinstance(one, BaseException)]
