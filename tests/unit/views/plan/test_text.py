"""A plan as a terminal shows it."""

from __future__ import annotations

from dataclasses import replace
from textwrap import dedent

from fleetform.model.lineage import InputChange, InputEvent
from fleetform.model.plan import Action, Plan, Scope
from fleetform.model.run import RunState
from fleetform.model.run_state import Outdated
from fleetform.spec.desired import ResourceKey
from fleetform.views.plan.text import SIGNS, render
from unit.plan.trees import (
    NOW_MS,
    element,
    fleet,
    item,
    ledger,
    planned,
    row,
    task,
    tree,
    volume,
)


def text(plan: Plan) -> str:
    return "\n".join(line.text for line in render(plan)) + "\n"


def test_nothing_to_do() -> None:
    """An unchanged environment says so in one sentence."""
    plan = planned(tree(task("train")), ledger(row(task("train"))))
    assert text(plan) == dedent("""\
        Environment lab  at 4f2a91c, compared with the ledger

        No changes. Your environment is as declared.
    """)


def test_what_is_being_removed_is_not_gone_yet() -> None:
    """Nothing is left to remove once nothing is under way either."""
    plan = planned(tree(task("train")), ledger(), destroy=True)
    assert text(plan).endswith("\nNothing is left to remove.\n")
    under_way = replace(plan, progressing=(ResourceKey("fleet", "local"),))
    assert text(under_way).endswith("\nNo changes: the remaining resources are being removed.\n")


def test_what_returns_is_compared_with_what_it_was() -> None:
    """A field that it lost has a side that is not set, and no empty value."""
    live = ledger(row(task("train", priority=3, env={"A": "1"}), archived=True))
    shown = text(planned(tree(task("train", env={"A": "1"})), live))
    assert "  + task train  declared again" in shown
    assert "      priority: 3 → (not set)\n" in shown


def test_a_first_plan() -> None:
    """What will be made shows what its document sets, with units, aligned."""
    train = task(
        "train",
        env={"LR": "0.1"},
        fleets=["local"],
        max_duration=7200,
        resources={"cpu": {"min": 2000, "max": None}, "memory": {"min": 8 << 30, "max": None}},
    )
    plan = planned(tree(fleet("local"), train, volume("data")), ledger())
    assert text(plan) == dedent("""\
        Environment lab  at 4f2a91c, compared with the ledger

          + fleet local
              local: {}
              nodes: 1

          + task train
              commands:         true
              env.LR:           "0.1"
              fleets:           [local]
              max_duration:     2h
              resources.cpu:    2..
              resources.memory: 8GB..

          + volume data
              fleet: local
              path:  /data

        Plan: 3 to create.
    """)


def test_changes_show_before_and_after() -> None:
    """Each field has both sides, and a replacement says which field forces it."""
    old = task("train", env={"LR": "0.1"}, priority=10)
    new = task("train", env={"LR": "0.2"}, priority=50, shell="bash")
    plan = planned(tree(fleet("local"), new), ledger(row(fleet("local")), row(old)))
    assert text(plan) == dedent("""\
        Environment lab  at 4f2a91c, compared with the ledger

        -/+ task train  must re-run: `env`, `shell` changed
              env.LR:   "0.1" → "0.2"  # forces replacement
              priority: 10 → 50
              shell:    (not set) → bash  # forces replacement

        Plan: 1 to replace.
        1 run will re-run.
    """)


def test_a_thousand_elements_are_one_line() -> None:
    """Elements of an array that come into being together are one fact."""
    array = (item("array", index) for index in range(1, 1001))
    plan = planned(tree(fleet("local"), *array), ledger(row(fleet("local"))))
    assert text(plan) == dedent("""\
        Environment lab  at 4f2a91c, compared with the ledger

          + task array[1-1000]  1000 elements
              commands: true

        Plan: 1000 to create.
    """)


def test_a_grid_is_named_by_its_values() -> None:
    """A sweep of all combinations is read faster by its parameters than by its elements."""
    grid = [element("s", lr=lr, batch=batch) for lr in (0.1, 0.2, 0.3) for batch in (8, 16)]
    assert "task s[batch=8|16,lr=0.1|0.2|0.3]  6 elements" in text(planned(tree(*grid), ledger()))
    ragged = text(planned(tree(*grid[:-1]), ledger()))
    assert (
        "task s[batch=8,lr=0.1 | batch=8,lr=0.2 | batch=8,lr=0.3 | batch=16,lr=0.1 | …]" in ragged
    )
    assert (
        "      elements: batch=8,lr=0.1, batch=8,lr=0.2, batch=8,lr=0.3, batch=16,lr=0.1, batch=16,lr=0.2\n"
    ) in ragged


def test_named_things_are_shown_by_name() -> None:
    """Files, volumes and dependencies are a row each, a script has all of its lines."""
    train = task(
        "train",
        commands=["cd /tmp", "if true; then\n  date\nfi"],
        files=[{"path": "a.py", "sha256": "0" * 64, "size": 3, "mode": 420}],
        volumes=[{"name": "data", "path": "in", "read_only": True}],
        depends_on={"runs": [{"run": "a"}, {"run": "b", "when": "finished", "each": True}]},
    )
    assert (
        "      commands[0]:     cd /tmp\n"
        "      commands[1]:\n"
        "        +if true; then\n"
        "        +  date\n"
        "        +fi\n"
        "        \\ no newline at the end\n"
        "      depends_on.runs: a, b (finished, element by element)\n"
        "      files:           a.py\n"
        "      volumes:         data:in (read only)\n"
    ) in text(planned(tree(train), ledger()))


def test_elements_that_changed_alike_are_one_block() -> None:
    """A priority raised for a whole array is shown once, with its gaps."""
    old = [row(item("array", index)) for index in (1, 2, 3, 5, 8, 9)]
    plan = planned(tree(*(item("array", i, priority=5) for i in (1, 2, 3, 5, 8, 9))), ledger(*old))
    assert "  ~ task array[1-3,5,8-9]  6 elements  updated in place\n" in text(plan)
    assert "      priority: (not set) → 5\n" in text(plan)


def test_a_changed_value_of_a_sweep() -> None:
    """A few pairs are shown one by one, many as a list."""
    old = [row(element("s", lr=0.1, batch=batch)) for batch in (8, 16)]
    new = [element("s", lr=0.2, batch=batch) for batch in (8, 16)]
    assert (
        "-/+ task s[batch=8,lr=0.2]  replaces s[batch=8,lr=0.1]\n      matrix.lr: 0.1 → 0.2\n"
    ) in text(planned(tree(*new), ledger(*old)))
    old = [row(element("s", lr=0.1, batch=batch)) for batch in range(12)]
    new = [element("s", lr=0.2, batch=batch) for batch in range(12)]
    many = text(planned(tree(*new), ledger(*old)))
    assert "      s[batch=0,lr=0.1] → s[batch=0,lr=0.2]\n" in many
    rest = "      and 2 more: `fleetform plan --format json` lists them\n"
    assert f"{rest}      matrix.lr: 0.1 → 0.2\n" in many


def test_every_run_that_a_replacement_executes_is_counted() -> None:
    """One with a new value has not been executed itself: it is counted beside the others."""
    old = [row(element("s", lr=lr)) for lr in (1, 2)]
    changed = (row(task("a")), row(task("b")))
    desired = tree(
        *(element("s", lr=lr) for lr in (1, 3)), task("a", shell="sh"), task("b", shell="sh")
    )
    assert text(planned(desired, ledger(*old, *changed))).endswith(
        "Plan: 3 to replace.\n2 runs will re-run. 1 new run replaces another.\n"
    )


def test_a_list_that_is_cut_names_what_lists_all() -> None:
    """Eleven of what is left for another plan: ten, a number, and the command."""
    names = [f"a{number}" for number in range(11)]
    live = ledger(*(row(task(name)) for name in names))
    desired = tree(*(task(name, shell="sh") for name in names), task("z"))
    shown = text(planned(desired, live, scope=Scope(targets=("run/z",))))
    assert "      and 1 more: `fleetform plan --format json` lists them\n" in shown


def test_what_is_held_says_what_releases_it() -> None:
    """Stakes, what holds, and the cure, in this order."""
    running = row(task("old"), RunState.RUNNING, gpus=8, started_at_ms=NOW_MS - 7_980_000)
    plan = planned(tree(broken=[ResourceKey("run", "odd")]), ledger(running))
    assert text(plan) == dedent("""\
        Environment lab  at 4f2a91c, compared with the ledger

        Blocked:

          + run odd
              blocked: invalid document: its document is invalid
              to unblock: correct the document; `fleetform validate` lists its findings

          - task old  removed from the configuration
              impact: the work of attempt 1 (running) on 8 GPUs, 2h13m so far, 17.7 GPU-hours
              blocked: destructive change not allowed: it deletes data or hosts, or ends running work
              to unblock: --allow-destroy, or `allow_destroy: true` in the environment's rules

        No changes can be made now; 2 blocked.
    """)


def test_what_this_version_does_not_carry_out_stands_by_itself() -> None:
    """Nobody has to decide about it, so it is not among what somebody can release."""
    desired = tree(beyond=[task("train", image="x")], broken=[ResourceKey("run", "odd")])
    assert text(planned(desired, ledger())) == dedent("""\
        Environment lab  at 4f2a91c, compared with the ledger

        Blocked:

          + run odd
              blocked: invalid document: its document is invalid
              to unblock: correct the document; `fleetform validate` lists its findings

        Not supported yet, so not applied:

          + task train
              commands: true
              image:    x
              blocked: containers are not supported yet

        No changes can be made now; 1 blocked; 1 not supported yet.
    """)


def test_failures_and_progress_are_listed() -> None:
    """What failed earlier stays visible, and what runs is not a change."""
    live = ledger(
        row(task("bad"), RunState.FAILED, message="exit code 1"),
        row(task("busy"), RunState.RUNNING),
    )
    assert text(planned(tree(task("bad"), task("busy")), live)) == dedent("""\
        Environment lab  at 4f2a91c, compared with the ledger

        1 run failed earlier; `fleetform rerun NAME`, or change the configuration:
          ! bad failed: exit code 1

        In progress: run/busy

        No changes; 1 failed earlier.
    """)


def test_elements_in_progress_are_named_in_short() -> None:
    """An array of a thousand is one name, as in the titles of changes."""
    items = [item("arr", index) for index in range(1, 31)]
    live = ledger(*(row(one, RunState.RUNNING) for one in items))
    assert "In progress: run/arr[1-30]\n" in text(planned(tree(*items), live))


def test_elements_stand_in_the_order_in_which_people_count() -> None:
    """`arr[100]` comes before `arr[1000]`, whatever the order of their letters."""
    shown = text(planned(tree(*(item("arr", index) for index in (9, 1000, 100))), ledger()))
    titles = [one.split()[2] for one in shown.splitlines() if one.startswith("  + task")]
    assert titles == ["arr[9]", "arr[100]", "arr[1000]"]


def test_long_lists_are_cut() -> None:
    """Ten thousand waiting runs are one line."""
    tasks = [task(f"t{number:02}") for number in range(14)]
    live = ledger(*(row(one, RunState.PENDING) for one in tasks))
    assert "run/t09 and 4 more\n" in text(planned(tree(*tasks), live))


def test_nothing_in_a_document_is_obeyed() -> None:
    """Escape sequences and characters that turn text around are shown as what they are."""
    nasty = task("train", env={"X": "\x1b[2J\u202e"}, description="a\r\nb")
    shown = text(planned(tree(nasty, commit="\x1b[31m"), ledger()))
    assert all(line.isprintable() for line in shown.splitlines())
    assert "\\u001b[2J\\u202e" in shown


def test_every_action_has_a_sign() -> None:
    """No change is printed without one."""
    assert set(SIGNS) == set(Action)


def test_signs_have_tones() -> None:
    """What is lost is told by more than a colour, and by a colour as well."""
    live = ledger(row(fleet("local")))
    lines = render(planned(tree(), live, allow_destroy=True))
    (title,) = [one for one in lines if "fleet local" in one.text]
    assert [(span.text, span.tone) for span in title.spans[:2]] == [
        ("  - ", "bad"),
        ("fleet local", "bold"),
    ]


def test_what_is_stale_is_told_where_no_change_tells_it() -> None:
    """A kept result with its reasons; one that this plan marks is told with its change."""
    old = task("marked", own="same")
    live = replace(
        ledger(row(task("eval"), stale=Outdated.INHERITED), row(old)),
        outdated={"eval": tuple(InputChange(name, InputEvent.RERUN) for name in "abc")},
    )
    plan = planned(tree(task("eval"), task("marked", own="same", env={"A": "1"})), live)
    assert [one.key.name for one in plan.stale] == ["eval", "marked"]
    lines = text(plan).splitlines()
    assert (
        "  ~ eval: a was re-run, b was re-run, 1 more input changed, inherited values changed"
    ) in lines
    assert sum("~ " in one for one in lines) == 2
