"""Work inside runs of hosts over SSH: OpenSSH, ports, `attach` that reconnects, and `mpirun`."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from contract.host_site import ENVIRONMENT, connected, identity, job_for, wait_until
from fleetform.agents.protocol.frames import encode
from fleetform.agents.protocol.messages import FollowLog, Hello, Stop
from fleetform.agents.protocol.states import JobState
from fleetform.providers.contract.errors import ProviderError
from fleetform.providers.ssh.hosts import SshHosts
from integration.ledger.lab import FLEETFORM, PATIENCE_SECONDS
from integration.ledger.lab import Lab as Tree
from lab import Lab
from required import need

SERVE = """\
import pathlib, socket
with socket.create_server(("127.0.0.1", 0)) as server:
    print("port", server.getsockname()[1], flush=True)
    while True:
        client, _ = server.accept()
        with client:
            while data := client.recv(65536):
                client.sendall(data.upper())
"""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def talk(port: int, word: bytes) -> bytes:
    """Send a word to a local port, and return what comes back."""
    with socket.create_connection(("127.0.0.1", port), PATIENCE_SECONDS) as client:
        client.sendall(word)
        client.shutdown(socket.SHUT_WR)
        received = b""
        while data := client.recv(65536):
            received += data
        return received


@pytest.fixture
def tree(tmp_path: Path, home: Path, hosts: Lab) -> Iterator[Tree]:
    """An environment whose fleet has both hosts of the lab; jobs run as a plain user."""
    made = Tree(tmp_path / "lab")
    fleet = "type: fleet\nname: pair\nplacement: cluster\nssh_config: {user: lab, hosts: [node1, node2]}\n"
    (made.tree / "fleet.yaml").write_text(fleet)
    try:
        yield made
    finally:
        made.close()


def task(name: str, *commands: str, **fields: object) -> str:
    document = {"type": "task", "name": name, "fleets": ["pair"], **fields}
    return json.dumps({**document, "commands": commands}) + "\n"


def wait_for_port(tree: Tree, run: str) -> int:
    """Return the port that a job says it listens at."""
    found: list[str] = []

    def has_said() -> bool:
        found[:] = re.findall(r"port (\d+)\n", tree.run("logs", run).stdout)
        return bool(found)

    tree.wait_until(has_said, "a port")
    return int(found[0])


def test_openssh_in_a_job_of_another_host(tree: Tree) -> None:
    """A command, files and a port, as the job's account, and without a question."""
    code = f"python3 -c '{SERVE}'"
    tree.declare(task("train", code, env={"COLOUR": "blue"}))
    controller = tree.start("apply", "-y")
    port = wait_for_port(tree, "train")
    config = tree.folder / "config"
    config.write_text(tree.run("ssh-config").stdout)
    options = ["-F", str(config), "-oBatchMode=yes"]

    def called(*words: str, given: bytes = b"") -> bytes:
        done = subprocess.run(words, env=tree.variables(), cwd=tree.folder, input=given, capture_output=True, timeout=PATIENCE_SECONDS, check=False)  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout

    said = called("ssh", *options, "train.fleetform", "id -un; echo $COLOUR; cat", given=b"in")
    assert said == b"lab\nblue\nin"
    content = os.urandom(1_000_000)
    (tree.folder / "data").write_bytes(content)
    called("scp", *options, "data", "train.fleetform:there")
    called("scp", *options, "train.fleetform:there", "back")
    assert (tree.folder / "back").read_bytes() == content
    listed = called("sftp", *options, "-b", "-", "train.fleetform", given=b"ls -l there\n")
    assert b" 1000000 " in listed
    local = free_port()
    child = subprocess.Popen(
        ["ssh", *options, "-oExitOnForwardFailure=yes", "-L", f"{local}:localhost:{port}",
         "train.fleetform", "echo ready; cat"],
        env=tree.variables(), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    with child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"ready\n"
        assert talk(local, b"hello") == b"HELLO"
        child.communicate(timeout=PATIENCE_SECONDS)
    assert child.returncode == 0
    controller.terminate()
    tree.finish(controller)


def test_attach_connects_again(tree: Tree, hosts: Lab) -> None:
    """The SSH connection is cut; the local port stays, the output is whole, the exit code is the run's."""
    gate = "/home/lab/gate"
    hosts.run("node1", "rm", "-f", gate)
    hosts.run("node2", "rm", "-f", gate)
    code = f"python3 -c '{SERVE}' & echo begun; until [ -e {gate} ]; do sleep 0.1; done; echo over; exit 3"
    local = free_port()
    tree.declare(task("train", code))
    controller = tree.start("apply", "-y")
    port = wait_for_port(tree, "train")
    attached = tree.start("attach", "train", "-p", f"{local}:{port}")

    def answers() -> bool:
        try:
            return talk(local, b"one") == b"ONE"
        except OSError:
            return False

    tree.wait_until(answers, "the forwarded port")
    for name in hosts.hosts:
        # Sessions of the SSH server on that host, and not the server itself.
        hosts.run(name, "sh", "-c", "pkill -KILL -f '[s]shd: lab' || true")
    tree.wait_until(answers, "the forwarded port after the cut")
    for name in hosts.hosts:
        hosts.run(name, "touch", gate)
    code_of_attach, output = tree.finish(attached)
    assert code_of_attach == 3, output
    assert f"localhost:{local} -> port {port} of train" in output
    assert re.search(r"the connection to host node\d is lost; connecting again", output), output
    assert "begun\n" in output
    assert "over\n" in output
    assert "train: failed" in output
    tree.finish(controller)


def test_mpirun_over_two_hosts(tree: Tree) -> None:
    """Debian's Open MPI starts a process on each host; only the master calls it."""
    need("mpirun", shutil.which("mpirun") is not None, "openmpi-bin is not installed")
    master = "mpirun -np 2 --hostfile $FLEETFORM_HOSTFILE sh -c 'echo rank $OMPI_COMM_WORLD_RANK on $(hostname)'"
    command = f'if [ "$FLEETFORM_NODE_RANK" = 0 ]; then {master}; else sleep 1000; fi'
    tree.declare(task("mpi", command, nodes=2, stop_criteria="master-done"))
    controller = tree.start("apply", "-y")
    code, output = tree.finish(controller)
    assert code == 0, output
    printed = tree.run("logs", "mpi", "--rank", "0").stdout.splitlines()
    # Open MPI warns where a launcher has begun before its group is set, which does no harm.
    assert sorted(one for one in printed if "Warning: setpgid" not in one) == [
        "rank 0 on node1",
        "rank 1 on node2",
    ]


def test_a_launcher_without_a_controller_waits(tree: Tree) -> None:
    """It says so, and goes on when there is one; what it cannot reach is refused."""
    tree.declare(task("pair", "echo begun; exec sleep 1000", nodes=2))
    controller = tree.start("apply", "-y")
    tree.wait_until_state("pair", "running")
    controller.kill()
    tree.finish(controller)
    call = '$FLEETFORM_RSH -x "$(echo "$FLEETFORM_NODES_IPS" | tail -n 1)" "hostname; cat; exit 5"'
    child = subprocess.Popen(
        [FLEETFORM, "exec", "pair", "--", "sh", "-c", f"echo in | {call}"],
        cwd=tree.tree, env=tree.variables(), stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    with child:
        assert child.stderr is not None
        said = "no controller is connected to this host; waiting"
        assert any(said in line for line in iter(child.stderr.readline, ""))
        serve = tree.start("serve")
        output, errors = child.communicate(timeout=PATIENCE_SECONDS)
    assert (child.returncode, output) == (5, "node2\nin\n"), errors
    done = tree.run("exec", "pair", "--", "sh", "-c", "$FLEETFORM_RSH 10.1.1.1 hostname")
    assert (done.returncode, "10.1.1.1 is no node of this run" in done.stderr) == (255, True)
    serve.terminate()
    tree.finish(serve)


def test_a_stop_reaches_an_agent_while_output_is_stuck(tell, hosts: Lab, instance) -> None:
    """Through `agent connect` and the real sshd: output that nothing reads keeps no request back."""
    request = instance()

    def runs() -> bool:
        return bool(hosts.run("node1", "pgrep", "-f", "sleep 98761", check=False))

    async def story(provider: SshHosts) -> None:
        await provider.ensure(request)
        async with connected(SimpleNamespace(provider=provider), request) as listener:
            job = job_for(listener, "yes | head -c 40000000; echo begun; exec sleep 98761")
            assert (await listener.host.prepare(job)).ok
            await listener.state(job, JobState.RUNNING)
            await asyncio.to_thread(wait_until, runs)
        installed = provider._installed[request.uid]
        # Version 1 has no credit: the agent sends all that the line takes.
        hello = Hello(ENVIRONMENT, "ledger", 1, 2)
        messages = (hello, FollowLog(job.job_uid, 0))
        unread, output = os.pipe()
        child = await asyncio.create_subprocess_exec(
            "ssh", "-F", hosts.config, "node1", installed.connect.line,
            stdin=subprocess.PIPE, stdout=output,
        )  # fmt: skip
        os.close(output)
        assert child.stdin is not None
        try:
            child.stdin.write(b"".join(map(encode, messages)))
            # Nothing is read: the pipe, the SSH connection and the relay fill.
            await asyncio.sleep(2)
            child.stdin.write(encode(Stop(7, job.key, job.job_uid, job.gen + 1)))
            await asyncio.to_thread(wait_until, lambda: not runs())
        finally:
            child.kill()
            await child.wait()
            os.close(unread)
        await provider.release(request)

    tell(story)


def test_much_that_a_start_file_prints(tell, hosts: Lab, instance) -> None:
    """Up to 64 KB before the marker are discarded; a host that prints without end is refused."""
    request = instance(user="lab")
    start = "/home/lab/.bashrc"
    kept = hosts.run("node1", "cat", start, check=False)

    def print_first(size: int) -> None:
        line = f"head -c {size} /dev/zero | tr '\\0' x"
        hosts.run("node1", "sh", "-c", f'echo "{line}" > {start}; chown lab {start}')

    async def reached(provider: SshHosts) -> None:
        await provider.ensure(request)
        async with connected(SimpleNamespace(provider=provider), request):
            pass

    async def released(provider: SshHosts) -> None:
        await provider.release(request)

    async def refused(provider: SshHosts) -> None:
        with pytest.raises(ProviderError, match="printed"):
            await provider.connect(request, identity(), None)

    try:
        print_first(60_000)
        tell(reached)
        print_first(400_000)
        tell(refused)
        print_first(10)
        tell(released)
    finally:
        (hosts.directory / f"hosts/node1/root{start}").write_text(kept)
