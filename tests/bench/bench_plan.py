"""
How long the pure planner takes, by number of resources: run it as a script.

    python tests/bench/bench_plan.py [--json FILE]

No file is read and no ledger opened; what is measured is planning, the second reader, and a
plan's way into bytes and text. Best of three, in milliseconds of CPU, which is all that a pure
function uses; a factor of about ten from one size to the next is linear.
"""

from __future__ import annotations

import gc
import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from measuring import parser_of, positive

from fleetform.checker import check
from fleetform.model.live import Live
from fleetform.model.plan import Permissions, Plan
from fleetform.plan.serialize import dump, load
from fleetform.spec.desired import Desired
from fleetform.views.plan import markdown as plan_markdown
from fleetform.views.plan import text as plan_text
from unit.plan.trees import element, fleet, ledger, planned, row, task, tree

SIZES = (1_000, 10_000, 100_000)
ALLOWED = {"allow_destroy": True, "allow_restart": True, "allow_deletes": 1_000_000}

T = TypeVar("T")


def best(call: Callable[[], T]) -> tuple[float, T]:
    """Milliseconds of the fastest of three, and the last result."""
    fastest = float("inf")
    for _ in range(3):
        gc.collect()
        start = time.process_time()
        result = call()
        fastest = min(fastest, (time.process_time() - start) * 1000)
    return fastest, result


def situations(count: int) -> Iterator[tuple[str, Desired, Live]]:
    """Named trees and ledgers of `count` resources, one at a time: memory is part of the figure."""
    local = fleet("local")
    free = [task(f"t{number}", env={"N": str(number)}, fleets=["local"]) for number in range(count)]
    desired = tree(local, *free)
    done = ledger(row(local), *map(row, free))
    yield "no-op", desired, done
    yield "create all", desired, ledger()
    yield "archive all", tree(local), done
    raised = [
        task(f"t{number}", env={"N": str(number)}, fleets=["local"], priority=9)
        for number in range(count)
    ]
    yield "update all", tree(local, *raised), done
    del desired, free, raised, done
    side = int(count**0.5)
    old = [element("s", a=a, b=b, c=0) for a in range(side) for b in range(side)]
    new = [element("s", a=a, b=b, c=1) for a in range(side) for b in range(side)]
    yield "replace a sweep", tree(*new), ledger(*map(row, old))


def measure(count: int) -> Iterator[dict[str, float | int | str]]:
    for name, desired, live in situations(count):
        permissions = Permissions(**ALLOWED)
        gc.collect()
        # What was loaded before is no garbage of the planner's; a collector that walks it again
        # and again would measure the size of the tree twice.
        gc.freeze()
        planning, plan = best(partial(planned, desired, live, **ALLOWED))
        checking, violations = best(partial(check, plan, desired, live, permissions))
        assert violations == ()
        yield {
            "resources": count,
            "case": name,
            "changes": len(plan.changes),
            "plan_ms": planning,
            "check_ms": checking,
            **_ways_out(plan),
        }
        gc.unfreeze()


def _ways_out(plan: Plan) -> dict[str, float | int]:
    dumping, data = best(lambda: dump(plan))
    loading, _ = best(lambda: load(data))
    showing, _ = best(lambda: plan_text.render(plan))
    marking, _ = best(lambda: plan_markdown.render(plan))
    return {
        "dump_ms": dumping,
        "bytes": len(data),
        "load_ms": loading,
        "text_ms": showing,
        "markdown_ms": marking,
    }


def main(arguments: Sequence[str] | None = None) -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--json", type=Path, help="write the figures into this file as well")
    parser.add_argument("--sizes", type=positive, nargs="+", default=SIZES)
    options = parser.parse_args(arguments)
    rows: list[dict[str, float | int | str]] = []
    columns = ("plan_ms", "check_ms", "dump_ms", "load_ms", "text_ms", "markdown_ms")
    print(f"{'resources':>9}  {'case':<16}" + "".join(f"{name[:-3]:>10}" for name in columns))
    for count in options.sizes:
        for one in measure(count):
            rows.append(one)
            figures = "".join(f"{one[name]:>10.1f}" for name in columns)
            print(f"{one['resources']:>9}  {one['case']:<16}{figures}", flush=True)
    if options.json is not None:
        options.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
