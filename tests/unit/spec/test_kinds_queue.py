"""Fields of a queue: who may come in, for how long, and what comes first."""

from __future__ import annotations

import pytest

from unit.spec.trees import good, load

DOCUMENT = "type: queue\nname: short\n"


@pytest.mark.parametrize(
    ("fields", "code", "words"),
    [
        ("tier: -1", "bad-value", "negative"),
        ("tier: 1001", "bad-value", "the most is 1000"),
        (
            "default_duration: 5h\nmax_duration: 4h",
            "contradiction",
            "Runs would be given 5h, and may have 4h at most.",
        ),
        ("nodes: 8..1", "bad-value", "begins above its end"),
        ("preemption: suspend", "bad-value", "`off`, `requeue`, `stop`"),
        ("preemption: {warning: 5m}", "missing-field", "`mode` is missing"),
        ("state: up", "bad-value", "`open`, `draining`, `closed`"),
        ("allow: {users: [ada, ada]}", "said-twice", "named twice"),
        ("fleets: []", "bad-value", "list is empty"),
    ],
)
def test_refused(tmp_path, fields, code, words):
    """Each mistake has its code, and words that say what to do."""
    loaded = load(tmp_path, f"{DOCUMENT}{fields}\n")
    told = {finding.code: f"{finding.detail} {finding.advice}" for finding in loaded.errors}
    assert words in told[code]


def test_held(tmp_path):
    """A field that no component implements is one note at its line, and a plan holds the queue."""
    loaded = load(tmp_path, f"{DOCUMENT}tier: 3\n")
    notes = [finding for finding in loaded.findings if finding.level == "note"]
    assert [(one.code, one.place.line) for one in notes] == [("not-supported", 3)]
    assert loaded.desired is not None
    assert [str(key) for key in loaded.desired.beyond] == ["queue/short"]


def test_carried_out(tmp_path):
    """A queue that only says which fleets it leads to is planned, and so is a run that names it."""
    text = (
        f"{DOCUMENT}fleets: [local]\ndefault: true\n---\ntype: fleet\nname: local\nlocal: true\n"
        "---\ntype: task\nname: train\nqueue: short\ncommands: ['true']\n"
    )
    loaded = load(tmp_path, text)
    assert not loaded.findings
    found = loaded.desired.resources
    assert sorted(map(str, found)) == ["fleet/local", "queue/short", "run/train"]
    (run,) = (one for key, one in found.items() if key.kind == "run")
    assert list(map(str, run.references)) == ["queue/short"]


def test_capacity_is_judged_by_the_fleets_of_the_queue(tmp_path):
    """A run that fits on no fleet of its queue is warned of, whatever other fleets have."""
    text = (
        f"{DOCUMENT}fleets: [small]\n---\ntype: fleet\nname: small\nlocal: {{cpu: 1, memory: 1GB}}\n"
        "---\ntype: fleet\nname: big\nlocal: {cpu: 8, memory: 8GB}\n"
        "---\ntype: task\nname: train\nresources: {cpu: 4}\ncommands: ['true']\n"
    )
    assert not load(tmp_path, text).findings
    named = load(tmp_path, text + "queue: short\n").findings
    assert [(one.code, one.detail) for one in named] == [
        ("never-placed", "`small` has 1 CPUs of the 4 asked for.")
    ]


def canonical(tmp_path, text):
    """The canonical form of the only document, which is right and held."""
    desired = good(tmp_path, text)
    (held,) = desired.beyond.values()
    return held.declared.document


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ("preemption: requeue", {"preemption": {"mode": "requeue"}}),
        ("preemption: off", {"preemption": {"mode": "off"}}),
        ("preemption: false", {"preemption": {"mode": "off"}}),
        ("nodes: ..8", {"nodes": {"min": None, "max": 8}}),
        ("max_duration: 2d", {"max_duration": 172_800}),
        ("allow: {users: ada}", {"allow": {"users": ["ada"]}}),
    ],
)
def test_spellings(tmp_path, fields, expected):
    """Each spelling has one canonical form."""
    desired = load(tmp_path, f"{DOCUMENT}{fields}\n").desired
    assert desired is not None
    (held,) = desired.beyond.values()
    assert held.declared.document == expected
