"""Reports of every shape: any text a document may hold, any place, any level."""

from __future__ import annotations

from hypothesis import strategies as st

from fleetform.spec.findings import Finding, Level, Place
from fleetform.views.findings import Report

# Lone surrogates too: a file's name may be no UTF-8. Signs that the formats give a meaning come often.
TEXTS = st.text(
    st.one_of(
        st.sampled_from("%:,;=\r\n\t\0\x1b<>&\"'[](){}|`#@/\\ é→\u2028\u202e\ufffe\udc80😀"),
        st.characters(exclude_categories=()),
    ),
    max_size=30,
)
_NAMES = st.text(st.sampled_from("abc:,% #&<é\udc80\n"), min_size=1, max_size=8)
FILES = st.one_of(
    st.just("."),
    st.sampled_from(["environment.yaml", "runs/train.yaml", "a/b/c.yml"]),
    st.builds("runs/{}.yaml".format, _NAMES),
)
CODES = ("bad-value", "unknown-field", "never-placed", "no-effect")


@st.composite
def places(draw):
    file = draw(FILES)
    if file == "." or draw(st.booleans()):
        return Place(file)
    number = st.integers(min_value=0, max_value=300)
    return Place(file, draw(st.integers(1, 9999)), draw(number), draw(number))


@st.composite
def findings(draw):
    code = draw(st.sampled_from(CODES))
    return Finding(
        draw(st.sampled_from(Level)),
        code,
        f"What {code} means",
        draw(places()),
        draw(TEXTS),
        draw(TEXTS),
        draw(st.sampled_from(["", "task.train", "task.train.commands.3"])),
        draw(TEXTS),
    )


REPORTS = st.builds(
    Report,
    st.lists(findings(), max_size=8).map(tuple),
    documents_count=st.integers(0, 20),
    files_count=st.integers(0, 20),
    files=st.lists(FILES, max_size=4, unique=True).map(tuple),
    folder=st.sampled_from(["", "lab", "environments/lab"]),
    strict=st.booleans(),
)


def finding(level=Level.ERROR, file="runs/train.yaml", line=6, column=1, length=4, **fields):
    """One finding of `gpus: 4` in a task."""
    values = {
        "code": "unknown-field",
        "summary": "A field does not exist",
        "detail": "A task has no field `gpus`.",
        "advice": "Did you mean `resources.gpu`?",
        "address": "task.train.gpus",
        "text": "gpus: 4",
    } | fields
    return Finding(level, place=Place(file, line, column, length), **values)
