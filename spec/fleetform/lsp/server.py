"""
The protocol's methods, each in a line or two: what it asks goes to the module that knows it.

pygls reads and writes messages and answers what is malformed; documents are kept here, in
`session`. They are sent whole with each edit: a document is some kilobytes, and pygls applies
partial edits by Python's idea of a line, which is not the protocol's and would corrupt a text
that contains a form feed or U+2028.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Sequence

from lsprotocol import types
from pygls.exceptions import JsonRpcException
from pygls.lsp.server import LanguageServer

from fleetform.lsp import navigation
from fleetform.lsp.completion import ITEMS_MAX, TRIGGERS, completions
from fleetform.lsp.diagnostics import quick_fixes
from fleetform.lsp.hover import hover
from fleetform.lsp.navigation import (
    RenameRefused,
    document_symbols,
    prepare,
    rename,
    workspace_symbols,
)
from fleetform.lsp.session import Session
from fleetform.lsp.text import Encoding, range_of

__all__ = ["Server", "serve"]

_log = logging.getLogger(__name__)
_WATCHED = "**/*.{yaml,yml}"


class Server(LanguageServer):
    """
    A server for one client.

    Attributes:
        was_shut_down: The client said that it is about to end, so that the end is in order.
    """

    def __init__(self, version: str) -> None:
        super().__init__(
            "fleetform", version, text_document_sync_kind=types.TextDocumentSyncKind.Full
        )
        self.session = Session(self._publish)
        self.was_shut_down = False
        _register(self)

    def _publish(
        self, uri: str, version: int | None, diagnostics: Sequence[types.Diagnostic]
    ) -> None:
        self.text_document_publish_diagnostics(
            types.PublishDiagnosticsParams(uri, list(diagnostics), version)
        )


def serve(version: str) -> int:
    """
    Serve one client over standard input and output until it leaves.

    Returns:
        0 after an orderly end, 1 when the client left without saying so, as the protocol asks.
    """
    # The disk is looked at in a thread, which takes turns with requests. At Python's 5 ms a turn,
    # an answer that needs a dozen of them is felt; at 1 ms it is not.
    sys.setswitchinterval(0.001)
    server = Server(version)
    with os.fdopen(os.dup(0), "rb") as stdin, os.fdopen(os.dup(1), "wb") as stdout:
        # What anything else prints would be no message, and end the conversation.
        os.dup2(2, 1)
        server.start_io(stdin, stdout)
    return 0 if server.was_shut_down else 1


def _register(server: Server) -> None:
    _register_lifecycle(server)
    _register_documents(server)
    _register_navigation(server)
    _register_words(server)
    _register_edits(server)
    _register_symbols(server)


def _register_lifecycle(server: Server) -> None:
    session = server.session

    @server.feature(types.INITIALIZE)
    def initialize(params: types.InitializeParams) -> None:
        session.encoding = Encoding(server.workspace.position_encoding or Encoding.UTF16)

    @server.feature(types.INITIALIZED)
    async def initialized(params: types.InitializedParams) -> None:
        for folder in server.workspace.folders.values():
            session.entered(folder.uri)
        await _watch(server)

    @server.feature(types.SHUTDOWN)
    def shutdown(params: None) -> None:
        server.was_shut_down = True
        session.close()


async def _watch(server: Server) -> None:
    """Ask for notifications of files that change on disk, where the client can be asked."""
    workspace = server.client_capabilities.workspace
    watched = workspace.did_change_watched_files if workspace else None
    if not (watched and watched.dynamic_registration):
        return
    options = types.DidChangeWatchedFilesRegistrationOptions([types.FileSystemWatcher(_WATCHED)])
    await server.client_register_capability_async(
        types.RegistrationParams(
            [types.Registration("watched-files", types.WORKSPACE_DID_CHANGE_WATCHED_FILES, options)]
        )
    )


def _register_documents(server: Server) -> None:
    session = server.session

    @server.feature(types.TEXT_DOCUMENT_DID_OPEN)
    def did_open(params: types.DidOpenTextDocumentParams) -> None:
        document = params.text_document
        session.opened(document.uri, document.version, document.text)

    @server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
    def did_change(params: types.DidChangeTextDocumentParams) -> None:
        document = params.text_document
        if params.content_changes:
            session.opened(document.uri, document.version, params.content_changes[-1].text)

    @server.feature(types.TEXT_DOCUMENT_DID_SAVE)
    def did_save(params: types.DidSaveTextDocumentParams) -> None:
        session.touched([params.text_document.uri])

    @server.feature(types.TEXT_DOCUMENT_DID_CLOSE)
    def did_close(params: types.DidCloseTextDocumentParams) -> None:
        session.closed(params.text_document.uri)

    @server.feature(types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS)
    def did_change_folders(params: types.DidChangeWorkspaceFoldersParams) -> None:
        for folder in params.event.removed:
            session.left(folder.uri)
        for folder in params.event.added:
            session.entered(folder.uri)

    @server.feature(types.WORKSPACE_DID_CHANGE_WATCHED_FILES)
    def did_change_watched_files(params: types.DidChangeWatchedFilesParams) -> None:
        session.touched(change.uri for change in params.changes)


def _register_navigation(server: Server) -> None:
    session = server.session

    @server.feature(types.TEXT_DOCUMENT_DEFINITION)
    async def definition(params: types.DefinitionParams) -> list[types.Location]:
        cursor = await session.cursor(params.text_document.uri, params.position)
        return navigation.definition(cursor, session) if cursor else []

    @server.feature(types.TEXT_DOCUMENT_REFERENCES)
    async def references(params: types.ReferenceParams) -> list[types.Location]:
        cursor = await session.cursor(params.text_document.uri, params.position)
        if cursor is None:
            return []
        return navigation.references(
            cursor, session, with_declarations=params.context.include_declaration
        )

    @server.feature(types.TEXT_DOCUMENT_DOCUMENT_HIGHLIGHT)
    async def highlights(params: types.DocumentHighlightParams) -> list[types.DocumentHighlight]:
        cursor = await session.cursor(params.text_document.uri, params.position)
        return navigation.highlights(cursor, session.encoding) if cursor else []


def _register_words(server: Server) -> None:
    session = server.session

    @server.feature(types.TEXT_DOCUMENT_HOVER)
    async def show_hover(params: types.HoverParams) -> types.Hover | None:
        cursor = await session.cursor(params.text_document.uri, params.position)
        return hover(cursor, session.encoding) if cursor else None

    @server.feature(
        types.TEXT_DOCUMENT_COMPLETION, types.CompletionOptions(trigger_characters=TRIGGERS)
    )
    async def complete(params: types.CompletionParams) -> types.CompletionList:
        cursor = await session.cursor(params.text_document.uri, params.position)
        items = completions(cursor, session.encoding) if cursor else []
        return types.CompletionList(len(items) >= ITEMS_MAX, items)


def _register_edits(server: Server) -> None:
    session = server.session

    @server.feature(types.TEXT_DOCUMENT_PREPARE_RENAME)
    async def prepare_rename(
        params: types.PrepareRenameParams,
    ) -> types.PrepareRenamePlaceholder | None:
        cursor = await session.cursor(params.text_document.uri, params.position)
        mention = prepare(cursor) if cursor else None
        if cursor is None or mention is None:
            return None
        extent = range_of(mention.extent, cursor.text, session.encoding)
        return types.PrepareRenamePlaceholder(extent, mention.key.name)

    @server.feature(types.TEXT_DOCUMENT_RENAME, types.RenameOptions(prepare_provider=True))
    async def rename_resource(params: types.RenameParams) -> types.WorkspaceEdit | None:
        cursor = await session.cursor(params.text_document.uri, params.position)
        if cursor is None:
            return None
        # A file that changed on disk a moment ago must not keep the old name.
        await session.scanned(cursor.tree)
        try:
            return rename(cursor, session, params.new_name)
        except RenameRefused as refused:
            raise _failed(str(refused)) from refused

    @server.feature(
        types.TEXT_DOCUMENT_CODE_ACTION, types.CodeActionOptions([types.CodeActionKind.QuickFix])
    )
    async def code_actions(params: types.CodeActionParams) -> list[types.CodeAction]:
        uri = params.text_document.uri
        found = await session.document_at(uri)
        if found is None:
            return []
        tree, file, read = found
        version = session.version_of(tree, file)
        return quick_fixes(uri, version, read.text, params.context.diagnostics, session.encoding)


def _register_symbols(server: Server) -> None:
    session = server.session

    @server.feature(types.TEXT_DOCUMENT_DOCUMENT_SYMBOL)
    async def outline(params: types.DocumentSymbolParams) -> list[types.DocumentSymbol]:
        found = await session.document_at(params.text_document.uri)
        return document_symbols(found[2], session.encoding) if found else []

    @server.feature(types.WORKSPACE_SYMBOL)
    async def search(params: types.WorkspaceSymbolParams) -> list[types.WorkspaceSymbol]:
        return workspace_symbols(await session.trees(), params.query, session)


def _failed(message: str) -> JsonRpcException:
    """The answer to a request that was understood and cannot be met, which editors show."""
    return JsonRpcException(message, types.LSPErrorCodes.RequestFailed)
