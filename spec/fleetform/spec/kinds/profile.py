"""
A profile: fields that many runs have in common, under a name.

What a run says itself comes first. `profiles:` of dstack's profiles.yml is read as one such
document each.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from fleetform.spec.field_facts import control
from fleetform.spec.kinds.base import Flag, Name, Whole
from fleetform.spec.kinds.commands import Variables
from fleetform.spec.kinds.container import Runtime
from fleetform.spec.kinds.offers import Fleets, Instances, Offable, OfferChoice
from fleetform.spec.kinds.resources import Limit
from fleetform.spec.kinds.run_policies import Checkpoint, RetrySpec, SilenceSpec, UtilizationPolicy
from fleetform.spec.kinds.schedules import Schedule


class Profile(OfferChoice):
    """
    Fields that many runs share. Each run may override them.

    Example:
        type: profile
        name: cheap
        spot_policy: auto
        max_price: 2.5
        retry: {on: [no-capacity, interruption], duration: 1d}
    """

    type: Literal["profile"]
    """The kind of the document: `profile`."""

    default: Annotated[Flag | None, control("spec.overlay")] = None
    """Whether runs that name no profile use this one. Default: `false`. Example: `true`."""

    env: Annotated[Variables | None, control("spec.overlay")] = None
    """Environment variables. `env` of a run outranks them. Example: `{NCCL_DEBUG: INFO}`."""

    fleets: Annotated[Fleets | None, control("spec.overlay")] = None
    """
    The fleets on which the runs may start. Default: all fleets. Example: `[local]`,
    `[vision/gpus]`.
    """

    instances: Annotated[Instances | None, control("spec.overlay")] = None
    """
    The hosts on which the runs may start. Default: all hosts of the allowed fleets. Example:
    `[gpus-0]`.
    """

    queue: Annotated[Name | None, control("spec.overlay")] = None
    """The queue of the runs. Example: `batch`."""

    creation_policy: Annotated[
        Literal["reuse", "reuse-or-create"] | None, control("spec.overlay")
    ] = None
    """
    Whether hosts may be created for the runs. `reuse`: use only existing hosts. `reuse-or-create`:
    create hosts when none is free. Example: `reuse`.
    """

    startup_order: Annotated[
        Literal["any", "master-first", "workers-first"] | None, control("spec.overlay")
    ] = None
    """
    The order in which the nodes start. `any`: all at once. `master-first`: node 0 first, then the
    others. `workers-first`: node 0 last. Example: `workers-first`.
    """

    stop_criteria: Annotated[Literal["all-done", "master-done"] | None, control("spec.overlay")] = (
        None
    )
    """
    When a run on several nodes ends. `all-done`: when all nodes have ended. `master-done`: when
    node 0 has ended. Example: `master-done`.
    """

    priority: Annotated[Whole, Field(ge=0, le=100), control("spec.overlay")] | None = None
    """
    The priority, from 0 to 100. Among waiting runs, a higher number starts first. Example: `50`.
    """

    schedule: Annotated[Schedule | None, control("spec.overlay")] = None
    """Times at which the runs start repeatedly. Example: `{cron: 30 2 * * mon-fri}`."""

    max_duration: Annotated[Limit | None, control("spec.overlay")] = None
    """
    The longest time that an attempt may run; it is ended after that. `off`: no limit. Example:
    `2h`.
    """

    stop_duration: Annotated[Offable | None, control("spec.overlay")] = None
    """
    The time between the request to stop (SIGTERM) and SIGKILL. `off`: never kill. Example: `30s`.
    """

    checkpoint: Annotated[Checkpoint | None, control("spec.overlay")] = None
    """
    A signal that is sent before an attempt is ended, so that the program can save its state.
    Example: `{signal: USR1, lead: 5m}`.
    """

    utilization_policy: Annotated[UtilizationPolicy | None, control("spec.overlay")] = None
    """
    The least GPU utilization; a run below it is ended. Example: `{min_gpu_utilization: 10,
    time_window: 1h}`.
    """

    on_silence: Annotated[SilenceSpec | None, control("spec.overlay")] = None
    """
    What a job does while its host hears no controller: `wait`, or `stop after` a duration of at least
    one minute. Example: `stop after 10m`.
    """

    retry: Annotated[RetrySpec | None, control("spec.overlay")] = None
    """
    When and how often a failed run is attempted again. `true`: after every event except
    `time-limit`. Example: `true`, `{on: [error], max_attempts: 3}`.
    """

    runtime: Annotated[Runtime | None, control("spec.overlay")] = None
    """
    How the commands run. `process`: as processes of the host. `container`: in a container. Example:
    `process`.
    """
