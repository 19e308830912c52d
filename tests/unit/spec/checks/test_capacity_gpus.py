"""Names of GPUs that no fleet can have."""

from __future__ import annotations

import pytest

from fleetform.spec.checks.capacity import close_gpu_name
from fleetform.spec.quantities.gpu import is_gpu_name
from unit.spec.trees import codes, load

RUN = "---\ntype: task\nname: train\ncommands: [echo]\n"
LOCAL = "type: fleet\nname: local\nlocal: {cpu: 4, memory: 4GB}\n"


@pytest.mark.parametrize(
    ("gpu", "place", "advice"),
    [
        ("'HH100:8'", (8, 18), "Did you mean `H100`?"),
        ("'A10O:1'", (8, 18), "Did you mean `A100`?"),
        ("{name: h1oo, count: 2}", (8, 25), "Did you mean `H100`?"),
        ("{name: [H100, RTX409O]}", (8, 32), "Did you mean `RTX4090`?"),
        ("'nvidia:MI30OX:1'", (8, 18), "Did you mean `MI300X`?"),
        ("quux", (8, 18), "Correct the name, or declare it under `gpu` of the fleet that has it."),
    ],
)
def test_a_misspelt_gpu_is_a_warning(tmp_path, gpu, place, advice):
    """A name that is no model and that no fleet declares is told at its place, with the close one."""
    loaded = load(tmp_path, f"{LOCAL}{RUN}resources: {{gpu: {gpu}}}")
    (found,) = loaded.findings
    assert (found.code, found.level, found.advice) == ("unknown-gpu", "warning", advice)
    assert (found.place.line, found.place.column) == place


@pytest.mark.parametrize(
    "fleet",
    [
        "type: fleet\nname: own\nlocal: {gpu: 'quux:80GB:2'}\n",
        "type: fleet\nname: own\nssh_config:\n  hosts: [{hostname: a, capacity: {gpu: 'Quux:2'}}]\n",
    ],
)
def test_what_a_fleet_declares_is_known(tmp_path, fleet):
    """A model of tomorrow is right when a fleet or one of its hosts has it."""
    assert "unknown-gpu" not in codes(load(tmp_path, f"{fleet}{RUN}resources: {{gpu: quux}}"))


def test_a_fleet_that_cannot_be_read_may_have_it(tmp_path):
    """A mistake in a fleet is told alone, not with a warning for each run that it may serve."""
    fleet = "type: fleet\nname: own\nlocal: {gpu: 'quux:2', cup: 4}\n"
    assert codes(load(tmp_path, f"{fleet}{RUN}resources: {{gpu: quux}}")) == ["unknown-field"]


def test_a_fleet_that_asks_for_gpus_has_none_by_that(tmp_path):
    """The resources that a fleet asks a cloud for are misspelt as easily as those of a run."""
    fleet = "type: fleet\nname: own\nnodes: 1\nresources: {gpu: 'HH100:8'}\n"
    assert codes(load(tmp_path, f"{fleet}{RUN}resources: {{gpu: HH100}}")).count("unknown-gpu") == 2


@pytest.mark.parametrize(
    "name",
    [
        *("H100", "h100", "A100-SXM4-80GB", "NVIDIA H100 80GB HBM3", "rtx_4090", "RTX 4090"),
        *("5090D", "NVIDIA GeForce RTX 3090", "Tesla V100-PCIE-16GB", "MI300X", "Gaudi3"),
        *("v5litepod-8", "v6e", "n150", "GB200", "RTXPRO6000", "NVIDIA RTX A4000"),
    ],
)
def test_models_are_known_in_every_spelling(name):
    """People, catalogues and drivers spell one model differently, and all of them are right."""
    assert is_gpu_name(name)


@pytest.mark.parametrize("name", ["HH100", "A10O", "H1000", "gpu9", "V10", "xH100"])
def test_a_slip_is_no_model(name):
    """A name that only contains or resembles that of a model is not known."""
    assert not is_gpu_name(name)


def test_no_model_is_near_to_everything():
    """A name that resembles no model gets no suggestion, which would be a guess."""
    assert close_gpu_name("our-old-cards") is None
