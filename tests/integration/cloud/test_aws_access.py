"""Who may connect to the hosts of a fleet on AWS is changed in place: the real command, the real engine."""

from __future__ import annotations

import json

import pytest

from integration.cloud.aws_site import killed_during, own_groups

pytestmark = pytest.mark.waits

HOME, OFFICE, HOTEL = "203.0.113.7/32", "198.51.100.9/32", "192.0.2.1/32"

ADD, TAKE_AWAY = "AuthorizeSecurityGroupIngress", "RevokeSecurityGroupIngress"


def declare(site, *ranges):
    """Declare a fleet of one host that accepts SSH from these addresses."""
    site.declare(1)
    path = site.root / "fleet.yaml"
    path.write_text(path.read_text().replace(f"[{HOME}]", json.dumps(ranges)))


def accepted(cloud):
    """The addresses from which the only group of the fleet accepts SSH."""
    (group,) = own_groups(cloud)
    return {
        one["CidrIp"]
        for rule in group["IpPermissions"]
        if rule.get("FromPort") == 22
        for one in rule["IpRanges"]
    }


def test_the_rule_is_changed_and_no_instance(site, cloud):
    """Plan and preview show the rule, apply edits it, the new address first, and the instance stays."""
    declare(site, HOME)
    site.run("apply", "-y")
    before = [one.id for one in cloud.instances()]
    calls = len(cloud.calls(ADD, TAKE_AWAY))
    declare(site, OFFICE, HOTEL)

    shown = site.run("plan")
    assert "~ fleet gpus  updated in place" in shown
    assert f"{HOME} → " in shown or f"- {HOME}" in shown
    assert "replaces" not in shown
    shown = site.run("plan", "--preview")
    print(shown)
    rule = f"ingress[0].cidrBlocks: {HOME} → {OFFICE}, {HOTEL}"
    assert f"update 1 aws:ec2/securityGroup:SecurityGroup ({rule})" in shown
    assert len(cloud.calls(ADD, TAKE_AWAY)) == calls

    said = site.run("apply", "-y")
    assert rule in said
    assert [one.id for one in cloud.instances()] == before
    assert accepted(cloud) == {OFFICE, HOTEL}
    order = [one.operation for one in cloud.calls(ADD, TAKE_AWAY)[calls:]]
    assert order == [ADD, TAKE_AWAY]
    assert site.plan()["resource_changes"] == []
    assert "ssh_from" not in site.run("drift", code=None)


@pytest.mark.parametrize("call", [ADD, TAKE_AWAY])
def test_kill_of_the_controller_during_the_change(site, cloud, call):
    """An address that is in the document before and after is accepted throughout, and any later apply completes the change."""
    declare(site, HOME, OFFICE)
    site.run("apply", "-y")
    before = [one.id for one in cloud.instances()]
    site.run("controller", "stop")
    declare(site, OFFICE, HOTEL)
    killed_during(site, cloud, call)
    assert OFFICE in accepted(cloud)
    if call == ADD:
        # The earlier addresses again: what the killed one has done is undone.
        declare(site, HOME, OFFICE)
    site.run("apply", "-y")
    assert accepted(cloud) == ({HOME, OFFICE} if call == ADD else {OFFICE, HOTEL})
    assert [one.id for one in cloud.instances()] == before
    assert site.plan()["resource_changes"] == []


def test_a_rule_that_was_added_by_hand(site, cloud):
    """A person who was locked out adds the new address in the console first; the apply takes the rule over, and removes others."""
    declare(site, HOME)
    site.run("apply", "-y")
    (group,) = own_groups(cloud)
    for port in (22, 9100):
        cloud.client().authorize_security_group_ingress(
            GroupId=group["GroupId"], IpProtocol="tcp", FromPort=port, ToPort=port, CidrIp=OFFICE
        )
    declare(site, OFFICE)
    site.run("apply", "-y")
    assert accepted(cloud) == {OFFICE}
    (group,) = own_groups(cloud)
    assert 9100 not in {rule.get("FromPort") for rule in group["IpPermissions"]}
    assert site.plan()["resource_changes"] == []
