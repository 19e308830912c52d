from __future__ import annotations

import pytest
from lsprotocol import types

from fleetform.lsp.diagnostics import quick_fixes
from fleetform.lsp.text import Encoding, Extent, Text, range_of


def fixed(line, underlined, message, source="fleetform"):
    """The line after the fix that is offered; None where there is none."""
    text = Text(line)
    start = line.index(underlined)
    range_ = range_of(Extent(start, start + len(underlined)), text, Encoding.UTF16)
    told = types.Diagnostic(range=range_, message=message, source=source)
    actions = quick_fixes("file:///x.yaml", 3, text, [told], Encoding.UTF16)
    if not actions:
        return None
    (change,) = actions[0].edit.document_changes
    assert change.text_document.version == 3
    (edit,) = change.edits
    begin, end = edit.range.start.character, edit.range.end.character
    return line[:begin] + edit.new_text + line[end:]


@pytest.mark.parametrize(
    ("line", "underlined", "message", "after"),
    [
        ("gpus: 1", "gpus", "`resources` has no field `gpus`.\nDid you mean `gpu`?", "gpu: 1"),
        ("- dtaa:/mnt", "dtaa:/mnt", "No volume `dtaa`.\nDid you mean `data`?", "- data:/mnt"),
        ('gpu: "A100:80"', '"A100:80"', "`A100:80` is much. Did you mean `A100:80GB`?", 'gpu: "A100:80GB"'),
        ("typ: task", "typ", "No `type`.\nDid you mean `type` by `typ`?", "type: task"),
        ("x: proc", "proc", "`proc` is none.\nDid you mean `process`? Choose one of `process`.", "x: process"),
    ],
)  # fmt: skip
def test_the_word_that_is_wrong_is_replaced(line, underlined, message, after):
    """And nothing else of what is underlined: no quotes, no path."""
    assert fixed(line, underlined, message) == after


@pytest.mark.parametrize(
    ("message", "source"),
    [
        ("Add `commands:`.", "fleetform"),
        ("The other word `b` is wrong.\nDid you mean `c`?", "fleetform"),
        ("`aa` is wrong.\nDid you mean `bb`?", "yaml"),
    ],
)
def test_what_names_no_replacement_has_no_fix(message, source):
    """Neither has what another server said."""
    assert fixed("aa: 1", "aa", message, source) is None
