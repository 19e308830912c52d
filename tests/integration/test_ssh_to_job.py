"""The user's own OpenSSH in a running job, through `fleetform proxy`: nothing is mocked, no sshd runs."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from integration.ledger.lab import FLEETFORM, PATIENCE_SECONDS, Lab, task
from integration.terminal import Terminal
from required import need

FLEET = "type: fleet\nname: local\nnodes: 2\nlocal: {cpu: 8, memory: 16GB}\n"
SMALL = "resources: {cpu: 1, memory: 64MB}\n"

LISTEN = """\
python3 -c 'import pathlib, socket
with socket.create_server(("127.0.0.1", 0)) as server:
    pathlib.Path("{port}").write_text(str(server.getsockname()[1]))
    while True:
        client, _ = server.accept()
        with client:
            while data := client.recv(65536):
                client.sendall(data.upper())
            client.sendall(b"END")' &"""


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """A run with a program that listens, an array and a run on two hosts; no controller runs."""
    missing = [one for one in ("ssh", "scp", "sftp") if shutil.which(one) is None]
    need("ssh", not missing, f"{', '.join(missing)} not installed")
    lab = Lab(tmp_path_factory.mktemp("ssh-to-job") / "lab")
    gate = lab.folder / "gate"
    wait = f"until [ -e {gate} ]; do sleep 0.1; done"
    listen = LISTEN.format(port=lab.folder / "port")
    lab.declare(
        FLEET,
        task("train", listen, lab.says("train"), wait, more=f"env: {{COLOUR: blue}}\n{SMALL}"),
        task("gang", lab.says("gang"), wait, more=f"nodes: 2\n{SMALL}"),
        task("arr", lab.says("arr"), wait, more=f"array: 0-1\n{SMALL}"),
    )
    controller = lab.start("apply", "-y")
    lab.wait_until(lambda: sorted(lab.said()) == ["arr", "arr", "gang", "gang", "train"], "a run")
    lab.wait_until((lab.folder / "port").exists, "a port")
    lab.wait_until_state("gang", "running")
    controller.kill()
    lab.finish(controller)
    (lab.folder / "config").write_text(lab.run("ssh-config").stdout)
    yield lab
    gate.touch()
    lab.close()


def called(
    lab: Lab, program: str, *words: str, given: bytes = b""
) -> subprocess.CompletedProcess[bytes]:
    """Run a program of OpenSSH; it must ask nothing."""
    return subprocess.run(
        [program, "-F", lab.folder / "config", "-oBatchMode=yes", *words],
        cwd=lab.folder, env=lab.variables(), input=given, capture_output=True,
        timeout=PATIENCE_SECONDS, check=False,
    )  # fmt: skip


def test_a_command_over_ssh(lab: Lab) -> None:
    """Streams, environment and exit codes are those of a command in the job."""
    done = called(
        lab, "ssh", "train.fleetform", "echo $COLOUR; cat; echo no >&2; exit 7", given=b"in"
    )
    assert (done.returncode, done.stdout, done.stderr) == (7, b"blue\nin", b"no\n")
    content = os.urandom(3_000_000)
    done = called(lab, "ssh", "train.fleetform", "cat", given=content)
    assert (done.returncode, done.stdout == content) == (0, True)
    # As an editor does: a program whose commands come on standard input.
    done = called(lab, "ssh", "-T", "train.fleetform", "sh", given=b"pwd; exit 3\n")
    assert done.returncode == 3
    assert re.search(rb"/jobs/[^/]+/work\n$", done.stdout)
    done = called(lab, "ssh", "-oSetEnv=LC_SHADE=dark", "train.fleetform", "echo $LC_SHADE")
    assert done.stdout == b"dark\n"


def test_ranks_and_elements_have_names(lab: Lab) -> None:
    """RUN.RANK.fleetform is one rank, and brackets stand for elements."""
    show = "echo $FLEETFORM_NODE_RANK $FLEETFORM_ARRAY_INDEX"
    for name, shown in (("gang", b"0"), ("gang.1", b"1"), ("arr[1]", b"0 1")):
        done = called(lab, "ssh", f"{name}.fleetform", show)
        assert done.stdout.strip() == shown, done.stderr
    done = called(lab, "ssh", "gang.7.fleetform", show)
    assert (done.returncode, b"there is no rank 7" in done.stderr) == (255, True)
    done = called(lab, "ssh", "trian.fleetform", show)
    assert (done.returncode, b"there is no run `trian`" in done.stderr) == (255, True)


def test_files_by_scp_and_sftp(lab: Lab) -> None:
    """Both ways, whole folders, with modes and times; errors are those of files."""
    source = lab.folder / "source"
    (source / "deep").mkdir(parents=True)
    content = os.urandom(2_000_000)
    (source / "deep/data").write_bytes(content)
    (source / "deep/data").chmod(0o640)
    os.utime(source / "deep/data", (1_600_000_000, 1_600_000_000))
    (source / "run me").write_text("#!/bin/sh\n")
    done = called(lab, "scp", "-rp", str(source), "train.fleetform:copy")
    assert done.returncode == 0, done.stderr
    done = called(lab, "ssh", "train.fleetform", "stat -c '%a %Y %s' copy/deep/data; ls copy")
    assert done.stdout == b"640 1600000000 2000000\ndeep\nrun me\n"
    done = called(lab, "scp", "-rp", "train.fleetform:copy", str(lab.folder / "back"))
    assert done.returncode == 0, done.stderr
    assert (lab.folder / "back/deep/data").read_bytes() == content
    done = called(lab, "scp", "train.fleetform:missing", str(lab.folder))
    assert (done.returncode, b"No such file" in done.stderr) == (1, True)
    lines = (
        b"pwd\nmkdir made\nput source/deep/data made/one\nrename made/one made/two\nln -s two made/link\n"
        b"ls -l made\nchmod 600 made/two\nget made/two again\nrm made/link\nrm made/two\nrmdir made\ndf .\n"
    )
    done = called(lab, "sftp", "-b", "-", "train.fleetform", given=lines)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(rb"(?m)^-rw-r-----.* 2000000 .*two$", done.stdout), done.stdout
    assert (lab.folder / "again").read_bytes() == content
    done = called(lab, "sftp", "-b", "-", "train.fleetform", given=b"rmdir copy\n")
    assert (done.returncode, b"Failure" in done.stderr) == (1, True)


def test_rsync(lab: Lab) -> None:
    """It finds itself in the job, and speaks over a command."""
    need("rsync", shutil.which("rsync") is not None, "rsync is not installed")
    source = lab.folder / "tree-of-files"
    source.mkdir()
    (source / "a").write_text("alpha")
    shell = f"ssh -F {lab.folder / 'config'} -oBatchMode=yes"
    words = ["rsync", "-a", "-e", shell, f"{source}/", "train.fleetform:synced/"]
    done = subprocess.run(words, env=lab.variables(), capture_output=True, timeout=PATIENCE_SECONDS, check=False)  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert called(lab, "ssh", "train.fleetform", "cat synced/a").stdout == b"alpha"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def talk(port: int, word: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", port), PATIENCE_SECONDS) as client:
        client.sendall(word)
        client.shutdown(socket.SHUT_WR)
        received = b""
        while data := client.recv(65536):
            received += data
        return received


def test_ports_are_forwarded(lab: Lab) -> None:
    """With -L and with the SOCKS proxy of an editor, over one long connection with a command."""
    target = (lab.folder / "port").read_text()
    local, socks = free_port(), free_port()
    child = subprocess.Popen(
        ["ssh", "-F", lab.folder / "config", "-oBatchMode=yes", "-T", "-oExitOnForwardFailure=yes",
         "-L", f"{local}:localhost:{target}", "-D", str(socks), "train.fleetform", "sh"],
        env=lab.variables(), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    assert child.stdin is not None
    assert child.stdout is not None
    try:
        child.stdin.write(b"echo ready\n")
        child.stdin.flush()
        assert child.stdout.readline() == b"ready\n"
        assert talk(local, b"hello") == b"HELLOEND"
        assert talk(local, b"a" * 1_000_000) == b"A" * 1_000_000 + b"END"
        with socket.create_connection(("127.0.0.1", socks), PATIENCE_SECONDS) as client:
            # SOCKS 5 without authentication, to a name (RFC 1928).
            client.sendall(b"\x05\x01\x00")
            assert client.recv(2) == b"\x05\x00"
            client.sendall(b"\x05\x01\x00\x03\x09localhost" + int(target).to_bytes(2, "big"))
            assert client.recv(10)[:2] == b"\x05\x00"
            client.sendall(b"word")
            assert client.recv(10) == b"WORD"
        child.stdin.write(b"exit 4\n")
        child.stdin.close()
        assert child.wait(PATIENCE_SECONDS) == 4
    finally:
        child.kill()
        child.wait()
        child.stdout.close()
    done = called(lab, "ssh", "-W", "example.org:80", "train.fleetform")
    assert b"only ports of the job are forwarded" in done.stderr


def test_a_terminal_over_ssh(lab: Lab) -> None:
    """`fleetform ssh RUN` is a shell with keys, Ctrl-C and a size."""
    terminal = Terminal([FLEETFORM, "ssh", "train"], lab.tree, lab.variables())
    try:
        terminal.type(b"echo $COLOUR $((40 + 2)); stty size\n")
        terminal.until(rb"blue 42\r\n20 70\r\n")
        terminal.resize(33, 99)
        time.sleep(0.5)
        terminal.type(b"stty size\n")
        terminal.until(rb"33 99\r\n")
        terminal.type(b"cat\n")
        time.sleep(0.5)
        terminal.type(b"\x03")
        # The terminal throws away what is typed before the signal is taken.
        terminal.until(rb"\^C\s+[#$] ")
        terminal.type(b"exit 5\n")
        assert terminal.end() == 5
    finally:
        terminal.close()


def test_another_host_key_is_refused(lab: Lab) -> None:
    """OpenSSH knows the key of the environment, and takes no other."""
    key = lab.state / f"environments/{lab.uid}/ssh/host_key"
    kept = key.read_text()
    new = lab.folder / "new"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", new], check=True)
    assert key.stat().st_mode & 0o777 == 0o600
    try:
        key.write_text(new.read_text())
        done = called(lab, "ssh", "train.fleetform", "true")
        assert (done.returncode, b"IDENTIFICATION HAS CHANGED" in done.stderr) == (255, True)
    finally:
        key.write_text(kept)
    assert called(lab, "ssh", "train.fleetform", "true").returncode == 0


def test_what_cannot_be_reached_over_ssh(lab: Lab, tmp_path: Path) -> None:
    """A name that is neither host nor run, and a terminal in place of a client."""
    done = lab.run("ssh", "gnag")
    assert (done.returncode, "there is no host or run `gnag`" in done.stderr) == (1, True)
    assert "did you mean `gang`?" in done.stderr
    terminal = Terminal([FLEETFORM, "proxy", "train"], lab.tree, lab.variables())
    try:
        terminal.until(rb"`fleetform ssh train` opens a shell")
        assert terminal.end() == 1
    finally:
        terminal.close()
    assert "Host *.lab\n" in lab.run("ssh-config", "--domain", "lab").stdout
    assert lab.run("ssh-config", "--domain", "a b").returncode == 1
