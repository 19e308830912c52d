"""Connections to ports of running jobs, with a real agent and programs that listen."""

from __future__ import annotations

import asyncio
import os
import socket

import pytest

from fleetform.agents.client.errors import RequestRefused
from fleetform.agents.protocol import exec_pieces
from fleetform.agents.protocol.messages import StartJob
from integration.agent.rig import Agent, job, uid
from integration.agent.test_exec import entered

DATA = bytes([exec_pieces.DATA])
END = bytes([exec_pieces.END_OF_INPUT])


def free_port(family: socket.AddressFamily = socket.AF_INET) -> int:
    with socket.socket(family) as probe:
        probe.bind(("localhost", 0))
        return int(probe.getsockname()[1])


def parameters(started: StartJob, port: int) -> dict[str, object]:
    return {"key": str(started.key), "job_uid": started.job_uid, "port": port}


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Send back what comes, until it ends, and then a last word."""
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()
    writer.write(b"bye")
    writer.close()


@pytest.mark.parametrize("address", ["127.0.0.1", "::1"])
def test_a_port_of_a_job(agent: Agent, address: str) -> None:
    """Much goes through both ways, each direction ends by itself, and the channel ends with both."""
    started = job("a", "exec sleep 300")
    content = os.urandom(1 << 20) * 6

    async def go() -> None:
        try:
            server = await asyncio.start_server(echo, address, 0)
        except OSError as error:
            pytest.skip(f"{address}: {error}")
        port = server.sockets[0].getsockname()[1]
        async with server, entered(agent, started) as session:
            channel = await session.open_channel("forward", parameters(started, port))

            async def feed() -> None:
                for begin in range(0, len(content), 30_000):
                    await channel.write(DATA + content[begin : begin + 30_000])
                channel.write_now(END)

            feeding = asyncio.create_task(feed())
            await asyncio.sleep(0.3)
            received = b""
            async with asyncio.timeout(60):
                while (piece := await channel.read()) is not None:
                    received += piece[1:] if piece[0] == exec_pieces.DATA else b"|"
                await feeding
            assert received == content + b"bye|"
            assert channel.ended is not None
            assert (channel.ended.code, channel.ended.body) == ("", {})

    asyncio.run(go())


def test_a_program_that_does_not_read(agent: Agent) -> None:
    """The sender waits, and commands over the same connection do not."""
    started = job("a", "exec sleep 300")

    async def go() -> None:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            async with entered(agent, started) as session:
                port = listener.getsockname()[1]
                channel = await session.open_channel("forward", parameters(started, port))

                async def feed() -> None:
                    for _ in range(4000):
                        await channel.write(DATA + bytes(30_000))

                feeding = asyncio.create_task(feed())
                done, _ = await asyncio.wait([feeding], timeout=2)
                assert not done
                asked = {"key": str(started.key), "job_uid": started.job_uid, "argv": ["true"]}
                command = await session.open_channel("exec", asked)
                async with asyncio.timeout(30):
                    assert await command.read() is None
                feeding.cancel()
                await session.close_stream(channel)

    asyncio.run(go())


def test_what_cannot_be_reached(agent: Agent) -> None:
    """A port where nothing listens, one that is none, and a job that does not run."""
    started = job("a", "exec sleep 300")

    async def go() -> None:
        async with entered(agent, started) as session:
            port = free_port()
            with pytest.raises(RequestRefused, match=f"port {port} of the job: Connection refused"):
                await session.open_channel("forward", parameters(started, port))
            with pytest.raises(RequestRefused, match="70000 is not a port"):
                await session.open_channel("forward", parameters(started, 70_000))
            other = parameters(started, port) | {"job_uid": uid("b")}
            with pytest.raises(RequestRefused, match="the job does not run: it is not on this"):
                await session.open_channel("forward", other)

    asyncio.run(go())


def test_a_connection_ends_with_its_job(agent: Agent) -> None:
    """A program that the job has left behind, or that is another's, is not reached through it."""
    started = job("a", "exec sleep 300")

    async def go() -> None:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            async with entered(agent, started) as session:
                port = listener.getsockname()[1]
                channel = await session.open_channel("forward", parameters(started, port))
                os.kill(agent.processes(uid("a"), 1)[0], 9)
                async with asyncio.timeout(30):
                    assert await channel.read() is None
                assert channel.ended is not None
                assert channel.ended.body == {"job_ended": True}

    asyncio.run(go())
