"""
A profile: fields that many runs have in common, under a name.

What a run says itself comes first. `profiles:` of dstack's profiles.yml is read as one such
document each.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from fleetform.spec.kinds.amounts import Limit
from fleetform.spec.kinds.base import Flag, Name, Whole
from fleetform.spec.kinds.checkpoint import Checkpoint
from fleetform.spec.kinds.offers import Offable, OfferChoice
from fleetform.spec.kinds.placing import Fleets, Instances
from fleetform.spec.kinds.retry import RetrySpec
from fleetform.spec.kinds.runtime import Runtime
from fleetform.spec.kinds.schedules import Schedule
from fleetform.spec.kinds.silence import SilenceSpec
from fleetform.spec.kinds.utilization import UtilizationPolicy
from fleetform.spec.kinds.variables import Variables


class Profile(OfferChoice):
    """
    What many runs have in common.

    Example:
        type: profile
        name: cheap
        spot_policy: auto
        max_price: 2.5
        retry: {on: [no-capacity, interruption], duration: 1d}
    """

    type: Literal["profile"]
    """The kind of the document: `profile`."""

    default: Flag | None = None
    """Whether it holds for runs that name none. Example: `true`."""

    env: Variables | None = None
    """Environment variables, under those of the run. Example: `{NCCL_DEBUG: INFO}`."""

    fleets: Fleets | None = None
    """The fleets that runs may be placed on. Example: `[local]`, `[vision/gpus]`."""

    instances: Instances | None = None
    """The hosts that they may be placed on. Example: `[gpus-0]`."""

    queue: Name | None = None
    """The queue that they wait in. Example: `batch`."""

    creation_policy: Literal["reuse", "reuse-or-create"] | None = None
    """
    Whether hosts may be made for them. `reuse`: only hosts that there are. `reuse-or-create`: new
    ones as well. Example: `reuse`.
    """

    startup_order: Literal["any", "master-first", "workers-first"] | None = None
    """
    In which order nodes start. `any`: all at once. `master-first`: the first one, then the
    others. `workers-first`: the first one last. Example: `workers-first`.
    """

    stop_criteria: Literal["all-done", "master-done"] | None = None
    """
    When a run on several nodes is over. `all-done`: when all of them have ended. `master-done`:
    when the first one has. Example: `master-done`.
    """

    priority: Annotated[Whole, Field(ge=0, le=100)] | None = None
    """From 0 to 100; higher first. Example: `50`."""

    schedule: Schedule | None = None
    """When they are started again and again. Example: `{cron: 30 2 * * mon-fri}`."""

    max_duration: Limit | None = None
    """How long an attempt may run before it is ended, or `off`. Example: `2h`."""

    stop_duration: Offable | None = None
    """How long one may take to end before it is killed; `off`: as long as it takes. Example: `30s`."""

    checkpoint: Checkpoint | None = None
    """A signal ahead of the end. Example: `{signal: USR1, lead: 5m}`."""

    utilization_policy: UtilizationPolicy | None = None
    """How busy GPUs have to be for a run to go on. Example: `{min_gpu_utilization: 10, time_window: 1h}`."""

    on_silence: SilenceSpec | None = None
    """What a job does whose host nobody reaches: `wait`, or `stop after` a time. Example: `stop after 10m`."""

    retry: RetrySpec | None = None
    """When a failed attempt is followed by another. Example: `true`, `{on: [error], max_attempts: 3}`."""

    runtime: Runtime | None = None
    """
    How commands run. `process`: as processes of the host. `container`: in a container.
    Example: `process`.
    """
