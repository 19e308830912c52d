"""Instances that boot: cloud-init reads our user data, and the host gets a key of its own."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import json
import os
import subprocess
import time
from pathlib import Path

import pytest

from cloud import cloud_init
from cloud.front import wait_until
from contract.host_site import ENVIRONMENT
from contract.host_site import identity as identity_of
from fleetform.providers.contract.errors import PermanentError, TemporaryError
from fleetform.providers.contract.hosts import InstanceRequest
from fleetform.providers.first_boot.cloud_config import ACCOUNT, cloud_config
from fleetform.providers.first_boot.console import printed_host_key
from fleetform.providers.first_boot.host_key import first_key
from fleetform.providers.pulumi.aws.program import NewHost
from fleetform.providers.ssh.connection import open_connection
from fleetform.providers.ssh.endpoint import Endpoint
from fleetform.providers.ssh.hosts import SshHosts
from fleetform.providers.ssh.own_key import replace_first_key
from integration.cloud.test_aws_programs import Site, apply

pytestmark = pytest.mark.waits

HOSTS_BOOT = True

SECRET = b"the passphrase of an environment, 32 bytes"
BOOT_SECONDS = 120.0


@pytest.fixture(scope="module")
def identity(tmp_path_factory) -> Path:
    """The private key with which fleetform signs in."""
    path = tmp_path_factory.mktemp("identity") / "id"
    subprocess.check_call(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", path])
    return path


@dataclasses.dataclass
class Booted:
    """An instance, and what a controller remembers of it."""

    instance: str
    request: InstanceRequest
    first: str

    async def connect(self, request: InstanceRequest):
        endpoint = Endpoint.read(request.endpoint)
        assert request.host_key
        return await open_connection(
            request.name, endpoint, request.host_key, keepalive_seconds=15.0, connect_seconds=5.0
        )

    async def pin(self, keys: str) -> None:
        self.request = dataclasses.replace(self.request, host_key=keys)

    async def connect_when_up(self, request: InstanceRequest):
        """Connect as soon as the host answers; a wrong key is an error at once."""
        until = time.monotonic() + BOOT_SECONDS
        while True:
            try:
                return await self.connect(request)
            except TemporaryError:
                assert time.monotonic() < until
                await asyncio.sleep(0.2)

    async def replace_key(self) -> str:
        await (await self.connect_when_up(self.request)).close()
        return await replace_first_key(self.request, self.first, self.pin, self.connect)


def request_for(uid: str, address: str, identity: Path, pinned: str) -> InstanceRequest:
    endpoint = {
        "hostname": address, "user": ACCOUNT, "become": "sudo", "identity_file": str(identity),
        "host_keys": "first-use", "openssh_config": "off",
    }  # fmt: skip
    return InstanceRequest(uid, uid, "gpus", {}, endpoint=endpoint, host_key=pinned)


@pytest.fixture
def boot(cloud, identity, image):
    """Return a function that runs an instance with our user data; the test ends with all of them."""

    def run(uid: str, *, console: bool = False) -> Booted:
        key = first_key(SECRET, uid)
        public = identity.with_suffix(".pub").read_text()
        document = cloud_config(public, None if console else key, orphan_seconds=86_400)
        (found,) = cloud.client().run_instances(
            ImageId=image, InstanceType="g5.xlarge", MinCount=1, MaxCount=1, UserData=document
        )["Instances"]
        pinned = "" if console else key.public
        request = request_for(uid, found["PrivateIpAddress"], identity, pinned)
        return Booted(found["InstanceId"], request, key.public)

    yield run
    left = [one.id for one in cloud.instances()]
    if left:
        cloud.client().terminate_instances(InstanceIds=left)


def host_keys(hosts, instance: str) -> list[str]:
    return hosts.run(instance, "sh", "-c", "ls /etc/ssh/ | grep -i host").split()


@pytest.mark.parametrize("is_console", [False, True])
def test_cloud_init_accepts_the_document(tmp_path, need, is_console: bool) -> None:
    """By its own schema, with a host key and without one."""
    reason = cloud_init.reason_missing()
    need("cloud-init", not reason, reason)
    key = first_key(SECRET, "u1")
    document = cloud_config(
        f"{key.public} tests", None if is_console else key, orphan_seconds=86_400
    )
    assert cloud_init.check_schema(document, tmp_path) == ""
    assert cloud_init.check_schema(document.replace("lock_passwd", "lock"), tmp_path) != ""


def test_a_host_replaces_its_first_key(boot, hosts) -> None:
    """It answers with the first key, then with its own alone, also after a reboot."""
    booted = boot("u1")
    own = asyncio.run(booted.replace_key())
    assert own != booted.first
    assert booted.request.host_key == own
    assert host_keys(hosts, booted.instance) == ["ssh_host_ed25519_key", "ssh_host_ed25519_key.pub"]
    shown = hosts.run(booted.instance, "cat", "/etc/ssh/ssh_host_ed25519_key.pub")
    assert shown.split()[:2] == own.split()
    # The watch that ends a host without a controller has begun.
    assert hosts.run(booted.instance, "ls", "-d", "/run/fleetform").strip() == "/run/fleetform"

    async def refuse_first():
        with pytest.raises(PermanentError, match=r"host key of .* has changed"):
            await booted.connect(dataclasses.replace(booted.request, host_key=booted.first))

    asyncio.run(refuse_first())
    hosts.reboot(booted.instance)

    async def again():
        connection = await booted.connect_when_up(booted.request)
        assert connection.host_key == own
        await connection.close()

    asyncio.run(again())


def test_an_instance_behaves_as_an_ssh_host(boot, tmp_path) -> None:
    """The provider of SSH hosts installs its agent there as root, and recognises it by its own key."""
    booted = boot("agent")
    own = asyncio.run(booted.replace_key())

    async def play():
        provider = SshHosts(tmp_path / "state", ENVIRONMENT)
        try:
            await provider.ensure(booted.request)
            host = await provider.connect(booted.request, identity_of(), None)
            assert host.seen.host_key == own
            assert host.seen.address == booted.request.endpoint["hostname"]
            await host.close()
            await provider.release(booted.request)
        finally:
            await provider.close()

    asyncio.run(play())


def test_a_host_of_a_program_boots(cloud, hosts, identity, image, tmp_path, pulumi) -> None:
    """
    Through the real engine the user data arrives as it is, and is nowhere in clear.

    Neither the state, the plan nor the events of the stack have the private half of the key, and no
    process has it as an argument while the host is created.
    """
    site = Site(cloud, tmp_path, image, identity.with_suffix(".pub").read_text())
    key = first_key(SECRET, "engine")
    private = key.private.splitlines()[2]
    document = cloud_config(site.shared.public_key, key)
    seen: list[bytes] = []

    async def play():
        shared = await site.share()
        async with site.open("batch") as stack:
            program = site.batch(shared, (NewHost("engine", "gpus-0", "o1", document),))
            done = asyncio.Event()
            watch = asyncio.create_task(watch_all_arguments(done, seen))
            await apply(stack, program)
            done.set()
            await watch
            (found,) = cloud.instances()
            assert hosts.metadata(found.id).user_data == document
            booted = Booted(
                found.id, request_for("engine", found.private_ip, identity, key.public), key.public
            )
            assert await booted.replace_key() != key.public
            await stack.destroy()

    asyncio.run(play())
    assert any(b"pulumi" in arguments for arguments in seen)
    assert not any(private.encode() in arguments for arguments in seen)
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert any(b"userData" in path.read_bytes() for path in files)
    assert [path for path in files if private.encode() in path.read_bytes()] == []


async def watch_all_arguments(done: asyncio.Event, seen: list[bytes]) -> None:
    while not done.is_set():
        seen += arguments_of_all()
        await asyncio.sleep(0.1)


def arguments_of_all() -> list[bytes]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            found.append(path.read_bytes())
    return found


class KilledError(Exception):
    pass


@pytest.mark.parametrize("dies_at", range(4))
def test_a_controller_that_is_killed_between_two_steps(boot, hosts, dies_at: int) -> None:
    """Killed before the report is pinned, after it, after the replacement, or before the last pin."""
    booted = boot(f"k{dies_at}")
    calls = iter(range(10))

    def die_at(number: int) -> None:
        if number == dies_at:
            raise KilledError

    async def connect(request):
        # The first connection is number 0 and the second one, after the replacement, is number 2.
        die_at(next(calls))
        return await booted.connect(request)

    async def pin(keys):
        die_at(next(calls))
        await booted.pin(keys)

    async def play():
        await (await booted.connect_when_up(booted.request)).close()
        with pytest.raises(KilledError):
            await replace_first_key(booted.request, booted.first, pin, connect)
        return await booted.replace_key()

    own = asyncio.run(play())
    assert booted.request.host_key == own
    assert own != booted.first
    assert host_keys(hosts, booted.instance) == ["ssh_host_ed25519_key", "ssh_host_ed25519_key.pub"]


def test_a_host_may_print_its_key_to_the_console(boot, cloud) -> None:
    """EC2's console output has the key that the host made, and a connection accepts no other."""
    booted = boot("console", console=True)

    def printed() -> str:
        output = cloud.client().get_console_output(InstanceId=booted.instance)["Output"]
        return printed_host_key(output)

    wait_until(lambda: bool(printed()), BOOT_SECONDS)
    asyncio.run(booted.pin(printed()))

    async def connect():
        connection = await booted.connect_when_up(booted.request)
        assert connection.host_key == printed()
        await connection.close()

    asyncio.run(connect())


def test_no_process_sees_a_private_key_as_an_argument(boot, hosts, cloud) -> None:
    """Neither the console nor a command line of the host has the private half of the first key."""
    booted = boot("private")
    private = first_key(SECRET, "private").private.splitlines()[1]
    seen: list[str] = []

    async def play():
        await (await booted.connect_when_up(booted.request)).close()
        watch = asyncio.create_task(
            asyncio.to_thread(watch_arguments, hosts, booted.instance, seen)
        )
        await booted.replace_key()
        hosts.run(booted.instance, "touch", "/run/replaced")
        await watch

    asyncio.run(play())
    assert any("ssh-keygen" in line or "python" in line for line in seen)
    assert not any(private in line for line in seen)
    output = cloud.client().get_console_output(InstanceId=booted.instance)["Output"]
    assert private not in output
    assert "PRIVATE KEY" not in output


def watch_arguments(hosts, instance: str, seen: list[str]) -> None:
    script = "while [ ! -e /run/replaced ]; do cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' '; echo; sleep 0.02; done"
    seen += hosts.run(instance, "sh", "-c", script).splitlines()


def test_the_end_of_an_instance_ends_its_processes(boot, hosts, cloud) -> None:
    """Every process of its host is gone, by the id of its process 1, and its address answers no more."""
    booted = boot("ends")

    async def play():
        connection = await booted.connect_when_up(booted.request)
        await connection.close()

    asyncio.run(play())
    pid = hosts.init_pid(booted.instance)
    os.kill(pid, 0)  # It is there.
    cloud.client().terminate_instances(InstanceIds=[booted.instance])
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    assert booted.instance not in {one.id for one in cloud.instances()}


READ = """\
import json, urllib.error, urllib.request
HERE = "http://169.254.169.254/latest/"
def read(path, method="GET", **headers):
    request = urllib.request.Request(HERE + path, method=method)
    for name, value in headers.items():
        request.add_header(name.replace("_", "-"), value)
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, ""
token = read("api/token", "PUT", X_aws_ec2_metadata_token_ttl_seconds="60")
with_token = {"X_aws_ec2_metadata_token": token[1]}
print(json.dumps({
    "refused": read("meta-data/instance-id")[0],
    "forwarded": read("api/token", "PUT", X_aws_ec2_metadata_token_ttl_seconds="60", X_Forwarded_For="10.0.0.1")[0],
    "id": read("meta-data/instance-id", **with_token),
    "notice": read("meta-data/spot/instance-action", **with_token),
    "user_data": read("user-data", **with_token)[1][:13],
}))
"""


def test_a_host_reads_its_metadata(boot, hosts, cloud) -> None:
    """With a session token only; a spot notice appears when EC2 takes the capacity away."""
    booted = boot("metadata")

    def read():
        return json.loads(hosts.run(booted.instance, "/usr/bin/python3", "-c", READ))

    before = read()
    assert (before["refused"], before["forwarded"]) == (401, 403)
    assert before["id"] == [200, booted.instance]
    assert before["notice"] == [404, ""]
    assert before["user_data"] == "#cloud-config"
    cloud.announce_spot_end(booted.instance, 120)
    status, text = read()["notice"]
    assert status == 200
    assert json.loads(text)["action"] == "terminate"
