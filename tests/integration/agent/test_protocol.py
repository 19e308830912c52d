"""What a real agent answers on its socket, frame by frame: to older and to newer controllers."""

from __future__ import annotations

import asyncio
import base64
import json
from pathlib import Path
from typing import Any

from fleetform.agents.protocol.messages import PROTOCOL_NEWEST, to_json
from integration.agent.rig import WAIT_SECONDS, Agent, job

DATA = Path(__file__).parents[2] / "data" / "recorded"
"""Bytes that the release before wrote, whose newest version was 1."""

HELLO = {
    "type": "Hello",
    "environment_uid": "environment",
    "ledger_id": "ledger",
    "epoch": 1,
    "fence": 1,
    "protocol": 1,
    "protocol_newest": PROTOCOL_NEWEST,
}


class Wire:
    """A connection that says and hears JSON objects, whatever they mean."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    @classmethod
    async def dial(cls, agent: Agent) -> Wire:
        return cls(*await asyncio.open_unix_connection(str(agent.root / "agent.sock")))

    def say(self, **fields: Any) -> None:
        body = json.dumps(fields).encode()
        self.writer.write(len(body).to_bytes(4, "big") + body)

    async def hear(self) -> dict[str, Any]:
        async with asyncio.timeout(WAIT_SECONDS):
            length = int.from_bytes(await self.reader.readexactly(4), "big")
            heard: dict[str, Any] = json.loads(await self.reader.readexactly(length))
            return heard

    async def greet(self) -> dict[str, Any]:
        """Say hello as a controller of this release; returns the welcome, which a heartbeat follows."""
        self.say(**HELLO)
        welcome = await self.hear()
        assert (await self.hear())["type"] == "Heartbeat"
        return welcome


def test_a_controller_of_version_1_is_obeyed(agent: Agent) -> None:
    """Each of its requests is answered, with no message that it does not know."""
    recorded = (DATA / "protocol-1-to-agent.bin").read_bytes()

    async def go() -> None:
        wire = await Wire.dial(agent)
        # All but the last request, which ends the agent.
        wire.writer.write(recorded[: recorded.index(b'"type":"Shutdown"')])
        answers: dict[int, dict[str, Any]] = {}
        welcome = await wire.hear()
        assert (welcome["type"], welcome["protocol"]) == ("Welcome", 1)
        while len(answers) < 10:
            heard = await wire.hear()
            assert heard["type"] in {"Reply", "Event", "LogData"}
            if heard["type"] == "Reply":
                answers[heard["id"]] = heard
        assert sorted(answers) == list(range(1, 11))
        assert {answer["code"] for answer in answers.values()} <= {
            "", "boot_changed", "stale", "not_found", "invalid", "io",
        }  # fmt: skip
        wire.writer.close()

    asyncio.run(go())


def test_unknown_requests_are_refused_by_name(agent: Agent) -> None:
    """The session goes on: a message and a value of a newer release cost one answer each."""

    async def go() -> None:
        wire = await Wire.dial(agent)
        assert (await wire.greet())["protocol"] == PROTOCOL_NEWEST
        wire.say(type="Freeze", id=7, key=["r", 1, 0])
        wire.say(type="Weather", sky="blue")
        wire.say(type="Stop", id=8, key=["r", 1, 0], job_uid="u", gen=1, cause="boredom")
        wire.say(type="Probe", id=9)
        answers = [await wire.hear() for _ in range(3)]
        by_id = {answer["id"]: answer for answer in answers}
        assert [by_id[number]["code"] for number in (7, 8)] == ["unsupported"] * 2
        assert 'the message "Freeze" is unknown' in by_id[7]["message"]
        assert "Stop.cause must be one of" in by_id[8]["message"]
        assert by_id[9]["ok"]
        assert 'the message "Weather" is unknown' in agent.log()
        wire.writer.close()

    asyncio.run(go())


def test_malformed_frames_end_the_session(agent: Agent) -> None:
    """Where a field has the wrong type, nothing after it can be relied on."""

    async def go() -> None:
        wire = await Wire.dial(agent)
        await wire.greet()
        wire.say(type="Probe", id="seven")
        async with asyncio.timeout(WAIT_SECONDS):
            assert await wire.reader.read() == b""
        wire.writer.close()

    asyncio.run(go())


def test_a_job_ends_before_its_output_has_arrived(agent: Agent) -> None:
    """While nobody takes in its output, its end is known; afterwards all of it comes."""
    loud = job("loud", "head -c 3000000 /dev/zero")

    async def go() -> None:
        wire = await Wire.dial(agent)
        await wire.greet()
        wire.say(type="Prepare", id=1, job=to_json(loud))
        output, arrived, is_complete, end = 0, 0, False, None
        while end is None:
            heard = await wire.hear()
            if heard["type"] == "LogData":
                arrived += len(heard["data"])
                output += len(base64.b64decode(heard["data"]))
                assert not heard["complete"]
            elif heard["type"] == "Event" and heard["record"]["state"] == "finished":
                end = heard["record"]
        assert end["log_bytes"] == 3_000_000
        assert output < 100_000
        while not is_complete:
            wire.say(type="Credit", channel=1, size_bytes=arrived)
            arrived = 0
            heard = await wire.hear()
            if heard["type"] == "LogData":
                arrived = len(heard["data"])
                output += len(base64.b64decode(heard["data"]))
                is_complete = heard["complete"]
        assert output == 3_000_000
        wire.writer.close()

    asyncio.run(go())
