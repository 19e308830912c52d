"""Fields of a user: who they are, and by which keys."""

from __future__ import annotations

import pytest

from unit.spec.trees import good, load

DOCUMENT = "type: user\nname: ada\n"


@pytest.mark.parametrize(
    ("fields", "code", "words"),
    [
        ("emails: ada", "bad-value", "is not an email address."),
        (
            "account: root",
            "bad-value",
            "The account of a user cannot be root; `grants` of a project permit root.",
        ),
        ("account: Ada", "bad-value", "not the name of an account on Linux"),
        ("account: {on-prem: root}", "bad-value", "root"),
        ("account: 7", "wrong-type", "accounts by fleet"),
        ("ssh_keys: [abc]", "bad-value", "Write the line of its `.pub` file."),
        (
            "ssh_keys: ['-----BEGIN OPENSSH PRIVATE KEY-----']",
            "secret-in-clear",
            "Create a new key pair, and write",
        ),
        ("role: owner", "bad-value", "`admin`, `user`, `reader`"),
        ("state: gone", "bad-value", "`active`, `disabled`"),
    ],
)
def test_refused(tmp_path, fields, code, words):
    """Each mistake has its code, and words that say what to do."""
    loaded = load(tmp_path, f"{DOCUMENT}{fields}\n")
    told = {finding.code: f"{finding.detail} {finding.advice}" for finding in loaded.errors}
    assert words in told[code]


def test_held(tmp_path):
    """Nothing carries it out yet: one note at its type, whatever it says, and a plan holds it."""
    loaded = load(tmp_path, f"{DOCUMENT}emails: ada@example.com\n")
    notes = [finding for finding in loaded.findings if finding.level == "note"]
    assert [(one.code, one.place.line) for one in notes] == [("not-supported", 1)]
    assert loaded.desired is not None
    assert [str(key) for key in loaded.desired.beyond] == ["user/ada"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ada", {"any": "ada"}),
        ("{on-prem: lovelace, any: ada}", {"on-prem": "lovelace", "any": "ada"}),
    ],
)
def test_accounts(tmp_path, text, expected):
    """One account is that of all fleets."""
    desired = good(tmp_path, f"{DOCUMENT}account: {text}\n")
    (held,) = desired.beyond.values()
    assert held.declared.document == {"account": expected}
