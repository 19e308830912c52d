"""Fleets of hosts over SSH: what a plan says of their hosts, and what a step is to bring about."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from fleetform.model.instance import Instance, InstanceState
from fleetform.model.live import Live
from fleetform.model.plan import Action, Plan
from fleetform.model.verbs import Verb
from fleetform.spec.desired import Declared
from fleetform.views.plan.json import to_json
from fleetform.views.plan.markdown import render as markdown
from fleetform.views.plan.text import render
from unit.plan.trees import declare, fleet, ledger, planned, row, tree


def over_ssh(*hosts: str | dict[str, Any], **config: Any) -> Declared:
    listed = [{"hostname": one} if isinstance(one, str) else one for one in hosts]
    return declare("fleet", "gpu", {"type": "fleet", "ssh_config": {"hosts": listed, **config}})


def live(*hosts: str) -> Live:
    up = tuple(
        Instance(
            f"uid-{name}",
            name,
            "gpu",
            number,
            InstanceState.READY,
            provider="ssh",
            install_id=f"install-{name}",
        )
        for number, name in enumerate(hosts)
    )
    return replace(ledger(row(over_ssh(*hosts))), instances=up)


def places(plan: Plan) -> dict[str, dict[str, Any]]:
    (change,) = plan.changes
    return {one["name"]: one for one in change.steps[-1].arguments["instances"]}


def test_a_host_has_the_fields_of_the_fleet_unless_it_has_its_own() -> None:
    """Its name is its host name, with the port that is its own."""
    made = planned(
        tree(
            over_ssh(
                "a",
                {"hostname": "b", "port": 2222, "user": "ada", "internal_ip": "10.0.0.2"},
                user="root",
                identity_file="~/.ssh/lab",
                host_keys="first-use",
            )
        ),
        ledger(),
    )
    assert {name: one["endpoint"] for name, one in places(made).items()} == {
        "a": {
            "hostname": "a", "user": "root", "identity_file": "~/.ssh/lab",
            "host_keys": "first-use",
        },
        "b:2222": {
            "hostname": "b", "port": 2222, "user": "ada", "identity_file": "~/.ssh/lab",
            "internal_ip": "10.0.0.2", "host_keys": "first-use",
        },
    }  # fmt: skip
    assert {one["provider"] for one in places(made).values()} == {"ssh"}


def test_a_host_in_the_middle_changes_no_other() -> None:
    """One that is added or removed is named; the others keep theirs."""
    grown = planned(tree(over_ssh("a", "new", "b")), live("a", "b"))
    assert list(places(grown)) == ["a", "new", "b"]
    assert "hosts_removed" not in grown.annex
    assert grown.annex["hosts_set_up"] == {"gpu": ["new"]}
    sets_up = (
        "new (copies the agent to ~/.local/state/fleetform and starts it, with systemd or cron where"
        " the host has them)"
    )
    shown = ["".join(span.text for span in one.spans) for one in render(grown)]
    assert f"      sets up: {sets_up}" in shown
    assert "Sets up: new" in markdown(grown)
    (change,) = to_json(grown, version="1")["resource_changes"]
    assert change["hosts_set_up"] == ["new"]
    assert not grown.changes[0].destructive
    smaller = planned(tree(over_ssh("a", "c")), live("a", "b", "c"))
    assert smaller.annex["hosts_removed"] == {"gpu": ["b"]}


def test_a_plain_account_may_not_linger() -> None:
    """The plan names the folder of the agent, and the administrator's command for each account."""
    fields = {"user": "ada", "agent_dir": "/srv/agents"}
    made = planned(tree(over_ssh("a", {"hostname": "b", "user": "root"}, **fields)), ledger())
    shown = ["".join(span.text for span in one.spans) for one in render(made)]
    (line,) = [line for line in shown if "sets up: " in line]
    assert "a, b (copies the agent to /srv/agents and starts it" in line
    assert "an administrator must run `loginctl enable-linger ada`, or jobs end at logout" in line
    assert "linger root" not in line
    assert {one["endpoint"]["agent_dir"] for one in places(made).values()} == {"/srv/agents"}


def test_another_folder_for_the_agent_replaces_the_fleet() -> None:
    """The agent in the earlier folder ends: it would run on, with its jobs, and nothing would know."""
    made = planned(tree(over_ssh("a", agent_dir="/srv/agents")), live("a"))
    (change, *_) = (*made.changes, *(held.change for held in made.held))
    assert [step.verb for step in change.steps] == [Verb.FLEET_REMOVE, Verb.FLEET_MAKE]
    assert change.destructive


def test_a_lost_host_is_no_place_and_its_jobs_are_at_stake() -> None:
    """`lost:` is a person's word that a machine never returns."""
    lost = {"hostname": "b", "lost": {"reason": "disk broken"}}
    made = planned(tree(over_ssh("a", lost)), live("a", "b"))
    assert list(places(made)) == ["a"]
    (change,) = made.changes
    assert change.steps[0].arguments["lost"] == {"b": "disk broken"}
    assert not change.destructive
    assert change.at_stake == "all jobs on host b, which the configuration declares lost"
    after = replace(live("a"), resources=ledger(row(over_ssh("a", lost))).resources)
    assert planned(tree(over_ssh("a", lost)), after).changes == ()


def test_hosts_that_are_drained_say_why() -> None:
    """By the fleet's `drain:` or by the host's own."""
    own = {"hostname": "a", "drain": {"reason": "fan"}}
    made = planned(tree(over_ssh(own, "b")), live("a", "b"))
    assert [one.get("drained", "") for one in places(made).values()] == ["fan", ""]


def test_another_source_of_hosts_replaces_them() -> None:
    """Shares of this machine cannot become other machines: they go before the new ones come."""
    made = planned(tree(over_ssh("a")), ledger(row(fleet("gpu", nodes=2))))
    (change, *_) = (*made.changes, *(held.change for held in made.held))
    assert change.action is Action.REPLACE
    assert [step.verb for step in change.steps] == ["fleet.remove", "fleet.make"]
    assert change.destructive
