from __future__ import annotations

import pytest

from fleetform.agents.protocol.messages import JobKey
from fleetform.agents.protocol.states import JobState
from fleetform.cli.logs import follow, last_lines, whole
from fleetform.logs import FileLogStore
from fleetform.model.ports import RunHistory
from fleetform.model.run import Attempt, AttemptState, Job, Run, RunState, RunUid, Template

UID = RunUid("abc")


@pytest.fixture
def store(tmp_path):
    return FileLogStore(tmp_path)


def attempt(number=1, ranks=1):
    jobs = tuple(
        Job(f"{number}{rank}", JobKey(UID, number, rank), JobState.RUNNING, 1)
        for rank in range(ranks)
    )
    return Attempt(UID, number, AttemptState.RUNNING, jobs)


def history(state, *attempts):
    run = Run(UID, "train", Template("train", "task", ("true",)), state, 1)
    return RunHistory(run, attempts, archived=False)


def put(store, data, *, number=1, rank=0, complete=False):
    store.append(UID, number, rank, store.size(UID, number, rank), data, complete=complete)


class Story:
    """What happens between two polls: each chapter is played when the follower sleeps."""

    def __init__(self, first, *chapters):
        self.now = first
        self.chapters = list(chapters)
        self.notices = []

    def sleep(self, _seconds):
        self.now = self.chapters.pop(0)()

    def followed(self, store, *, rank=None, tail=None):
        pieces = follow(
            lambda: self.now, store, rank=rank, tail=tail, notice=self.notices.append,
            sleep=self.sleep,
        )  # fmt: skip
        return b"".join(pieces)


def test_one_rank_comes_out_byte_for_byte(store):
    """Binary output and a missing last newline are not touched."""
    put(store, b"\xff\x00no newline")
    assert b"".join(whole(store, attempt(), None, None)) == b"\xff\x00no newline"


def test_several_ranks_are_told_apart(store):
    """Each line says whose it is, the last one too."""
    put(store, b"a\nb\n")
    put(store, b"c", rank=1)
    told = b"".join(whole(store, attempt(ranks=2), None, None))
    assert told == b"[rank 0] a\n[rank 0] b\n[rank 1] c\n"
    assert b"".join(whole(store, attempt(ranks=2), 1, None)) == b"c"


@pytest.mark.parametrize(("tail", "told"), [(0, b""), (1, b"b\n"), (9, b"a\nb\n")])
def test_a_tail_is_of_each_rank(store, tail, told):
    """Lines from the end; more than there are is all of them."""
    put(store, b"a\nb\n")
    assert b"".join(whole(store, attempt(), None, tail)) == told


def test_a_run_is_followed_to_its_end(store):
    """Lines come whole, in order and once, and the end of the run is the end of it."""
    put(store, b"one\ntw")

    def more():
        put(store, b"o\nthree")
        return history(RunState.RUNNING, attempt())

    def end():
        put(store, b"!", complete=True)
        return history(RunState.DONE, attempt())

    story = Story(history(RunState.RUNNING, attempt()), more, end)
    assert story.followed(store) == b"one\ntwo\nthree!\n"


def test_a_run_that_waits_is_followed_from_its_start(store):
    """Nothing is there yet: the first attempt's output is awaited."""

    def start():
        put(store, b"hi\n", complete=True)
        return history(RunState.DONE, attempt())

    story = Story(history(RunState.SUBMITTED), lambda: history(RunState.PENDING), start)
    assert story.followed(store) == b"hi\n"


def test_the_next_attempt_is_announced(store):
    """Its output follows, and the earlier one's tail is not applied to it."""
    put(store, b"first\nagain\n", complete=True)

    def again():
        put(store, b"second\nend\n", number=2, complete=True)
        return history(RunState.DONE, attempt(1), attempt(2))

    story = Story(history(RunState.RUNNING, attempt(1)), again)
    assert story.followed(store, tail=1) == b"again\nsecond\nend\n"
    assert story.notices == ["attempt 2"]


def test_a_lost_job_does_not_keep_anybody(store):
    """Output that never becomes complete ends with its run."""
    put(store, b"partial")
    assert Story(history(RunState.FAILED, attempt())).followed(store) == b"partial\n"


def test_the_last_lines_are_of_the_first_rank_that_printed(store):
    """A summary shows a few lines of text, whatever the job wrote."""
    put(store, b"a\nb\n\xff\n", rank=1)
    assert last_lines(store, attempt(ranks=2), 2) == ["b", "\N{REPLACEMENT CHARACTER}"]
    assert last_lines(store, attempt(3), 2) == []
