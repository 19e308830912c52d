"""
The agent of an earlier release, and the controller of this one.

`tests/data/agents/protocol-2.pyz` is the agent of the first release with protocol 2, before it had
channels for commands and ports.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from types import SimpleNamespace

import pytest

from contract.host_site import connected, job_for, open_exec
from fleetform.agents.protocol.states import JobState
from fleetform.providers.contract.errors import PermanentError
from fleetform.providers.contract.job_streams import ExecRequest
from fleetform.providers.ssh.hosts import SshHosts
from fleetform.providers.ssh.setup import Bundle

CONTENT = (Path(__file__).parents[2] / "data/agents/protocol-2.pyz").read_bytes()
EARLIER = Bundle(CONTENT, hashlib.sha256(CONTENT).hexdigest())
LOOP = "n=0; until [ -e {} ]; do n=$((n+1)); echo line $n; sleep 0.1; done; echo last $n"


def listening(provider: SshHosts, *arguments: object, **more: object):
    return connected(SimpleNamespace(provider=provider), *arguments, **more)


def test_an_earlier_agent_serves_this_controller(tell, hosts, instance, monkeypatch) -> None:
    """It runs jobs, and what it cannot do is refused by name without ending the session."""
    request = instance()

    async def story(provider: SshHosts) -> None:
        monkeypatch.setattr(provider, "_bundle", lambda: EARLIER)
        async with listening(provider, request) as listener:
            job = job_for(listener, "echo ran; sleep 98765")
            assert (await listener.host.prepare(job)).ok
            await listener.until(lambda: listener.text(job) == "ran\n")
            command = ExecRequest(job.key, job.job_uid, ("true",))
            with pytest.raises(PermanentError, match="its agent is of fleetform"):
                await open_exec(provider, request, command)
            then = job_for(listener, "exit 3")
            assert (await listener.host.prepare(then)).ok
            assert (await listener.ending(then)).exit_code == 3
        await provider.release(request)

    tell(story)


def test_journals_are_read_by_agents_of_both_releases(tell, hosts, instance, monkeypatch) -> None:
    """A job goes on through an update and back; each agent knows the jobs that the other one began."""
    request = instance()
    gate = "/root/both-releases"

    async def story(provider: SshHosts) -> None:
        present = provider._bundle()
        begun = []
        cursor = None
        for bundle in (EARLIER, present, EARLIER, present):
            monkeypatch.setattr(provider, "_bundle", lambda bundle=bundle: bundle)
            assert not await provider.ensure(request)
            async with listening(provider, request, cursor=cursor) as listener:
                records = {one.key: one.state for one in listener.host.seen.records or ()}
                if begun and listener.host.seen.records is not None:
                    assert {job.key: JobState.RUNNING for job in begun} == records
                job = job_for(listener, LOOP.format(gate))
                assert (await listener.host.prepare(job)).ok
                await listener.until(lambda job=job, on=listener: "line 2" in on.text(job))
                begun.append(job)
        async with listening(provider, request) as listener:
            for job in begun:
                await listener.host.follow_log(job.job_uid, 0)
            hosts.run("node1", "touch", gate)
            for job in begun:
                assert (await listener.ending(job)).exit_code == 0
                lines = listener.text(job).splitlines()
                count = len(lines) - 1
                assert lines == [*(f"line {n}" for n in range(1, count + 1)), f"last {count}"]
        hosts.run("node1", "rm", gate)
        await provider.release(request)

    tell(story)
