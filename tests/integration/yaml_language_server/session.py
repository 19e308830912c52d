"""
A session with an editor's server over stdio, as an editor would hold it.

Everything said by both sides is kept, so that a test can show the exchange.
"""

from __future__ import annotations

import itertools
import json
import queue
import subprocess
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

Message = dict[str, Any]

# Starting node and reading a schema takes a second; a machine that does eight things at once
# takes ten.
PATIENCE_SECONDS = 60

# What an editor with popular defaults says of itself: it shows Markdown and fills in snippets.
_CAPABILITIES = {
    "textDocument": {
        "completion": {
            "completionItem": {
                "snippetSupport": True,
                "documentationFormat": ["markdown", "plaintext"],
            }
        },
        "hover": {"contentFormat": ["markdown", "plaintext"]},
        "publishDiagnostics": {"relatedInformation": True},
    },
    "workspace": {"configuration": True, "workspaceFolders": True},
}


class Cursor(NamedTuple):
    """A place in a text, both from 0; columns count UTF-16 units, which here are characters."""

    line: int
    character: int


class Session:
    """
    One server, one editor.

    Args:
        command: Starts the server; it speaks over its standard streams.
        folder: What the editor has opened.
        settings: What the server is told when it asks, by section.
    """

    def __init__(self, command: Sequence[str], folder: Path, settings: Message) -> None:
        self.folder = folder
        self.transcript: list[tuple[str, Message]] = []
        self._settings = settings
        self._ids = itertools.count(1)
        self._versions = itertools.count(1)
        self._news: queue.Queue[Message | None] = queue.Queue()
        self._diagnostics: dict[str, list[Message]] = {}
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self._begin()

    def _begin(self) -> None:
        folder = {"uri": self.folder.as_uri(), "name": self.folder.name}
        self.server = self.ask(
            "initialize",
            {
                "processId": None,
                "rootUri": folder["uri"],
                "workspaceFolders": [folder],
                "capabilities": _CAPABILITIES,
            },
        )["serverInfo"]
        self.tell("initialized", {})
        self.tell("workspace/didChangeConfiguration", {"settings": self._settings})

    def close(self) -> None:
        """End the server as an editor does, and by force if that does not help."""
        try:
            self.ask("shutdown", None)
            self.tell("exit", None)
            self._process.wait(PATIENCE_SECONDS)
        finally:
            self._process.kill()
            self._process.wait()
            self._reader.join(PATIENCE_SECONDS)
            for stream in (self._process.stdin, self._process.stdout):
                assert stream is not None
                stream.close()

    def open(self, name: str, text: str) -> None:
        """Show the server a file, whether or not there is one on the disk."""
        document = {"uri": self.uri(name), "languageId": "yaml", "version": next(self._versions), "text": text}  # fmt: skip
        self._diagnostics.pop(document["uri"], None)
        self.tell("textDocument/didOpen", {"textDocument": document})

    def shut(self, name: str) -> None:
        self.tell("textDocument/didClose", {"textDocument": {"uri": self.uri(name)}})

    def diagnostics(self, name: str) -> list[Message]:
        """What the server says of a file that is open; waits until it has said something."""
        uri = self.uri(name)
        self._take_until(lambda: uri in self._diagnostics)
        return self._diagnostics[uri]

    def complete(self, name: str, cursor: Cursor) -> list[Message]:
        answer = self._at("textDocument/completion", name, cursor)
        return answer["items"] if isinstance(answer, dict) else answer or []

    def hover(self, name: str, cursor: Cursor) -> str:
        """The text shown above a place; empty where there is none."""
        answer = self._at("textDocument/hover", name, cursor)
        return answer["contents"]["value"] if answer else ""

    def _at(self, method: str, name: str, cursor: Cursor) -> Any:
        return self.ask(
            method, {"textDocument": {"uri": self.uri(name)}, "position": cursor._asdict()}
        )

    def uri(self, name: str) -> str:
        return (self.folder / name).as_uri()

    def ask(self, method: str, params: Any) -> Any:
        """Send a request; returns its result, having served what the server asked meanwhile."""
        number = next(self._ids)
        self._send({"id": number, "method": method, "params": params})
        answers: list[Message] = []
        self._take_until(lambda: bool(answers), lambda message: message.get("id") == number and answers.append(message))  # fmt: skip
        (answer,) = answers
        assert "error" not in answer, answer
        return answer.get("result")

    def tell(self, method: str, params: Any) -> None:
        self._send({"method": method, "params": params})

    def _take_until(
        self, done: Callable[[], bool], take: Callable[[Message], object] | None = None
    ) -> None:
        while not done():
            message = self._news.get(timeout=PATIENCE_SECONDS)
            assert message is not None, "the server is gone"
            self.transcript.append(("server", message))
            if "method" not in message:
                if take is not None:
                    take(message)
            elif "id" in message:
                self._answer(message)
            elif message["method"] == "textDocument/publishDiagnostics":
                said = message["params"]
                self._diagnostics[said["uri"]] = said["diagnostics"]

    def _answer(self, question: Message) -> None:
        """Answer what a server asks an editor; nothing but its settings matters to these tests."""
        result = None
        if question["method"] == "workspace/configuration":
            wanted = [item.get("section", "") for item in question["params"]["items"]]
            result = [self._settings.get(section, {}) for section in wanted]
        self._send({"id": question["id"], "result": result})

    def _send(self, message: Message) -> None:
        assert self._process.stdin is not None
        self.transcript.append(("editor", message))
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self._process.stdin.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
        self._process.stdin.flush()

    def _read(self) -> None:
        assert self._process.stdout is not None
        while True:
            length = 0
            while line := self._process.stdout.readline().strip():
                name, _, value = line.partition(b":")
                length = int(value) if name.lower() == b"content-length" else length
            if not length:
                self._news.put(None)
                return
            message = json.loads(self._process.stdout.read(length))
            message.pop("jsonrpc")
            self._news.put(message)
