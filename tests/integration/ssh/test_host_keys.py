"""Host keys, and hosts that cannot be reached or refuse to sign in."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from contract.host_site import identity
from fleetform.providers.contract.errors import PermanentError, ProviderError, TemporaryError
from fleetform.providers.ssh.hosts import SshHosts
from lab import Lab


def known_key(hosts: Lab, host: str) -> str:
    line = next(line for line in hosts.known_hosts.read_text().splitlines() if host in line)
    return " ".join(line.split()[1:])


def test_an_unknown_host_key_is_refused(tell, bare, instance) -> None:
    """The error shows the key's fingerprint and the command that makes it known."""

    async def story(provider: SshHosts) -> None:
        with pytest.raises(PermanentError, match=r"host key of .* is unknown: SHA256:") as caught:
            await provider.ensure(instance(**bare()))
        assert "ssh-keyscan" in caught.value.advice
        assert "host_keys: first-use" in caught.value.advice

    tell(story)


def test_no_configuration_turns_the_check_off(tell, hosts, home: Path, instance) -> None:
    """`UserKnownHostsFile none` leaves OpenSSH's own files, which do not know the host."""
    text = hosts.config.read_text().replace(str(hosts.known_hosts), "none")
    (home / ".ssh/config").write_text(text.replace('"none"', "none"))

    async def story(provider: SshHosts) -> None:
        with pytest.raises(PermanentError, match="is unknown"):
            await provider.ensure(instance())

    tell(story)


def test_a_changed_host_key_is_refused(tell, hosts, home: Path, instance) -> None:
    """The error shows both fingerprints."""
    before = home / "before"
    before.write_text(hosts.known_hosts.read_text())
    hosts.rekey("node2")
    text = hosts.config.read_text().replace(str(hosts.known_hosts), str(before))
    (home / ".ssh/config").write_text(text)

    async def story(provider: SshHosts) -> None:
        changed = r"has changed: it is SHA256:\S+, and SHA256:\S+ was expected"
        with pytest.raises(PermanentError, match=changed) as caught:
            await provider.ensure(instance(hostname="node2"))
        assert await provider.observe(instance(hostname="node2")) is None
        assert "ssh-keygen -R" in caught.value.advice

    tell(story)


def test_the_first_key_is_kept(tell, hosts, bare, instance) -> None:
    """With `first-use` the key is reported, and from then on no other key is accepted."""
    endpoint = bare("node2", host_keys="first-use")
    key = known_key(hosts, "node2")

    async def story(provider: SshHosts) -> None:
        request = instance(**endpoint)
        await provider.ensure(request)
        host = await provider.connect(request, identity(), None)
        assert host.seen.host_key == key
        await host.close()
        await provider.release(request)

    async def again(provider: SshHosts) -> None:
        assert await provider.observe(instance(host_key=key, **endpoint)) is None
        hosts.rekey("node2")
        await provider.close()
        with pytest.raises(PermanentError, match=r"SHA256:\S+, and SHA256:") as caught:
            await provider.ensure(instance(host_key=key, **endpoint))
        assert "host_keys: known" in caught.value.advice

    tell(story)
    tell(again)


def test_a_wrong_key_is_told(tell, hosts, bare, home: Path, instance) -> None:
    """The error names the account, and the fields and commands that help."""
    (home / ".ssh/known_hosts").write_text(hosts.known_hosts.read_text())
    endpoint = bare()
    del endpoint["identity_file"]

    async def story(provider: SshHosts) -> None:
        with pytest.raises(PermanentError, match="refuses to sign in as root") as caught:
            await provider.ensure(instance(**endpoint))
        assert "identity_file:" in caught.value.advice
        assert "ssh-add" in caught.value.advice
        with pytest.raises(PermanentError, match="missing_key"):
            await provider.ensure(instance(**endpoint, identity_file="~/missing_key"))

    tell(story)


def test_an_unreachable_host_is_temporary(tell, hosts, instance) -> None:
    """It is told within the timeout, which host and port; also where the port is closed."""

    async def story(provider: SshHosts) -> None:
        with pytest.raises(TemporaryError, match=r"port 2 cannot be reached"):
            await provider.ensure(instance(port=2))
        hosts.cut("node2")
        try:
            began = time.monotonic()
            with pytest.raises(TemporaryError, match=f"{hosts.hosts['node2']} port 22"):
                await provider.release(instance(hostname="node2"))
            assert time.monotonic() - began < 5
            assert await provider.observe(instance(hostname="node2")) is None
        finally:
            hosts.join("node2")

    tell(story, connect_seconds=2.0)


def test_the_users_ciphers_win(tell, hosts, home: Path, instance) -> None:
    """What `Ciphers` allows is all that is offered, and this server has none of it."""
    (home / ".ssh/config").write_text("Ciphers 3des-cbc\n" + hosts.config.read_text())

    async def story(provider: SshHosts) -> None:
        # The server says so, or ends the connection first.
        with pytest.raises(ProviderError, match=r"no algorithm in common|connection"):
            await provider.ensure(instance())

    tell(story)
