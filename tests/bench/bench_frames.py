"""How many messages a second go into frames and come out of them; prints a table."""

from __future__ import annotations

import time
from collections.abc import Sequence

from measuring import parser_of, positive

from fleetform.agents.protocol.frames import Decoder, Message, encode
from fleetform.agents.protocol.messages import Event, JobKey, JobRecord, Prepare, Reply, StartJob
from fleetform.agents.protocol.states import Cause, JobState

COUNT = 50_000
PIECE_BYTES = 64 << 10
KEY = JobKey("a" * 32, 1, 0)

MESSAGES: tuple[Message, ...] = (
    Reply(1, ok=True),
    Event(7, JobRecord(KEY, "b" * 32, 3, "c" * 64, JobState.FINISHED, Cause.EXITED, 0)),
    Prepare(2, StartJob("b" * 32, KEY, 1, "d" * 36, "train", ("true",), env={"LR": "0.1"})),
)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = parser_of(__doc__)
    parser.add_argument("messages", nargs="?", type=positive, default=COUNT)
    count = parser.parse_args(arguments).messages
    print(f"{'message':8} {'bytes':>6} {'out/s':>8} {'in/s':>8} {'asked/s':>8}")
    for message in MESSAGES:
        begun = time.perf_counter()
        frames = [encode(message) for _ in range(count)]
        out_seconds = time.perf_counter() - begun
        stream, decoder, arrived = b"".join(frames), Decoder(), 0
        begun = time.perf_counter()
        for begin in range(0, len(stream), PIECE_BYTES):
            arrived += len(decoder.feed(stream[begin : begin + PIECE_BYTES]))
        in_seconds = time.perf_counter() - begun
        assert arrived == count
        print(
            f"{type(message).__name__:8} {len(frames[0]):6} {count / out_seconds:8.0f} "
            f"{count / in_seconds:8.0f} {20_000:8}"
        )


if __name__ == "__main__":
    main()
