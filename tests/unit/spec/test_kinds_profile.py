"""Fields of a profile: what of a run it may say."""

from __future__ import annotations

import pytest

from fleetform.spec.kinds.profile import Profile
from fleetform.spec.nodes import plain
from fleetform.spec.syntax import read_documents
from unit.spec.trees import load

DOCUMENT = "type: profile\nname: cheap\n"


@pytest.mark.parametrize(
    ("fields", "code", "words"),
    [
        ("spot_policy: sometimes", "bad-value", "`spot`, `on-demand`, `auto`"),
        ("max_price: free", "bad-value", "not an amount of dollars"),
        ("max_price: 2,50", "bad-value", "write `2.50`"),
        ("regions: [a, a]", "said-twice", "named twice"),
        ("backend_options: {type: aws}", "bad-value", "`vastai`"),
        ("backend_options: {type: vastai, min_reliability: 2}", "bad-value", "the most is 1"),
        ("creation_policy: create", "bad-value", "`reuse`, `reuse-or-create`"),
        ("commands: [echo]", "unknown-field", "A profile has no field `commands`."),
        ("idle_duration: -5", "bad-value", "negative"),
    ],
)
def test_refused(tmp_path, fields, code, words):
    """Each mistake has its code, and words that say what to do."""
    loaded = load(tmp_path, f"{DOCUMENT}{fields}\n")
    told = {finding.code: f"{finding.detail} {finding.advice}" for finding in loaded.errors}
    assert words in told[code]


def test_profiles_of_dstack(tmp_path):
    """The list of a profiles.yml is a profile each."""
    text = "profiles:\n- name: large\n  spot_policy: auto\n  max_price: 1.5\n- name: small\n"
    assert load(tmp_path, text).errors == ()


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ("max_price: 0.1", {"max_price": 100_000}),
        ("idle_duration: off", {"idle_duration": -1}),
        ("regions: b", {"regions": ["b"]}),
        ("regions: [b, a]", {"regions": ["a", "b"]}),
        (
            "backend_options: {type: vastai, min_reliability: 0.98}",
            {"backend_options": [{"type": "vastai", "min_reliability": 980_000}]},
        ),
    ],
)
def test_spellings(fields, expected):
    """Each spelling has one canonical form, in whole numbers."""
    nodes, _ = read_documents(f"{DOCUMENT}{fields}\n".encode(), "profile.yaml")
    assert Profile.model_validate(plain(nodes[0])).to_canonical() == expected
