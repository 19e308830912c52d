"""
When a host without jobs leaves its fleet: after `idle_duration`, counted over controllers.

The moment since when a host is idle is in its row, so that the next controller goes on counting. It begins anew with
the first answer of the host: a boot may take longer than `idle_duration`, and the host would leave before it could get a job.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from fleetform.lifecycle.progress import FIRST_BOOT_MS
from fleetform.model.instance import Instance, InstanceState
from fleetform.model.scaling import IdleHosts, Scaling

__all__ = ["judge_idle"]


def judge_idle(
    spare: Sequence[str],
    instances: Iterable[Instance],
    scaling: Mapping[str, Scaling],
    *,
    now_ms: int,
) -> IdleHosts:
    """
    Say which hosts begin to be idle, which are needed again, and which leave.

    Args:
        spare: Uids of hosts that no run needs, as `Decisions.spare`.
        instances: Of all fleets.
        scaling: The limits of fleets whose hosts follow demand.
        now_ms: Unix milliseconds.
    """
    there = {one.uid: one for one in instances if one.state is not InstanceState.TERMINATING}
    spans = {uid: _span_ms(there.get(uid), scaling) for uid in spare}
    idle = {uid: (there[uid], span) for uid, span in spans.items() if span is not None}
    # A mark of the future is from before the clock was set back.
    since = {
        uid: one.idle_since_ms
        for uid, (one, _) in idle.items()
        if one.idle_since_ms is not None and one.idle_since_ms <= now_ms
    }
    ends = {uid: since.get(uid, now_ms) + span for uid, (_, span) in idle.items()}
    return IdleHosts(
        began=tuple(uid for uid in idle if uid not in since),
        ended=tuple(
            uid for uid, one in there.items() if one.idle_since_ms is not None and uid not in idle
        ),
        leaving=tuple(uid for uid, end in ends.items() if end <= now_ms),
        next_at_ms=min((end for end in ends.values() if end > now_ms), default=None),
    )


def _span_ms(instance: Instance | None, scaling: Mapping[str, Scaling]) -> int | None:
    """Return for how long a host is kept without jobs, or until its first boot must be over; None: it is not counted."""
    limits = None if instance is None else scaling.get(instance.fleet)
    if instance is None or limits is None or limits.idle_ms is None:
        return None
    boots = instance.state is InstanceState.PROVISIONING and instance.is_created
    return max(limits.idle_ms, FIRST_BOOT_MS) if boots else limits.idle_ms
