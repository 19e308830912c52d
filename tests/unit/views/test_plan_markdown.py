"""A plan in a pull request: readable, bounded, and not to be written by a stranger."""

from __future__ import annotations

import re
from textwrap import dedent

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fleetform.model.run import RunState
from fleetform.views.plan_markdown import SIZE_MAX, _code, _escaped, render
from unit.plan.trees import fleet, ledger, planned, row, task, tree


def test_a_plan_in_full() -> None:
    """Summary, a table of changes, their fields folded away, what is held, what failed."""
    live = ledger(
        row(fleet("local")),
        row(task("train", env={"LR": "0.1"})),
        row(task("gone"), RunState.RUNNING),
        row(task("bad"), RunState.FAILED, message="exit code 1"),
    )
    plan = planned(tree(fleet("local"), task("train", env={"LR": "0.2"}), task("bad")), live)
    assert render(plan) == dedent(f"""\
        ### Plan of `lab` at `4f2a91c`

        **Plan: 1 to replace; 1 held; 1 failed earlier.**

        | | what | why |
        |---|---|---|
        | `-/+` | `task train` | what it executes changed |

        <details><summary><code>task train</code></summary>

        | field | before | after |
        |---|---|---|
        | `env.LR` | `"0.1"` | `"0.2"` |

        </details>

        #### Held back

        | what | held by | what would release it |
        |---|---|---|
        | `task gone` | not permitted: it deletes something or ends running work | --allow-destroy, or &#96;allow&#95;destroy: true&#96; in the environment's rules |

        #### 1 run failed earlier; `fleetform rerun NAME`, or change the configuration

        | run | state | detail |
        |---|---|---|
        | `bad` | failed | `exit code 1` |

        <sub>1 resource in progress. Plan `{plan.digest[:12]}`, compared with the ledger.</sub>
    """)


def test_what_this_version_does_not_carry_out_has_a_table_of_its_own() -> None:
    """A reviewer sees at once what there is nothing to be done about."""
    assert (
        "#### Not carried out by this version\n\n| what | why |\n|---|---|\n"
        "| `task train` | nothing starts containers yet |\n"
    ) in render(planned(tree(beyond=[task("train", image="x")]), ledger()))


NASTY = [
    "</code></summary><img src=x onerror=alert(1)>",
    "a | b | [link](http://evil) |",
    "`code` ``more`` ```",
    "\n\n# heading\n\n<script>",
    "@everyone see #1 https://evil.example",
    "\\| \\`",
    "-->",
    "&#60;b&#62;",
]


@pytest.mark.parametrize("value", NASTY)
def test_values_are_never_markup(value: str) -> None:
    """Outside of code spans and our own tags, nothing of a value is left."""
    document = {"env": {"X": value}, "description": value}
    plan = planned(tree(task("train", **document)), ledger())
    outside = _without_code(render(plan))
    for piece in ("img", "script", "evil", "everyone", "heading", "link", "code`", "-->", "b&"):
        assert piece not in outside


def _without_code(markdown: str) -> str:
    """What a renderer would take for Markdown: all but fences and code spans, as CommonMark finds them."""
    markdown = re.sub(
        r"^(`{3,})diff\n.*?^ {0,3}\1`*[ \t]*$", "", markdown, flags=re.DOTALL | re.MULTILINE
    )
    return re.sub(r"(?<!`)(`+)(?!`)(.*?)(?<!`)\1(?!`)", "", markdown)


@given(st.text(alphabet="`|\\ <a&\n", max_size=12))
def test_code_is_one_cell_of_literal_text(text: str) -> None:
    """Whatever is in it, a code span neither ends early nor ends its table's cell."""
    shown = _code(text)
    assert "|" not in shown
    assert "\n" not in shown
    rest = shown.replace("<code>&#124;</code>", " ")
    assert _without_code(rest).strip() == ""


@given(st.text(max_size=20))
def test_prose_holds_no_markup(text: str) -> None:
    """A quoted name in a sentence starts no link, tag, mention or cell."""
    shown = re.sub(r"&#\d+;", "", _escaped(text))
    assert not set(shown) & set("|<>[]`*_@#\n")


def test_addresses_in_prose_are_no_links() -> None:
    """GitHub looks for addresses and names after references are resolved."""
    shown = _escaped("see https://evil.example www.evil.example @team")
    for piece in ("://", "www.e", "@t"):
        assert piece not in shown.replace("&#64;", "@")


@pytest.mark.parametrize("line", ["```", "````", " ```", "</details>", "| a |", "    x", "`"])
def test_a_script_ends_no_fence(line: str) -> None:
    """Whatever a line of a script is, it is literal, and so is all that follows it."""
    script = f"a\n{line}\n@everyone https://evil.example <img src=x>\n"
    old, new = task("train", commands=[script]), task("train", commands=[f"b{script}"])
    outside = _without_code(render(planned(tree(new), ledger(row(old)))))
    for piece in ("everyone", "evil", "img"):
        assert piece not in outside


def test_it_fits_into_a_comment() -> None:
    """Ten thousand changes are cut at a block's end, and the text says so before all else."""
    tasks = [task(f"t{number}", env={"X": "y" * 50}) for number in range(3000)]
    text = render(planned(tree(*tasks), ledger()))
    assert len(text) <= SIZE_MAX
    assert re.match(r"> 🛑 \*\*This is not the whole plan:\*\* \d+ blocks of \d+ did not fit", text)
    assert "`fleetform plan` shows everything" in text.partition("\n\n")[0]
    assert text.endswith("</sub>\n")


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 400), st.integers(0, 3000))
def test_it_fits_whatever_the_blocks(count: int, size: int) -> None:
    """The bound holds for few long blocks and for many short ones."""
    tasks = [
        task(f"t{number}", env={f"K{key}": "|" * size for key in range(3)})
        for number in range(count)
    ]
    assert len(render(planned(tree(*tasks), ledger()))) <= SIZE_MAX


def test_nothing_to_do() -> None:
    """An unchanged environment has no empty table."""
    text = render(planned(tree(), ledger()))
    assert "|" not in text
    assert "No changes." in text
