"""Texts of YAML documents for properties: as people, libraries and we write them."""

from __future__ import annotations

import yaml
from hypothesis import assume
from hypothesis import strategies as st

from fleetform.spec.nodes import plain
from fleetform.spec.syntax import read_documents
from fleetform.spec.syntax.edit import append_document

SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-9, 9), st.floats(-9, 9).map(lambda number: round(number, 2) + 0.0),
    st.text(max_size=8), st.sampled_from(["a b", "#", "a\nb\n", "- x", "x: y", "\ttab", "a\n\n\n", "yes"]),
)  # fmt: skip
KEYS = st.sampled_from(["a", "b", "name", "on", "1", "a b", "é", "x:y"])
VALUES = st.recursive(
    SCALARS,
    lambda below: st.one_of(st.lists(below, max_size=3), st.dictionaries(KEYS, below, max_size=3)),
    max_leaves=8,
)
DOCUMENTS = st.dictionaries(KEYS, VALUES, min_size=1, max_size=4)


@st.composite
def texts(draw, documents=DOCUMENTS):
    """Documents as different writers write them, with comments wherever one may stand."""
    written = []
    for document in draw(st.lists(documents, min_size=1, max_size=3)):
        if draw(st.booleans()):
            written.append(append_document("", document))
        else:
            text = yaml.safe_dump(
                document, indent=draw(st.integers(2, 5)), allow_unicode=draw(st.booleans()),
                default_flow_style=draw(st.sampled_from([None, False, True])),
                default_style=draw(st.sampled_from([None, '"', "'", "|"])),
                width=draw(st.sampled_from([20, 80])), sort_keys=False,
            )  # fmt: skip
            written.append(text)
    text = draw(st.sampled_from(["", "---\n"])) + "---\n".join(written)
    # Ends of lines that only YAML knows are refused, which a test of its own says.
    assume(not set(text) & set("\x85\u2028\u2029"))
    said = read_documents(text.encode(), "")
    for number in draw(st.lists(st.integers(0, 30), max_size=4)):
        lines = text.split("\n")
        place = number % len(lines)
        with_comment = draw(
            st.sampled_from([
                [*lines[:place], "  " * draw(st.integers(0, 2)) + f"# {number}", *lines[place:]],
                [*lines[:place], "", *lines[place:]],
                [*lines[:place], f"{lines[place]}  # {number}", *lines[place + 1 :]],
            ])
        )  # fmt: skip
        read = read_documents("\n".join(with_comment).encode(), "")
        if not read[1] and list(map(plain, read[0])) == list(map(plain, said[0])):
            text = "\n".join(with_comment)
    return text
