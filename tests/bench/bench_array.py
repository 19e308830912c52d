"""An array of a thousand `true`, from the start of `apply` to all done."""

from __future__ import annotations

import json
from collections.abc import Sequence

from measuring import expect, measure, parser_of, positive, scratch, seconds, table, write_tree

RUNS = 3
ELEMENTS = 1000

FLEET = """\
type: fleet
name: wide
nodes: 1
local: {cpu: 256, memory: 256GB}
"""
ARRAY = """\
type: task
name: many
array: 1-{elements}
commands: ["true"]
fleets: [wide]
resources: {{cpu: 1}}
"""


def main(arguments: Sequence[str] | None = None) -> None:
    parser = parser_of(__doc__)
    parser.add_argument("elements", nargs="?", type=positive, default=ELEMENTS)
    elements = parser.parse_args(arguments).elements
    walls = []
    for _ in range(RUNS):
        with scratch() as folder:
            state = folder / "state"
            tree = write_tree(folder / "tree", {"fleet.yaml": FLEET})
            # The fleet is there already, as it would be: what is measured are the runs.
            expect(measure(["apply", str(tree), "-y"], state=state))
            (tree / "array.yaml").write_text(ARRAY.format(elements=elements))
            walls.append(expect(measure(["apply", str(tree), "-y"], state=state)).wall_seconds)
            listed = expect(measure(["ps", "-C", str(tree), "--json"], state=state)).output
            done = listed.count('"done"')
            if done != elements:
                raise SystemExit(f"{done} of {elements} runs are done: {json.dumps(listed)[:500]}")
    table(
        f"{elements} runs of `true` on a local fleet with 256 CPUs declared, {RUNS} times",
        ["from apply to all done", "runs a second", "asked"],
        [[seconds(walls), f"{elements / min(walls):.0f}", "5 s"]],
    )


if __name__ == "__main__":
    main()
