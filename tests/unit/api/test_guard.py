from __future__ import annotations

import asyncio

import httpx
import pytest
from starlette.responses import PlainTextResponse

from fleetform.api.guard import Guard, allowed_hosts, host_name


def ask(method, host, *, listen="127.0.0.1"):
    app = Guard(PlainTextResponse("state"), hosts=allowed_hosts(listen))

    async def call():
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app)) as client:
            return await client.request(method, "http://x/", headers={"host": host})

    return asyncio.run(call())


@pytest.mark.parametrize(
    ("header", "name"),
    [
        ("localhost:8433", "localhost"),
        ("127.0.0.1", "127.0.0.1"),
        ("[::1]:8433", "::1"),
        ("[::1]", "::1"),
        ("LOCALHOST", "localhost"),
        ("", ""),
    ],
)
def test_the_name_is_taken_out_of_the_header(header, name):
    """A port, brackets and capitals make no other host."""
    assert host_name(header) == name


@pytest.mark.parametrize("host", ["localhost:8433", "127.0.0.1:8433", "[::1]:8433"])
def test_this_machine_may_ask(host):
    """Loopback has three names."""
    assert ask("GET", host).status_code == 200


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "", "[evil.example]"])
def test_a_rebound_name_is_refused(host):
    """A page that points its own name at 127.0.0.1 learns nothing."""
    answer = ask("GET", host)
    assert answer.status_code == 421
    assert answer.json()["code"] == "host"
    assert "state" not in answer.text


def test_a_chosen_address_may_be_named():
    """Whoever listens on another address is called by it; a wildcard adds no name."""
    assert ask("GET", "10.0.0.5:8433", listen="10.0.0.5").status_code == 200
    assert ask("GET", "10.0.0.5:8433", listen="0.0.0.0").status_code == 421


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "BREW"])
def test_nothing_but_reading_is_answered(method):
    """Whatever a route may learn later, nothing can be changed through this door."""
    answer = ask(method, "localhost")
    assert answer.status_code == 405
    assert answer.headers["allow"] == "GET, HEAD"


def test_head_is_get_without_the_body():
    """The headers are the same, so that a length can be asked for."""
    got, head = ask("GET", "localhost"), ask("HEAD", "localhost")
    for answer in (got, head):
        # Each has its own.
        assert answer.headers.pop("date").endswith(" GMT")
    assert got.headers == head.headers
    assert (got.text, head.text) == ("state", "")


def test_answers_are_not_kept():
    """No cache keeps state, and no CORS header lets a page read it."""
    headers = ask("GET", "localhost").headers
    assert headers["cache-control"] == "no-store"
    assert not any(name.startswith("access-control") for name in headers)
