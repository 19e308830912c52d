"""What all tests share: services that may be missing, and the summary lines at the end."""

from __future__ import annotations

import gc
import os
import shutil
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import count as numbers
from itertools import islice
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

import forkserver
import required
from belongings import held, left_since, told
from leftovers import end_processes
from postgres_server import PostgresServer, reason_missing

# A busy machine says nothing about the code: no example has a deadline, and none is made too slowly.
# CI takes the same examples each time, so that a commit is green or not; at home they are new ones.
settings.register_profile(
    "fleetform",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=bool(os.environ.get("CI") or os.environ.get("FLEETFORM_TEST_REQUIRE")),
)
settings.load_profile("fleetform")

SUMMARY = "summary"
SUMS = "sums"

# What was there before a test began, and what fixtures of more than one test hold.
BEFORE = pytest.StashKey[frozenset[str]]()
SHARED = pytest.StashKey[set[str]]()

# A shell starts what goes to the background with these ignored, and every process below would
# ignore them as well; tests send them.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGQUIT) == signal.SIG_IGN:
    signal.signal(signal.SIGQUIT, signal.SIG_DFL)
# As `nohup` does with this one.
if signal.getsignal(signal.SIGHUP) == signal.SIG_IGN:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)

# What somebody has set for their own environment is not for those of the tests.
for _name in [name for name in os.environ if name.startswith("FLEETFORM_")]:
    if not _name.startswith("FLEETFORM_TEST_"):
        del os.environ[_name]

# Tests start some thousand commands. Without bytecode on disk, each of them compiles the product
# again, which takes twice as long as all else that it does, and each worker rewrites each test.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
# Commands write as they do for users.
os.environ.pop("PYTHONUNBUFFERED", None)


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Iterator[None]:
    """
    Import all tests without a look for garbage, and never look again through what they hold.

    It is there until the end: 12 000 tests and all that they import. Looking through it takes half
    a second each time, in each worker.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """
    Begin with the tests that wait: begun at the end, all others would be over long before them.

    A run's workers begin with equal parts of the list. Every second part begins with some of them, so that
    the other workers use the processors meanwhile.
    """
    workers = getattr(config, "workerinput", {"workercount": 1})["workercount"]
    waiting = [item for item in items if item.get_closest_marker("waits")]
    others = iter([item for item in items if not item.get_closest_marker("waits")])
    ordered: list[pytest.Item] = []
    for number in range(workers):
        size = (len(items) - len(ordered)) // (workers - number)
        own = [] if number % 2 else waiting[number // 2 :: (workers + 1) // 2]
        ordered += [*own, *islice(others, max(0, size - len(own)))]
    items[:] = [*ordered, *others]


@pytest.fixture(scope="session", autouse=True)
def cache_home() -> Iterator[None]:
    """Keep what commands know from before in a folder of this run, and not in the user's."""
    folder = tempfile.mkdtemp(prefix="fleetform-cache-")
    before = os.environ.get("FLEETFORM_CACHE_HOME")
    os.environ["FLEETFORM_CACHE_HOME"] = folder
    yield
    shutil.rmtree(folder, ignore_errors=True)
    if before is None:
        del os.environ["FLEETFORM_CACHE_HOME"]
    else:
        os.environ["FLEETFORM_CACHE_HOME"] = before


@pytest.fixture(autouse=True)
def config_home(config_homes: Iterator[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no test know how far the ledger of another one has come: uids are used again."""
    monkeypatch.setenv("FLEETFORM_CONFIG_HOME", next(config_homes))


@pytest.fixture(scope="session")
def config_homes() -> Iterator[Iterator[str]]:
    """Names of folders, which are made when something is written into them."""
    folder = tempfile.mkdtemp(prefix="fleetform-config-")
    yield (f"{folder}/{number}" for number in numbers())
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session", autouse=True)
def nothing_goes_on(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Fail where an agent, a job or a server of these tests outlives them, and end it."""
    yield
    folder = tmp_path_factory.getbasetemp()
    if left := end_processes(folder):
        pytest.fail("of these tests there went on:\n  " + "\n  ".join(left), pytrace=False)


@pytest.fixture(scope="session")
def program(pytestconfig: pytest.Config) -> Iterator[Path]:
    """A `fleetform` whose commands start fast, see `forkserver`."""
    before = held()
    with forkserver.serving() as path:
        # The hook below is not asked about a fixture of the whole session.
        pytestconfig.stash[SHARED] |= held() - before
        yield path


@pytest.fixture(scope="session")
def need() -> Callable[[str, bool, str], None]:
    """Ask for a service: `need("actionlint", found, "why it is not there")`; see `required`."""
    return required.need


@pytest.fixture(scope="session")
def postgres(need: Callable[[str, bool, str], None]) -> Iterator[PostgresServer]:
    """A real server for this process's tests."""
    reason = reason_missing()
    need("postgresql", not reason, reason)
    server = PostgresServer()
    yield server
    server.close()


@pytest.fixture
def summarise(record_property: Callable[[str, object], None]) -> Callable[[str], None]:
    """Print one line at the end of the whole run, from whichever process the test ran in."""

    def say(line: str) -> None:
        record_property(SUMMARY, line)

    return say


@pytest.fixture
def count(
    record_property: Callable[[str, object], None],
) -> Callable[[str, dict[str, int]], None]:
    """Add figures under a title; the end of the whole run prints their sums on one line."""

    def add(title: str, figures: dict[str, int]) -> None:
        record_property(SUMS, [title, dict(figures)])

    return add


def _sums(properties: list[tuple[str, object]]) -> list[str]:
    totals: dict[str, Counter[str]] = {}
    for name, value in properties:
        if name == SUMS:
            title, figures = value
            totals.setdefault(title, Counter()).update(figures)
    return [
        f"{title}: " + ", ".join(f"{number} {what}" for what, number in sums.items())
        for title, sums in totals.items()
    ]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    properties = [
        item
        for reports in terminalreporter.stats.values()
        for report in reports
        # The last report of a test has what its fixtures say as well.
        if getattr(report, "when", "") == "teardown"
        for item in report.user_properties
    ]
    lines = sorted(str(value) for name, value in properties if name == SUMMARY)
    lines += _sums(properties)
    if lines:
        terminalreporter.section("promises under faults")
        for line in lines:
            terminalreporter.write_line(line)


# -- what a test leaves behind ------------------------------------------------------------------


def pytest_configure(config: pytest.Config) -> None:
    config.stash[SHARED] = set()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> Iterator[None]:
    item.stash[BEFORE] = held()
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(
    fixturedef: pytest.FixtureDef[object], request: pytest.FixtureRequest
) -> Iterator[None]:
    """Note what a fixture of more than one test opens; it stays until the last of them."""
    if fixturedef.scope == "function":
        return (yield)
    before = held()
    try:
        return (yield)
    finally:
        request.config.stash[SHARED] |= held() - before


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> Iterator[None]:
    result = yield
    left = left_since(item.stash[BEFORE] | item.config.stash[SHARED])
    if left:
        pytest.fail(f"{item.nodeid} leaves behind:\n  {told(left)}", pytrace=False)
    return result
