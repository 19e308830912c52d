"""A run that no host can ever hold: how long until that is said, finally, with reasons."""

from __future__ import annotations

from collections.abc import Sequence

from measuring import expect, measure, parser_of, scratch, seconds, table, write_tree

RUNS = 5
FLEET = "type: fleet\nname: here\nnodes: 1\nlocal: {cpu: 4, memory: 8GB}\n"
TASK = """\
type: task
name: too-big
commands: ["true"]
fleets: [here]
resources: {cpu: 64, memory: 512GB}
"""


def main(arguments: Sequence[str] | None = None) -> None:
    parser_of(__doc__).parse_args(arguments)
    walls = []
    for _ in range(RUNS):
        with scratch() as folder:
            state = folder / "state"
            tree = write_tree(folder / "tree", {"fleet.yaml": FLEET})
            expect(measure(["apply", str(tree), "-y"], state=state))
            (tree / "task.yaml").write_text(TASK)
            measured = expect(measure(["apply", str(tree), "-y"], state=state), exit_code=4)
            walls.append(measured.wall_seconds)
            why = expect(measure(["why", "too-big", "--path", str(tree)], state=state)).output
            if "64" not in why:
                raise SystemExit(f"the reasons are missing:\n{why}")
    table(
        f"A run that can never be placed, from `apply` to its end, {RUNS} times",
        ["wall", "asked"],
        [[seconds(walls), "1 s"]],
    )


if __name__ == "__main__":
    main()
