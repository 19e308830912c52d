from __future__ import annotations

import io

import pytest

from fleetform.cli.screen import Screen, wants_colour


@pytest.mark.parametrize(
    ("environ", "interactive", "colour"),
    [
        ({}, True, True),
        ({}, False, False),
        ({"TERM": "dumb"}, True, False),
        ({"NO_COLOR": "1"}, True, False),
        ({"NO_COLOR": ""}, True, True),
        ({"FORCE_COLOR": "1"}, False, True),
        ({"FORCE_COLOR": "0"}, True, False),
        ({"NO_COLOR": "1", "FORCE_COLOR": "1"}, True, False),
    ],
)
def test_colour_follows_the_conventions(environ, interactive, colour):
    """NO_COLOR wins, then FORCE_COLOR, then whether it is a terminal."""
    assert wants_colour(environ, interactive) is colour


def test_a_pipe_gets_no_escape_sequences():
    """What is piped into a file is text and nothing else."""
    stream = io.StringIO()
    Screen(stream, environ={}).labelled("error", "broken")
    assert stream.getvalue() == "error: broken\n"


def test_a_tone_ends_where_its_text_ends():
    """Colour never leaks into what follows."""
    stream = io.StringIO()
    Screen(stream, environ={"FORCE_COLOR": "1"}).labelled("error", "broken")
    assert stream.getvalue() == "\x1b[1;31merror:\x1b[0m broken\n"
