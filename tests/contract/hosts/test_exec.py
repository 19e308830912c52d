"""Commands inside the jobs of every provider's hosts."""

from __future__ import annotations

import pytest

from contract.host_site import Site, connected, job_for, open_exec, request
from fleetform.agents.client import session as client
from fleetform.agents.protocol.states import JobState
from fleetform.providers.contract.errors import PermanentError, TemporaryError
from fleetform.providers.contract.job_streams import ExecEnd, ExecRequest


def test_a_command_runs_in_a_job(tell) -> None:
    """Both streams come apart, and the end is the command's; the manager is not disturbed."""

    async def story(site: Site) -> None:
        async with connected(site) as listener:
            job = job_for(listener, "sleep 300", env={"COLOUR": "blue"})
            assert (await listener.host.prepare(job)).ok
            await listener.state(job, JobState.RUNNING)
            script = "read line; echo $COLOUR $line; echo no >&2; exit 3"
            command = ExecRequest(job.key, job.job_uid, ("sh", "-c", script))
            session = await open_exec(site.provider, request(), command)
            await session.write(b"sky\n")
            printed = [piece async for piece in session.output()]
            assert sorted(printed) == [(b"blue sky\n", False), (b"no\n", True)]
            assert session.end() == ExecEnd(3, None)
            await session.close()
            assert not listener.ended

    tell(story)


def test_where_no_command_can_run(tell, monkeypatch) -> None:
    """A job that has ended, an agent of an older release, and a host that is not there."""

    async def story(site: Site) -> None:
        async with connected(site) as listener:
            job = job_for(listener, "true")
            assert (await listener.host.prepare(job)).ok
            await listener.ending(job)
            command = ExecRequest(job.key, job.job_uid, ("true",))
            with pytest.raises(PermanentError, match="the job does not run: it is finished"):
                await open_exec(site.provider, request(), command)
            with pytest.raises(TemporaryError):
                await open_exec(site.provider, request("never-made"), command)
            welcome = client.Session._take_welcome

            def take_older(session: client.Session, answer: client.Welcome) -> None:
                object.__setattr__(answer, "capabilities", ("channel.blob",))
                welcome(session, answer)

            monkeypatch.setattr(client.Session, "_take_welcome", take_older)
            with pytest.raises(PermanentError, match="cannot run commands in jobs") as caught:
                await open_exec(site.provider, request(), command)
            assert "agent.pid" in caught.value.advice

    tell(story)
