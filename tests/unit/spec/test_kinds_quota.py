"""Fields of a quota: whose it is, and what it limits."""

from __future__ import annotations

import pytest

from unit.spec.trees import good, load

DOCUMENT = "type: quota\nname: small\n"


@pytest.mark.parametrize(
    ("fields", "code", "words"),
    [
        ("gpus: 8", "missing-field", "The quota names no project, user or queue."),
        ("user: ada", "missing-field", "The quota limits nothing."),
        ("user: ada\neach: user\ngpus: 8", "contradiction", "`user:` names one"),
        ("project: a1\neach: project\ngpus: 8", "contradiction", "`project:` names one"),
        (
            "user: ada\ngpus: {H100: 9, any: 8}",
            "contradiction",
            "9 GPUs of one name can never be had where 8",
        ),
        ("user: ada\ngpus: {H100: x}", "bad-value", "Write `{A100: 8, any: 16}`."),
        ("user: ada\ngpus: -1", "bad-value", "negative"),
        ("user: ada\ncpus: 2..4", "wrong-type", "not one number of CPUs"),
        ("user: ada\ngpu_hours: {limit: 5}", "missing-field", "`per` is missing"),
        (
            "user: ada\ngpu_hours: {limit: 5, per: fortnight}",
            "bad-value",
            "`day`, `week`, `month`, `quarter`, `year`",
        ),
        (
            "user: ada\nbudget: {limit: 0, per: month}",
            "bad-value",
            "The price must be larger than 0; remove the field for no limit.",
        ),
        ("user: ada\nshares: 0", "bad-value", "the least is 1"),
    ],
)
def test_refused(tmp_path, fields, code, words):
    """Each mistake has its code, and words that say what to do."""
    loaded = load(tmp_path, f"{DOCUMENT}{fields}\n")
    told = {finding.code: f"{finding.detail} {finding.advice}" for finding in loaded.errors}
    assert words in told[code]


def test_held(tmp_path):
    """Nothing carries it out yet: one note at its type, whatever it says, and a plan holds it."""
    loaded = load(tmp_path, f"{DOCUMENT}each: user\ngpus: 8\n")
    notes = [finding for finding in loaded.findings if finding.level == "note"]
    assert [(one.code, one.place.line) for one in notes] == [("not-supported", 1)]
    assert loaded.desired is not None
    assert [str(key) for key in loaded.desired.beyond] == ["quota/small"]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ("gpus: 8", {"gpus": {"any": 8}}),
        ("gpus: {H100: 8}", {"gpus": {"H100": 8}}),
        ("cpus: 0.5", {"cpus": 500}),
        ("memory: 1GB", {"memory": 2**30}),
        ("gpu_hours: 5000", {"gpu_hours": {"limit": 5000, "per": "month"}}),
        ("budget: {limit: 0.5, per: day}", {"budget": {"limit": 500_000, "per": "day"}}),
        ("jobs: 0", {"jobs": 0}),
    ],
)
def test_spellings(tmp_path, fields, expected):
    """Each spelling has one canonical form, in whole numbers."""
    desired = good(tmp_path, f"{DOCUMENT}each: user\n{fields}\n")
    (held,) = desired.beyond.values()
    assert held.declared.document == {"each": "user", **expected}
