from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetform.lsp.text import Encoding, Extent, Point, Text
from fleetform.spec.nodes import Span
from fleetform.spec.syntax import read_documents

UNITS = {"utf-8": "utf-8", "utf-16": "utf-16-le", "utf-32": "utf-32-le"}
WIDTHS = {"utf-8": 1, "utf-16": 2, "utf-32": 4}

texts = st.text(st.sampled_from("ab \t\n\r\x0b\x0c\x85\u2028é漢😀"), max_size=40)
encodings = st.sampled_from(list(Encoding))


@given(texts, encodings, st.data())
def test_a_place_of_the_editor_and_an_offset_are_each_others_way_back(source, encoding, data):
    """Whatever the characters, lines and unit; inside of a CRLF there is no place."""
    offset = data.draw(st.integers(0, len(source)))
    if source[offset - 1 : offset + 1] == "\r\n":
        return
    text = Text(source)
    assert text.offset_at(text.point(offset, encoding), encoding) == offset


@given(texts, encodings)
def test_a_character_is_as_many_units_as_its_encoding_has(source, encoding):
    """The unit is the encoding's own, and nothing else counts as the end of a line than CR and LF."""
    lines = source.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    units = len(lines[-1].encode(UNITS[encoding])) // WIDTHS[encoding]
    assert Text(source).point(len(source), encoding) == Point(len(lines) - 1, units)


@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("separator", ["\n", "\r\n", "\u2028", "\x85"])
def test_a_node_is_found_where_libyaml_counts_its_line(mark, separator):
    """Also behind a byte order mark, and behind line breaks that editors do not have."""
    source = f'{mark}# 😀{separator}first: "é"{separator}name: train{separator}'
    (root,), _ = read_documents(source.encode(), "x.yaml")
    text = Text(source)
    assert text.slice(text.extent_of(root.get("name").place)) == "train"


@pytest.mark.parametrize("point", [Point(0, 99), Point(99, 0), Point(1, 99)])
def test_a_place_that_does_not_exist_is_the_end_of_its_line_or_text(point):
    """As the protocol has it: an editor may be ahead of what it has sent."""
    ends = {0: 2, 99: 5, 1: 5}
    assert Text("ab\ncd").offset_at(point, Encoding.UTF16) == ends[point.line]


def test_half_a_surrogate_pair_is_bytes_that_are_not_utf8():
    """JSON can carry one; it becomes a finding and ends nothing."""
    text = Text("name: a\ud83d")
    assert text.point(8, Encoding.UTF16) == Point(0, 8)
    with pytest.raises(UnicodeDecodeError):
        text.data.decode()


def test_a_span_of_no_line_is_the_beginning():
    """A finding about a whole file has line 0."""
    assert Text("ab").extent_of(Span(0, 0, 0)) == Extent(0, 1)
