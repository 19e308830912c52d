"""What people write that is no field here: every word leads to a field that there is."""

from __future__ import annotations

import pytest

from fleetform.spec.environment import EnvironmentDocument
from fleetform.spec.kinds import KINDS
from fleetform.spec.kinds.base import Model
from fleetform.spec.kinds.synonyms import fields_by_word, words_by_choice
from fleetform.spec.tree.validation_errors import _leaves, _model_at
from unit.spec.trees import load


@pytest.mark.parametrize("part", sorted(fields_by_word()))
def test_words_lead_to_fields(part):
    """A word is suggested as a field that exists where it was written, and is none itself."""
    type_name, *path = part.split(".")
    model = EnvironmentDocument if type_name == "environment" else KINDS[type_name].model
    owner = _model_at(model, path)
    for word, field in fields_by_word()[part].items():
        *above, last = field.split(".")
        assert last in _model_at(owner, above).model_fields, word
        assert word not in owner.model_fields or word == field, word
        assert word == word.lower().replace("-", "_"), word


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("type: fleet\nname: ff\ngres: 8", "resources.gpu"),
        ("type: fleet\nname: ff\nspot: true", "spot_policy"),
        ("type: fleet\nname: ff\nk8s: {}", "kubernetes"),
        ("type: fleet\nname: ff\nssh_config: {hosts: [{NodeHostname: a}]}", "hostname"),
        ("type: fleet\nname: ff\nslurm: {qualityOfService: a, partition: b}", "partitions"),
        ("type: volume\nname: vv\npersistentVolumeReclaimPolicy: Retain", "deletion_policy"),
        ("type: queue\nname: qq\nMaxTime: 4h", "max_duration"),
        ("type: queue\nname: qq\nPriorityTier: 3", "tier"),
        ("type: quota\nname: qq\nGrpTRES: gpu=8", "gpus"),
        ("type: quota\nname: qq\naccount: vision", "project"),
        ("type: reservation\nname: rr\nStartTime: now", "begin"),
        ("type: gateway\nname: gg\ntls: true", "certificate"),
        ("type: user\nname: ada\nauthorized-keys: [a]", "ssh_keys"),
        ("type: policy\nname: pp\nmatch: {verbs: [a]}", "actions"),
        ("type: aws\ncredentials: default", "creds"),
        ("type: project\nname: pp\nbackends: [{type: gcp, project: a}]", "project_id"),
    ],
)
def test_words_of_others(tmp_path, text, meant):
    """What Slurm, Kubernetes and clouds call something is answered with what it is called here."""
    loaded = load(tmp_path, f"{text}\n")
    advice = [one.advice for one in loaded.findings if one.code == "unknown-field"]
    assert f"Did you mean `{meant}`?" in advice


def _choices(model, path, seen):
    """Every choice of each field at or below a model, by the field's name."""
    for name, field in model.model_fields.items():
        for leaf in _leaves(field.annotation):
            if isinstance(leaf, str):
                seen.setdefault(name, set()).add(leaf)
            elif isinstance(leaf, type) and issubclass(leaf, Model) and leaf not in path:
                _choices(leaf, (*path, leaf), seen)
    return seen


def test_words_lead_to_choices():
    """Each word for a value is answered with a choice that a field of the name has."""
    seen: dict[str, set[str]] = {}
    for kind in KINDS.values():
        _choices(kind.model, (kind.model,), seen)
    for field, words in words_by_choice().items():
        assert set(words) <= seen[field], field


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        *((f"{head}runtime: docker", "container") for head in (
            "type: task\nname: tt\ncommands: [a]\n",
            "type: fleet\nname: ff\nlocal: true\n",
            "type: queue\nname: qq\nfleets: [ff]\n",
            "type: profile\nname: pp\n",
        )),
        ("type: task\nname: tt\ncommands: [a]\nstate: Paused", "stopped"),
        ("type: queue\nname: qq\nstate: DOWN", "closed"),
        ("type: task\nname: tt\ncommands: [a]\nretry: {on: [NODE_FAIL]}", "node-failure"),
        ("type: volume\nname: vv\nbackend: kubernetes\nclaim_name: cc\naccess_modes: [RWX]", "ReadWriteMany"),
        ("type: fleet\nname: ff\nlocal: true\nsharing: exclusive", "whole"),
    ],
)  # fmt: skip
def test_values_of_others(tmp_path, text, meant):
    """What a value is called elsewhere is answered with what it is called here, in every kind."""
    loaded = load(tmp_path, f"{text}\n")
    (advice,) = [one.advice for one in loaded.errors if one.code == "bad-value"]
    assert advice.startswith(f"Did you mean `{meant}`? Choose one of ")
