"""
Write values as YAML through ruamel.yaml: whole documents, blocks for an edit, and single scalars.

A text stands without quotes only where no reader takes it for something else, those of YAML 1.1
included: editors and other tools read the same files. Lines are never wrapped, values never become
aliases, and null is written out. ruamel.yaml is imported with the first value that is written, since
most commands write none.

Its style for U+0085 is a plain line break, which reads back as a space: a text with a character that
is not printed is written in double quotes, by its escape. Every document that is written is read
back by `edit`, which refuses what does not say what was meant.
"""

from __future__ import annotations

import functools
import io
import re
from collections.abc import Callable
from typing import Any, Final

from fleetform.spec.syntax.build import WORDS, OutOfRangeError, number

__all__ = ["block_lines", "flow_text", "item_lines", "mapping_lines", "scalar_text"]

_TEXT: Final = "tag:yaml.org,2002:str"
# People quote a text that begins with anything else, also where YAML does not ask for it.
_PLAIN: Final = re.compile(r"[A-Za-z0-9_./$(].*")
_CUTS: Final = re.compile(r":(?:\s|\Z)|\s#|\s\Z|\t")
# In brackets these end a scalar.
_FLOW_ENDS: Final = re.compile(r"[,\[\]{}]")
# As a key these are the names of fields, and a reader that takes `on` for a boolean reads none of
# these documents.
_OLD_WORDS: Final = frozenset({"y", "n", "yes", "no", "on", "off"})


def mapping_lines(value: dict[str, Any], *, dash_offset: int = 2) -> list[str]:
    """
    Return the lines of a mapping in block style.

    `dash_offset` is how far a list's dashes are indented below their key.
    """
    return _dumped(value, dash_offset)


def item_lines(item: Any, *, dash_offset: int = 2) -> list[str]:
    """Return one item of a list, its dash included."""
    return [line[dash_offset:] for line in _dumped([item], dash_offset)]


def block_lines(value: Any, *, dash_offset: int = 2) -> tuple[str, list[str]]:
    """
    Return a value as it stands behind `key:`: what follows on that line, and the lines below.

    The lines are indented relative to the key.
    """
    first, *below = _dumped({"k": value}, dash_offset)
    return first.removeprefix("k:").lstrip(" "), below


def flow_text(value: Any) -> str:
    """Return a value on one line."""
    return scalar_text(value, in_flow=True)


def scalar_text(value: Any, *, in_flow: bool = False, quote: str = "") -> str:
    """
    Return a scalar on one line.

    Args:
        value: Text, a number, a boolean or None.
        in_flow: It stands in brackets or braces.
        quote: The quotes to use for text, as what it replaces had; none where none are needed.
    """
    # Nearly all texts; to ask ruamel takes a fifth of a millisecond for each.
    if isinstance(value, str) and not quote and _is_plain(value, in_flow=in_flow):
        return value
    if in_flow:
        return _dumped([value], is_flow=True, quote=quote)[0][1:-1]
    return _dumped({"k": value}, is_one_line=True, quote=quote)[0].removeprefix("k: ")


def _dumped(
    value: Any,
    dash_offset: int = 2,
    *,
    is_flow: bool = False,
    is_one_line: bool = False,
    quote: str = "",
) -> list[str]:
    from ruamel.yaml import YAML

    # Its attributes are set on the instance, since those of its classes are everybody's.
    writer: Any = YAML(typ="safe", pure=True)
    writer.width = 2**31
    writer.brace_single_entry_mapping_in_flow_sequence = True
    writer.default_flow_style = is_flow
    writer.sort_base_mapping_type_on_output = False
    writer.indent(mapping=2, sequence=dash_offset + 2, offset=dash_offset)
    representer = writer.representer

    def style_of(text: str) -> str | None:
        # A first line that begins with a blank would need a digit in the header of a block.
        is_block = "\n" in text and not (is_flow or is_one_line or text[0].isspace())
        if is_block and text.replace("\n", "").replace("\t", "").isprintable():
            return "|"
        return None if _is_plain(text, in_flow=is_flow) else '"'

    def write_text(_: Any, text: str) -> Any:
        style = (quote if text.isprintable() else '"') if quote else style_of(text)
        return representer.represent_scalar(_TEXT, text, style=style)

    def write_key(text: str) -> Any:
        style = None if text in _OLD_WORDS or _is_plain(text, in_flow=is_flow) else '"'
        return representer.represent_scalar(_TEXT, text, style=style)

    representer.represent_key = write_key
    representer.ignore_aliases = lambda _: True
    representer.yaml_representers = {
        **representer.yaml_representers,
        str: write_text,
        type(None): lambda of, _: of.represent_scalar("tag:yaml.org,2002:null", "null"),
    }
    written = io.StringIO()
    writer.dump(value, written)
    # Behind a text that ends in blank lines it marks the end of the document.
    return written.getvalue().removesuffix("...\n").removesuffix("\n").split("\n")


def _is_plain(text: str, *, in_flow: bool) -> bool:
    """Tell whether a text may stand without quotes, for readers of any version of YAML."""
    if not (text.isprintable() and _PLAIN.fullmatch(text)) or _CUTS.search(text):
        return False
    if in_flow and _FLOW_ENDS.search(text):
        return False
    return str(_reader_of_yaml_1_1()(text)) == _TEXT and isinstance(_core(text), str)


def _core(text: str) -> object:
    if text in WORDS:
        return None
    try:
        return number(text)
    except OutOfRangeError:
        return None


@functools.cache
def _reader_of_yaml_1_1() -> Callable[[str], Any]:
    """What YAML 1.1 reads as booleans, numbers with separators or sixties, and dates."""
    from ruamel.yaml.nodes import ScalarNode
    from ruamel.yaml.resolver import VersionedResolver

    resolver: Any = VersionedResolver(version=(1, 1))
    return lambda text: resolver.resolve(ScalarNode, text, (True, False))
