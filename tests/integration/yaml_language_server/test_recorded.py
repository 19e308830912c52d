"""
One exchange with the real YAML language server, kept as a page that people can read.

`FLEETFORM_TEST_RECORD=1` rewrites it, after a description has changed.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

from integration.yaml_language_server.editor import CURSOR, Editor
from integration.yaml_language_server.session import Message

PAGE = Path(__file__).parent / "recorded.md"

TASK = "type: task\nname: train\ncommands: [python train.py]\nresources:\n  gpu:"
ASKED = (
    ("The value of a field", f"{TASK} {CURSOR}\n", Editor.completions),
    ("The parts of a field", f"{TASK}\n    {CURSOR}\n", Editor.completions),
    ("Hovering over a field", f"{TASK}\n    me{CURSOR}mory: 40GB..\n", Editor.hover),
    ("A slip", f"{TASK}\n    memory: 8Gi\n", Editor.findings),
)
# Repeats the rest, or is for programs.
LEFT_OUT = {"textEdit", "insertTextFormat", "kind", "source", "code", "data", "sortText"}


def test_the_recorded_exchange_is_what_the_server_says(editor: Editor):
    """Completion of `resources.gpu`, hover text, a diagnostic with its range: as on the page."""
    server = editor.session.server
    sections = [f"# {server['name']} {server['version']}\n"]
    for title, text, ask in ASKED:
        before = len(editor.session.transcript)
        ask(editor, text)
        spoken = "\n".join(_messages(editor, editor.session.transcript[before:]))
        sections.append(f"## {title}\n\n```yaml\n{text}```\n\n```text\n{spoken}\n```\n")
    page = "\n".join(sections)
    if os.environ.get("FLEETFORM_TEST_RECORD"):
        PAGE.write_text(page, encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == page


def _messages(editor: Editor, spoken: list[tuple[str, Message]]) -> Iterator[str]:
    """
    What was said of the file that was opened: the question and the answer, or the diagnostics.

    What the server asks and still says of earlier files comes when it comes.
    """
    opened = next(
        message for _, message in spoken if message.get("method") == "textDocument/didOpen"
    )
    uri = opened["params"]["textDocument"]["uri"]
    asked = [message for _, message in spoken if "position" in (message.get("params") or {})]
    for message in asked:
        place = message["params"]["position"]
        yield f"editor: {message['method']} {json.dumps(place)}"
    numbers = {message["id"] for message in asked}
    for who, message in spoken:
        said = message.get("params") or {}
        if who == "server" and "method" not in message and message.get("id") in numbers:
            yield from _shown(editor, message["result"])
        elif who == "server" and not numbers and said.get("uri") == uri:
            yield from _shown(editor, said["diagnostics"])


def _shown(editor: Editor, result: object) -> Iterator[str]:
    """A line for each item of an answer."""
    items = result.get("items", [result]) if isinstance(result, dict) else result
    assert isinstance(items, list)
    folder = editor.session.folder.as_uri()
    for item in items:
        kept = {key: value for key, value in item.items() if key not in LEFT_OUT}
        yield f"server: {json.dumps(kept, ensure_ascii=False)}".replace(folder, "file:///lab")
