"""Fields of a policy: which changes it is about, and what it demands."""

from __future__ import annotations

import pytest

from unit.spec.trees import good, load

DOCUMENT = "type: policy\nname: production\n"


@pytest.mark.parametrize(
    ("fields", "code", "words"),
    [
        ("match: {kinds: [fleet]}", "missing-field", "The policy has no rule."),
        (
            "deny: never\napproval: 2",
            "contradiction",
            "`deny` blocks the changes, so approvals have no effect.",
        ),
        ("warn: a\nmatch: {kinds: [flet]}", "bad-value", "Did you mean `fleet`?"),
        ("warn: a\nmatch: {actions: [remove]}", "bad-value", "`delete`"),
        ("approval: 0", "bad-value", "the least is 1"),
        ("approval: true", "wrong-type", "is a boolean;"),
        ("windows: {begin: '9', end: '16:00'}", "bad-value", "not a time of day"),
        ("windows: {begin: '09:00', end: '24:30'}", "bad-value", "not a time of day"),
        ("windows: {begin: '09:00', end: '9:00'}", "contradiction", "for the whole day"),
        (
            "windows: [{days: [monday], begin: '09:00', end: '16:00'}]",
            "bad-value",
            "Did you mean `mon`?",
        ),
        ("limits: {price: -3}", "bad-value", "negative"),
    ],
)
def test_refused(tmp_path, fields, code, words):
    """Each mistake has its code, and words that say what to do."""
    loaded = load(tmp_path, f"{DOCUMENT}{fields}\n")
    told = {finding.code: f"{finding.detail} {finding.advice}" for finding in loaded.errors}
    assert words in told[code]


def test_held(tmp_path):
    """Nothing carries it out yet: one note at its type, whatever it says, and a plan holds it."""
    loaded = load(tmp_path, f"{DOCUMENT}deny: never\n")
    notes = [finding for finding in loaded.findings if finding.level == "note"]
    assert [(one.code, one.place.line) for one in notes] == [("not-supported", 1)]
    assert loaded.desired is not None
    assert [str(key) for key in loaded.desired.beyond] == ["policy/production"]


def test_spellings(tmp_path):
    """Hours are minutes of the day, and a number of approvals may stand alone."""
    fields = "approval: 2\nwindows: {days: sun, begin: '09:30', end: '24:00'}\nlimits: {price: 2.5}"
    desired = good(tmp_path, f"{DOCUMENT}{fields}\n")
    (held,) = desired.beyond.values()
    assert held.declared.document == {
        "approval": {"count": 2},
        "windows": [{"days": ["sun"], "begin": 570, "end": 1440}],
        "limits": {"price": 2_500_000},
    }
