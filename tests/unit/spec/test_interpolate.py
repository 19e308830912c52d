"""Expressions in texts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetform.spec.interpolate import MARK, compile_value, fill, mentions, problems, render

SCOPE = {
    "matrix": {"lr": 0.1, "n": 4, "fast": True},
    "run": {"name": "x[lr=0.1]"},
    "env": {"A": "1"},
}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("--lr ${{ matrix.lr }} -n ${{matrix.n}}", "--lr 0.1 -n 4"),
        ("${{ matrix.fast }}", "true"),
        ("${{run.name}}", "x[lr=0.1]"),
        ("$${{ matrix.lr }}", "${{ matrix.lr }}"),
        ("a $${{ b", "a ${{ b"),
        ("$$ ${HOME} $(date) {{ x }}", "$$ ${HOME} $(date) {{ x }}"),
        ("$$${{ matrix.n }}", "$${{ matrix.n }}"),
        ("${{ env.A }}${{ env.A }}", "11"),
    ],
)
def test_render(text, expected):
    """References are filled in, the escape gives a literal, and the shell's dollars stay."""
    compiled = compile_value({"a": [text]})
    assert not list(problems(compiled, SCOPE))
    assert render(compiled, SCOPE) == {"a": [expected]}


def test_native_keeps_the_type():
    """A text that is one reference is what it names, where that is asked for."""
    assert render(compile_value("${{ matrix.n }}"), SCOPE, native=True) == 4
    assert render(compile_value("${{ matrix.n }}"), SCOPE) == "4"
    assert render(compile_value("${{ matrix.n }}GB"), SCOPE, native=True) == "4GB"


@pytest.mark.parametrize(
    ("text", "detail", "advice"),
    [
        ("${{ matrix.lrr }}", "has no `lrr`", "Did you mean `lr`?"),
        ("${{ matrx.lr }}", "namespace `matrx` does not exist", "Did you mean `matrix`?"),
        ("${{ secrets.token }}", "Secrets are not supported yet.", ""),
        (
            "${{ node.rank }}",
            "The node is known only when the job starts; filling it in is not supported yet.",
            "$FLEETFORM_NODE_RANK",
        ),
        ("${{ lr }}", "is not a reference", "a dot and a key"),
        ("${{ 1 + 1 }}", "is not a reference", "a dot and a key"),
        ("${{ matrix.lr", "is not a reference", "a dot and a key"),
        ("${{ }}", "is not a reference", "a dot and a key"),
        ("${{ matrix.lr.__class__ }}", "is not a reference", "a dot and a key"),
    ],
)
def test_problems(text, detail, advice):
    """What names nothing is told with its candidates, and nothing is ever executed."""
    (problem,) = problems(compile_value([text]), SCOPE, ("commands",))
    assert problem.path == ("commands", 0)
    assert detail in problem.detail
    assert advice in problem.advice


@given(st.text(alphabet="${} .ab", max_size=30))
def test_every_text_renders_or_is_told(text):
    """Any text either has a problem, or renders; without a mark it is itself."""
    compiled = compile_value(text)
    if not list(problems(compiled, SCOPE)):
        rendered = render(compiled, SCOPE)
        assert MARK in text or rendered == text


def test_mentions():
    """A mark is found in any depth."""
    assert mentions({"a": [{"b": "x ${{ y"}]})
    assert not mentions({"${{": ["$ {{", 1, None]})


@pytest.mark.parametrize(
    ("text", "native", "expected"),
    [
        ("${{ values.n }}", True, 3),
        ("${{ values.n }}", False, "3"),
        ("a ${{values.n}} b ${{ run.name }} $${{ c }} $$ ${D}", True, "a 3 b ${{ run.name }} $${{ c }} $$ ${D}"),
        ("$${{ values.n }}", True, "$${{ values.n }}"),
        ("${{ run.name }}", True, "${{ run.name }}"),
        ("plain", True, "plain"),
    ],
)  # fmt: skip
def test_one_namespace_can_be_filled_in(text, native, expected):
    """All else is left for whoever reads the text again."""
    assert fill(text, "values", {"n": 3}, native=native) == expected
