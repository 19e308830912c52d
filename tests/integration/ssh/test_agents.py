"""Agents and jobs on hosts that are reached over SSH."""

from __future__ import annotations

import asyncio
import dataclasses
import hashlib
import io
import warnings
import zipfile
from pathlib import Path
from types import SimpleNamespace

import pytest
from asyncssh import connection

from contract.host_site import ENVIRONMENT, Listener, connected, identity, job_for, wait_until
from fleetform.agents.protocol.states import JobState
from fleetform.providers.contract.errors import OwnedElsewhere, PermanentError, TemporaryError
from fleetform.providers.ssh.hosts import SshHosts
from fleetform.providers.ssh.setup import Bundle
from lab import Lab

STATE = ".local/state/fleetform"


def listening(provider: SshHosts, *arguments: object, **more: object):
    return connected(SimpleNamespace(provider=provider), *arguments, **more)


def agents_of(hosts: Lab, host: str, home: str) -> str:
    """List processes of agents and jobs, and what lies in the state folder."""
    listed = hosts.run(host, "sh", "-c", f"pgrep -af '[f]leetform-agent|[s]leep 98765'; ls -A {home}/{STATE}", check=False)  # fmt: skip
    return listed.strip()


async def until_gone(hosts: Lab, host: str, home: str) -> None:
    await asyncio.to_thread(wait_until, lambda: not agents_of(hosts, host, home))


@pytest.mark.parametrize(("user", "folder"), [("root", "/root"), ("lab", "/home/lab")])
def test_a_bare_host_gets_an_agent_and_loses_it(tell, hosts, instance, user, folder) -> None:
    """A job runs as the account, and a release leaves no process and no file."""
    request = instance(user=user)

    async def story(provider: SshHosts) -> None:
        async with listening(provider, request) as listener:
            seen = listener.host.seen
            assert (seen.ledger_id, seen.records) == ("ledger", ())
            assert seen.address == hosts.hosts["node1"]
            assert f"node1,{seen.address} {seen.host_key}\n" in hosts.known_hosts.read_text()
            job = job_for(listener, "id -un", "hostname", "env | grep SSH_ || true")
            assert (await listener.host.prepare(job)).ok
            assert (await listener.ending(job)).exit_code == 0
            assert listener.text(job) == f"{user}\nnode1\n"
            going = job_for(listener, "sleep 98765")
            assert (await listener.host.prepare(going)).ok
            await listener.state(going, JobState.RUNNING)
        modes = hosts.run("node1", "sh", "-c", f"stat -c %a {folder}/{STATE}/hosts/*/* {folder}/{STATE}/agents/*")  # fmt: skip
        assert modes.split() == ["700", "600"]
        await provider.release(request)
        await until_gone(hosts, "node1", folder)
        await provider.release(request)

    tell(story)


def test_ensuring_again_uploads_nothing(tell, hosts, instance, monkeypatch) -> None:
    """Several at once make one agent, and the bundle is sent once."""
    request = instance()

    async def story(provider: SshHosts) -> None:
        await asyncio.gather(*(provider.ensure(request) for _ in range(3)))
        find = "find /root/.local/state/fleetform/agents -name '*.pyz' -printf '%i %T@'"
        before = hosts.run("node1", "sh", "-c", find)
        async with listening(provider, request) as listener:
            install = listener.host.seen.install_id
        async with listening(provider, request) as listener:
            assert listener.host.seen.install_id == install
        assert hosts.run("node1", "sh", "-c", find) == before
        await provider.release(request)

    tell(story)


def test_jobs_outlive_the_connection(tell, hosts, instance) -> None:
    """The SSH server's processes are killed; agent and job go on, and no output is lost."""
    request = instance()

    async def story(provider: SshHosts) -> None:
        async with listening(provider, request) as listener:
            job = job_for(
                listener, "echo first", "until [ -e /root/go ]; do sleep 0.02; done", "echo second"
            )
            assert (await listener.host.prepare(job)).ok
            await listener.until(lambda: listener.text(job) == "first\n")
            cursor, install = listener.cursor, listener.host.seen.install_id
            hosts.run("node1", "pkill", "-KILL", "-f", "sshd.*root@notty|sshd.*root .priv")
            await listener.until(lambda: listener.ended)
            with pytest.raises(TemporaryError):
                await listener.host.prepare(job_for(listener, "true"))
        async with listening(provider, request, cursor=cursor) as again:
            assert again.host.seen.install_id == install
            await again.host.follow_log(job.job_uid, 6)
            hosts.run("node1", "touch", "/root/go")
            assert (await again.ending(job)).exit_code == 0
            assert again.text(job) == "…second\n"
        hosts.run("node1", "rm", "/root/go")
        await provider.release(request)

    tell(story)


def test_observing_installs_and_disturbs_nothing(tell, hosts, instance) -> None:
    """It is None for a host without an agent, and shows one with its jobs."""
    request = instance(hostname="node2")

    async def story(provider: SshHosts) -> None:
        assert await provider.observe(request) is None
        assert agents_of(hosts, "node2", "/root") == ""
        with pytest.raises(TemporaryError, match="no agent is installed"):
            await provider.connect(request, identity(), None)
        async with listening(provider, request, who=identity(fence=5, epoch=3)) as listener:
            job = job_for(listener, "exit 4")
            assert (await listener.host.prepare(job)).ok
            await listener.ending(job)
            seen = await provider.observe(request)
            assert seen is not None
            assert [(one.key, one.exit_code) for one in seen.records or ()] == [(job.key, 4)]
            assert not listener.ended
            with pytest.raises(OwnedElsewhere):
                await provider.connect(request, identity(ledger="other"), None)
        await provider.release(request)

    tell(story)


def test_a_name_belongs_to_one_instance(tell, instance) -> None:
    """Another instance of the name is refused, and its release leaves the first one alone."""
    request = instance()
    other = dataclasses.replace(request, uid="another")

    async def story(provider: SshHosts) -> None:
        async with listening(provider, request) as listener:
            with pytest.raises(PermanentError, match="exists on this host"):
                await provider.ensure(other)
            await provider.release(other)
            assert (await listener.host.prepare(job_for(listener, "true"))).ok
        await provider.release(request)

    tell(story)


def test_login_shells_that_print(tell, hosts, instance) -> None:
    """Each shell of the host runs the commands, and what start-up files print is discarded."""
    listed = hosts.run("node1", "sh", "-c", "command -v sh bash dash zsh fish tcsh", check=False)
    shells = listed.split() or ["/bin/sh"]
    files = ".bashrc .zshenv .tcshrc .config/fish/config.fish"
    hosts.run("node1", "sh", "-c", f"cd /home/lab; mkdir -p .config/fish; for f in {files}; do echo 'echo Welcome to the lab' >$f; chown lab $f; done")  # fmt: skip
    request = instance(user="lab")

    async def story(provider: SshHosts) -> None:
        for shell in shells:
            hosts.run("node1", "usermod", "--shell", shell, "lab")
            async with listening(provider, request) as listener:
                job = job_for(listener, "echo ran")
                assert (await listener.host.prepare(job)).ok
                await listener.ending(job)
                assert listener.text(job) == "ran\n"
        await provider.release(request)

    try:
        tell(story)
    finally:
        hosts.run("node1", "usermod", "--shell", "/bin/bash", "lab")
        hosts.run("node1", "sh", "-c", f"cd /home/lab; rm -f {files}")


def test_a_shell_that_runs_nothing_is_told(tell, hosts, instance) -> None:
    """An account that may not sign in is no host, and the error shows what its shell says."""
    hosts.run("node1", "usermod", "--shell", "/usr/sbin/nologin", "lab")

    async def story(provider: SshHosts) -> None:
        with pytest.raises(PermanentError, match="runs no commands: This account"):
            await provider.ensure(instance(user="lab"))

    try:
        tell(story)
    finally:
        hosts.run("node1", "usermod", "--shell", "/bin/bash", "lab")


def test_an_agent_that_was_killed_is_started_again(tell, hosts, instance) -> None:
    """Its jobs ran meanwhile, and releasing ends them."""
    request = instance()

    async def story(provider: SshHosts) -> None:
        async with listening(provider, request) as listener:
            job = job_for(listener, "sleep 98765")
            assert (await listener.host.prepare(job)).ok
            await listener.state(job, JobState.RUNNING)
            pid = hosts.run("node1", "sh", "-c", f"cat /root/{STATE}/hosts/{ENVIRONMENT}/{request.name}/agent.pid")  # fmt: skip
            hosts.run("node1", "kill", "-KILL", pid.strip())
            await listener.until(lambda: listener.ended)
        async with listening(provider, request) as again:
            (record,) = again.host.seen.records or ()
            assert (record.key, record.state) == (job.key, JobState.RUNNING)
        await provider.release(request)
        await until_gone(hosts, "node1", "/root")

    tell(story)


def bundle_of(content: bytes) -> Bundle:
    return Bundle(content, hashlib.sha256(content).hexdigest())


def test_an_agent_is_updated_while_its_job_runs(tell, hosts, instance, monkeypatch) -> None:
    """Another release's agent takes over; one that does not start gives way to the earlier one."""
    request = instance()

    def serving() -> str:
        line = hosts.run("node1", "sh", "-c", f"tr '\\0' ' ' < /proc/$(cat /root/{STATE}/hosts/{ENVIRONMENT}/{request.name}/agent.pid)/cmdline")  # fmt: skip
        return line.split("fleetform-agent-")[1].split(".pyz")[0]

    async def story(provider: SshHosts) -> None:
        first = provider._bundle()
        # A comment of the archive is another digest, and changes nothing of the program.
        content = io.BytesIO(first.content)
        with zipfile.ZipFile(content, "a") as archive:
            archive.comment = b"another release"
        second, broken = bundle_of(content.getvalue()), bundle_of(b"not an archive")
        async with listening(provider, request) as listener:
            job = job_for(
                listener, "echo first", "until [ -e /root/go2 ]; do sleep 0.02; done", "echo second"
            )
            assert (await listener.host.prepare(job)).ok
            await listener.until(lambda: listener.text(job) == "first\n")
            cursor, install = listener.cursor, listener.host.seen.install_id
        assert serving() == first.sha256[:16]
        monkeypatch.setattr(provider, "_bundle", lambda: broken)
        (note,) = await provider.ensure(request)
        assert f"not updated, and fleetform-agent-{first.sha256[:16]}.pyz serves on" in note
        assert "SyntaxError" in note
        assert serving() == first.sha256[:16]
        # It works on with the earlier one, also through its bytes.
        async with listening(provider, request, cursor=cursor) as kept:
            assert kept.host.seen.install_id == install
        monkeypatch.setattr(provider, "_bundle", lambda: second)
        async with listening(provider, request, cursor=cursor) as again:
            assert serving() == second.sha256[:16]
            assert again.host.seen.install_id == install
            await again.host.follow_log(job.job_uid, 6)
            hosts.run("node1", "touch", "/root/go2")
            assert (await again.ending(job)).exit_code == 0
            assert again.text(job) == "…second\n"
        hosts.run("node1", "rm", "/root/go2")
        await provider.release(request)

    tell(story)


def test_one_host_is_updated_before_the_others(tell, hosts, instance, monkeypatch) -> None:
    """A release that does not start touches one host of the fleet; one that does reaches all."""
    one, other = instance(), dataclasses.replace(instance(hostname="node2"), uid="second")

    def agent(host: str) -> str:
        """Return the pid and the bundle of the agent of this test."""
        return hosts.run(host, "sh", "-c", f"pid=$(cat /root/{STATE}/hosts/{ENVIRONMENT}/{one.name}/agent.pid); echo $pid; tr '\\0' ' ' < /proc/$pid/cmdline")  # fmt: skip

    async def story(provider: SshHosts) -> None:
        first = provider._bundle()
        await asyncio.gather(provider.ensure(one), provider.ensure(other))
        before = {host: agent(host) for host in ("node1", "node2")}
        broken = bundle_of(b"not an archive")
        monkeypatch.setattr(provider, "_bundle", lambda: broken)
        said = await asyncio.gather(provider.ensure(one), provider.ensure(other))
        (note,) = [note for notes in said for note in notes]
        assert "also on the other hosts of fleet fleet: " in note
        after = {host: agent(host) for host in ("node1", "node2")}
        assert sum(after[host] != before[host] for host in after) == 1
        assert all(f"fleetform-agent-{first.sha256[:16]}" in line for line in after.values())
        assert not [*await provider.ensure(one), *await provider.ensure(other)]
        assert {host: agent(host) for host in ("node1", "node2")} == after
        content = io.BytesIO(first.content)
        with zipfile.ZipFile(content, "a") as archive:
            archive.comment = b"a release that works"
        second = bundle_of(content.getvalue())
        monkeypatch.setattr(provider, "_bundle", lambda: second)
        said = await asyncio.gather(provider.ensure(one), provider.ensure(other))
        assert not [note for notes in said for note in notes]
        for host in ("node1", "node2"):
            assert f"fleetform-agent-{second.sha256[:16]}" in agent(host)
        await provider.release(one)
        await provider.release(other)

    tell(story)


def test_an_agent_that_answers_no_controller_gives_way(tell, hosts, instance, monkeypatch) -> None:
    """An agent that starts and refuses every hello is no update either."""
    request = instance()

    async def story(provider: SshHosts) -> None:
        first = provider._bundle()
        await provider.ensure(request)
        content = io.BytesIO(first.content)
        with zipfile.ZipFile(content, "a") as archive, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            name = "fleetform/agents/host/connection.py"
            source = archive.read(name).decode()
            archive.writestr(name, source + "\nConnection.__init__ = None\n")
        mute = bundle_of(content.getvalue())
        monkeypatch.setattr(provider, "_bundle", lambda: mute)
        (note,) = await provider.ensure(request)
        assert f"fleetform-agent-{first.sha256[:16]}.pyz serves on" in note
        assert "runs and does not answer" in note
        async with listening(provider, request) as listener:
            job = job_for(listener, "echo ran")
            assert (await listener.host.prepare(job)).ok
            assert (await listener.ending(job)).exit_code == 0
        await provider.release(request)

    tell(story)


def test_a_jump_host_leads_to_a_host(tell, hosts, bare, instance, home: Path) -> None:
    """Both keys are checked, and the jump host's configuration is the endpoint's."""
    (home / ".ssh/known_hosts").write_text(hosts.known_hosts.read_text())
    jump = {name: value for name, value in bare("node2").items() if value}
    request = instance(**bare("node1", proxy_jump=jump))

    async def story(provider: SshHosts) -> None:
        async with listening(provider, request) as listener:
            job = job_for(listener, "hostname")
            assert (await listener.host.prepare(job)).ok
            await listener.ending(job)
            assert listener.text(job) == "node1\n"
            assert listener.host.seen.address == hosts.hosts["node1"]
        await provider.release(request)

    tell(story)


def test_a_connection_that_is_cancelled_as_it_opens(tell, instance, monkeypatch) -> None:
    """A controller that ends in this moment ends; it does not wait for the host for ever."""
    connect = connection._connect
    request = instance()

    async def story(provider: SshHosts) -> None:
        opening = asyncio.create_task(provider.ensure(request))

        async def connect_and_cancel(*arguments: object) -> object:
            opened = await connect(*arguments)
            asyncio.get_running_loop().call_soon(opening.cancel)
            return opened

        monkeypatch.setattr(connection, "_connect", connect_and_cancel)
        with pytest.raises(asyncio.CancelledError):
            await opening
        monkeypatch.setattr(connection, "_connect", connect)
        await provider.release(request)

    tell(story)


def test_sessions_share_a_connection(tell, hosts, instance) -> None:
    """Two sessions and an ensure are channels of one connection."""
    request = instance()
    other = dataclasses.replace(request, uid="second", name="second")

    async def story(provider: SshHosts) -> None:
        async with listening(provider, request) as one, listening(provider, other) as two:
            servers = hosts.run("node1", "pgrep", "-fc", "sshd.*root@notty", check=False)
            assert int(servers) == 1
            assert isinstance(one, Listener)
            assert isinstance(two, Listener)
        await provider.release(request)
        await provider.release(other)

    tell(story)
