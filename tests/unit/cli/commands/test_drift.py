from __future__ import annotations

import json

import pytest

import applied
from fleetform.cli.exit import Exit


@pytest.fixture
def unasked(root, monkeypatch, tmp_path):
    """An environment with a fleet on a cloud, on a machine without the Pulumi CLI."""
    applied.write_tree(root, applied.AWS_FLEET)
    applied.enter(root)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("PULUMI_HOME", str(tmp_path))
    monkeypatch.chdir(root)
    return root


def test_a_host_that_is_not_there_has_drifted(asked, typed, lab):
    """Its rows say that it was made, and the world has none: told, and only with 2 if asked."""
    found = asked("drift")
    paths = {(row["resource"], row["path"]) for row in found["drift"]}
    assert ("fleet/local", "hosts[local-0].host") in paths
    assert ("volume/data", "directory") in paths
    assert found["observed_at_ms"] > 0
    assert typed("drift")[0] == Exit.OK
    assert typed("drift", "--detailed-exitcode")[0] == Exit.CHANGES


def test_two_looks_tell_the_same(asked, lab):
    """A look does not take what it finds for right."""
    first, second = asked("drift"), asked("drift")
    assert first["drift"] == second["drift"]


@pytest.mark.parametrize(
    "command", [("drift",), ("plan", "--refresh-only"), ("apply", "--refresh-only", "-y")]
)
@pytest.mark.parametrize("detailed", [(), ("--detailed-exitcode",)])
def test_a_cloud_that_was_not_asked_is_an_error(typed, unasked, command, detailed):
    """No nightly job takes it for no drift; the warning says what to do."""
    flags = () if command[0] == "apply" else detailed
    code, out, err = typed(*command, *flags)
    assert code == Exit.ERROR
    assert "No drift was found, but not all clouds were asked" in out
    assert (
        "instances in us-east-1 are not listed: the Pulumi CLI is not installed; run `fleetform doctor"
        in err
    )


def test_a_plan_of_a_cloud_that_was_not_asked_is_shown(typed, unasked):
    """It says what it does not know, also beside JSON, and its exit code does too."""
    code, out, err = typed("plan", "--refresh", "--format", "json")
    assert code == Exit.ERROR
    assert json.loads(out)["resource_changes"] == []
    assert "instances in us-east-1 are not listed" in err


@pytest.mark.parametrize("verb", ["adopt", "terminate"])
def test_an_instance_of_a_cloud_that_was_not_asked(typed, unasked, verb):
    """Nothing is said of the instance, because nothing is known of it."""
    code, _out, err = typed("fleet", verb, "i-1")
    assert code == Exit.ERROR
    assert "whether i-1 is an unknown instance is not known: instances in us-east-1" in err
    assert "is not an unknown instance" not in err


def test_a_refreshed_plan_sets_right_and_holds(typed, asked, lab):
    """The host is made again; the volume, whose data is gone, is held."""
    code, out, _err = typed("plan", "--refresh", "--detailed-exitcode")
    assert code == Exit.HELD
    assert "its actual state has drifted" in out
    assert "--replace volume/data" in out
    assert "its actual state has drifted" not in typed("plan")[1]


def test_where_nothing_was_applied_nothing_can_drift(typed, root, monkeypatch):
    """No ledger is made for the asking."""
    monkeypatch.chdir(root)
    assert typed("drift")[0] == Exit.ERROR
    assert typed("plan", "--refresh-only")[0] == Exit.ERROR
    assert typed("plan", "--refresh")[0] in {Exit.OK, Exit.HELD}
    assert not (root.parent / "state" / "environments").exists()


def test_refresh_only_shows_all_and_changes_nothing(typed, asked, lab):
    """Nothing is only observed here, so there is nothing to accept."""
    assert typed("plan", "--refresh-only", "--detailed-exitcode")[0] == Exit.CHANGES
    assert typed("apply", "--refresh-only", "-y")[0] == Exit.OK
    assert len(asked("drift")["drift"]) == len(asked("plan", "--refresh-only"))


@pytest.mark.parametrize(
    ("command", "flags"),
    [
        ("plan", "--replace=train"),
        ("plan", "--target=train"),
        ("plan", "--exclude=train"),
        ("plan", "--allow-destroy"),
        ("plan", "--allow-restart"),
        ("plan", "--allow-deletes=0"),
        ("plan", "--keep-going"),
        ("plan", "--refresh"),
        ("plan", "--format=markdown"),
        ("plan", "--out=x.plan"),
        ("plan", "--destroy"),
        ("apply", "--replace=train"),
        ("apply", "--refresh"),
        ("apply", "--detach"),
        ("apply", "--show-output"),
        ("apply", "--json-into=x.json"),
        ("apply", "--takeover"),
        ("apply", "--for=1h"),
        ("apply", "--reason=swap"),
    ],
)
def test_looking_alone_takes_no_flag_of_a_plan(typed, lab, command, flags):
    """A flag that is accepted is obeyed: what only looks refuses what says how to plan."""
    code, out, err = typed(command, "--refresh-only", flags)
    assert (code, out) == (Exit.ERROR, "")
    assert (
        f"{flags.replace('=markdown', ' markdown').partition('=')[0]} does not go with --refresh-only"
        in err
    )
    assert not list(lab.glob("x.*"))
