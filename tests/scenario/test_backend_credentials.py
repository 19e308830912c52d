"""Credentials of backends in plaintext are shown nowhere: no plan, finding, error, log or ledger."""

from __future__ import annotations

import logging
import re
from pathlib import Path

import pytest

import applied
from fleetform.cli.main import main
from fleetform.spec.kinds import BACKEND_TYPES

EXAMPLES = Path(__file__).parents[1] / "data" / "kinds" / "backend.yaml"
REFERENCE = re.compile(r'"?\$\{\{ *secrets\.\w+ *\}\}"?')
PLANTED = "pl4nted"

COMMANDS = (
    ["validate"],
    ["validate", "--format", "json"],
    ["validate", "--format", "sarif"],
    ["plan"],
    ["plan", "--format", "json"],
)


def examples(type_name: str) -> list[str]:
    """The examples of a type that refer to secrets."""
    texts = EXAMPLES.read_text(encoding="utf-8").split("---\n")
    own = [text for text in texts if re.search(rf"^type: {type_name}$", text, re.MULTILINE)]
    return [text for text in own if REFERENCE.search(text)]


def planted(text: str, form: str = "{}") -> str:
    """The document with a credential of its own in place of each reference."""
    numbers = iter(range(100))
    return REFERENCE.sub(lambda _: form.format(f"{PLANTED}{next(numbers)}"), text)


@pytest.mark.parametrize(
    ("mistake", "form"),
    [
        ("", "{}"),
        ("unknown_field: 1", "{}"),
        ("", "[{}]"),
        ("", "{{{}: 1}}"),
        ("", "{}" + "x" * 4000),
    ],
    ids=["right", "beside", "list", "mapping", "long"],
)
@pytest.mark.parametrize("type_name", BACKEND_TYPES)
def test_a_planted_credential_is_found_nowhere(
    type_name, mistake, form, tmp_path, monkeypatch, capsys, caplog
):
    """Neither in a right document, nor where it has a mistake or the credential is itself one."""
    caplog.set_level(logging.DEBUG)
    monkeypatch.setenv("FLEETFORM_STATE_HOME", str(tmp_path / "state"))
    # A command that writes a file where it is typed writes it here, and not into the repository.
    monkeypatch.chdir(tmp_path)
    found = examples(type_name)
    assert found, f"write an example of `{type_name}` with a reference to a secret"
    root = applied.write_tree(
        tmp_path / "lab", applied.FLEET, *(f"{planted(text, form)}{mistake}\n" for text in found)
    )
    is_right = not mistake and form == "{}"
    for command in COMMANDS:
        main([*command, "-C", str(root)])
    if is_right:
        applied.enter(root)
    told = "".join(capsys.readouterr())
    files = [path for path in (tmp_path / "state").rglob("*") if path.is_file()]
    kept = "".join(path.read_bytes().decode("latin-1") for path in files)
    assert ("secret-in-clear" if is_right else '"level": "error"') in told
    assert bool(files) == is_right
    for text in (told, caplog.text, kept):
        at = text.find(PLANTED)
        assert at < 0, text[max(0, at - 300) : at + 50]
