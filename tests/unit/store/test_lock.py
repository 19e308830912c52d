"""Locks of files: one holder, known by name, and none after its death."""

from __future__ import annotations

import errno
import fcntl
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from fleetform.store.lock import asking, is_asked, try_lock, who_holds


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "manager.lock"


def test_one_holder_at_a_time(path: Path) -> None:
    """A lock that is held is given to nobody else, and again after its release."""
    lock = try_lock(path, who="anna", command="serve", now_ms=5)
    assert lock is not None
    assert try_lock(path, who="bert", command="apply", now_ms=6) is None
    lock.release()
    lock.release()
    with try_lock(path, who="bert", command="apply", now_ms=6) or pytest.fail("not free"):
        assert (who_holds(path) or pytest.fail("not held")).who == "bert"


def test_holder_is_known(path: Path) -> None:
    """Who asks learns pid, name, command, host and since when; nobody when it is free."""
    assert who_holds(path) is None
    with try_lock(path, who="anna", command="serve", now_ms=5) or pytest.fail("not free"):
        holder = who_holds(path)
        assert holder is not None
        assert (holder.pid, holder.who, holder.command, holder.since_ms) == (
            (os.getpid(), "anna", "serve", 5)
        )
        assert holder.host
    assert who_holds(path) is None


def test_asking_takes_nothing(path: Path) -> None:
    """A lock can be taken right after somebody has asked who holds it."""
    path.parent.mkdir()
    path.touch()
    for _ in range(50):
        assert who_holds(path) is None
        (try_lock(path, who="a", command="apply", now_ms=1) or pytest.fail("not free")).release()


def test_a_holder_without_a_name_is_looked_at_again(path: Path) -> None:
    """A lock that is wiped, or not yet written, is read until it has a name or is free."""
    path.parent.mkdir()
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    free = threading.Timer(0.01, os.close, (descriptor,))
    free.start()
    assert who_holds(path) is None
    free.join()
    with try_lock(path, who="anna", command="serve", now_ms=5) or pytest.fail("not free"):
        written = path.read_bytes()
        path.write_bytes(b"")
        write = threading.Timer(0.01, path.write_bytes, (written,))
        write.start()
        assert (who_holds(path) or pytest.fail("not held")).who == "anna"
        write.join()


def test_a_look_is_no_request(path: Path) -> None:
    """Two processes that look for a request at once do not take each other for it."""
    path.parent.mkdir()
    looking = os.open(path, os.O_RDWR | os.O_CREAT)
    fcntl.flock(looking, fcntl.LOCK_EX)
    over = threading.Timer(0.01, os.close, (looking,))
    over.start()
    assert not is_asked(path)
    over.join()
    with asking(path):
        assert is_asked(path)
    assert not is_asked(path)


def test_death_frees_the_lock(path: Path) -> None:
    """The kernel frees a lock with its process, whatever kills it, and its children hold nothing."""
    code = (
        "import sys, subprocess; from pathlib import Path\n"
        "from fleetform.store.lock import try_lock\n"
        "lock = try_lock(Path(sys.argv[1]), who='child', command='apply', now_ms=1)\n"
        "child = subprocess.Popen(['sleep', '30'], close_fds=False, stdout=subprocess.DEVNULL)\n"
        "print(child.pid, flush=True)\n"
        "sys.stdin.read()\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    grandchild = int(process.stdout.readline())
    try:
        assert (who_holds(path) or pytest.fail("not held")).pid == process.pid
        process.kill()
        process.communicate()
        assert who_holds(path) is None
        (try_lock(path, who="a", command="apply", now_ms=1) or pytest.fail("not free")).release()
    finally:
        os.kill(grandchild, 9)


def test_lock_that_says_nothing(path: Path) -> None:
    """A lock whose holder cannot be read is held all the same."""
    with try_lock(path, who="anna", command="serve", now_ms=5) or pytest.fail("not free"):
        path.write_text("{")
        holder = who_holds(path)
        assert holder is not None
        assert holder.pid == 0


def test_a_full_disk_keeps_nobody_off(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever cannot write down who it is gives the lock up again, and says so."""

    def refuse(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as full:
        full.setattr(os, "pwrite", refuse)
        with pytest.raises(OSError, match="No space left"):
            try_lock(path, who="anna", command="apply", now_ms=1)
    assert who_holds(path) is None
    with try_lock(path, who="anna", command="apply", now_ms=1) or pytest.fail("not free"):
        assert who_holds(path) is not None
