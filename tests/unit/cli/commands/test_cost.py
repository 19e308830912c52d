from __future__ import annotations


def test_an_address_chooses_between_a_fleet_and_a_run(typed, lab):
    """`fleet/NAME` and `run/NAME` are accepted as by other commands, and a wrong kind is refused."""
    none = "no host of a cloud was created for local\n"
    assert typed("cost", "local")[:2] == (0, none)
    assert typed("cost", "fleet/local")[:2] == (0, none)
    code, _, err = typed("cost", "run/local")
    assert code == 1
    assert "there is no run `local`" in err
    assert "there is no fleet `train`" in typed("cost", "fleet/train")[2]
