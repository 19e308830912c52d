"""What a fleet says of the way to its hosts: network, configuration, keys with a passphrase."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from contract.host_site import identity
from fleetform.providers.contract.errors import PermanentError, SignInRefused, TemporaryError
from fleetform.providers.ssh.hosts import SshHosts
from lab import Lab


def test_nodes_are_known_by_their_address_in_the_network(tell, hosts: Lab, instance) -> None:
    """A host without an address there is refused, with those that it has."""
    address = hosts.hosts["node1"]
    network = f"{address.rpartition('.')[0]}.0/24"

    async def story(provider: SshHosts) -> None:
        request = instance(network=network)
        await provider.ensure(request)
        host = await provider.connect(request, identity(), None)
        await host.close()
        assert host.seen.address == address
        other = instance(network="192.168.77.0/24")
        with pytest.raises(PermanentError, match=rf"192\.168\.77\.0/24; its addresses: {address}"):
            await provider.connect(other, identity(), None)
        await provider.release(request)

    tell(story)


def test_the_users_configuration_is_ignored_where_the_fleet_says_so(tell, instance) -> None:
    """It alone knows what `node1` is."""

    async def story(provider: SshHosts) -> None:
        with pytest.raises(TemporaryError, match="the name node1 cannot be resolved"):
            await provider.ensure(instance(openssh_config="off"))

    tell(story)


def test_a_key_with_a_passphrase_is_named(tell, bare, instance, tmp_path: Path) -> None:
    """Without ssh-agent it cannot be used, and the host says only that permission is denied."""
    key = tmp_path / "locked"
    subprocess.run(
        ["ssh-keygen", "-q", "-t", "ed25519", "-N", "a secret", "-f", str(key)], check=True
    )
    endpoint = bare(identity_file=str(key), host_keys="first-use")

    async def story(provider: SshHosts) -> None:
        with pytest.raises(SignInRefused, match=f"the key {key} has a passphrase") as caught:
            await provider.ensure(instance(**endpoint))
        assert caught.value.advice == f"load it with `ssh-add {key}`"

    tell(story)
