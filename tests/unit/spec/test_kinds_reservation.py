"""Fields of a reservation: what is kept, when, and for whom."""

from __future__ import annotations

import pytest

from unit.spec.trees import good, load

DOCUMENT = "type: reservation\nname: week\nfleet: local\n"


@pytest.mark.parametrize(
    ("fields", "code", "words"),
    [
        ("begin: 2026-12-01T00:00Z", "missing-field", "The reservation has no users."),
        ("users: ada", "missing-field", "`begin` is missing"),
        ("begin: 2026-12-01\nusers: ada", "bad-value", "write `2026-12-01T00:00Z`"),
        ("begin: 2026-12-01 08:00\nusers: ada", "bad-value", "time zone"),
        ("begin: 2026-02-30T08:00Z\nusers: ada", "bad-value", "is not a valid date."),
        ("begin: 1812-02-03T08:00Z\nusers: ada", "bad-value", "before 1970"),
        ("begin: tomorrow\nusers: ada", "bad-value", "not a moment"),
        (
            "begin: 2026-12-01T00:00Z\nend: 2026-11-01T00:00Z\nusers: ada",
            "contradiction",
            "Swap the two.",
        ),
        (
            "begin: 2026-12-01T00:00Z\nend: 2026-12-02T00:00Z\nduration: 1d\nusers: ada",
            "said-twice",
            "Keep one.",
        ),
        (
            "begin: 2026-12-01T00:00Z\nfrom: 2026-12-02T00:00Z\nusers: ada",
            "said-twice",
            "is already set by another field.",
        ),
        (
            "begin: 2026-12-01T00:00Z\nrepeat: daily\nusers: ada",
            "contradiction",
            "A reservation without an end cannot repeat.",
        ),
        (
            "begin: 2026-12-01T00:00Z\nduration: 25h\nrepeat: daily\nusers: ada",
            "contradiction",
            "it lasts 1d1h",
        ),
        (
            "begin: 2026-12-01T00:00Z\nnodes: 2\nhosts: a\nusers: ada",
            "contradiction",
            "need no number",
        ),
        (
            "begin: 2026-12-01T00:00Z\nmaintenance: true\nusers: ada",
            "contradiction",
            "During maintenance, no runs may use the hosts.",
        ),
        ("begin: 2026-12-01T00:00Z\nnodes: 0\nusers: ada", "bad-value", "the least is 1"),
    ],
)
def test_refused(tmp_path, fields, code, words):
    """Each mistake has its code, and words that say what to do."""
    loaded = load(tmp_path, f"{DOCUMENT}{fields}\n")
    told = {finding.code: f"{finding.detail} {finding.advice}" for finding in loaded.errors}
    assert words in told[code]


@pytest.mark.parametrize(
    "when",
    [
        "begin: 2026-12-01T00:00Z\nend: 2026-12-02T00:00Z",
        "from: 2026-12-01T00:00Z\nto: 2026-12-02T00:00Z",
        "begin: 2026-12-01T01:00+01:00\nduration: 24h",
        "begin: 2026-12-01 00:00:00 Z\nduration: 1d",
    ],
)
def test_time_has_one_spelling(tmp_path, when):
    """However the time is said, it is the same seconds."""
    fleet = "---\ntype: fleet\nname: local\nlocal: true\n"
    desired = good(tmp_path, f"{DOCUMENT}maintenance: true\n{when}\n{fleet}")
    (held,) = desired.beyond.values()
    assert held.declared.document == {
        "fleet": "local",
        "begin": 1_796_083_200,
        "end": 1_796_169_600,
        "maintenance": True,
    }
