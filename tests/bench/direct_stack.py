"""
The same programs as in `bench_stacks`, by the Automation API alone in a process of its own.

    python direct_stack.py preview|up FOLDER COUNT
"""

from __future__ import annotations

import sys
from pathlib import Path

import pulumi
from pulumi import automation

sys.path.insert(0, str(Path(__file__).parents[1]))

from pulumi_shelf import items

PARALLEL = 32
"""As `engine.runner.PARALLEL`."""


def main(operation: str, folder: str, count: int) -> None:
    program = items(*(f"n{number}" for number in range(count)))

    def declare() -> None:
        provider = pulumi.ProviderResource("shelf", "shelf", {})
        for one in program.resources[1:]:
            options = pulumi.ResourceOptions(provider=provider)
            pulumi.CustomResource(one.type, one.name, dict(one.properties), options)

    settings = automation.ProjectSettings(name="fleetform", runtime="python")
    workspace = automation.LocalWorkspace(
        work_dir=folder, secrets_provider="passphrase", program=declare, project_settings=settings
    )
    stack = automation.Stack.create_or_select("one", workspace)
    # The stack and its provider are resources of the state as well.
    if operation == "up":
        stack.preview(color="never")
        done = stack.up(color="never", parallel=PARALLEL).summary.resource_changes
        assert done == {"create": count + 2}, done
    else:
        counts = dict(stack.preview(color="never").change_summary)
        assert counts == {"same": count + 2}, counts


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
