"""Which account a job runs as on a host, and why it cannot run there."""

from __future__ import annotations

import pytest

from fleetform.model.account import account_obstacle, job_account, owner_of
from fleetform.model.instance import Instance, InstanceState

ALL = frozenset({"root", "ada"})


def host(**fields: object) -> Instance:
    values = {"provider": "ssh", "agent_account": "root", "accounts": ALL, **fields}
    return Instance("u", "gpu1", "gpus", 0, InstanceState.READY, **values)


@pytest.mark.parametrize(
    ("fields", "owner", "account"),
    [
        ({}, "ada", "ada"),
        ({"run_as": "owner"}, "ada", "ada"),
        ({"accounts": None}, "ada", "ada"),
        ({"agent_account": "lab"}, "ada", ""),
        ({"agent_account": "ada", "run_as": "owner"}, "ada", ""),
        ({"agent_account": "lab", "run_as": "agent"}, "ada", ""),
        ({"run_as": "root"}, "ada", ""),
        ({"provider": "local"}, "root", ""),
        ({"provider": "local"}, "ada", ""),
        ({"provider": "local", "run_as": "owner"}, "root", ""),
    ],
)
def test_where_jobs_run_as_which_account(fields, owner, account):
    """Over SSH an agent of root starts jobs as their owner, and any other one as itself."""
    assert account_obstacle(host(**fields), owner) == ""
    assert job_account(host(**fields), owner) == account


@pytest.mark.parametrize(
    ("fields", "owner", "why"),
    [
        ({}, "bob", "account bob does not exist on host gpu1"),
        ({}, "root", "root applied it"),
        ({"run_as": "owner"}, "root", "root applied it"),
        ({}, "", "not known which person"),
        ({"run_as": "agent"}, "ada", "`run_as: agent` would start jobs as root"),
        ({"run_as": "root", "agent_account": "lab"}, "ada", "runs as lab, not as root"),
        ({"run_as": "owner", "agent_account": "lab"}, "ada", "lab and cannot start jobs as ada"),
        ({"provider": "local", "run_as": "owner"}, "bob", "account bob does not exist"),
    ],
)
def test_why_no_job_starts_there(fields, owner, why):
    """Nothing runs as root that was not meant to, and nothing as another person."""
    assert why in account_obstacle(host(**fields), owner)


def test_a_host_that_has_not_reported_is_not_judged():
    """Its jobs are its owner's, which an agent that cannot do that refuses."""
    unknown = host(agent_account="", accounts=None)
    assert account_obstacle(unknown, "root") == ""
    assert job_account(unknown, "ada") == "ada"


def test_the_owner_is_a_person():
    """A program such as `serve` has no account in its name."""
    assert (owner_of("ada@node1"), owner_of("serve")) == ("ada", "")
