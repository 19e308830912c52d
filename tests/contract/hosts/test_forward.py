"""Several commands and ports of the jobs of every provider's hosts, over one connection."""

from __future__ import annotations

import asyncio

import pytest

from contract.host_site import Site, connected, job_for, request
from fleetform.agents.protocol.states import JobState
from fleetform.providers.contract.errors import PermanentError, TemporaryError
from fleetform.providers.contract.job_streams import ExecEnd, ExecRequest, JobAddress

LISTEN = """\
exec python3 -c 'import socket
with socket.create_server(("127.0.0.1", 0)) as server:
    print("port", server.getsockname()[1], flush=True)
    while True:
        client, _ = server.accept()
        with client:
            while data := client.recv(65536):
                client.sendall(data.upper())
            client.sendall(b"END")'"""


def test_ports_and_commands_share_a_connection(tell) -> None:
    """A port that a job listens at is reached while a command runs; each ends by itself."""

    async def story(site: Site) -> None:
        async with connected(site) as listener:
            job = job_for(listener, LISTEN)
            assert (await listener.host.prepare(job)).ok
            await listener.state(job, JobState.RUNNING)
            await listener.until(lambda: listener.text(job).endswith("\n"))
            port = int(listener.text(job).split()[1])
            streams = await site.provider.open_streams(request())
            where = JobAddress(job.key, job.job_uid)
            command = await streams.open_exec(ExecRequest(job.key, job.job_uid, ("cat",)))
            for word in (b"one", b"two"):
                port_session = await streams.open_forward(where, port)
                await port_session.write(word)
                assert await port_session.read() == word.upper()
                port_session.end_input()
                assert await port_session.read() == b"END"
                assert await port_session.read() == b""
                await port_session.close()
            with pytest.raises(PermanentError, match="port 1 of the job: Connection refused"):
                await streams.open_forward(where, 1)
            await command.write(b"still there")
            command.end_input()
            assert [piece async for piece in command.output()] == [(b"still there", False)]
            assert command.end() == ExecEnd(0, None)
            await command.close()
            losing = asyncio.create_task(streams.lost())
            await streams.close()
            await losing
            assert not listener.ended
        with pytest.raises(TemporaryError):
            await site.provider.open_streams(request("never-made"))

    tell(story)
