"""A rebuild does not pass over hosts over SSH, which it cannot ask."""

from __future__ import annotations

import pytest

from fleetform.app.problems import RecoveringProblem
from fleetform.app.rebuild import _without_remote_hosts
from unit.plan.trees import declare, fleet, tree

DESIRED = tree(
    fleet("local"),
    declare(
        "fleet", "gpu", {"type": "fleet", "ssh_config": {"hosts": [{"hostname": "b"}, {"hostname": "a"}]}}
    ),
)  # fmt: skip


def test_hosts_over_ssh_are_named() -> None:
    """The help has the options that let a person take the responsibility."""
    with pytest.raises(RecoveringProblem, match="hosts over SSH yet: a, b") as caught:
        _without_remote_hosts(DESIRED, ["local-0"])
    assert "--lost a --lost b" in caught.value.advice


def test_hosts_that_are_given_up_are_not_asked() -> None:
    """What remains are hosts of this machine."""
    assert _without_remote_hosts(DESIRED, ["a", "local-0", "b"]) == ["local-0"]
    assert _without_remote_hosts(tree(fleet("local")), []) == []
