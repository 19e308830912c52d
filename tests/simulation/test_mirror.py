"""The controller's copy of the ledger is the ledger, although a round reads only what has changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Mapping

import pytest

from fleetform.controllers.runs import RunController
from fleetform.model.instance import Instance
from fleetform.model.run import RunUid
from simulation.seeds import play_seed

SEEDS = 12


def unchanged(instances: Iterable[Instance], changed: Container[str]) -> list[Instance]:
    return [one for one in instances if one.uid not in changed]


@pytest.mark.usefixtures("quiet_memory")
def test_instances_of_the_mirror_are_those_of_the_ledger(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whatever happens: an instance that nobody reports as changed is as in the ledger."""
    counts: Counter[str] = Counter()
    refresh = RunController._refresh

    async def refresh_and_compare(runs: RunController) -> Mapping[RunUid, None]:
        touched = await refresh(runs)
        hosts = runs._hosts
        if runs._has_plan or hosts.rows_changed or runs._ledger.serial() != runs._serial:
            return touched
        whole = runs._ledger.read_book().instances
        assert unchanged(runs.mirror.instances, hosts.changed) == unchanged(whole, hosts.changed)
        counts["compared"] += 1
        return touched

    monkeypatch.setattr(RunController, "_refresh", refresh_and_compare)
    for seed in range(SEEDS):
        verdict = play_seed(seed)
        assert not verdict.violations, (seed, "\n".join(verdict.violations)[:6000])
    assert counts["compared"] > 10 * SEEDS
