"""Recorded sessions with the real server process, over standard input and output."""

from __future__ import annotations

import asyncio

import pytest
from lsprotocol import types

from applied import FLEET, UID
from editor import editing, place

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
            wrong = text.replace("name: data", "name: dtaa")
            version = editor.edit("train.yaml", wrong)
            (told,) = await editor.diagnostics("train.yaml", version)
            assert spot(told.range) == (6, 10, 14)
            assert told.code == "unknown-reference"
            assert told.source == "fleetform"
            assert told.severity is types.DiagnosticSeverity.Error
            assert told.message == ("No document declares the volume `dtaa`.\nDid you mean `data`?")
            (related,) = told.related_information
            assert related.location.uri == editor.uri("shared.yaml")
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
