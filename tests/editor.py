"""
An editor that talks to the real server process, for tests: pygls' own client.

What the server publishes is kept in order, and a test waits for what it is about: nothing here
sleeps and hopes.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

from lsprotocol import types
from pygls.lsp.client import BaseLanguageClient

from forkserver import program

SECONDS_MAX = 120
"""For what takes a second: a machine that does much else takes thirty times as long."""


class Editor(BaseLanguageClient):
    """One client of one server process, with a folder that it has open."""

    def __init__(self, root: Path) -> None:
        super().__init__("test", "1")
        self.root = root
        self.published: list[types.PublishDiagnosticsParams] = []
        self.messages: list[str] = []
        self._news = asyncio.Event()
        self._versions: dict[str, int] = {}

        @self.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
        def publish(params: types.PublishDiagnosticsParams) -> None:
            self.published.append(params)
            self._news.set()

        @self.feature(types.WINDOW_SHOW_MESSAGE)
        def show(params: types.ShowMessageParams) -> None:
            self.messages.append(params.message)
            self._news.set()

    def uri(self, file: str) -> str:
        return (self.root / file).as_uri()

    def identify(self, file: str) -> types.TextDocumentIdentifier:
        return types.TextDocumentIdentifier(self.uri(file))

    def open(self, file: str, text: str | None = None) -> str:
        """Open a file, as it is on disk or with another text; returns the text."""
        source = (self.root / file).read_text() if text is None else text
        self._versions[file] = 1
        self.text_document_did_open(
            types.DidOpenTextDocumentParams(
                types.TextDocumentItem(self.uri(file), "yaml", 1, source)
            )
        )
        return source

    def edit(self, file: str, text: str) -> int:
        """Replace an open file's text; returns its version."""
        self._versions[file] += 1
        self.text_document_did_change(
            types.DidChangeTextDocumentParams(
                types.VersionedTextDocumentIdentifier(self._versions[file], self.uri(file)),
                [types.TextDocumentContentChangeWholeDocument(text)],
            )
        )
        return self._versions[file]

    async def until(self, holds: Callable[[], Any]) -> Any:
        """Wait until something was published that makes `holds` true; returns what it said."""
        async with asyncio.timeout(SECONDS_MAX):
            while not (said := holds()):
                self._news.clear()
                await self._news.wait()
        return said

    async def diagnostics(self, file: str, version: int | None = 1) -> list[types.Diagnostic]:
        """What is published of a version of a file, once it is."""

        def said() -> types.PublishDiagnosticsParams | None:
            mine = [one for one in self.published if one.uri == self.uri(file)]
            return mine[-1] if mine and mine[-1].version == version else None

        return list((await self.until(said)).diagnostics)


def place(text: str, words: str, inside: int = 0) -> types.Position:
    """Where `words` stand in an ASCII text, and `inside` characters further."""
    offset = text.index(words) + inside
    before = text[:offset]
    return types.Position(before.count("\n"), offset - (before.rfind("\n") + 1))


@contextlib.asynccontextmanager
async def editing(root: Path, **initialize: Any) -> AsyncIterator[Editor]:
    """Start a server, shake hands, and see it end in order."""
    editor = Editor(root)
    await editor.start_io(str(program()), "lsp", cwd=str(root))
    process = editor._server
    try:
        async with asyncio.timeout(SECONDS_MAX):
            initialize.setdefault("capabilities", types.ClientCapabilities())
            await editor.initialize_async(
                types.InitializeParams(root_uri=root.as_uri(), **initialize)
            )
        editor.initialized(types.InitializedParams())
        yield editor
        async with asyncio.timeout(SECONDS_MAX):
            await editor.shutdown_async(None)
            editor.exit(None)
            assert await process.wait() == 0
    finally:
        if process.returncode is None:
            process.kill()
        await editor.stop()
