"""
A plan as Markdown, for a pull request or a job's summary.

Names and values come from a branch that has not been reviewed yet. All of them go through
`_code` or `_escaped`: no link, image, mention, table cell or HTML of theirs is ever rendered.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Sequence, Sized

from fleetform.model import figures
from fleetform.model.plan import Plan
from fleetform.views.lineage import OUTDATED_HEADLINE, changes_text, outdates_text, stale_results
from fleetform.views.lines import printable
from fleetform.views.overrides import in_force_notice
from fleetform.views.plan.costs import total_cost_texts
from fleetform.views.plan.groups import (
    ALL_OF_THEM,
    FORCES,
    SAME_TEXT,
    Group,
    HeldGroup,
    field_row,
    fold,
    group_changes,
    more_text,
    split_held,
)
from fleetform.views.plan.notes import (
    SEEN_EARLIER,
    block_facts,
    depth_text,
    drift_text,
    earlier_drift,
    earlier_runs,
    forecast_lines,
    late_texts,
    progressing,
    silent_texts,
    still_aborted_text,
    unknown_texts,
)
from fleetform.views.plan.preview import demand_preview_texts
from fleetform.views.plan.rollouts import rollout_texts
from fleetform.views.plan.summary import executions, summary
from fleetform.views.plan.text import SIGNS, short_commit
from fleetform.views.plan.unfinished import unfinished_texts
from fleetform.views.reasons import HELD_BY, blocked_text, reason_sentence

SIZE_MAX = 60_000
"""Characters. GitHub takes 65 536 in a comment; the rest is for text around this one."""

LIST_MAX = 50

# What CommonMark and GitHub give a meaning to within a line.
_SPECIAL = re.compile(r"[\\`*_\[\]<>#!|~@&$^]")

# The references of `@` and `#` as `_SPECIAL` writes them, the colon of `://`, the dot of `www.`.
_LINKING = re.compile(r"&#64;|&#35;|:(?=/)|(?<=www)\.", re.IGNORECASE)


def render(plan: Plan) -> str:
    """Return the whole text with a newline at its end; what does not fit is said at the top."""
    head = _head(plan)
    tail = _tail(plan)
    blocks = list(_blocks(plan))
    if len(head) + sum(map(len, blocks)) + len(tail) <= SIZE_MAX:
        return f"{head}{''.join(blocks)}{tail}"
    room = SIZE_MAX - len(head) - len(tail) - 500  # The warnings themselves need some.
    kept: list[str] = []
    for block in blocks:
        if len(block) > room:
            break
        room -= len(block)
        kept.append(block)
    left_out = figures.counted(len(blocks) - len(kept), "block")
    return (
        f"> 🛑 **This is not the whole plan:** {left_out} of {len(blocks)} did not fit into a"
        " comment. `fleetform plan` shows everything.\n\n"
        f"{head}{''.join(kept)}"
        f"\n> {left_out} did not fit here. `fleetform plan` shows everything.\n\n{tail}"
    )


def _head(plan: Plan) -> str:
    commit = f" at {_code(short_commit(plan.commit))}" if plan.commit else ""
    overrides = in_force_notice(plan.overrides)
    sentences = (
        *([overrides] if overrides else []),
        *unfinished_texts(plan),
        *plan.warnings,
    )
    warnings = "".join(f"> ⚠️ {_escaped(sentence)}\n\n" for sentence in sentences)
    again = f"{text}\n\n" if (text := executions(plan)) else ""
    title = f"### Plan of {_code(plan.environment_name)}{commit}"
    return f"{title}\n\n**{summary(plan)}**\n\n{again}{warnings}"


def _blocks(plan: Plan) -> Iterator[str]:
    groups = group_changes(plan.changes)
    if groups:
        yield "| | what | why |\n|---|---|---|\n"
        for group in groups:
            sign = SIGNS[group.first.action][0]
            yield f"| {_code(sign)} | {_code(group.title)} | {_escaped(_why(plan, group))} |\n"
        yield "\n"
        for cost in (*total_cost_texts(plan), *demand_preview_texts(plan)):
            yield f"**{_escaped(cost)}**\n\n"
    for group in groups:
        if details := _details(group):
            yield details
    held, beyond = split_held(plan.held)
    yield from _held(plan, held)
    yield from _beyond(plan, beyond)
    for one in (*held, *beyond):
        if details := _details(one.group):
            yield details
    yield from _deferred(plan)
    for earlier in earlier_runs(plan):
        yield f"#### {earlier.headline}\n\n| run | state | detail |\n|---|---|---|\n"
        for settled in earlier.runs[:LIST_MAX]:
            yield (f"| {_code(settled.key.name)} | {settled.state} | {_code(settled.detail)} |\n")
        if more := _more(earlier.runs[LIST_MAX:]):
            yield f"| {more} | | |\n"
        yield "\n"
    absent = (*rollout_texts(plan), *late_texts(plan), *silent_texts(plan))
    for sentence in (still_aborted_text(plan), *absent, *unknown_texts(plan)):
        if sentence:
            yield f"{_escaped(sentence)}\n\n"
    yield from _stale(plan)
    yield from _earlier_drift(plan)
    if lines := forecast_lines(plan):
        yield "".join(f"{_escaped(sentence)}  \n" for sentence in lines) + "\n"


def _stale(plan: Plan) -> Iterator[str]:
    if text := outdates_text(plan):
        yield f"{_escaped(text)}\n\n"
    stale = stale_results(plan)
    if not stale:
        return
    yield f"#### {OUTDATED_HEADLINE}\n\n| run | why |\n|---|---|\n"
    for one in stale[:LIST_MAX]:
        why = changes_text(one.inputs, one.document)
        yield f"| {_code(one.key.name)} | {_escaped(why)} |\n"
    if more := _more(stale[LIST_MAX:]):
        yield f"| {more} | |\n"
    yield "\n"


def _earlier_drift(plan: Plan) -> Iterator[str]:
    if not (drift := earlier_drift(plan)):
        return
    yield f"#### {SEEN_EARLIER}\n\n"
    for one in drift[:LIST_MAX]:
        yield f"- {_escaped(drift_text(plan, one))}\n"
    if more := _more(drift[LIST_MAX:]):
        yield f"- {more}\n"
    yield "\n"


def _held(plan: Plan, held: Sequence[HeldGroup]) -> Iterator[str]:
    if not held:
        return
    yield "#### Blocked\n\n| what | why | blocked by | to unblock |\n|---|---|---|---|\n"
    for one in held:
        cause = blocked_text(HELD_BY[one.held.by], one.held.detail)
        cells = (_why(plan, one.group), cause, one.held.cure)
        yield f"| {_code(one.group.title)} | {' | '.join(map(_escaped, cells))} |\n"
    yield "\n"


def _beyond(plan: Plan, beyond: Sequence[HeldGroup]) -> Iterator[str]:
    if not beyond:
        return
    yield "#### Not supported yet, so not applied\n\n| what | why |\n|---|---|\n"
    for one in beyond:
        why = f"{one.held.detail}{_facts(plan, one.group, ceiling=True)}"
        yield f"| {_code(one.group.title)} | {_escaped(why)} |\n"
    yield "\n"


def _deferred(plan: Plan) -> Iterator[str]:
    if not plan.deferred:
        return
    why = {one.change.key: one.why for one in plan.deferred}
    groups = group_changes(one.change for one in plan.deferred)
    yield "#### Deferred\n\n| what | why |\n|---|---|\n"
    for group in groups[:LIST_MAX]:
        yield f"| {_code(group.title)} | {_escaped(why[group.first.key])} |\n"
    if more := _more([change for group in groups[LIST_MAX:] for change in group.changes]):
        yield f"| {more} | |\n"
    yield "\n"


def _more(rest: Sized) -> str:
    return f"and {len(rest)} more: {ALL_OF_THEM}" if rest else ""


def _tail(plan: Plan) -> str:
    count = len(progressing(plan))
    progress = f"{figures.counted(count, 'resource')} in progress. " if count else ""
    return f"<sub>{progress}Plan {_code(plan.digest[:12])}, {_escaped(depth_text(plan))}.</sub>\n"


def _why(plan: Plan, group: Group) -> str:
    change = group.first
    if change.replaces and not group.is_many:
        reason = f"replaces {change.replaces}"
    else:
        reason = reason_sentence(*group.changes)
    return f"{reason}{_facts(plan, group)}".removeprefix(". ")


def _facts(plan: Plan, group: Group, *, ceiling: bool = False) -> str:
    facts = block_facts(plan, group, ceiling=ceiling)
    return "".join(f". {name.capitalize()}: {text}" for name, text in facts)


def _details(group: Group) -> str:
    rows: list[str] = []
    texts: list[str] = []
    for one in fold(group):
        if one.more:
            rows.append(f"| {_escaped(more_text(one))} | | |")
            continue
        row = field_row(group.first.key.kind, one.field)
        path = f"{_code(row.path)}{f' of {_code(one.elements)}' if one.elements else ''}"
        note = f" ({FORCES})" if row.forces and group.may_force else ""
        if row.lines:
            texts.append(f"{path}{note}\n\n{_fenced([str(it) for it in row.lines])}")
        elif row.before is not None and row.before == row.after:
            rows.append(f"| {path} | {_cell(row.before)} | {SAME_TEXT}{note} |")
        else:
            rows.append(f"| {path} | {_cell(row.before)} | {_cell(row.after)}{note} |")
    if group.first.replaces and group.is_many:
        rows.extend(
            f"| element | {_code(change.replaces)} | {_code(change.key.name)} |"
            for change in group.changes[:LIST_MAX]
        )
        if more := _more(group.changes[LIST_MAX:]):
            rows.append(f"| {more} | | |")
    if not rows and not texts:
        return ""
    if names := group.names:
        texts.insert(0, f"Elements: {_escaped(names)}")
    table = ["| field | before | after |\n|---|---|---|\n" + "\n".join(rows)] if rows else []
    body = "\n\n".join([*table, *texts])
    title = f"<details><summary><code>{_html(group.title)}</code></summary>"
    return f"{title}\n\n{body}\n\n</details>\n\n"


def _fenced(lines: Sequence[str]) -> str:
    """A block of literal text, whose fence is longer than any run of backticks in it."""
    runs = [len(run) for one in lines for run in re.findall(r"`+", one)]
    fence = "`" * max(3, max(runs, default=0) + 1)
    return "\n".join([f"{fence}diff", *lines, fence])


def _cell(text: str | None) -> str:
    return "" if text is None else _code(text)


def _code(text: str) -> str:
    """
    Inline code that is literal whatever is in it, in tables as well.

    A table ends a cell at a `|` even inside of code, and what escapes it can be escaped in turn,
    so a text with a pipe is an element of HTML with character references. Any other is a span
    whose fence is longer than any run of backticks in it.
    """
    text = printable(text)
    if "|" in text:
        return f"<code>{_escaped(text)}</code>"
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
    Prose that may quote a name: nothing in it is markup.

    GitHub looks for mentions and addresses in what is rendered, where a character reference is
    the character again; a space of no width behind it keeps them from being found.
    """
    quoted = _SPECIAL.sub(lambda found: f"&#{ord(found[0])};", printable(text))
    return _LINKING.sub(lambda found: f"{found[0]}&#8203;", quoted)
