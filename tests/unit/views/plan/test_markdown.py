"""A plan in a pull request: readable, bounded, and not to be written by a stranger."""

from __future__ import annotations

import html
import re
from dataclasses import replace
from textwrap import dedent

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fleetform.model.lineage import InputChange, InputEvent
from fleetform.model.plan import Plan, Scope
from fleetform.model.run import RunState
from fleetform.model.run_state import Outdated
from fleetform.views.plan.markdown import SIZE_MAX, _code, _escaped, render
from fleetform.views.plan.text import render as text
from unit.plan.trees import NOW_MS, element, fleet, item, ledger, planned, row, task, tree


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

        **Plan: 1 to replace; 1 blocked; 1 failed earlier.**

        1 run will re-run.

        | | what | why |
        |---|---|---|
        | `-/+` | `task train` | must re-run: &#96;env&#96; changed |

        <details><summary><code>task train</code></summary>

        | field | before | after |
        |---|---|---|
        | `env.LR` | `"0.1"` | `"0.2"` (forces replacement) |

        </details>

        #### Blocked

        | what | why | blocked by | to unblock |
        |---|---|---|---|
        | `task gone` | removed from the configuration. Impact: the work of attempt 1 (running) | destructive change not allowed: it deletes data or hosts, or ends running work | --allow-destroy, or &#96;allow&#95;destroy: true&#96; in the environment's rules |

        #### 1 run failed earlier; `fleetform rerun NAME`, or change the configuration

        | run | state | detail |
        |---|---|---|
        | `bad` | failed | `exit code 1` |

        <sub>1 resource in progress. Plan `{plan.digest[:12]}`, compared with the ledger.</sub>
    """)


def _plans() -> dict[str, Plan]:
    """One plan of each sort of fact that text and Markdown both have to tell."""
    busy = {"gpus": 2, "started_at_ms": NOW_MS - 10_000}
    names = [f"a{number}" for number in range(60)]
    sweep = [element("s", lr=lr) for lr in range(6)]
    replaced = [element("s", lr=lr) for lr in (*range(5), 9)]
    script = task("script", commands=["a\nb\n"])
    outdated = replace(
        ledger(*(row(task(name), stale=Outdated.INHERITED) for name in names)),
        outdated={name: (InputChange("data", InputEvent.RERUN),) for name in names},
    )
    return {
        "replaced": planned(tree(task("a", env={"X": "1"})), ledger(row(task("a")))),
        "script": planned(tree(task("script", commands=["a\nc\n"])), ledger(row(script))),
        "in the place of another": planned(tree(*replaced), ledger(*map(row, sweep))),
        "held": planned(
            tree(task("a", env={"X": "1"})),
            ledger(row(task("a"), RunState.RUNNING, **busy), row(task("b"), RunState.RUNNING)),
        ),
        "elements held": planned(
            tree(), ledger(*(row(item("arr", i), RunState.RUNNING, **busy) for i in range(1, 7)))
        ),
        "outdated": planned(tree(*map(task, names)), outdated),
        "failed": planned(
            tree(*map(task, names)), ledger(*(row(task(name), RunState.FAILED) for name in names))
        ),
        "left": planned(
            tree(*(task(name, env={"X": "1"}) for name in names), task("z")),
            ledger(*(row(task(name)) for name in names)),
            scope=Scope(targets=("run/z",)),
        ),
    }


@pytest.mark.parametrize("name", list(_plans()))
def test_markdown_has_the_facts_of_the_text(name: str) -> None:
    """Counts, what forces a replacement, what is at stake, and the command that does or shows more."""
    plan = _plans()[name]
    shown = html.unescape(render(plan)).replace("\u200b", "")
    lines = [line.text.strip() for line in text(plan)]
    facts = [
        *(
            one
            for one in lines
            if one.endswith(("re-run.", "replaces another.", "replace others."))
        ),
        *(one.removeprefix("impact: ") for one in lines if one.startswith("impact: ")),
        *(one.removesuffix(":") for one in lines if "`fleetform rerun NAME`" in one),
        *(one.partition(": ")[2] for one in lines if re.match(r"and \d+ more", one)),
    ]
    forces = sum("# forces replacement" in one for one in lines)
    assert facts or forces, lines
    assert [one for one in facts if one not in shown] == []
    assert shown.count("(forces replacement)") == forces


def test_a_name_with_a_pipe_is_one_piece_of_code() -> None:
    """It is read and copied as a whole."""
    new = [element("s", lr=lr) for lr in (1, 2, 3, 4)]
    assert "| <code>task s&#91;lr=1&#124;2&#124;3&#124;4&#93;  4 elements</code> |" in render(
        planned(tree(*new), ledger())
    )


def test_what_this_version_does_not_carry_out_has_a_table_of_its_own() -> None:
    """A reviewer sees at once what there is nothing to be done about."""
    assert (
        "#### Not supported yet, so not applied\n\n| what | why |\n|---|---|\n"
        "| `task train` | containers are not supported yet |\n"
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
    markdown = re.sub(r"<code>(?:&#\d+;|[^<>\[\]`*_@#&\\])*</code>", "", markdown)
    return re.sub(r"(?<!`)(`+)(?!`)(.*?)(?<!`)\1(?!`)", "", markdown)


@given(st.text(alphabet="`|\\ <a&\n", max_size=12))
def test_code_is_one_cell_of_literal_text(text: str) -> None:
    """Whatever is in it, a code span neither ends early nor ends its table's cell."""
    shown = _code(text)
    assert "|" not in shown
    assert "\n" not in shown
    if "|" in text:
        # One element of HTML: between its tags Markdown would be read, and there is none.
        inside = shown.removeprefix("<code>").removesuffix("</code>")
        assert len(inside) == len(shown) - len("<code></code>")
        assert not set(re.sub(r"&#\d+;", "", inside)) & set("<>[]`*_@#&\\")
    else:
        assert _without_code(shown).strip() == ""


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
