"""
The language server on a large environment: prints one table.

    python tests/bench/bench_lsp.py [documents]

A real server process is edited in; while it validates, requests go to it one after another. Times
are what the editor waits, so another busy process shows in them.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import measuring
from lsprotocol import types

sys.path.insert(0, str(Path(__file__).parents[1]))

import editor as editors

EDITS = 3
SHARED = """\
type: fleet
name: local
nodes: 4
local: {cpu: 4, memory: 8GB}
---
type: volume
name: data
fleet: local
path: data
"""
RUN = """\
type: task
name: run-{number}
commands: [python train.py --seed {number}]
env: {{LR: "0.{number}"}}
fleets: [local]
volumes: ["data:/data"]
resources: {{cpu: 1.., memory: 2GB..}}
depends_on: [run-{before}]
"""


def write_tree(root: Path, count: int) -> None:
    (root / "environment.yaml").write_text("type: environment\nname: big\nuid: 0123456789abcdef\n")
    (root / "shared.yaml").write_text(SHARED)
    (root / "run0.yaml").write_text("type: task\nname: run-0\ncommands: [a]\n")
    for number in range(1, count):
        folder = root / f"part{number // 500}"
        folder.mkdir(exist_ok=True)
        before = number - 1 if number % 10 else 0
        text = RUN.format(number=number, before=before)
        (folder / f"run{number}.yaml").write_text(text)


def peak_megabytes(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) // 1024


def children(pid: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


async def edit(root: Path, file: str) -> list[tuple[str, ...]]:
    async with editors.editing(root) as editor:
        pid = editor._server.pid
        document = editor.identify(file)
        began = time.perf_counter()
        text = editor.open(file)
        name = editors.place(text, "[run-", 3)
        mount = editors.place(text, "data:/")
        await editor.text_document_definition_async(types.DefinitionParams(document, name))
        indexed = time.perf_counter() - began
        await editor.diagnostics(file)
        first = time.perf_counter() - began
        requests: dict[str, Callable[[], Awaitable[object]]] = {
            "definition": lambda: editor.text_document_definition_async(
                types.DefinitionParams(document, name)
            ),
            "hover": lambda: editor.text_document_hover_async(types.HoverParams(document, name)),
            "completion": lambda: editor.text_document_completion_async(
                types.CompletionParams(document, name)
            ),
            "references": lambda: editor.text_document_references_async(
                types.ReferenceParams(types.ReferenceContext(True), document, name)
            ),
            "search for symbols": lambda: editor.workspace_symbol_async(
                types.WorkspaceSymbolParams("run-99")
            ),
        }
        waits: dict[str, list[float]] = {name: [] for name in requests}
        edits = []
        for number in range(EDITS):
            version = editor.edit(file, f"{text}# {number}\n")
            began = time.perf_counter()
            published = asyncio.create_task(editor.diagnostics(file, version))
            while not published.done():
                for what, ask in requests.items():
                    sent = time.perf_counter()
                    await ask()
                    waits[what].append(time.perf_counter() - sent)
                    await asyncio.sleep(0.02)
            edits.append(time.perf_counter() - began)
        began = time.perf_counter()
        renamed = await editor.text_document_rename_async(
            types.RenameParams(document, mount, "corpus")
        )
        rename = time.perf_counter() - began
        memory = [peak_megabytes(one) for one in (pid, *children(pid))]
    return [
        ("names known after opening", f"{indexed:.1f} s"),
        ("first findings", f"{first:.1f} s"),
        ("findings after an edit", f"{statistics.median(edits):.1f} s"),
        *(
            (
                f"{what}, meanwhile",
                f"{statistics.median(times) * 1000:.0f} ms (at most {max(times) * 1000:.0f})",
            )
            for what, times in waits.items()
        ),
        (f"rename in {len(renamed.document_changes)} files", f"{rename:.1f} s"),
        ("peak memory, server and validation", " + ".join(f"{one} MB" for one in memory)),
    ]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = measuring.parser_of(__doc__)
    parser.add_argument("documents", nargs="?", type=measuring.positive, default=10_000)
    count = parser.parse_args(arguments).documents
    editors.SECONDS_MAX = 120
    with measuring.scratch() as root:
        write_tree(root, count)
        rows = asyncio.run(edit(root, "part0/run5.yaml"))
    width = max(len(what) for what, _ in rows)
    print(f"\n{count} documents in {count} files\n")
    for what, said in rows:
        print(f"| {what:<{width}} | {said} |")


if __name__ == "__main__":
    main()
