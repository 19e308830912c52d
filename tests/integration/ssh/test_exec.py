"""Commands inside running jobs of hosts that are reached over SSH."""

from __future__ import annotations

import asyncio
import dataclasses
from types import SimpleNamespace

import pytest

from contract.host_site import connected, identity, job_for, open_exec
from fleetform.agents.protocol.exec_pieces import Size
from fleetform.agents.protocol.messages import Mount
from fleetform.agents.protocol.states import JobState
from fleetform.providers.contract.errors import PermanentError, TemporaryError
from fleetform.providers.contract.job_streams import ExecEnd, ExecRequest, ExecSession
from fleetform.providers.ssh.hosts import SshHosts


async def printed_by(session: ExecSession) -> tuple[bytes, bytes]:
    """Read all output, and all that is standard error."""
    output, errors = b"", b""
    async for data, is_error in session.output():
        output, errors = (output, errors + data) if is_error else (output + data, errors)
    return output, errors


def test_a_command_in_a_job_of_another_host(tell, hosts, instance) -> None:
    """It runs as the job's user in its directory; the controller of the host is not disturbed."""
    request = instance(user="lab")

    async def story(provider: SshHosts) -> None:
        async with connected(
            SimpleNamespace(provider=provider), request, who=identity(fence=5)
        ) as listener:
            job = job_for(listener, "sleep 98765", env={"COLOUR": "blue"})
            assert (await listener.host.prepare(job)).ok
            await listener.state(job, JobState.RUNNING)
            script = (
                "hostname; id -un; echo $COLOUR; basename $(dirname $PWD); cat; echo no >&2; exit 9"
            )
            command = ExecRequest(job.key, job.job_uid, ("sh", "-c", script))
            session = await open_exec(provider, request, command)
            sending = asyncio.create_task(session.write(bytes(1_000_000)))
            await asyncio.sleep(0.1)
            reading = asyncio.create_task(printed_by(session))
            await sending
            session.end_input()
            output, errors = await reading
            names = f"node1\nlab\nblue\n{job.job_uid}\n".encode()
            assert output == names + bytes(1_000_000)
            assert errors == b"no\n"
            assert session.end() == ExecEnd(9, None)
            await session.close()
            # Not a shell: between fork and exec of its program it may lose a Ctrl-C.
            shown = dataclasses.replace(
                command, argv=("stty", "size"), size=Size(11, 44), term="vt100"
            )
            session = await open_exec(provider, request, shown)
            assert await printed_by(session) == (b"11 44\r\n", b"")
            assert session.end() == ExecEnd(0, None)
            await session.close()
            session = await open_exec(provider, request, dataclasses.replace(shown, argv=("cat",)))
            await session.write(b"key\n")
            echoed = b""
            async for data, _ in session.output():
                echoed += data
                if echoed == b"key\r\n" * 2:
                    break
            await session.write(b"\x03")
            await printed_by(session)
            assert session.end() == ExecEnd(None, 2)
            await session.close()
            with pytest.raises(PermanentError, match="the job does not run"):
                await open_exec(provider, request, dataclasses.replace(command, job_uid="other"))
            assert not listener.ended
        await provider.release(request)

    tell(story)


@pytest.mark.parametrize("user", ["root", "lab"])
def test_a_command_joins_cgroup_and_mounts(tell, hosts, instance, user) -> None:
    """Also where they are in a user namespace of the job, which an account without rights needs."""
    request = instance(user=user)
    hosts.run("node1", "sh", "-c", "mkdir -p /tmp/data /tmp/seen; echo inside >/tmp/data/file; chmod 777 /tmp/seen")  # fmt: skip

    async def story(provider: SshHosts) -> None:
        async with connected(SimpleNamespace(provider=provider), request) as listener:
            job = job_for(
                listener,
                "cat /proc/self/cgroup; echo begun; sleep 98765",
                memory_bytes=1 << 28,
                mounts=(Mount("data", "/tmp/data", "/tmp/seen", read_only=True),),
            )
            assert (await listener.host.prepare(job)).ok
            await listener.until(lambda: "begun" in listener.text(job))
            script = "cat /proc/self/cgroup; cat /tmp/seen/file; id -un; : >/tmp/seen/new"
            command = ExecRequest(job.key, job.job_uid, ("sh", "-c", script))
            session = await open_exec(provider, request, command)
            output, errors = await printed_by(session)
            groups = listener.text(job).removesuffix("begun\n")
            assert output.decode() == f"{groups}inside\n{user}\n", errors
            assert b"Read-only" in errors
            await session.close()
        await provider.release(request)

    tell(story)


def test_a_host_that_is_cut_off(tell, hosts, instance) -> None:
    """Nothing hangs: the host cannot be reached, and that is said."""
    request = instance(hostname="node2")
    hosts.cut("node2")

    async def story(provider: SshHosts) -> None:
        command = ExecRequest(job_for_nothing().key, "nothing", ("true",))
        with pytest.raises(TemporaryError):
            await open_exec(provider, request, command)

    try:
        tell(story, connect_seconds=3.0)
    finally:
        hosts.join("node2")


def job_for_nothing():
    """Name a job that no host has."""
    seen = SimpleNamespace(boot_id="none")
    return job_for(SimpleNamespace(host=SimpleNamespace(seen=seen)), "true")
