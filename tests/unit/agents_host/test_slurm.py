"""The stand-ins for Slurm's commands, as far as they only read and decide."""

from __future__ import annotations

import pytest

from fleetform.agents.host.slurm import scontrol
from fleetform.agents.host.slurm.options import IGNORED, OptionError, parse


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("gpu[01-03,7],login", ["gpu01", "gpu02", "gpu03", "gpu7", "login"]),
        ("127.0.0.1,10.0.0.[9-10]", ["127.0.0.1", "10.0.0.9", "10.0.0.10"]),
        ("r[1-2]n[1-2]", ["r1n1", "r1n2", "r2n1", "r2n2"]),
        ("", []),
    ],
)
def test_lists_of_nodes(text, names):
    """A list is its names in their order, and numbers keep their width."""
    assert scontrol.expand(text) == names


@pytest.mark.parametrize(
    "text", ["a[1", "a]", "a[x]", "a[1-]", "a[0-99999999]", "a[0-9999]b[0-9999]"]
)
def test_what_is_no_list(text):
    """A list that does not parse, or would fill the memory, is refused."""
    with pytest.raises(ValueError, match=r"brackets|number|more than"):
        scontrol.expand(text)


def test_options_of_srun():
    """Short, long and joined options are read up to the program, whose own options stay."""
    found = parse(["-ln4", "--export=ALL,A=1", "-K", "-D/tmp", "--", "prog", "-n", "9"])
    assert (found.program, found.tasks, found.label) == (["prog", "-n", "9"], 4, True)
    assert (found.export, found.kill_on_bad_exit, found.directory) == ("ALL,A=1", True, "/tmp")
    assert parse(["--ntasks-per-node", "2", "prog"]).tasks == 2
    assert parse(["prog"]).tasks is None
    assert parse(["-G", "a100:2", "--gres=gpu:2", "prog"], gpus=2).program == ["prog"]


@pytest.mark.parametrize("name", sorted(one for names in IGNORED.values() for one in names.split()))
def test_options_without_effect(name):
    """Each option of the list is taken with a value, and changes nothing."""
    assert parse([f"{name}=1", "prog"]) == parse(["prog"])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--pty", "bash"], "`--pty` is not supported"),
        (["--multi-prog", "f"], "`--multi-prog` is not supported"),
        (["-x", "h", "prog"], "`-x` is not supported"),
        (["-N", "2", "prog"], "several nodes is not supported yet"),
        (["-n", "many", "prog"], "whole number"),
        (["-n"], "needs a value"),
        (["-n", "2"], "no program"),
        (["--gpus=1", "prog"], "another number is not supported yet"),
    ],
)
def test_options_that_are_refused(words, message):
    """An option that would change what runs is an error that names it."""
    with pytest.raises(OptionError, match=message):
        parse(words, gpus=2)


def test_a_job_on_several_nodes_has_no_srun():
    """In a job on several nodes srun starts nothing, whatever its options."""
    with pytest.raises(OptionError, match="several nodes is not supported yet"):
        parse(["prog"], nodes=2)


def test_scontrol():
    """`show hostnames` expands a list, `show job` tells of this job alone, the rest is refused."""
    env = {"SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": "n[1-2]", "SLURM_JOB_NAME": "train"}
    assert scontrol.run(["show", "hostnames"], env) == ["n1", "n2"]
    assert scontrol.run(["show", "hostnames", "a[1-2]"], env) == ["a1", "a2"]
    (line,) = scontrol.run(["show", "job", "7"], env)
    assert line.startswith("JobId=7 JobName=train ")
    for words in (["show", "job", "8"], ["show", "nodes"], ["requeue", "7"], []):
        with pytest.raises(scontrol.ScontrolError):
            scontrol.run(words, env)
