from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from simulation.loop import VirtualLoop, run
from simulation.network import Link


@given(st.lists(st.binary(min_size=1, max_size=20), max_size=20), st.integers(0, 1000))
def test_bytes_arrive_in_order(pieces: list[bytes], seed: int) -> None:
    """Whatever the delays, the other end reads what was written, in order, then the end."""

    async def main() -> bytes:
        link = Link(random.Random(seed), 0.5)
        for piece in pieces:
            link.near.write(piece)
        link.near.close()
        got = b""
        while data := await link.far.read(4096):
            got += data
        return got

    assert run(main(), VirtualLoop()) == b"".join(pieces)


def test_a_reset_loses_what_is_on_its_way() -> None:
    """After a reset both ends read the end, and nothing that was under way."""

    async def main() -> tuple[bytes, bytes]:
        link = Link(random.Random(1), 0.5)
        link.near.write(b"lost")
        link.reset()
        return await link.far.read(10), await link.near.read(10)

    assert run(main(), VirtualLoop()) == (b"", b"")
