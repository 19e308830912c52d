"""
A plan as Markdown, for a pull request or a job's summary.

Names and values come from a branch that nobody has reviewed yet. All of them go through
`_code` or `_escaped`: no link, image, mention, table cell or HTML of theirs is ever rendered.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Sequence

from fleetform.model import figures
from fleetform.model.plan import Plan
from fleetform.views.lines import printable
from fleetform.views.overrides import in_force
from fleetform.views.plan_cost import cost_text, total_cost_text
from fleetform.views.plan_depth import depth_text
from fleetform.views.plan_earlier import earlier_runs
from fleetform.views.plan_fields import field_rows
from fleetform.views.plan_forecast import forecast_lines
from fleetform.views.plan_groups import Group, HeldGroup, group_changes, split_held
from fleetform.views.plan_stakes import stake_text
from fleetform.views.plan_summary import summary
from fleetform.views.plan_text import SIGNS, short_commit
from fleetform.views.reasons import HELD_BY, reason_sentence
from fleetform.views.stale import OUTDATED, changes_text, stale_results

__all__ = ["SIZE_MAX", "render"]

SIZE_MAX = 60_000
"""Characters. GitHub takes 65 536 in a comment; the rest is for whoever wraps this one."""

LIST_MAX = 50

# What CommonMark and GitHub give a meaning to within a line.
_SPECIAL = re.compile(r"[\\`*_\[\]<>#!|~@&$^]")

# The references of `@` and `#` as `_SPECIAL` writes them, the colon of `://`, the dot of `www.`.
_LINKING = re.compile(r"&#64;|&#35;|:(?=/)|(?<=www)\.", re.IGNORECASE)


def render(plan: Plan) -> str:
    """Return the whole text with a newline at its end; what does not fit is left out, and said."""
    head = _head(plan)
    tail = _tail(plan)
    room = SIZE_MAX - len(head) - len(tail) - 200  # The note itself needs some.
    blocks = list(_blocks(plan))
    kept: list[str] = []
    for block in blocks:
        if len(block) > room:
            break
        room -= len(block)
        kept.append(block)
    left_out = len(blocks) - len(kept)
    note = (
        f"> {left_out} more blocks do not fit here. `fleetform plan` shows them.\n\n"
        if left_out
        else ""
    )
    return f"{head}{''.join(kept)}{note}{tail}"


def _head(plan: Plan) -> str:
    commit = f" at {_code(short_commit(plan.commit))}" if plan.commit else ""
    sentences = (*map(in_force, plan.overrides), *plan.warnings)
    warnings = "".join(f"> ⚠️ {_escaped(sentence)}\n\n" for sentence in sentences)
    return (
        f"### Plan of {_code(plan.environment_name)}{commit}\n\n**{summary(plan)}**\n\n{warnings}"
    )


def _blocks(plan: Plan) -> Iterator[str]:
    groups = group_changes(plan.changes)
    if groups:
        yield "| | what | why |\n|---|---|---|\n"
        for group in groups:
            sign = SIGNS[group.first.action][0]
            yield f"| {_code(sign)} | {_code(group.title)} | {_escaped(_why(plan, group))} |\n"
        yield "\n"
        if cost := total_cost_text(plan):
            yield f"**{_escaped(cost)}**\n\n"
    for group in groups:
        if details := _details(group):
            yield details
    held, beyond = split_held(plan.held)
    yield from _held(held)
    yield from _beyond(beyond)
    yield from _deferred(plan)
    for earlier in earlier_runs(plan):
        yield f"#### {earlier.headline}\n\n| run | state | detail |\n|---|---|---|\n"
        for settled in earlier.runs[:LIST_MAX]:
            yield (f"| {_code(settled.key.name)} | {settled.state} | {_code(settled.detail)} |\n")
        if len(earlier.runs) > LIST_MAX:
            yield f"| and {len(earlier.runs) - LIST_MAX} more | | |\n"
        yield "\n"
    yield from _stale(plan)
    if lines := forecast_lines(plan):
        yield "".join(f"{_escaped(sentence)}  \n" for sentence in lines) + "\n"


def _stale(plan: Plan) -> Iterator[str]:
    stale = stale_results(plan)
    if not stale:
        return
    yield f"#### {OUTDATED}\n\n| run | why |\n|---|---|\n"
    for one in stale[:LIST_MAX]:
        why = changes_text(one.inputs, inherited=one.inherited)
        yield f"| {_code(one.key.name)} | {_escaped(why)} |\n"
    if len(stale) > LIST_MAX:
        yield f"| and {len(stale) - LIST_MAX} more | |\n"
    yield "\n"


def _held(held: Sequence[HeldGroup]) -> Iterator[str]:
    if not held:
        return
    yield "#### Held back\n\n| what | held by | what would release it |\n|---|---|---|\n"
    for one in held:
        cause = f"{HELD_BY[one.held.by]}: {one.held.detail}"
        yield f"| {_code(one.group.title)} | {_escaped(cause)} | {_escaped(one.held.cure)} |\n"
    yield "\n"


def _beyond(beyond: Sequence[HeldGroup]) -> Iterator[str]:
    if not beyond:
        return
    yield "#### Not carried out by this version\n\n| what | why |\n|---|---|\n"
    for one in beyond:
        yield f"| {_code(one.group.title)} | {_escaped(one.held.detail)} |\n"
    yield "\n"


def _deferred(plan: Plan) -> Iterator[str]:
    if not plan.deferred:
        return
    why = {one.change.key: one.why for one in plan.deferred}
    groups = group_changes(one.change for one in plan.deferred)
    yield "#### Left for another plan\n\n| what | why |\n|---|---|\n"
    for group in groups[:LIST_MAX]:
        yield f"| {_code(group.title)} | {_escaped(why[group.first.key])} |\n"
    if len(groups) > LIST_MAX:
        yield f"| and {len(groups) - LIST_MAX} more | |\n"
    yield "\n"


def _tail(plan: Plan) -> str:
    busy = figures.counted(len(plan.progressing), "resource")
    progress = f"{busy} in progress. " if plan.progressing else ""
    return f"<sub>{progress}Plan {_code(plan.digest[:12])}, {_escaped(depth_text(plan))}.</sub>\n"


def _why(plan: Plan, group: Group) -> str:
    change = group.first
    if change.replaces and not group.is_many:
        return f"takes the place of {change.replaces}"
    text = stake_text(plan, change) if change.destructive else ""
    stake = f". At stake: {text}" if text else ""
    cost = "" if group.is_many else cost_text(change)
    return f"{reason_sentence(change)}{stake}{f'. Cost: {cost}' if cost else ''}"


def _details(group: Group) -> str:
    rows = field_rows(group.first.key.kind, group.fields)
    if not rows and not group.first.replaces:
        return ""
    lines = [f"| {_code(row.path)} | {_cell(row.before)} | {_cell(row.after)} |" for row in rows]
    if group.first.replaces and group.is_many:
        lines.extend(
            f"| element | {_code(change.replaces)} | {_code(change.key.name)} |"
            for change in group.changes[:LIST_MAX]
        )
        if len(group.changes) > LIST_MAX:
            lines.append(f"| and {len(group.changes) - LIST_MAX} more | | |")
    body = "\n".join(lines)
    return (
        f"<details><summary><code>{_html(group.title)}</code></summary>\n\n"
        f"| field | before | after |\n|---|---|---|\n{body}\n\n</details>\n\n"
    )


def _cell(text: str | None) -> str:
    return "" if text is None else _code(text)


def _code(text: str) -> str:
    """
    Inline code that is literal whatever is in it, in tables as well.

    A table ends a cell at a `|` even inside of code, and what escapes it can be escaped in turn,
    so a pipe stands between two spans, as a character reference.
    """
    parts = [_span(part) for part in printable(text).split("|")]
    return "<code>&#124;</code>".join(parts)


def _span(text: str) -> str:
    """One code span: its fence is longer than any run of backticks in it."""
    if not text:
        return ""
    runs = [len(run) for run in re.findall(r"`+", text)]
    fence = "`" * (max(runs, default=0) + 1)
    pad = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{pad}{text}{pad}{fence}"


def _html(text: str) -> str:
    """Text inside of an HTML block, where Markdown has no say."""
    return html.escape(printable(text))


def _escaped(text: str) -> str:
    """
    Prose of ours that may quote a name: nothing in it is markup.

    GitHub looks for mentions and addresses in what is rendered, where a character reference is
    the character again; a space of no width behind it keeps them from being found.
    """
    quoted = _SPECIAL.sub(lambda found: f"&#{ord(found[0])};", printable(text))
    return _LINKING.sub(lambda found: f"{found[0]}&#8203;", quoted)
