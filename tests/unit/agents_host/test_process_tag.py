"""The tag of a job's processes: another for each job, and one that a process can have."""

from __future__ import annotations

import os
import resource
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetform.agents.host import layout, process_tag
from fleetform.agents.host.process_tag import UNTAGGED

UIDS = st.text("0123456789abcdef", min_size=32, max_size=32)
SHOW = "import os; from fleetform.agents.host import process_tag as p; print(p.base(), p.read(os.getpid()))"


@given(uids=st.lists(UIDS, unique=True), power=st.integers(40, 61))
def test_each_job_has_its_own(uids: list[str], power: int) -> None:
    """Two jobs have two tags, below twice the base, and none has that of no tag."""
    assert all(map(layout.is_job_uid, uids))
    tags = [process_tag.of_job(uid, 1 << power) for uid in uids]
    assert all(1 << power <= tag < 2 << power for tag in tags)
    assert UNTAGGED not in tags
    if power == 61:
        assert len(set(tags)) == len(uids)


def test_without_a_base_there_is_none() -> None:
    assert process_tag.of_job("a", 0) == UNTAGGED


@pytest.mark.parametrize(
    ("limit", "base"),
    [(resource.RLIM_INFINITY, 1 << 61), ((1 << 61) + 5, 1 << 60), (1 << 62, 1 << 61), (10**6, 0)],
)
def test_base_below_a_limit(limit: int, base: int) -> None:
    """An agent within a job of another has a lower base; a small limit leaves no room for tags."""

    def put_on() -> None:
        resource.setrlimit(resource.RLIMIT_RTTIME, (limit, limit))

    shown = subprocess.run(
        [sys.executable, "-c", SHOW], preexec_fn=put_on, capture_output=True, check=True, text=True
    ).stdout
    own = UNTAGGED if limit == resource.RLIM_INFINITY else limit
    assert shown == f"{base} {own}\n"
    assert 2 * base <= limit or limit == resource.RLIM_INFINITY


def test_what_is_gone_has_none() -> None:
    """The caller must know that it has not been looked at."""
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    with pytest.raises(OSError):
        process_tag.read(pid)
