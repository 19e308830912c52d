"""Which values are shown to nobody: by their field, by a variable's name, within an address."""

from __future__ import annotations

import importlib
import pkgutil

import pytest

from fleetform.spec import fields, kinds
from fleetform.spec.findings import Finding, Level, Place
from fleetform.spec.kinds.base import Guarded
from fleetform.spec.kinds.commands import warn_of_secrets
from fleetform.spec.secrecy import PASSWORD_IN_ADDRESS, names_secret
from fleetform.spec.syntax.read import quote_lines
from unit.spec.trees import load


@pytest.mark.parametrize(
    "name",
    [
        "HF_TOKEN",
        "WANDB_API_KEY",
        "AWS_SECRET_ACCESS_KEY",
        "DB_PASSWORD",
        "token",
        "DB_PWD",
        "apikey",
    ],
)
def test_a_variable_that_holds_a_secret_says_so_by_its_name(name):
    """The last word of a name tells, in any case."""
    assert names_secret(name)


@pytest.mark.parametrize(
    "name",
    ["LR", "MAX_TOKENS", "TOKENIZERS_PARALLELISM", "EOS_TOKEN", "PWD", "KEYBOARD", "SECRET_COUNT"],
)
def test_a_variable_that_only_sounds_like_one_is_plain(name):
    """A vocabulary's tokens, counts, and the shell's own folder are no secrets."""
    assert not names_secret(name)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("git clone https://bot:hunter2@git.example.org/x", "hunter2"),
        ("https://ghp_abc@git.example.org/x", "ghp_abc"),
        ("postgresql://app:pass@db/x", "pass"),
        ("redis://:pass@cache", "pass"),
    ],
)
def test_the_password_of_an_address_is_found(text, found):
    """Behind the user's colon, or alone where the address is read over HTTP."""
    match = PASSWORD_IN_ADDRESS.search(text)
    assert match is not None
    assert match["password"] == found


@pytest.mark.parametrize(
    "text", ["ssh://git@host/x", "git@host:x", "https://host/a@b", "mail me@example.org: now"]
)
def test_an_address_without_a_password_is_left_as_it_is(text):
    """A user of SSH is no secret, and an `@` behind the host is none either."""
    assert PASSWORD_IN_ADDRESS.search(text) is None


def _guarded_classes(model: type[Guarded] = Guarded):
    for one in model.__subclasses__():
        yield one
        yield from _guarded_classes(one)


def test_each_guarded_field_of_a_model_has_a_sensitive_row():
    """What a model seals, a plan seals too: there is a row that says so for every such field."""
    for module in pkgutil.iter_modules(kinds.__path__):
        importlib.import_module(f"{kinds.__name__}.{module.name}")
    rows = {
        path.rpartition(".")[2]
        for of_kind in fields.ROWS.values()
        for path, facts in of_kind.items()
        if facts.sensitive
    }
    guarded = {name for model in _guarded_classes() for name in model.guarded()}
    assert guarded == rows


def test_a_part_of_env_is_sensitive_by_its_name():
    """`env.HF_TOKEN` is, `env.LR` and `env` as a whole are not."""
    assert fields.is_sensitive("run", "env.HF_TOKEN")
    assert not fields.is_sensitive("run", "env.LR")
    assert not fields.is_sensitive("run", "env")


def test_a_secret_that_stands_in_env_is_warned_of_and_kept():
    """The value reaches the job; a reference, an empty value and a plain name are no matter."""
    env = {"HF_TOKEN": "hunter2", "LR": "0.1", "WANDB_API_KEY": "${{ secrets.w }}", "A_TOKEN": ""}
    found = list(warn_of_secrets(env))
    assert [(one.code, one.path, one.level) for one in found] == [
        ("secret-in-clear", ("env",), Level.WARNING)
    ]
    assert "`HF_TOKEN`" in found[0].detail
    assert "hunter2" not in found[0].detail


def test_a_line_with_a_secret_is_quoted_by_no_finding():
    """Findings are printed into logs: neither the warning nor another one of the line repeats it."""
    data = b"type: task\nenv: {HF_TOKEN: hunter2}\nnodes: 0\n"
    found = [
        Finding(Level.WARNING, code, "", Place("a.yaml", line, 1, 3))
        for code, line in (("secret-in-clear", 2), ("unknown-field", 2), ("bad-value", 3))
    ]
    assert [one.text for one in quote_lines(found, data)] == ["", "", "nodes: 0"]


@pytest.mark.parametrize(
    ("matrix", "warned"),
    [
        ("{api_token: [abc123, def456], lr: [0.1]}", ["api_token"]),
        ("{lr: [0.1], pad_token: [a]}", []),
    ],
)
def test_a_secret_that_is_a_parameter_of_a_sweep_is_warned_of(tmp_path, matrix, warned):
    """It would be a part of its elements' names; the finding does not repeat it."""
    document = f"type: task\nname: sweep\ncommands: [python train.py]\nmatrix: {matrix}\n"
    loaded = load(tmp_path, document)
    found = [one for one in loaded.findings if one.code == "secret-in-clear"]
    assert [one.level for one in found] == [Level.WARNING] * len(warned)
    assert all(f"`{name}`" in one.detail for name, one in zip(warned, found, strict=True))
    assert all("abc123" not in f"{one.detail}{one.advice}{one.text}" for one in found)
