"""The notice of a metadata service, as a spot host reads it."""

from __future__ import annotations

import threading
import time
from http.server import ThreadingHTTPServer

import pytest

from cloud.metadata import Metadata, handler
from fleetform.agents.host.spot_notice import SpotNotice, is_spot_host, note_spot_host


@pytest.fixture
def metadata():
    """What an instance's own service knows; it answers at `metadata.service`."""
    known = Metadata("i-1", "g5.xlarge", "us-east-1a", "10.0.0.1", "123456789012")
    with ThreadingHTTPServer(("127.0.0.1", 0), handler(known)) as server:
        known.service = f"127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        yield known
        server.shutdown()
        thread.join()


def test_without_a_notice(metadata):
    """The document appears with the notice."""
    assert SpotNotice(metadata.service).ends_at() is None


def test_the_moment_of_the_end(metadata):
    """It is read with a session token, which later looks use too."""
    notice = SpotNotice(metadata.service)
    assert notice.ends_at() is None
    metadata.announce_end(120.0)
    assert notice.ends_at() == pytest.approx(time.time() + 120, abs=10)


def test_a_service_that_does_not_answer():
    """It is no notice, and no failure."""
    assert SpotNotice("127.0.0.1:1").ends_at() is None


def test_a_spot_host_is_remembered(tmp_path, monkeypatch):
    """The next agent of the host knows it without a new job."""
    monkeypatch.chdir(tmp_path)
    assert not is_spot_host()
    note_spot_host()
    note_spot_host()
    assert is_spot_host()
