"""Backends of every type: their names, their credentials, and what is told of keys in clear."""

from __future__ import annotations

import pytest

from fleetform.spec.desired import ResourceKey
from unit.spec.trees import codes, good, load

SLURM = "type: slurm\nclusters: {{name: a, hostname: a, user: a, private_key: {{path: a}}, {}}}"
KEYED = "type: lambda\ncreds: {type: api_key, api_key: '${{ secrets.key }}'}\n"


@pytest.mark.parametrize(
    ("text", "name"),
    [("type: aws\n", "aws"), ("type: aws\nname: aws-research\n", "aws-research")],
)
def test_names(tmp_path, text, name):
    """A backend is called what it is, unless it has a name; and the two do not clash."""
    desired = good(tmp_path, text)
    assert list(desired.beyond) == [ResourceKey("backend", name)]


def test_two_of_one_name(tmp_path):
    """Two without a name are one and the same."""
    assert codes(load(tmp_path, "type: aws\n---\ntype: aws\n")).count("duplicate-name") == 2


@pytest.mark.parametrize(
    ("text", "code", "words"),
    [
        ("type: aws\nname: Aws", "bad-name", "lower-case"),
        ("type: aws\nregion: a\nregions: [b]", "said-twice", "Keep `regions`."),
        ("type: aws\ncreds: {type: access_key}", "missing-field", "`access_key`, which is missing"),
        ("type: aws\ncreds: {type: access_key, access_key: a}", "missing-field", "${{ secrets.NAME }}"),
        ("type: aws\ncreds: {type: default, access_key: a}", "contradiction", "does not go with"),
        ("type: aws\ncreds: {type: api_key}", "bad-value", "`default`, `access_key`"),
        ("type: azure\nsubscription_id: a", "missing-field", "`tenant_id` is missing"),
        ("type: lambda", "missing-field", "`creds` is missing"),
        ("type: lambda\ncreds: {type: api_key}", "missing-field", "`api_key` is missing"),
        ("type: slurm\nclusters: []", "bad-value", "list is empty"),
        (
            SLURM.format("gpu_partitions: {gpu: 'A100:8', partitions: a}"),
            "bad-value",
            "Slurm knows the number of GPUs of a node.",
        ),
        ("type: kubernetes\nproxy_jump: {port: 99999}", "bad-value", "the most is 65535"),
    ],
)  # fmt: skip
def test_refused(tmp_path, text, code, words):
    """Each mistake has its code, and words that say what to do."""
    loaded = load(tmp_path, f"{text}\n")
    told = [f"{one.detail} {one.advice}" for one in loaded.errors if one.code == code]
    assert any(words in text for text in told)


CLEAR = {
    "type: lambda\ncreds:\n  type: api_key\n  api_key: {}\n": (2, "creds", "api_key"),
    "type: aws\ncreds:\n  type: access_key\n  access_key: a\n  secret_key: {}\n": (2, "creds", "secret_key"),
    "type: kubernetes\nkubeconfig:\n  data: {}\n": (2, "kubeconfig", "data"),
    "type: verda\ncreds:\n  type: api_key\n  client_id: a\n  client_secret: {}\n": (2, "creds", "client_secret"),
}  # fmt: skip


@pytest.mark.parametrize("text", CLEAR)
@pytest.mark.parametrize("value", ["hunter2", "${{ secrets.key }}", "<key>"])
def test_keys_in_clear(tmp_path, text, value):
    """A key in clear is a warning that does not quote it, and a digest in the canonical form."""
    loaded = load(tmp_path, text.format(value))
    found = [one for one in loaded.findings if one.code == "secret-in-clear"]
    assert bool(found) == (value == "hunter2")
    line, part, field = CLEAR[text]
    for one in found:
        assert (one.level, one.place.line) == ("warning", line)
        assert f"`{field}`" in one.detail
    assert all("hunter2" not in one.text for one in loaded.findings)
    assert not loaded.errors
    assert loaded.desired is not None
    (held,) = loaded.desired.beyond.values()
    sealed = held.declared.document[part][field]
    assert sealed.startswith("sha256:") if value == "hunter2" else sealed == value


def test_another_key_is_another_document(tmp_path):
    """That a key has changed can be seen, and which it is cannot."""
    one, two = (
        good(tmp_path / number, KEYED.replace("${{ secrets.key }}", f"hunter{number}"))
        for number in ("1", "2")
    )
    (first,), (second,) = one.beyond.values(), two.beyond.values()
    assert first.declared.digest != second.declared.digest


def test_one_region(tmp_path):
    """`region` is `regions` with one entry."""
    (one,) = good(tmp_path / "1", "type: gcp\nregion: a\n").beyond.values()
    (two,) = good(tmp_path / "2", "type: gcp\nregions: [a]\n").beyond.values()
    assert one.declared.document == two.declared.document
