"""Whatever is asked for, on every route that the API describes, and on both databases."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import applied
from fleetform.api.app import create_app, description
from fleetform.app.workspace import Workspace

ROUTES = sorted(description()["paths"])
PARAMETERS = sorted(
    {
        each["name"]
        for route in description()["paths"].values()
        for each in route["get"].get("parameters", ())
        if each["in"] == "query"
    }
)

ODD = ["\0", "train\0", "..", "../../etc/passwd", "../", "//", "%", "%00", "a" * 10_000, "é", "\ud800",
       "\n", " ", "'", "\\", "🂡", "\x7f", "-1", "1e9", str(2**64), "9" * 5000,
       "WzFd", "Ilx1ZDgwMCI", "IlxcdTAwMDAi"]  # fmt: skip

NAMES = st.one_of(
    st.sampled_from(["train", "lab", "run", "sweep", "local"]),
    st.sampled_from(ODD),
    st.text(st.characters(), max_size=30),
    st.integers().map(str),
)
"""Names that there are, names that break something, and any others."""

RAW = st.binary(max_size=8).map(lambda piece: "".join(f"%{byte:02x}" for byte in piece))
"""Bytes that may not be UTF-8, quoted as in an address."""

PIECES = st.one_of(NAMES.map(lambda name: quote(name, safe="", errors="surrogatepass")), RAW)


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def app(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[str], httpx.Response]]:
    """Asks the API of an environment with a run that is over, by a raw address."""
    folder = tmp_path_factory.mktemp("any")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FLEETFORM_STATE_HOME", str(folder / "state"))
        # It is made before the fixture that does so for each test.
        patch.setenv("FLEETFORM_CONFIG_HOME", str(folder / "config"))
        if request.param == "postgresql":
            server = request.getfixturevalue("postgres")
            patch.setenv("FLEETFORM_LEDGER", server.url)
        root = applied.write_tree(folder / "lab", applied.FLEET, TASK)
        applied.enter(root)
        applied.run_all(root, exit_codes={})
        yield asking(root)


TASK = "type: task\nname: train\ncommands: [echo hi]\n"


def asking(root: Path) -> Callable[[str], httpx.Response]:
    workspace = Workspace.open(str(root))
    app = create_app(
        workspace.reader,
        workspace.logs,
        environment=workspace.environment,
        controller=lambda: None,
        now_ms=lambda: applied.NOW_MS,
    )

    async def call(address: str) -> httpx.Response:
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            return await client.get(httpx.URL("http://localhost", raw_path=address.encode()))

    return lambda address: asyncio.run(call(address))


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_no_address_is_a_fault(app: Callable[[str], httpx.Response], data: st.DataObject) -> None:
    """Every route answers, or says what is wrong with what was asked for: never 500."""
    route = data.draw(st.sampled_from(ROUTES))
    address = "/".join(
        data.draw(PIECES) if part.startswith("{") else part for part in route.split("/")
    )
    for name in data.draw(st.lists(st.sampled_from(PARAMETERS), max_size=3)):
        address += f"{'&' if '?' in address else '?'}{name}={data.draw(PIECES)}"
    check(app(address))


@pytest.mark.parametrize("name", ODD)
@pytest.mark.parametrize("route", [route for route in ROUTES if "{" in route])
def test_an_odd_name_is_not_there(
    app: Callable[[str], httpx.Response], route: str, name: str
) -> None:
    """What no resource can be called is not found, or not text: on every route with a name."""
    quoted = quote(name, safe="", errors="surrogatepass")
    answer = app("/".join(quoted if part.startswith("{") else part for part in route.split("/")))
    if name == ".." and answer.status_code == 200:
        # RFC 3986 section 5.2.4: a client resolves it, and so asks for the list of routes.
        assert {"path", "summary"} == set(answer.json()["items"][0])
        return
    assert answer.status_code in {400, 404}, answer.text
    check(answer)


def check(answer: httpx.Response) -> None:
    assert answer.status_code in {200, 400, 404}, answer.text
    if answer.status_code != 200:
        assert set(answer.json()) == {"code", "message", "advice"}
        assert len(answer.text) < 1000, "what was asked for is not repeated at length"
        assert "Traceback" not in answer.text
        assert "ledger.db" not in answer.text
