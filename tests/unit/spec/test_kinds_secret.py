"""Fields of a secret: where its value comes from, and never the value."""

from __future__ import annotations

import pytest

from unit.spec.trees import load

DOCUMENT = "type: secret\nname: hf_token\n"


@pytest.mark.parametrize(
    ("fields", "code", "words"),
    [
        ("", "missing-field", "Add one of `env:`, `file:`"),
        ("value: hunter2", "secret-in-clear", "If the value was committed, replace it."),
        ("data: hunter2", "secret-in-clear", "Put it into a file"),
        ("stringData: {a: hunter2}", "secret-in-clear", "Put it into a file"),
        ("env: A\nfile: /a", "contradiction", "comes from `env` already"),
        ("env: A=hunter2", "bad-variable", "the variable's name alone"),
        ("file: secrets/hf", "bad-path", "Write the whole path"),
        ("vault: {path: kv/a}", "missing-field", "`key` is missing"),
        ("gcp: {name: a, version: 0}", "bad-value", "the least is 1"),
    ],
)
def test_refused(tmp_path, fields, code, words):
    """Each mistake has its code, and words that say what to do."""
    loaded = load(tmp_path, f"{DOCUMENT}{fields}\n")
    told = {finding.code: f"{finding.detail} {finding.advice}" for finding in loaded.errors}
    assert words in told[code]


def test_held(tmp_path):
    """Nothing carries it out yet: one note at its type, whatever it says, and a plan holds it."""
    loaded = load(tmp_path, f"{DOCUMENT}env: HF_TOKEN\n")
    notes = [finding for finding in loaded.findings if finding.level == "note"]
    assert [(one.code, one.place.line) for one in notes] == [("not-supported", 1), ("unused", 2)]
    assert loaded.desired is not None
    assert [str(key) for key in loaded.desired.beyond] == ["secret/hf_token"]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("1a", "has to begin with a letter or `_`"),
        ("a.b", "contains `.`"),
        ("'a '", "begins or ends with a space"),
        ("''", "is empty"),
        (f"{'a' * 101}", "the most is 100"),
    ],
)
def test_names(tmp_path, name, words):
    """A secret is named as an expression can name it."""
    loaded = load(tmp_path, f"type: secret\nname: {name}\nenv: A\n")
    (finding,) = loaded.errors
    assert finding.code == "bad-name"
    assert words in finding.detail


@pytest.mark.parametrize("name", ["huggingface_token", "HF_TOKEN", "a", "_x", "a-b"])
def test_names_of_variables(tmp_path, name):
    """Upper case and underscores are for secrets, as in dstack."""
    assert load(tmp_path, f"type: secret\nname: {name}\nenv: A\n").errors == ()


def test_no_finding_shows_a_value(tmp_path):
    """What stands in a document in clear is told without quoting its line."""
    loaded = load(tmp_path, f"{DOCUMENT}env: A\nvalue: hunter2\n")
    assert all("hunter2" not in f"{one.text} {one.detail} {one.advice}" for one in loaded.findings)
