"""The launcher of other ranks: what it reads of its command line, and what jobs find of it."""

from __future__ import annotations

import subprocess

import pytest

from fleetform.agents.host import rank_environment, rank_launcher

ADDRESSES = "10.0.0.1\n10.0.0.2"


@pytest.mark.parametrize(
    ("arguments", "host", "words"),
    [
        (["10.0.0.2", "orted", "-mca", "x"], "10.0.0.2", ["orted", "-mca", "x"]),
        (["-x", "-q", "-l", "me", "-o", "A=b", "node2", "true"], "node2", ["true"]),
        (["-p22", "--", "me@node2", "sh", "-c", "a b"], "node2", ["sh", "-c", "a b"]),
    ],
)
def test_options_of_ssh_are_passed_over(arguments, host, words) -> None:
    """Programs call it as they call `ssh`."""
    assert rank_launcher._read(arguments) == (host, words)


def test_a_rank_is_named_by_its_address(monkeypatch) -> None:
    """Or by a name that leads to it; another address is refused with those that there are."""
    monkeypatch.setenv("FLEETFORM_NODES_IPS", f"127.0.0.1\n{ADDRESSES}")
    assert rank_launcher._rank_of("10.0.0.2") == 2
    assert rank_launcher._rank_of("localhost") == 0
    with pytest.raises(rank_launcher._Problem, match=r"its nodes are 127\.0\.0\.1, 10\.0\.0\.1"):
        rank_launcher._rank_of("192.0.2.1")


def test_a_job_finds_the_launcher(tmp_path) -> None:
    """On its PATH, after what was there; the copy is made once and says how it is used."""
    path = rank_environment.path("/usr/bin:/bin", str(tmp_path))
    before, _, folder = path.rpartition(":")
    assert (before, rank_environment.place(str(tmp_path))) == ("/usr/bin:/bin", folder)
    program = rank_environment.variables({})["OMPI_MCA_plm_rsh_agent"]
    done = subprocess.run(
        [program], env={"PATH": path}, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (255, "")
    assert done.stderr == "fleetform-rsh: usage: fleetform-rsh ADDRESS COMMAND...\n"
    done = subprocess.run(
        [program, "10.0.0.2", "true"],
        env={"PATH": path, "FLEETFORM_NODES_IPS": ADDRESSES},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "this job has no other nodes" in done.stderr


def test_the_network_is_that_of_the_nodes_address() -> None:
    """Unknown addresses and loopback restrict nothing."""
    for address in ("127.0.0.1", "192.0.2.77", "::1", ""):
        env = {"FLEETFORM_NODES_IPS": address, "FLEETFORM_NODE_RANK": "0"}
        assert not [name for name in rank_environment.variables(env) if name.endswith("if_include")]
    own = _own_address()
    if own:
        env = {"FLEETFORM_NODES_IPS": f"{own}\n192.0.2.1", "FLEETFORM_NODE_RANK": "0"}
        network = rank_environment.variables(env)["OMPI_MCA_btl_tcp_if_include"]
        assert "/" in network


def _own_address() -> str:
    """Return an address of this machine that is not loopback; empty where there is none."""
    shown = subprocess.run(["hostname", "-I"], capture_output=True, text=True, check=False).stdout
    found = [one for one in shown.split() if ":" not in one and not one.startswith("127.")]
    return found[0] if found else ""
