"""Previews of the changes of a plan: each is asked for itself, and a failed one leaves the others."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

from fleetform.app import preview
from fleetform.app.offers import offers_of_fleet
from fleetform.app.problems import PlanProblem
from fleetform.providers.contract.errors import NoCapacity, PermanentError
from fleetform.providers.contract.hosts import PreviewedChange
from fleetform.providers.contract.observed import InstanceSeen
from fleetform.views.plan.json import to_json
from fleetform.views.plan.text import render
from unit.plan.trees import fleet, ledger, planned, row, tree

AWS = {
    "regions": ["us-east-1"],
    "instance_types": ["g5.xlarge"],
    "aws": {"account": "123456789012", "ssh_from": ["203.0.113.7/32"], "image": "ami-1"},
}


class Clouds:
    """Providers that answer for some fleets; `failures` are by fleet, and `unknown` are uids that each fleet has in the cloud."""

    def __init__(self, unknown, **failures):
        self._unknown = unknown
        self._failures = failures

    async def listed(self, environment_uid, request):
        return [
            InstanceSeen(
                f"{uid}-{name}", name, name, environment_uid, "", 0, alive=True,
                endpoint={"id": f"i-{uid}"},
            )
            for name in ("good", "bad")
            for uid in ("known", *self._unknown)
        ]  # fmt: skip

    async def preview(self, requests, replaced=0, *, emptied=False):
        fleet = requests[0].fleet
        if fleet in self._failures:
            raise self._failures[fleet]
        return [PreviewedChange("create", "aws:ec2/instance:Instance", fleet)]


@pytest.fixture
def previewed(monkeypatch):
    """Return a function that plans fleets `good` and `bad`, with previews by some providers."""

    def make(nodes=1, unknown=(), annex=None, **failures):
        monkeypatch.setattr(preview, "routed_hosts", lambda _: Clouds(unknown, **failures))
        fleets = [fleet(name, nodes=nodes, **AWS) for name in ("good", "bad")]
        offers = {one.key.name: offers_of_fleet(one.document) for one in fleets}
        live = ledger() if annex is None else ledger(*map(row, fleets))
        plan = planned(tree(*fleets), replace(live, offers=offers))
        plan = replace(plan, annex={**plan.annex, **(annex or {})})
        reader = SimpleNamespace(read_known_instances=lambda _: {"known-good", "known-bad"})
        workspace = SimpleNamespace(
            environment=SimpleNamespace(uid="e"), read=lambda call, _: call(reader)
        )
        return preview.with_preview(workspace, plan)

    return make


def printed(plan):
    return "\n".join("".join(span.text for span in line.spans) for line in render(plan))


def test_a_failed_preview_hides_nothing(previewed):
    """The plan names the fleet with the error, has the preview of the other one, and nothing is applied."""
    plan = previewed(bad=PermanentError("there is no VPC vpc-1", advice="correct `aws.vpc`"))
    shown = printed(plan)
    assert "previewed in the clouds, where 1 preview failed" in shown
    bad, good = shown.index("+ fleet bad"), shown.index("+ fleet good")
    assert "preview failed: there is no VPC vpc-1; correct `aws.vpc`" in shown[bad:good]
    assert "preview: create 1 aws:ec2/instance:Instance" in shown[good:]
    of_bad, of_good = to_json(plan, version="0")["resource_changes"]
    assert of_bad["preview_error"] == {
        "message": "there is no VPC vpc-1",
        "advice": "correct `aws.vpc`",
        "passes": False,
    }
    assert "preview" not in of_bad
    assert [one["name"] for one in of_good["preview"]] == ["good"]
    with pytest.raises(PlanProblem, match="preview of fleet/bad failed: there is no VPC") as found:
        preview.require_previewed(plan, "nothing was applied", or_passes=True)
    assert found.value.message.endswith("; nothing was applied")
    assert found.value.advice == "correct `aws.vpc`"


def test_several_failures_are_one_error(previewed):
    """It names them, and the plan has the reasons."""
    plan = previewed(bad=PermanentError("no VPC"), good=PermanentError("no image"))
    with pytest.raises(PlanProblem, match="previews of fleet/bad, fleet/good failed"):
        preview.require_previewed(plan)
    assert {"no VPC", "no image"} <= {
        one["preview_error"]["message"] for one in to_json(plan, version="0")["resource_changes"]
    }


def test_a_refused_offer_does_not_keep_from_applying(previewed):
    """Apply takes the next one; `plan --preview` fails."""
    plan = previewed(bad=NoCapacity("no capacity", delay_seconds=600))
    preview.require_previewed(plan, or_passes=True)
    with pytest.raises(PlanProblem, match="fleet/bad failed: no capacity"):
        preview.require_previewed(plan)


def test_a_fleet_without_hosts_is_previewed_by_its_first_one(previewed):
    """Demand may create it later, so what is wrong with it is no surprise of then."""
    plan = previewed({"min": 0, "target": 0, "max": 2}, bad=PermanentError("no image ami-1"))
    shown = printed(plan)
    assert "preview: for a first host, create 1 aws:ec2/instance:Instance" in shown
    assert "preview failed: no image ami-1" in shown
    assert "previewed in the clouds, where 1 preview failed" in shown
    with pytest.raises(PlanProblem, match="fleet/bad failed: no image"):
        preview.require_previewed(plan, "nothing was applied", or_passes=True)


def test_no_host_of_no_range_is_previewed(previewed):
    """A fleet that may have none asks nothing."""
    assert previewed({"min": 0, "target": 0, "max": 0}).annex["preview"] == {}


def test_an_unknown_instance_fails_the_preview(previewed):
    """No host is created beside it, so a plan that has looked does not promise one."""
    plan = previewed(unknown=("lost",))
    of_bad, of_good = to_json(plan, version="0")["resource_changes"]
    for one, name in ((of_bad, "bad"), (of_good, "good")):
        said = f"fleet {name} has instances that the ledger does not know: i-lost"
        assert one["preview_error"]["message"] == said
        assert "preview" not in one
    assert "`fleetform fleet adopt`" in printed(plan)


def test_hosts_by_demand_of_a_fleet_that_does_not_change(previewed):
    """They are previewed, and a failure keeps no run from being submitted."""
    one = {
        "hosts": 1, "runs": 1, "provider": "aws",
        "endpoint": {"account": "1", "region": "us-east-1", "instance_type": "g5.xlarge"},
        "before": {"micros": 0}, "after": {"micros": 1_006_000},
    }  # fmt: skip
    range_of_hosts = {"min": 0, "target": 0, "max": 2}
    annex = {"forecast": {"demand": {"good": one, "bad": one}}}
    plan = previewed(range_of_hosts, annex=annex, bad=PermanentError("no image ami-1"))
    assert plan.changes == ()
    shown = printed(plan)
    assert "Preview of fleet good by demand: create 1 aws:ec2/instance:Instance." in shown
    assert "Preview of fleet bad by demand failed: no image ami-1." in shown
    assert "previewed in the clouds, where 1 preview failed" in shown
    preview.require_previewed(plan, or_passes=True)
    with pytest.raises(PlanProblem, match="fleet/bad failed: no image"):
        preview.require_previewed(plan)
