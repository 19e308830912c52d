from __future__ import annotations

import os
import pickle
import threading

import pytest

from fleetform.lsp.validation import HEADER, Job, Superseded, Worker, pack, validate
from fleetform.spec.tree.cache import ReadingCache

ENVIRONMENT = "type: environment\nname: lab\nuid: abcd\n"


@pytest.fixture
def root(tmp_path):
    """An environment that declares nothing."""
    (tmp_path / "environment.yaml").write_text(ENVIRONMENT)
    return tmp_path


def served(*jobs):
    """The answers of a worker that finds all of these jobs waiting."""
    asked_end, ask_end = os.pipe()
    answers_end, answer_end = os.pipe()
    with (
        os.fdopen(asked_end, "rb", buffering=0) as asked,
        os.fdopen(answers_end, "rb") as answers,
        os.fdopen(answer_end, "wb") as answer,
    ):
        worker = threading.Thread(target=Worker(asked, answer).serve)
        with os.fdopen(ask_end, "wb") as ask:
            ask.write(b"".join(pack(job) for job in jobs))
            ask.flush()
            worker.start()
            said = [_unpacked(answers) for _ in jobs]
        worker.join(60)
        assert not worker.is_alive(), "it ends with who asks"
    return {answer.number: answer.findings for answer in said}


def _unpacked(answers):
    return pickle.loads(answers.read(HEADER.unpack(answers.read(HEADER.size))[0]))


def test_a_reading_stops_at_the_next_file_when_it_is_stale(root):
    """A large environment is not read to its end for nobody."""
    job = Job(1, root, "", {})
    with pytest.raises(Superseded):
        validate(job, ReadingCache(), lambda: True)
    assert [one.code for one in validate(job, ReadingCache(), lambda: False)] == ["empty-tree"]


@pytest.mark.parametrize("file", [0, 1, 2, 3])
def test_a_reading_that_was_stopped_leaves_the_next_as_it_would_be(root, file):
    """Whatever it had kept by then."""
    for number in range(3):
        text = f"type: task\nname: run-{number}\ncommands: [a]\nfleets: [none-{number}]\n"
        (root / f"run{number}.yaml").write_text(text)
    job, cache = Job(1, root, "", {}), ReadingCache()
    asked = iter(range(100))
    with pytest.raises(Superseded):
        validate(job, cache, lambda: next(asked) == file)
    assert validate(job, cache, lambda: False) == validate(job, ReadingCache(), lambda: False)


def test_every_job_is_answered_and_the_newest_is_read(root):
    """One that a newer one replaced is answered by nothing."""
    answers = served(*(Job(number, root, "", {}) for number in range(5)))
    assert sorted(answers) == [0, 1, 2, 3, 4]
    assert [one.code for one in answers[4]] == ["empty-tree"]


def test_another_environment_replaces_no_reading(root, tmp_path_factory):
    """Each has its own newest."""
    other = tmp_path_factory.mktemp("other")
    answers = served(Job(1, root, "", {}), Job(2, other, "a.yaml", {"a.yaml": b"nonsense"}))
    assert [one.code for one in answers[1]] == ["empty-tree"]
    assert [one.place.file for one in answers[2]] == ["a.yaml"]
