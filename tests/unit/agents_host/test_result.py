"""The slot that tells how a job ended."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from fleetform.agents.host import result as slot
from unit.agents_host.jobs import result

numbers = st.none() | st.integers(0, 2**62)


@given(exit_code=numbers, peak=numbers, message=st.text(max_size=300))
def test_round_trip(exit_code: int | None, peak: int | None, message: str) -> None:
    """What is written is read again, whatever it says."""
    written = result(exit_code=exit_code, peak_memory_bytes=peak, message=message)
    assert slot.decode(slot.encode(written)) == written


@given(message=st.text(min_size=100, max_size=5000))
def test_long_messages_are_cut(message: str) -> None:
    """A result fits its slot; a message too long for it loses its end."""
    content = slot.encode(result(message=message))
    assert len(content) <= slot.SLOT_BYTES
    found = slot.decode(content.ljust(slot.SLOT_BYTES, b"\0"))
    assert found is not None
    assert message.startswith(found.message)


@given(length=st.integers(0, 190), junk=st.binary(max_size=20))
def test_half_a_result_is_none(length: int, junk: bytes) -> None:
    """Whatever a power cut leaves of a result is recognised as none."""
    content = slot.encode(result())
    half = content[:length].ljust(slot.SLOT_BYTES, b"\0")
    assert length < len(content) - 1
    assert slot.decode(half) is None
    assert slot.decode(junk) is None


def test_only_its_own(tmp_path: Path) -> None:
    """A slot that was used before says nothing of the job that has it now."""
    path = str(tmp_path / "result")
    assert slot.read(path, "job-a") is None
    slot.allocate(path)
    assert slot.read(path, "job-a") is None
    slot.write(path, result("a"))
    assert slot.read(path, "job-a") == result("a")
    assert slot.read(path, "job-b") is None
    slot.write(path, result("b", message=""))
    assert slot.read(path, "job-b") == result("b")
