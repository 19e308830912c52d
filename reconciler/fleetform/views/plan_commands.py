"""Commands that a run will not find, though the person who plans has them: a line each."""

from __future__ import annotations

from fleetform.model.plan import Plan
from fleetform.views.lines import printable

__all__ = ["command_lines"]


def command_lines(plan: Plan) -> tuple[str, ...]:
    """Return the sentences, and how to go on; none where every command is found."""
    rows = plan.annex.get("only_on_callers_path", ())
    if not rows:
        return ()
    lines = [
        printable(
            f"{one['run']}: `{one['program']}` is only on your PATH ({one['found']}), not on the job's"
        )
        for one in rows
    ]
    return (*lines, "use its absolute path in `commands`, or set `env: {PATH: …}`")
