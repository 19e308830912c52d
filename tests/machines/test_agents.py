"""Agents under systemd and cron, on machines that boot."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest

from contract.host_site import ENVIRONMENT, connected, job_for
from fleetform.agents.protocol.states import Cause, JobState
from fleetform.providers.ssh.hosts import SshHosts
from integration.ssh.test_agents import bundle_of
from lab import PATIENCE_SECONDS, Lab

STATE = ".local/state/fleetform"
WORK = "while :; do echo again; sleep 0.2; done"


def listening(provider: SshHosts, *arguments: object, **more: object):
    return connected(SimpleNamespace(provider=provider), *arguments, **more)


def shell(hosts: Lab, host: str, text: str, *, check: bool = True) -> str:
    return hosts.run(host, "sh", "-c", text, check=check).strip()


def left_of(hosts: Lab, host: str) -> str:
    """List what there is of fleetform on a machine: files, units, processes, lines of crontabs."""
    return shell(
        hosts,
        host,
        "find /etc /home /root /var/lib/systemd/linger -iname '*fleetform*' -o -path '*/linger/*';"
        " systemctl list-units --all --no-legend 'fleetform*';"
        " grep -l fleetform -r /var/spool/cron; pgrep -af '[f]leetform-agent'",
        check=False,
    )


def agent_pid(hosts: Lab, host: str, folder: str) -> str:
    return shell(hosts, host, f"cat {folder}/hosts/{ENVIRONMENT}/*/agent.pid", check=False)


async def until(condition) -> None:
    """Wait until it holds: each look at a machine is a command over SSH."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not await asyncio.to_thread(condition):  # noqa: ASYNC110 -- no event tells it
            await asyncio.sleep(0.3)


@pytest.mark.parametrize(
    ("user", "home_folder", "manager"),
    [("root", "/root", "systemctl"), ("lab", "/home/lab", "runuser -u lab -- env XDG_RUNTIME_DIR=/run/user/1000 systemctl --user")],
)  # fmt: skip
def test_jobs_outlive_the_unit_of_their_agent(
    tell, hosts, instance, user, home_folder, manager
) -> None:
    """Stopped, restarted and killed, the agent comes back, and the job is in another unit."""
    request = instance(hostname="machine1", user=user)
    folder = f"{home_folder}/{STATE}"

    async def story(provider: SshHosts) -> None:
        assert not await provider.ensure(request)
        async with listening(provider, request) as listener:
            job = job_for(listener, "cat /proc/self/cgroup", WORK)
            assert (await listener.host.prepare(job)).ok
            await listener.until(lambda: "again" in listener.text(job))
            (group,) = [line for line in listener.text(job).splitlines() if line.startswith("0::")]
            assert "/fleetform-jobs-" in group
            assert "/fleetform-agent-" not in group
            cursor, install = listener.cursor, listener.host.seen.install_id
        before = agent_pid(hosts, "machine1", folder)
        shell(hosts, "machine1", f"{manager} restart 'fleetform-agent-*'")
        await until(lambda: agent_pid(hosts, "machine1", folder) not in {before, ""})
        before = agent_pid(hosts, "machine1", folder)
        shell(hosts, "machine1", f"kill -KILL {before}")
        await until(lambda: agent_pid(hosts, "machine1", folder) not in {before, ""})
        async with listening(provider, request, cursor=cursor) as again:
            assert again.host.seen.install_id == install
            (record,) = again.host.seen.records or ()
            assert (record.key, record.state) == (job.key, JobState.RUNNING)
        await provider.release(request)
        await until(lambda: left_of(hosts, "machine1") == "")

    tell(story)


@pytest.mark.parametrize("user", ["root", "lab"])
def test_the_kernel_ends_a_job_that_exceeds_its_memory(tell, hosts, instance, user) -> None:
    """Where the machine has control groups of version 2, the delegated one has the limit."""
    has_memory = "memory" in shell(
        hosts, "machine1", "cat /sys/fs/cgroup/cgroup.controllers", check=False
    )
    request = instance(hostname="machine1", user=user)
    eats = "python3 -c 'import time; data = (400 << 20) * b\"x\"; time.sleep(300)'"

    async def story(provider: SshHosts) -> None:
        async with listening(provider, request) as listener:
            assert ("cgroup2" in listener.host.seen.report.limits) == has_memory
            job = job_for(listener, eats, "echo survived", memory_bytes=64 << 20)
            assert (await listener.host.prepare(job)).ok
            record = await listener.ending(job)
            assert record.cause is Cause.OOM
            assert "survived" not in listener.text(job)
            if has_memory:
                left = shell(hosts, "machine1", "find /sys/fs/cgroup -name 'fleetform-*' -path '*jobs*' -name '*[0-9a-f]' -type d | grep -v service$", check=False)  # fmt: skip
                assert job.job_uid not in left
        await provider.release(request)

    tell(story)


def test_an_agent_is_back_after_a_reboot(tell, hosts, instance) -> None:
    """It runs before anything connects, and knows of its job, which was lost, what the disk has of it."""
    request = instance(hostname="machine2", user="root")

    async def story(provider: SshHosts) -> None:
        async with listening(provider, request) as listener:
            job = job_for(listener, WORK)
            assert (await listener.host.prepare(job)).ok
            await listener.until(lambda: "again" in listener.text(job))
            cursor, boot = listener.cursor, listener.host.seen.boot_id
        await provider.close()
        # A start is not synced: without its record, the new boot id is the proof.
        await asyncio.to_thread(shell, hosts, "machine2", "sync")
        await asyncio.to_thread(hosts.kill, "machine2")
        await asyncio.to_thread(hosts.start, "machine2")
        await until(lambda: shell(hosts, "machine2", "systemctl is-active 'fleetform-agent-*'", check=False) == "active")  # fmt: skip
        async with listening(provider, request, cursor=cursor) as again:
            assert again.host.seen.boot_id != boot
            (record,) = again.host.seen.records or ()
            assert (record.state, record.cause) == (JobState.FINISHED, Cause.LOST)
            then = job_for(again, "echo ran")
            assert (await again.host.prepare(then)).ok
            assert (await again.ending(then)).exit_code == 0
        await provider.release(request)
        await until(lambda: left_of(hosts, "machine2") == "")

    tell(story)


def test_a_refused_linger_is_told(tell, hosts, instance) -> None:
    """The administrator's command is named; cron starts the agent after a reboot; nothing stays."""
    request = instance(hostname="machine2", user="lab")
    folder = f"/home/lab/{STATE}"

    async def story(provider: SshHosts) -> None:
        (note,) = await provider.ensure(request)
        assert "an administrator run `loginctl enable-linger lab`" in note
        crontab = shell(hosts, "machine2", "crontab -u lab -l")
        assert crontab.startswith("@reboot ")
        assert not await provider.ensure(request)
        await provider.close()
        await asyncio.to_thread(hosts.kill, "machine2")
        await asyncio.to_thread(hosts.start, "machine2")
        await until(lambda: bool(shell(hosts, "machine2", f"pgrep -f 'daemon --root {folder}'", check=False)))  # fmt: skip
        async with listening(provider, request) as listener:
            job = job_for(listener, "echo ran")
            assert (await listener.host.prepare(job)).ok
            assert (await listener.ending(job)).exit_code == 0
        await provider.release(request)
        await until(lambda: left_of(hosts, "machine2") == "")

    shell(hosts, "machine2", "systemctl mask --now polkit")
    try:
        tell(story)
    finally:
        shell(hosts, "machine2", "systemctl unmask polkit")


def test_a_logout_ends_no_job_of_an_account_that_lingers(tell, hosts, instance) -> None:
    """Also where systemd ends the processes of sessions, `KillUserProcesses=yes`."""
    request = instance(hostname="machine1", user="lab")
    conf = "/etc/systemd/logind.conf.d/lab.conf"

    async def story(provider: SshHosts) -> None:
        async with listening(provider, request) as listener:
            job = job_for(listener, WORK)
            assert (await listener.host.prepare(job)).ok
            await listener.until(lambda: "again" in listener.text(job))
        await provider.close()
        await until(lambda: "lab" not in shell(hosts, "machine1", "loginctl list-sessions --no-legend"))  # fmt: skip
        async with listening(provider, request) as again:
            (record,) = again.host.seen.records or ()
            assert (record.key, record.state) == (job.key, JobState.RUNNING)
        await provider.release(request)

    shell(hosts, "machine1", f"mkdir -p /etc/systemd/logind.conf.d; printf '[Login]\\nKillUserProcesses=yes\\n' >{conf}; systemctl restart systemd-logind")  # fmt: skip
    try:
        tell(story)
    finally:
        shell(hosts, "machine1", f"rm {conf}; systemctl restart systemd-logind")


def test_an_agent_of_a_unit_is_updated_while_its_job_runs(
    tell, hosts, instance, monkeypatch
) -> None:
    """A release that does not start gives way to the earlier one, in the same unit."""
    request = instance(hostname="machine1", user="root")

    async def story(provider: SshHosts) -> None:
        first = provider._bundle()
        async with listening(provider, request) as listener:
            job = job_for(listener, WORK)
            assert (await listener.host.prepare(job)).ok
            await listener.until(lambda: "again" in listener.text(job))
        monkeypatch.setattr(provider, "_bundle", lambda: bundle_of(b"not an archive"))
        (note,) = await provider.ensure(request)
        assert f"fleetform-agent-{first.sha256[:16]}.pyz serves on" in note
        assert "SyntaxError" in note
        unit = shell(hosts, "machine1", "systemctl cat 'fleetform-agent-*'; systemctl is-active 'fleetform-agent-*'")  # fmt: skip
        assert first.sha256[:16] in unit
        assert unit.endswith("\nactive")
        async with listening(provider, request) as again:
            (record,) = again.host.seen.records or ()
            assert (record.key, record.state) == (job.key, JobState.RUNNING)
        monkeypatch.setattr(provider, "_bundle", lambda: first)
        await provider.release(request)
        await until(lambda: left_of(hosts, "machine1") == "")

    tell(story)
