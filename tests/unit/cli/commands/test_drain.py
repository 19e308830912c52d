from __future__ import annotations

import json

import pytest

import applied
from fleetform.cli.commands.drain import drained, undrained
from fleetform.cli.failure import Refused


def test_a_host_is_drained_and_everybody_sees_it(typed, asked, lab):
    """The document says so, and once it is applied the fleet, its JSON and a plan do."""
    code, out, _err = typed("drain", "local/0", "--reason", "Fan 3 is loud")
    assert code == 0
    assert "+  reason: Fan 3 is loud" in out
    assert (
        "drain:\n  reason: Fan 3 is loud\n  hosts:\n    - local-0\n"
        in (lab / "tree.yaml").read_text()
    )
    applied.enter(lab)
    _code, out, _err = typed("fleet", "show", "local")
    assert "reason: Fan 3 is loud" in out
    (row,) = asked("fleet", "list")
    assert (row["ready"], row["drained"]) == (0, 1)
    code, out, _err = typed("plan", "--detailed-exitcode")
    assert code != 2
    assert "fleet/local" not in json.dumps(asked("plan")["resource_changes"]) or "No changes" in out


def test_a_reason_of_several_lines_is_one(typed, lab):
    """It is the subject of a commit as well."""
    assert typed("drain", "local", "--reason", "Fan 3\n is loud\n")[0] == 0
    assert "reason: Fan 3 is loud\n" in (lab / "tree.yaml").read_text()


def test_a_host_that_is_not_there_is_refused(typed, lab):
    """The fleet's own document knows its hosts."""
    code, _out, err = typed("drain", "local/local-9", "--reason", "x")
    assert code == 1
    assert "no host `local-9`" in err


def test_undrain_takes_it_back(typed, lab):
    """The text is as it was, byte for byte."""
    before = (lab / "tree.yaml").read_bytes()
    typed("drain", "local", "--reason", "Power is cut")
    assert (lab / "tree.yaml").read_bytes() != before
    assert typed("undrain", "fleet/local")[0] == 0
    assert (lab / "tree.yaml").read_bytes() == before


def test_undrain_knows_the_hosts_too(typed, lab):
    """One that is not drained stays as it is; one that the fleet lacks is a mistake."""
    code, _out, err = typed("undrain", "local/local-0")
    assert code == 0, err
    code, _out, err = typed("undrain", "local/loca-0")
    assert (code, "did you mean `local-0`" in err) == (1, True), err


@pytest.mark.parametrize(
    ("said", "after"),
    [
        (None, {"reason": "hot", "hosts": ["a"]}),
        ({"reason": "hot", "hosts": ["b"]}, {"reason": "hot", "hosts": ["a", "b"]}),
        ({"reason": "hot", "hosts": "a"}, {"reason": "hot", "hosts": ["a"]}),
        (
            [{"reason": "loud", "hosts": ["a", "b"]}],
            [{"reason": "loud", "hosts": ["b"]}, {"reason": "hot", "hosts": ["a"]}],
        ),
        ({"reason": "loud", "hosts": ["a"]}, {"reason": "hot", "hosts": ["a"]}),
    ],
)
def test_each_host_has_one_reason(said, after):
    """The last one said holds, and hosts with the same stand together."""
    assert drained(said, "a", "hot") == after
    assert drained(after, "a", "hot") == after


def test_a_whole_fleet_is_not_drained_in_part():
    """Neither one more nor one less can be said beside all."""
    said = "Power is cut"
    with pytest.raises(Refused, match="whole fleet"):
        drained(said, "a", "hot")
    with pytest.raises(Refused, match="whole fleet"):
        undrained(said, "a", "fleet/gpus/a")
    assert undrained(said, "", "fleet/gpus") is None
    assert undrained({"reason": "x", "hosts": ["a"]}, "a", "fleet/gpus/a") is None
