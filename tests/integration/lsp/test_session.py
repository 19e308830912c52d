"""Recorded sessions with the real server process, over standard input and output."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest
from lsprotocol import types
from pygls.exceptions import JsonRpcException

from applied import FLEET, UID
from editor import SECONDS_MAX, Editor, editing, place
from forkserver import FLEETFORM

DATA = "type: volume\nname: data\nfleet: local\npath: data\n"
PREPARE = """\
type: task
name: prepare
commands: [python prepare.py]
fleets: [local]
volumes: ["data:/mnt/data"]
"""
TRAIN = """\
type: task
name: train
depends_on: [prepare]
commands: ["true"]
fleets: [local]
volumes:
  - name: data
    path: /data
"""


@pytest.fixture
def root(tmp_path):
    """An environment of three files, with a volume that two runs mount."""
    (tmp_path / "environment.yaml").write_text(f"type: environment\nname: lab\nuid: {UID}\n")
    (tmp_path / "shared.yaml").write_text(f"{FLEET}---\n{DATA}")
    (tmp_path / "prepare.yaml").write_text(PREPARE)
    (tmp_path / "train.yaml").write_text(TRAIN)
    return tmp_path


def spot(range_):
    """A range as line, first and last character."""
    return range_.start.line, range_.start.character, range_.end.character


def test_a_finding_is_shown_at_its_place_before_it_is_saved(root):
    """The range is the word that is wrong, and the message says what to do."""

    async def session():
        async with editing(root) as editor:
            text = editor.open("train.yaml")
            assert await editor.diagnostics("train.yaml") == []
            wrong = text.replace("[prepare]", "[perpare]")
            version = editor.edit("train.yaml", wrong)
            (told,) = await editor.diagnostics("train.yaml", version)
            assert spot(told.range) == (2, 13, 20)
            assert told.code == "unknown-reference"
            assert told.source == "fleetform"
            assert told.severity is types.DiagnosticSeverity.Error
            assert told.message == (
                "No document declares the run `perpare`.\nDid you mean `prepare`?"
            )
            (related,) = told.related_information
            assert related.location.uri == editor.uri("prepare.yaml")
            assert (root / "train.yaml").read_text() == TRAIN

    asyncio.run(session())


def test_a_name_leads_to_its_declaration_and_back(root):
    """Across files, from a mount and from a dependency."""

    async def session():
        async with editing(root) as editor:
            text = editor.open("train.yaml")
            at = place(text, "name: data", 7)
            (found,) = await editor.text_document_definition_async(
                types.DefinitionParams(editor.identify("train.yaml"), at)
            )
            assert (found.uri, spot(found.range)) == (editor.uri("shared.yaml"), (6, 6, 10))
            (run,) = await editor.text_document_definition_async(
                types.DefinitionParams(editor.identify("train.yaml"), place(text, "[prepare]", 1))
            )
            assert run.uri == editor.uri("prepare.yaml")
            everywhere = await editor.text_document_references_async(
                types.ReferenceParams(
                    types.ReferenceContext(include_declaration=True),
                    editor.identify("train.yaml"),
                    at,
                )
            )
            assert [(one.uri.rpartition("/")[2], spot(one.range)) for one in everywhere] == [
                ("prepare.yaml", (4, 11, 15)),
                ("shared.yaml", (6, 6, 10)),
                ("train.yaml", (6, 10, 14)),
            ]

    asyncio.run(session())


def test_a_parameter_leads_to_where_it_takes_its_values(root):
    """And a value of the environment into the environment's own file."""

    async def session():
        async with editing(root) as editor:
            with (root / "environment.yaml").open("a") as file:
                file.write("values: {bucket: lab}\n")
            text = (
                "type: task\nname: xx\nmatrix: {lr: [1, 2]}\n"
                'commands: ["a ${{ matrix.lr }} ${{ values.bucket }} ${{ node.rank }}"]\n'
            )
            editor.open("xx.yaml", text)
            places = []
            for words in ("matrix.", "values.", "node."):
                places += await editor.text_document_definition_async(
                    types.DefinitionParams(editor.identify("xx.yaml"), place(text, words))
                )
            assert [(one.uri.rpartition("/")[2], spot(one.range)) for one in places] == [
                ("xx.yaml", (2, 9, 11)),
                ("environment.yaml", (3, 9, 15)),
            ]

    asyncio.run(session())


def test_a_volume_is_renamed_in_three_files(root):
    """Its declaration, a mount `name:/path` and a mount as a mapping; what is open has a version."""

    async def session():
        async with editing(root) as editor:
            text = editor.open("train.yaml")
            document = editor.identify("train.yaml")
            at = place(text, "name: data", 7)
            offered = await editor.text_document_prepare_rename_async(
                types.PrepareRenameParams(document, at)
            )
            assert (spot(offered.range), offered.placeholder) == ((6, 10, 14), "data")
            edit = await editor.text_document_rename_async(
                types.RenameParams(document, at, "corpus")
            )
            assert {
                change.text_document.uri.rpartition("/")[2]: change.text_document.version
                for change in edit.document_changes
            } == {"prepare.yaml": None, "shared.yaml": None, "train.yaml": 1}
            changed = applied_edit(editor, edit)
            assert changed["prepare.yaml"] == PREPARE.replace("data:/mnt", "corpus:/mnt")
            assert changed["shared.yaml"].count("name: corpus") == 1
            assert changed["train.yaml"] == TRAIN.replace("name: data", "name: corpus")

    asyncio.run(session())


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("prepare", "declared in prepare.yaml already"),
        ("Train", "has to begin with a lower-case letter"),
    ],
)
def test_a_rename_that_would_break_something_is_refused(root, name, reason):
    """A name that is taken, or none at all; the editor shows why."""

    async def session():
        async with editing(root) as editor:
            editor.open("train.yaml")
            with pytest.raises(JsonRpcException, match=reason):
                await editor.text_document_rename_async(
                    types.RenameParams(editor.identify("train.yaml"), types.Position(1, 8), name)
                )

    asyncio.run(session())


def applied_edit(editor, edit):
    """The files that an edit changes, as they are after it."""
    changed = {}
    for change in edit.document_changes:
        file = change.text_document.uri.rpartition("/")[2]
        lines = (editor.root / file).read_text().splitlines(keepends=True)
        for one in sorted(change.edits, key=lambda one: one.range.start.line, reverse=True):
            line, start, end = spot(one.range)
            lines[line] = lines[line][:start] + one.new_text + lines[line][end:]
        changed[file] = "".join(lines)
    return changed


def test_names_are_completed_while_the_document_is_broken(root):
    """In an open bracket, in an open quote, and inside of an expression."""

    async def session():
        async with editing(root) as editor:
            editor.open("train.yaml")
            for wanted, text in {
                "local": "type: task\nname: xx\nfleets: [lo",
                "data": "type: task\nname: xx\nvolumes:\n  - ",
                "prepare": 'name: xx\ndepends_on: ["\ntype: task\n',
                "lr": "type: task\nname: xx\nmatrix: {lr: [1, 2]}\nenv: {A: '${{ matrix.l",
            }.items():
                editor.edit("train.yaml", text)
                end = text.index('"') + 1 if '["' in text else len(text)
                at = types.Position(text.count("\n", 0, end), end - text.rfind("\n", 0, end) - 1)
                found = await editor.text_document_completion_async(
                    types.CompletionParams(editor.identify("train.yaml"), at)
                )
                assert wanted in [item.label for item in found.items], text

    asyncio.run(session())


def test_hover_says_what_a_name_and_a_value_are(root):
    """The declared document, an amount in words, the values a parameter takes."""

    async def session():
        async with editing(root) as editor:
            text = (
                "type: task\nname: xx\nmatrix: {lr: [0.1, 0.01]}\nfleets: [local]\n"
                'commands: ["run ${{ matrix.lr }}"]\nresources: {memory: 80GB..}\nmax_duration: 2h\n'
            )
            editor.open("x.yaml", text)

            async def said(words, inside=0):
                found = await editor.text_document_hover_async(
                    types.HoverParams(editor.identify("x.yaml"), place(text, words, inside))
                )
                return found.contents.value

            assert "**fleet** `local` · shared.yaml:2" in await said("[local]", 1)
            assert await said("${{ matrix") == "`matrix.lr`: takes 2 values: `0.1` and `0.01`"
            assert (await said("80GB")).startswith("**at least 80 GB:")
            assert await said("2h") == "**7 200 s: 2h**"
            assert "The longest time that an attempt may run" in await said("max_duration")

    asyncio.run(session())


def test_two_fast_edits_publish_the_newer(root):
    """What is told last is of the newest version, and the one in between is never told."""

    async def session():
        async with editing(root) as editor:
            editor.open("train.yaml")
            await editor.diagnostics("train.yaml")
            editor.edit("train.yaml", TRAIN.replace("data", "dtaa"))
            newest = editor.edit("train.yaml", TRAIN.replace("prepare", "perpare"))
            (told,) = await editor.diagnostics("train.yaml", newest)
            assert "`perpare`" in told.message
            assert 2 not in [one.version for one in editor.published]

    asyncio.run(session())


def test_what_was_meant_is_offered_as_a_fix(root):
    """Of a mount only the name is replaced."""

    async def session():
        async with editing(root) as editor:
            text = editor.open("prepare.yaml", PREPARE.replace("data:", "dtaa:"))
            told = await editor.diagnostics("prepare.yaml")
            (action,) = await editor.text_document_code_action_async(
                types.CodeActionParams(
                    editor.identify("prepare.yaml"),
                    told[0].range,
                    types.CodeActionContext(told),
                )
            )
            assert action.title == "Write `data`"
            (edit,) = action.edit.document_changes[0].edits
            start = place(text, "dtaa")
            assert spot(edit.range) == (start.line, start.character, start.character + 4)

    asyncio.run(session())


def test_malformed_input_ends_no_session(root):
    """Bytes that are no message, requests for nothing, places that do not exist."""

    async def session():
        async with editing(root) as editor:
            editor.open("train.yaml", TRAIN.replace("train", "tr\ud800ain") + "\x00\u2028\t- [{")
            writer = editor._server.stdin
            for body in (b"{", b"[]", b"7", b'{"jsonrpc": "2.0"}', b"\xff\xfe"):
                writer.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
            writer.write(b"nonsense\r\n\r\n")
            nowhere = types.Position(10_000, 10_000)
            for uri in (editor.uri("train.yaml"), editor.uri("no.yaml"), "untitled:x", "%%"):
                document = types.TextDocumentIdentifier(uri)
                assert not await editor.text_document_definition_async(
                    types.DefinitionParams(document, nowhere)
                )
                offered = await editor.text_document_completion_async(
                    types.CompletionParams(document, nowhere)
                )
                assert offered.items == ()
                assert not await editor.text_document_document_symbol_async(
                    types.DocumentSymbolParams(document)
                )
            assert await editor.diagnostics("train.yaml")

    asyncio.run(session())


def test_a_file_outside_of_any_environment_is_checked_by_itself(tmp_path):
    """Ours is, and what it refers to is not asked for; any other YAML is left alone."""

    async def session():
        async with editing(tmp_path) as editor:
            editor.open(
                "mine.yaml", "type: task\nname: xx\nfleets: [far]\ncommands: [a]\nnods: 2\n"
            )
            (told,) = await editor.diagnostics("mine.yaml")
            assert told.code == "unknown-field"
            editor.open("compose.yaml", "services: {web: {image: nginx}}\n")
            assert await editor.diagnostics("compose.yaml") == []

    asyncio.run(session())


def test_columns_are_those_the_editor_counts(root):
    """An emoji is two in UTF-16, four in UTF-8 and one in UTF-32, on both ways."""
    line = 'volumes: [{path: "/😀", name: dtaa}]\n'
    characters = line.index("dtaa")
    units = {"utf-16": characters + 1, "utf-8": characters + 3, "utf-32": characters}

    async def session(encoding):
        capabilities = types.ClientCapabilities(
            general=types.GeneralClientCapabilities(position_encodings=[encoding])
        )
        async with editing(root, capabilities=capabilities) as editor:
            editor.open("x.yaml", f"type: task\nname: xx\ncommands: [a]\n{line}")
            (told,) = await editor.diagnostics("x.yaml")
            assert spot(told.range) == (3, units[encoding], units[encoding] + 4)

    for encoding in units:
        asyncio.run(session(encoding))


def test_a_client_that_leaves_without_a_word_ends_the_server(root):
    """No server stays behind an editor that was killed."""

    async def session():
        editor = Editor(root)
        await editor.start_io(str(FLEETFORM), "lsp")
        process = editor._server
        await editor.initialize_async(types.InitializeParams(types.ClientCapabilities()))
        editor.open("train.yaml")
        process.stdin.close()
        async with asyncio.timeout(SECONDS_MAX):
            assert await process.wait() == 1
        await editor.stop()

    asyncio.run(session())


def test_a_server_that_is_killed_leaves_no_process_behind(root):
    """The process that validates for it ends with it, without being told."""

    async def session():
        editor = Editor(root)
        await editor.start_io(str(FLEETFORM), "lsp", cwd=str(root))
        await editor.initialize_async(
            types.InitializeParams(types.ClientCapabilities(), root_uri=root.as_uri())
        )
        editor.open("train.yaml")
        await editor.diagnostics("train.yaml")
        workers = children(editor._server.pid)
        assert workers
        editor._server.kill()
        assert have_ended(workers)
        await editor.stop()

    asyncio.run(session())


def have_ended(pids):
    """Wait until none of the processes runs any more; False when that takes too long."""
    deadline = time.monotonic() + SECONDS_MAX
    while any(map(is_alive, pids)) and time.monotonic() < deadline:
        time.sleep(0.02)
    return not any(map(is_alive, pids))


def children(pid):
    """Processes that a process has started and that run."""
    return [
        int(one)
        for task in Path(f"/proc/{pid}/task").glob("*/children")
        for one in task.read_text().split()
    ]


def is_alive(pid):
    """Tell whether a process runs; one that nobody has asked how it ended does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_an_environment_that_is_gone_is_not_spoken_of_any_more(root):
    """What was shown of its files is taken back, and what is open is a file by itself."""

    async def session():
        async with editing(root) as editor:
            (root / "shared.yaml").write_text(f"{FLEET}---\n{DATA}nonsense: 1\n")
            editor.open("train.yaml")
            assert await editor.diagnostics("shared.yaml", None)
            (root / "environment.yaml").unlink()
            editor.workspace_did_change_watched_files(
                types.DidChangeWatchedFilesParams(
                    [types.FileEvent(editor.uri("environment.yaml"), types.FileChangeType.Deleted)]
                )
            )
            await editor.until(lambda: said(editor, "shared.yaml") == [])

    asyncio.run(session())


def said(editor, file):
    """What was published of a file last; None before anything was."""
    mine = [one for one in editor.published if one.uri == editor.uri(file)]
    return list(mine[-1].diagnostics) if mine else None


def test_a_folder_may_join_the_workspace_and_leave_it(root, tmp_path_factory):
    """What is wrong there is shown when it comes, and taken back when it goes."""

    async def session():
        other = tmp_path_factory.mktemp("other")
        (other / "environment.yaml").write_text(f"type: environment\nname: b1\nuid: {UID}\n")
        (other / "wrong.yaml").write_text("type: taks\n")
        folder = types.WorkspaceFolder(other.as_uri(), "other")
        async with editing(root) as editor:
            for event, is_shown in (
                (types.WorkspaceFoldersChangeEvent(added=[folder], removed=[]), True),
                (types.WorkspaceFoldersChangeEvent(added=[], removed=[folder]), False),
            ):
                editor.workspace_did_change_workspace_folders(
                    types.DidChangeWorkspaceFoldersParams(event)
                )
                await editor.until(
                    lambda is_shown=is_shown: (
                        said(editor, str(other / "wrong.yaml")) is not None
                        and bool(said(editor, str(other / "wrong.yaml"))) is is_shown
                    )
                )

    asyncio.run(session())


def test_a_base_counts_as_the_editor_shows_it(tmp_path):
    """A rename from an environment changes its base where that stands open and is not saved."""

    async def session():
        (tmp_path / "base").mkdir()
        (tmp_path / "lab").mkdir()
        (tmp_path / "base/environment.yaml").write_text(
            "type: environment\nname: base\nabstract: true\n"
        )
        (tmp_path / "base/shared.yaml").write_text(FLEET)
        (tmp_path / "lab/environment.yaml").write_text(
            f"type: environment\nname: lab\nuid: {UID}\nextends: ../base\n"
        )
        text = "type: volume\nname: data\nfleet: local\npath: data\n"
        (tmp_path / "lab/data.yaml").write_text(text)
        async with editing(tmp_path) as editor:
            editor.open("lab/data.yaml")
            assert await editor.diagnostics("lab/data.yaml") == []
            editor.open("base/shared.yaml", f"# An emoji \U0001f642\r\n{FLEET}")
            found = await editor.text_document_rename_async(
                types.RenameParams(
                    editor.identify("lab/data.yaml"), place(text, "local", 1), "null"
                )
            )
            edits = {
                one.text_document.uri: [(spot(edit.range), edit.new_text) for edit in one.edits]
                for one in found.document_changes
            }
            assert edits == {
                editor.uri("base/shared.yaml"): [((2, 6, 11), '"null"')],
                editor.uri("lab/data.yaml"): [((2, 7, 12), '"null"')],
            }
            # A mistake in the base is told where it matters, and before it is saved.
            editor.edit("base/shared.yaml", "type: fleet\nname: other\nlocal: true\n")
            await editor.until(
                lambda: [one.code for one in said(editor, "lab/data.yaml")] == ["unknown-reference"]
            )

    asyncio.run(session())
