"""Logs on files: what a job wrote comes back, and what was dropped is said."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetform.logs import FileLogStore
from fleetform.logs.files import _amount

JOB = ("a" * 32, 1, 0)


@pytest.fixture
def logs(tmp_path) -> FileLogStore:
    return FileLogStore(tmp_path / "logs")


def read_all(logs: FileLogStore, limit_bytes: int = 1000) -> bytes:
    pieces, offset = [], 0
    while True:
        data, following = logs.read(*JOB, offset, limit_bytes)
        if following == offset:
            return b"".join(pieces)
        pieces.append(data)
        offset = following


class TestOutput:
    def test_what_was_appended_is_read(self, logs) -> None:
        """Pieces come back as one stream, in any portions."""
        logs.append(*JOB, 0, b"one\n", complete=False)
        logs.append(*JOB, 4, b"two\n", complete=False)
        assert logs.size(*JOB) == 8
        assert logs.read(*JOB, 0, 100) == (b"one\ntwo\n", 8)
        assert logs.read(*JOB, 2, 3) == (b"e\nt", 5)
        assert read_all(logs, 1) == b"one\ntwo\n"

    def test_an_unknown_job_has_said_nothing(self, logs) -> None:
        """Nothing is made by asking."""
        assert logs.size(*JOB) == 0
        assert logs.read(*JOB, 0, 100) == (b"", 0)
        assert not logs.is_complete(*JOB)

    def test_reading_at_the_end_waits_there(self, logs) -> None:
        """The offset stays where it is until there is more."""
        logs.append(*JOB, 0, b"one", complete=False)
        assert logs.read(*JOB, 3, 100) == (b"", 3)
        assert logs.read(*JOB, 9, 100) == (b"", 9)

    def test_jobs_are_kept_apart(self, logs) -> None:
        """Attempts and ranks of one run have output of their own."""
        logs.append("a" * 32, 1, 0, 0, b"first", complete=False)
        logs.append("a" * 32, 2, 0, 0, b"second", complete=False)
        logs.append("a" * 32, 2, 1, 0, b"rank 1", complete=True)
        assert logs.read("a" * 32, 1, 0, 0, 100) == (b"first", 5)
        assert logs.read("a" * 32, 2, 0, 0, 100) == (b"second", 6)
        assert logs.read("a" * 32, 2, 1, 0, 100) == (b"rank 1", 6)
        assert not logs.is_complete("a" * 32, 2, 0)

    def test_a_job_without_output_can_be_complete(self, logs) -> None:
        """An empty last piece says that nothing will come."""
        logs.append(*JOB, 0, b"", complete=True)
        assert logs.is_complete(*JOB)
        assert logs.size(*JOB) == 0

    def test_another_process_sees_it(self, logs, tmp_path) -> None:
        """All there is to know lies in the files."""
        logs.append(*JOB, 0, b"one", complete=True)
        other = FileLogStore(tmp_path / "logs")
        assert other.read(*JOB, 0, 100) == (b"one", 3)
        assert other.is_complete(*JOB)

    def test_a_name_that_leads_out_is_a_bug(self, logs) -> None:
        """No file outside the folder can be named."""
        with pytest.raises(AssertionError, match="no uid"):
            logs.append("../../etc", 1, 0, 0, b"x", complete=False)


class TestRepeats:
    def test_a_piece_that_comes_twice_is_kept_once(self, logs) -> None:
        """After a reconnect a host sends again what had arrived."""
        for _ in range(2):
            logs.append(*JOB, 0, b"one\n", complete=False)
        logs.append(*JOB, 2, b"e\ntwo\n", complete=True)
        logs.append(*JOB, 2, b"e\ntwo\n", complete=True)
        assert read_all(logs) == b"one\ntwo\n"

    @given(
        output=st.binary(max_size=60),
        pieces=st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60)), max_size=8),
        limit_bytes=st.integers(1, 70),
    )
    def test_pieces_may_overlap_in_any_way(
        self, tmp_path_factory, output, pieces, limit_bytes
    ) -> None:
        """However a host goes back, the output comes out as it was written."""
        logs = FileLogStore(tmp_path_factory.mktemp("logs"))
        for begin, size in [*pieces, (0, len(output))]:
            known = min(begin, logs.size(*JOB))
            logs.append(*JOB, known, output[known : known + size], complete=False)
        assert logs.size(*JOB) == len(output)
        assert read_all(logs, limit_bytes) == output


class TestGaps:
    def test_a_gap_is_one_line(self, logs) -> None:
        """What a budget dropped is said with its size, between what was kept."""
        logs.append(*JOB, 0, b"head\n", complete=False)
        logs.append(*JOB, 1_200_005, b"tail\n", complete=True)
        assert read_all(logs) == "head\n[… 1.2 MB of output dropped …]\ntail\n".encode()
        assert logs.size(*JOB) == 1_200_010

    def test_a_gap_begins_a_line_of_its_own(self, logs) -> None:
        """A line that was cut by the gap is ended first."""
        logs.append(*JOB, 0, b"hea", complete=False)
        logs.append(*JOB, 4, b"l\n", complete=True)
        assert read_all(logs) == "hea\n[… 1 byte of output dropped …]\nl\n".encode()

    def test_a_gap_may_be_first_or_last(self, logs) -> None:
        """An offset beyond the end is a gap also when nothing follows it."""
        logs.append(*JOB, 500, b"x", complete=False)
        logs.append(*JOB, 1501, b"", complete=True)
        first, last = "500 bytes", "1.0 kB"
        assert read_all(logs) == (
            f"[… {first} of output dropped …]\nx\n[… {last} of output dropped …]\n".encode()
        )

    def test_reading_may_begin_within_a_gap(self, logs) -> None:
        """Whoever reads from there on learns of the whole gap."""
        logs.append(*JOB, 10, b"x", complete=True)
        assert logs.read(*JOB, 5, 100) == ("[… 10 bytes of output dropped …]\n".encode(), 10)

    def test_zero_bytes_that_were_written_are_output(self, logs) -> None:
        """Only a noted gap is a gap."""
        logs.append(*JOB, 0, b"\0" * 8192, complete=True)
        assert read_all(logs, 8192) == b"\0" * 8192

    def test_a_gap_noted_before_a_crash_is_noted_again(self, logs, tmp_path) -> None:
        """Between note and data anything may happen: the last note before the data counts."""
        logs.append(*JOB, 0, b"head\n", complete=False)
        gaps = tmp_path / "logs" / JOB[0] / "1-0.gaps"
        gaps.write_text("5 900\n5 70")
        assert read_all(logs) == b"head\n"
        gaps.write_text("5 900\n")
        logs.append(*JOB, 705, b"tail\n", complete=True)
        assert read_all(logs) == "head\n[… 700 bytes of output dropped …]\ntail\n".encode()

    @pytest.mark.parametrize(
        ("size_bytes", "said"),
        [
            (1, "1 byte"),
            (999, "999 bytes"),
            (1000, "1.0 kB"),
            (999_999, "999.9 kB"),
            (1_000_000, "1.0 MB"),
            (1_250_000_000, "1.2 GB"),
            (3_000_000_000_000, "3.0 TB"),
            (3_000_000_000_000_000, "3000.0 TB"),
        ],
    )
    def test_sizes_are_said_as_people_do(self, size_bytes, said) -> None:
        """A size is rounded down to a tenth of its unit."""
        assert _amount(size_bytes) == said
