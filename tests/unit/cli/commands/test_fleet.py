from __future__ import annotations

import pytest

from fleetform.app.workspace import Workspace
from fleetform.store.lock import try_lock


def test_fleets_are_listed_with_their_use(asked, typed, lab):
    """Capacity and what is used of it."""
    (row,) = asked("fleet", "list")
    assert (row["name"], row["instances"], row["ready"]) == ("local", 1, 1)
    assert row["capacity"]["cpu_millicores"] == 4000
    assert "local" in typed("fleet", "list")[1]


def test_one_fleet_is_shown_with_its_instances(asked, typed, lab):
    """The hosts, each with its state."""
    shown = asked("fleet", "show", "local")
    assert [host["state"] for host in shown["instances"]] == ["ready"]
    assert "local-0" in typed("fleet", "show", "local")[1]
    assert typed("fleet", "show", "locl")[2].endswith("did you mean `local`?\n")


def test_a_host_is_shown_by_its_fleet(typed, lab):
    """Also where it is named behind its fleet."""
    for name in ("local-0", "local/local-0"):
        code, _out, err = typed("fleet", "show", name)
        assert code == 1
        assert err.startswith("error: `local-0` is a host of fleet local\n")
        assert "`fleetform fleet show local`" in err


def test_the_hosts_of_all_fleets_are_listed(asked, typed, lab):
    """Each with its fleet; the names of fleets select theirs."""
    (host,) = asked("fleet", "hosts")
    assert (host["name"], host["fleet"], host["state"]) == ("local-0", "local", "ready")
    assert asked("fleet", "hosts", "local") == [host]
    assert "local-0" in typed("fleet", "hosts")[1]
    assert typed("fleet", "hosts", "locl")[2].endswith("did you mean `local`?\n")


@pytest.mark.parametrize("words", [("list",), ("show", "local"), ("hosts",)])
def test_how_old_the_states_of_hosts_are_is_said_without_a_controller(typed, lab, words):
    """A host may have died since it was last heard; JSON stays JSON."""
    err = typed("fleet", *words)[2]
    assert "no controller is running: the states of hosts and runs may be outdated" in err
    assert ", last observed " in err
    assert typed("fleet", *words, "--json")[2] == ""
    lease = Workspace.open(str(lab)).paths.manager_lock
    with try_lock(lease, who="ada", command="serve", now_ms=0):
        assert typed("fleet", *words)[2] == ""
