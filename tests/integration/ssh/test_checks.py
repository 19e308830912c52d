"""What is read of hosts over SSH before an agent is there, and with one."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from contract.host_site import ENVIRONMENT
from fleetform.providers.contract.errors import PermanentError
from fleetform.providers.ssh.hosts import SshHosts


@pytest.mark.parametrize(("user", "folder"), [("root", "/root"), ("lab", "/home/lab")])
def test_checking_a_bare_host_changes_nothing(tell, hosts, instance, user, folder) -> None:
    """The account, its home folder and its Python are read, and no file is written."""
    before = hosts.run("node1", "find", folder, "-printf", "%p %T@\n")

    async def story(provider: SshHosts) -> None:
        checked = await provider.check(instance(user=user))
        assert checked.where == f"{user}@{hosts.hosts['node1']} port 22"
        facts = checked.facts
        assert facts is not None
        assert (facts.account, facts.home, facts.is_root) == (user, folder, user == "root")
        assert (facts.hostname, facts.folder.is_writable, facts.agents) == ("node1", True, ())
        assert checked.asked_at_ms <= facts.now_ms <= checked.answered_at_ms
        # Root may make control groups on some machines, the plain account on none of the lab.
        assert facts.is_root or facts.memory_limit == "count"

    tell(story)
    assert hosts.run("node1", "find", folder, "-printf", "%p %T@\n") == before


def test_an_agent_is_found_with_its_release(tell, instance) -> None:
    """It runs from the file that this release would install."""
    request = instance()

    async def story(provider: SshHosts) -> None:
        await provider.ensure(request)
        checked = await provider.check(request)
        assert checked.facts is not None
        (agent,) = checked.facts.agents
        assert (agent.uid, agent.environment_uid) == (request.uid, ENVIRONMENT)
        assert (agent.is_running, agent.bundle) == (True, checked.bundle)
        await provider.release(request)

    tell(story)


def test_a_shell_that_runs_no_commands_is_part_of_the_answer(tell, hosts, instance) -> None:
    """The host was reached, and says why nothing can be read."""
    hosts.run("node1", "usermod", "--shell", "/usr/sbin/nologin", "lab")

    async def story(provider: SshHosts) -> None:
        checked = await provider.check(instance(user="lab"))
        assert checked.facts is None
        assert "runs no commands: This account is currently not available" in checked.problem
        assert "chsh" in checked.advice

    try:
        tell(story)
    finally:
        hosts.run("node1", "usermod", "--shell", "/bin/sh", "lab")


def test_a_host_that_refuses_is_an_error(tell, instance) -> None:
    """The caller learns which account was refused."""

    async def story(provider: SshHosts) -> None:
        with pytest.raises(PermanentError, match="refuses to sign in as other"):
            await provider.check(instance(user="other"))

    tell(story)


def proxies() -> list[str]:
    """List the processes of this one that pass bytes to a host."""
    children = Path(f"/proc/self/task/{threading.get_native_id()}/children").read_text()
    commands = [Path(f"/proc/{pid}/cmdline").read_text() for pid in children.split()]
    return [one for one in commands if "-W" in one.split("\0")]


def test_the_users_own_openssh_may_lead_to_the_host(tell, hosts, home, instance) -> None:
    """A `ProxyCommand` works, and its process has ended when the check has."""
    proxy = f"Host behind\n  HostName {hosts.hosts['node2']}\n  User root\n  IdentityFile {hosts.identity}\n  UserKnownHostsFile {hosts.known_hosts}\n  ProxyCommand ssh -F {hosts.config} -W %h:%p node1\n"  # fmt: skip
    with (home / ".ssh/config").open("a") as file:
        file.write(proxy)

    async def story(provider: SshHosts) -> None:
        checked = await provider.check(instance(hostname="behind"))
        assert checked.facts is not None
        assert checked.facts.hostname == "node2"
        assert proxies() == []

    tell(story)
