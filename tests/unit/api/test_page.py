from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetform.api.page import number_place, page, read_cursor, write_cursor
from fleetform.api.problem import ApiProblem


def pages(items, limit):
    cursor, seen = None, []
    while True:
        got = page(items, lambda item: item, cursor, limit)
        seen.append(got.items)
        cursor = got.next
        if cursor is None:
            return seen


@given(st.sets(st.text()), st.integers(1, 7))
def test_all_pages_together_are_the_list(items, limit):
    """Nothing is skipped, nothing comes twice, and no page is longer than asked for."""
    ordered = sorted(items)
    seen = pages(ordered, limit)
    assert [item for part in seen for item in part] == ordered
    assert all(len(part) <= limit for part in seen)


def test_what_goes_between_two_pages_makes_none_be_skipped():
    """A cursor is a place in the order and not a count."""
    first = page(["a", "b", "c", "d"], lambda item: item, None, 2)
    second = page(["b", "c", "d"], lambda item: item, first.next, 2)
    assert second.items == ["c", "d"]


@given(st.text() | st.integers())
def test_a_cursor_comes_back_as_it_was(place):
    """Names with brackets, letters of any script and numbers survive a URL."""
    assert read_cursor(write_cursor(place)) == place


@pytest.mark.parametrize("cursor", ["", "!!", "e30", "bnVsbA", "é", write_cursor(3)])
def test_a_foreign_cursor_is_refused(cursor):
    """Rubbish, and the cursor of a list in another order, get a sentence and not a crash."""
    with pytest.raises(ApiProblem) as raised:
        page(["a"], lambda item: item, cursor, 5)
    assert raised.value.status == 400
    assert raised.value.body.code == "cursor"


@pytest.mark.parametrize("cursor", [write_cursor("a"), write_cursor(-1), write_cursor(2**63)])
def test_a_number_is_one_that_a_database_can_compare(cursor):
    """Beyond 64 bits the databases raise instead of answering."""
    with pytest.raises(ApiProblem):
        number_place(cursor)
    assert number_place(write_cursor(2**63 - 1)) == 2**63 - 1


def test_a_nested_cursor_is_refused_in_short():
    """What is made to exhaust the reader's stack gets the same sentence, without being repeated."""
    nested = base64.urlsafe_b64encode(b"[" * 100_000).decode()
    with pytest.raises(ApiProblem) as raised:
        read_cursor(nested)
    assert raised.value.status == 400
    assert len(raised.value.body.message) < 200
