"""Paths of `ignore:` and `initial:`: each that means nothing, or contradicts, is told."""

from __future__ import annotations

import pytest

from fleetform.spec.kinds import KINDS, ignore_changes


def found(kind, ignore=(), initial=()):
    return [
        (one.code, one.path, one.advice)
        for one in ignore_changes.problems(KINDS[kind].model, ignore, initial)
    ]


@pytest.mark.parametrize(
    ("kind", "path"),
    [
        ("task", "commands"),
        ("task", "env"),
        ("task", "env.SEED"),
        ("task", "env.AWS_*"),
        ("task", "resources.memory"),
        ("task", "tags.team"),
        ("task", "retry.*"),
        ("fleet", "nodes"),
        ("fleet", "local.cpu"),
        ("volume", "deletion_policy"),
    ],
)
def test_a_path_that_means_a_field(kind, path):
    """Fields, parts of them, and names that people choose themselves."""
    assert found(kind, ignore=[path]) == []


@pytest.mark.parametrize(
    ("kind", "path", "code", "advice"),
    [
        ("task", "commandz", "unknown-field", "`commands`"),
        ("task", "resources.memry", "unknown-field", "`resources.memory`"),
        ("task", "priority.high", "unknown-field", "`priority`"),
        ("task", "*", "bad-value", "`env.*`"),
        ("task", "name", "contradiction", ""),
        ("task", "matrix.lr", "contradiction", ""),
        ("task", "fleets", "contradiction", ""),
        ("task", "protect", "contradiction", ""),
        ("task", "ignore", "contradiction", ""),
        ("volume", "fleet", "contradiction", ""),
    ],
)
def test_a_path_that_cannot_be_overlooked(kind, path, code, advice):
    """With the field that was meant, where one is close."""
    ((said, where, told),) = found(kind, ignore=[path])
    assert (said, where) == (code, ("ignore", 0))
    assert advice in told


def test_a_path_in_both_lists():
    """It cannot be kept for ever and be set anew."""
    assert [one[:2] for one in found("task", ["env"], ["env.SEED"])] == [
        ("contradiction", ("initial", 0))
    ]
    assert [one[:2] for one in found("task", ["env", "env"])] == [("said-twice", ("ignore", 1))]
