"""How often the engine is started: for what changed only."""

from __future__ import annotations

import pytest

from cloud.cli_record import CliRecord
from integration.cloud.aws_site import FLEET

pytestmark = pytest.mark.waits


def declare(site, name, nodes):
    text = FLEET.format(nodes=nodes, image=site.image).replace("name: gpus", f"name: {name}")
    (site.root / f"{name}.yaml").write_text(text)


def test_one_changed_fleet_is_one_preview(site, cloud):
    """Of fleets with several batches only the new batch of the changed one is previewed and created, by one `up`."""
    record = CliRecord(cloud)
    for nodes in (1, 2):
        declare(site, "quiet", nodes)
        declare(site, "changed", nodes)
        site.run("apply", "-y")
    site.run("controller", "stop")
    before = len(record.starts())
    assert site.plan()["resource_changes"] == []
    assert "1 to update" not in site.run("plan", "--preview")
    assert len(record.starts()) == before

    declare(site, "changed", 3)
    assert "create 1 aws:ec2/instance:Instance" in site.run("plan", "--preview")
    assert [one.command for one in record.starts()[before:]] == ["version", "stack init", "preview"]
    site.run("plan", "--preview")
    assert len(record.starts()) == before + 3
    site.run("apply", "-y")
    commands = [one.command for one in record.starts()[before + 3 :]]
    assert commands == ["version", "stack init", "up", "stack history", "stack export"]
    assert len(cloud.instances()) == 5
