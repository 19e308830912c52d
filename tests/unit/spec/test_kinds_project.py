"""Fields of a project: who belongs to it, and what it may use."""

from __future__ import annotations

import pytest

from unit.spec.trees import good, load

DOCUMENT = "type: project\nname: vision\n"


@pytest.mark.parametrize(
    ("fields", "code", "words"),
    [
        ("members: [ada, {user: ada, role: admin}]", "said-twice", "`ada` is named twice"),
        (
            "members: [{user: ada, role: owner}]",
            "bad-value",
            "`admin`, `manager`, `user`, `reader`",
        ),
        ("members: [Ada]", "bad-name", "lower-case"),
        ("queues: [one]\ndefault_queue: two", "contradiction", "is not one of its `queues`."),
        ("backends: [{type: awz}]", "bad-value", "Did you mean `aws`?"),
        ("backends: [aws]", "wrong-type", "a backend, such as `{type: aws}`"),
        ("backends: [{type: aws}, {type: aws}]", "said-twice", "Add `name:` to one of them."),
        (
            "backends: [{type: aws, creds: {type: access_key}}]",
            "missing-field",
            "`access_key`, which is missing",
        ),
        ("backends: [{type: gcp, gpus: 3}]", "unknown-field", "A gcp backend has no field `gpus`."),
        ("backends: [{type: azure}]", "missing-field", "`subscription_id` is missing"),
        ("grants: {host_paths: [../x]}", "bad-path", "contains `..`"),
    ],
)
def test_refused(tmp_path, fields, code, words):
    """Each mistake has its code, and words that say what to do."""
    loaded = load(tmp_path, f"{DOCUMENT}{fields}\n")
    told = [f"{one.detail} {one.advice}" for one in loaded.errors if one.code == code]
    assert any(words in text for text in told)


def test_held(tmp_path):
    """Nothing carries it out yet: one note at its type, whatever it says, and a plan holds it."""
    loaded = load(tmp_path, f"{DOCUMENT}public: true\n")
    notes = [finding for finding in loaded.findings if finding.level == "note"]
    assert [(one.code, one.place.line) for one in notes] == [("not-supported", 1)]
    assert loaded.desired is not None
    assert [str(key) for key in loaded.desired.beyond] == ["project/vision"]


def test_projects_of_dstack(tmp_path):
    """The list of a server's config is a project each, with its backends by their own models."""
    text = """projects:
- name: main
  backends:
  - type: aws
    creds: {type: default}
    region: us-east-1
  - type: kubernetes
    kubeconfig: {filename: ~/.kube/config}
    proxy_jump: {hostname: <jump-host-ip>, port: 32000}
- name: other
"""
    desired = good(tmp_path, text)
    assert [str(key) for key in desired.beyond] == ["project/main", "project/other"]
    main = next(iter(desired.beyond.values())).declared.document
    assert main["backends"] == [
        {"type": "aws", "name": "aws", "creds": {"type": "default"}, "regions": ["us-east-1"]},
        {
            "type": "kubernetes",
            "name": "kubernetes",
            "kubeconfig": {"filename": "~/.kube/config"},
            "proxy_jump": {"hostname": "<jump-host-ip>", "port": 32000},
        },
    ]


def test_places_inside_of_backends(tmp_path):
    """A mistake in one of a project's backends is told where it is."""
    loaded = load(tmp_path, f"{DOCUMENT}backends:\n- type: aws\n- type: gcp\n  tpu: perhaps\n")
    (finding,) = loaded.errors
    assert (finding.place.line, finding.place.column) == (6, 8)
    assert finding.address == "project.vision.backends.1.tpu"


def test_a_default_profile_says_what_does_it_today(tmp_path):
    """It is held with its document, and the way that works is named with the profile."""
    profile = "---\ntype: profile\nname: cheap\nmax_duration: 2h\n"
    loaded = load(tmp_path, f"{DOCUMENT}default_profile: cheap\n{profile}")
    assert not loaded.errors
    (note,) = [one for one in loaded.findings if one.place.line == 3]
    assert note.code == "not-supported"
    assert "`default: true` into the profile `cheap`" in note.advice
