"""
A program of `bench_stacks`, by the Automation API alone in a process of its own.

    python direct_stack.py preview|up FOLDER PROGRAM

PROGRAM is a file with `Program.to_json()`, with no outputs of other resources in it.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pulumi
from pulumi import automation

PARALLEL = 32
"""As `engine.runner.PARALLEL`."""


def main(operation: str, folder: str, program: str) -> None:
    resources = json.loads(Path(program).read_text())["resources"]

    def declare() -> None:
        first, *others = resources
        package = first["type"].removeprefix("pulumi:providers:")
        provider = pulumi.ProviderResource(package, first["name"], first["properties"])
        for one in others:
            options = pulumi.ResourceOptions(provider=provider, ignore_changes=one["ignore"])
            pulumi.CustomResource(one["type"], one["name"], value(one["properties"]), options)

    settings = automation.ProjectSettings(name="fleetform", runtime="python")
    workspace = automation.LocalWorkspace(
        work_dir=folder, secrets_provider="passphrase", program=declare, project_settings=settings
    )
    stack = automation.Stack.create_or_select("one", workspace)
    # The stack is a resource of the state as well.
    if operation == "up":
        done = stack.up(color="never", parallel=PARALLEL).summary.resource_changes
        assert done == {"create": len(resources) + 1}, done
    else:
        counts = dict(stack.preview(color="never").change_summary)
        assert counts == {"same": len(resources) + 1}, counts


def value(given: Any) -> Any:
    """Return a property with its secrets."""
    if isinstance(given, dict):
        if "$secret" in given:
            return pulumi.Output.secret(given["$secret"])
        return {name: value(inner) for name, inner in given.items()}
    return [value(inner) for inner in given] if isinstance(given, list) else given


if __name__ == "__main__":
    main(*sys.argv[1:])
