"""A plan on standard output: as text, as JSON for scripts, as Markdown for a pull request."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from fleetform.cli.screen import Screen

if TYPE_CHECKING:
    from fleetform.app.workspace import Workspace
    from fleetform.model.plan import Plan

Form = Literal["text", "json", "markdown"]


def show_errored(screen: Screen, workspace: Workspace, problem: str) -> None:
    """Print the JSON of a plan that could not be made, with what is wrong with the configuration."""
    from fleetform.agents.host import VERSION
    from fleetform.model.redaction import fingerprint
    from fleetform.views.plan.json import errored_json

    environment = workspace.environment
    screen.json(
        errored_json(
            environment.name,
            fingerprint(environment.uid),
            workspace.load().findings,
            problem=problem,
            version=VERSION,
        )
    )


def show_plan(screen: Screen, plan: Plan, form: Form = "text") -> None:
    """Print the plan; only text has colours."""
    if form == "json":
        from fleetform.agents.host import VERSION
        from fleetform.views.plan import json as plan_json

        screen.json(plan_json.to_json(plan, version=VERSION))
    elif form == "markdown":
        from fleetform.views.lines import harmless
        from fleetform.views.plan import markdown as plan_markdown

        screen.stream.write(harmless(plan_markdown.render(plan)))
    else:
        from fleetform.views.plan import text as plan_text

        screen.lines(plan_text.rendered(plan))
