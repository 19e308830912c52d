"""Which hosts of other machines a rebuild asks."""

from __future__ import annotations

from fleetform.app.rebuild import remote_requests
from fleetform.model.instance import Instance, InstanceState
from unit.plan.trees import declare, fleet, tree

DESIRED = tree(
    fleet("local"),
    declare(
        "fleet",
        "gpu",
        {
            "type": "fleet",
            "ssh_config": {
                "user": "ada",
                "hosts": [
                    {"hostname": "b"},
                    {"hostname": "a", "lost": {"reason": "it burnt"}},
                    {"hostname": "c", "drain": {"reason": "a fan is loud"}},
                ],
            },
        },
    ),
)


def _row(name: str, state: InstanceState = InstanceState.READY) -> Instance:
    return Instance(
        f"uid-{name}", name, "gpu", 0, state, provider="ssh",
        endpoint={"hostname": name}, host_key=f"key of {name}",
    )  # fmt: skip


def test_declared_hosts_are_asked_unless_they_are_lost() -> None:
    """A drained host has its jobs all the same; a share of this machine is in the inventory."""
    found = remote_requests(DESIRED, [_row("b")])
    assert [(one.name, one.host_key, one.endpoint["user"]) for one in found] == [
        ("b", "key of b", "ada"),
        ("c", "", "ada"),
    ]


def test_hosts_that_only_the_backup_has_are_asked() -> None:
    """One that has left the configuration since may still run what it was given."""
    rows = [_row("a"), _row("d"), _row("e", InstanceState.TERMINATED)]
    assert [one.name for one in remote_requests(DESIRED, rows)] == ["b", "c", "d"]
