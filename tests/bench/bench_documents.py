"""
How fast documents are read, and what the worst files cost: prints two tables.

    python tests/bench/bench_documents.py [documents]

The first table reads small documents as files of their own and as one file each of a hundred.
The second makes files that are as bad as `Limits` allows, in a process of its own each, so that
the memory shown is theirs. Times are of the processor, so that a busy machine shows the same.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Sequence

from measuring import parser_of, positive

from fleetform.spec.syntax import Limits, read_documents

SMALL = """\
type: task
name: train-{number}
commands:
  - python train.py --lr 0.1
resources:
  cpu: 2..
  memory: 8GB
priority: 50
"""

SIZE = Limits().bytes_max


def nested_aliases() -> str:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 30)]
    return "\n".join(lines)


WORST: dict[str, Callable[[], str]] = {
    "nested aliases": nested_aliases,
    "nested brackets": lambda: "[" * SIZE,
    "list of short items": lambda: "[" + "1," * (SIZE // 2 - 1) + "]",
    "mapping of short fields": lambda: "".join(f"{n}:\n" for n in range(SIZE // 8)),
    "one long text": lambda: "a: " + "x" * (SIZE - 3),
    "empty documents": lambda: "---\n" * (SIZE // 4),
    "broken documents": lambda: "--- [\n" * (SIZE // 6),
    "fields declared twice": lambda: "a:\n" * (SIZE // 3),
    "anchors": lambda: "".join(f"- &a{n} x\n" for n in range(SIZE // 14)),
    "%TAG lines": lambda: "".join(f"%TAG !a{n}! x\n" for n in range(SIZE // 18)) + "--- a",
    "long numbers": lambda: "".join(f"- {'9' * 1000}\n" for _ in range(SIZE // 1003)),
    "empty lines": lambda: "\n" * SIZE,
    "merges": lambda: (
        "a: &a {" + ", ".join(f"k{n}: 1" for n in range(1000)) + "}\nb:\n" + "- <<: *a\n" * 1000
    ),
}


def small_documents(count: int) -> None:
    files = [SMALL.format(number=number).encode() for number in range(count)]
    joined = [b"---\n".join(files[at : at + 100]) for at in range(0, count, 100)]
    print(f"{'read':<34}{'documents':>10}{'CPU s':>10}{'a second':>12}")
    for label, data in (("a file each", files), ("a hundred in a file", joined)):
        best, read = float("inf"), 0
        for _ in range(3):
            begun = time.process_time()
            read = sum(len(read_documents(item, "x.yaml")[0]) for item in data)
            best = min(best, time.process_time() - begun)
        assert read == count, read
        print(f"{label:<34}{read:>10}{best:>10.3f}{read / best:>12,.0f}")


def worst_file(label: str) -> None:
    data = WORST[label]().encode()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    begun = time.process_time()
    documents, findings = read_documents(data, "x.yaml")
    seconds = time.process_time() - begun
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    codes = ", ".join(sorted({finding.code for finding in findings})) or f"{len(documents)} read"
    print(f"{label:<26}{len(data) / 2**20:>8.1f}{seconds:>10.3f}{grown:>10.0f}  {codes}")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = parser_of(__doc__)
    parser.add_argument("documents", nargs="?", type=positive, default=10_000)
    # How it calls itself.
    parser.add_argument("--worst", choices=WORST, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.worst is not None:
        worst_file(options.worst)
        return
    small_documents(options.documents)
    print(f"\n{'worst file':<26}{'MiB':>8}{'CPU s':>10}{'MiB more':>10}  findings")
    for label in WORST:
        sys.stdout.flush()
        subprocess.run([sys.executable, __file__, "--worst", label], check=True)


if __name__ == "__main__":
    main()
