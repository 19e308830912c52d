"""
The same program as `bench_stacks` previews, by the Automation API alone in a process of its own.

    python direct_preview.py FOLDER COUNT
"""

from __future__ import annotations

import sys
from pathlib import Path

import pulumi
from pulumi import automation

sys.path.insert(0, str(Path(__file__).parents[1]))

from pulumi_shelf import items


def main(folder: str, count: int) -> None:
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
    result = automation.Stack.create_or_select("one", workspace).preview(color="never")
    # The stack and its provider are resources of the state as well.
    assert dict(result.change_summary) == {"same": count + 2}, result.change_summary


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
