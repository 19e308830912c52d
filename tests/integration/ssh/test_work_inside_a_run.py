"""
The page "Work inside a run", command by command, on hosts over SSH and real terminals.

    FLEETFORM_TEST_RECORD=1 pytest tests/integration/ssh/test_work_inside_a_run.py

writes the recorded terminals into the page.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from integration.ledger.lab import FLEETFORM, PATIENCE_SECONDS
from integration.ledger.lab import Lab as Tree
from integration.terminal import Terminal
from lab import Lab
from required import need

PAGE = Path(__file__).parents[3] / "docs/how-to/work-inside-a-run.md"


def page_commands() -> list[str]:
    return re.findall(r"(?m)^    ((?:fleetform|ssh|scp|sftp|rsync) .*)$", PAGE.read_text())


def page_documents() -> list[str]:
    return re.findall(r"(?ms)^```yaml\n(.*?)^```", PAGE.read_text())


class Page:
    """The environment of the page, and what was done of it so far."""

    def __init__(self, tree: Tree, hosts: Lab) -> None:
        self.tree = tree
        self.hosts = hosts
        self.home = tree.folder / "ssh-home"
        self.recorded: dict[str, str] = {}
        (self.home / ".ssh").mkdir(parents=True, mode=0o700)
        # OpenSSH reads the home of the user database: a wrapper gives it the file of the page.
        folder = tree.folder / "bin"
        folder.mkdir()
        for name, option in (("ssh", "-F"), ("scp", "-F"), ("sftp", "-F")):
            file = folder / name
            config = self.home / ".ssh/fleetform"
            file.write_text(
                f'#!/bin/sh\n[ "$1" = -F ] || [ ! -s {config} ] || set -- {option} {config} "$@"\n'
                f'exec {shutil.which(name)} "$@"\n'
            )
            file.chmod(0o755)
        self.variables = {
            **tree.variables(),
            "HOME": os.environ["HOME"],
            "PATH": f"{folder}:{tree.variables()['PATH']}",
        }

    def run(self, line: str, code: int = 0) -> str:
        """Run a line of the page in a shell whose ~ is the page's."""
        done = subprocess.run(
            ["sh", "-c", line.replace("~", str(self.home))],
            cwd=self.tree.tree, env=self.variables, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False,
        )  # fmt: skip
        assert done.returncode == code, f"{line}: {done.stdout}{done.stderr}"
        return done.stdout

    def show(self, line: str, play: Callable[[Terminal], None], code: int = 0) -> str:
        """Run a line on a terminal; returns what it showed."""
        words = [FLEETFORM if word == "fleetform" else word for word in line.split()]
        terminal = Terminal(words, self.tree.tree, {**self.variables, "NO_COLOR": "1"}, (24, 120))
        try:
            play(terminal)
            assert terminal.end() == code, terminal.shown
        finally:
            terminal.close()
        return terminal.shown.decode()

    def record(self, line: str, play: Callable[[Terminal], None], code: int = 0) -> None:
        self.recorded[line] = plain(self.show(line, play, code))

    def forwarded(self, line: str) -> None:
        """Run a line that forwards a port until it is ended."""
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            local = probe.getsockname()[1]
        child = subprocess.Popen(
            line.replace("9000", str(local)).split(), cwd=self.tree.tree, env=self.variables
        )
        try:
            self.tree.wait_until(lambda: answers(local), "the forwarded port")
        finally:
            child.send_signal(signal.SIGTERM)
            child.wait(PATIENCE_SECONDS)


def answers(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), PATIENCE_SECONDS) as client:
            client.sendall(b"GET / HTTP/1.0\r\n\r\n")
            return client.recv(12) == b"HTTP/1.0 200"
    except OSError:
        return False


def plain(shown: str) -> str:
    """Remove what is another one each time: escapes, prompts, numbers of ports, and the host."""
    text = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]|\x1b\][^\x07]*\x07", "", shown).replace("\r", "")
    text = re.sub(r"(?m)^\S*(?:work|bash-[\d.]+)?[#$] ", "$ ", text)
    text = re.sub(r"localhost:\d+", "localhost:40123", text)
    # Either host has room, and a busy machine may keep it from answering for some seconds.
    text = text.replace("node2", "node1")
    text = re.sub(r"(?m)^host node1 (does not answer; trying again|answers again)\n", "", text)
    return "\n".join(line.rstrip() for line in text.splitlines()).strip("\n") + "\n"


@pytest.fixture
def page(tmp_path: Path, home: Path, hosts: Lab) -> Iterator[Page]:
    missing = [one for one in ("ssh", "scp", "sftp", "rsync") if shutil.which(one) is None]
    need("ssh", not missing, f"{', '.join(missing)} not installed")
    tree = Tree(tmp_path / "lab")
    made = Page(tree, hosts)
    try:
        yield made
    finally:
        tree.run("controller", "stop")
        tree.close()


def test_the_page(page: Page) -> None:
    """Every command of the page works, and the recorded terminals are what a person sees."""
    tree, (first, mpi) = page.tree, page_documents()
    tree.declare(first)
    controller = tree.start("apply", "-y")
    tree.wait_until_state("train", "running")
    controller.terminate()
    tree.finish(controller)

    def shell(terminal: Terminal) -> None:
        terminal.until(rb"ends the shell\r\n(?s:.*)[#$] ")
        terminal.type(b"hostname; echo $FLEETFORM_RUN_NAME\n")
        terminal.until(rb"\nshell\r\n(?s:.*)[#$] ")
        terminal.type(b"exit\n")

    def keeper(terminal: Terminal) -> None:
        terminal.until(rb"ends the shell\r\n(?s:.*)[#$] ")
        terminal.type(b"exit\n")

    def ssh(terminal: Terminal) -> None:
        terminal.until(rb"[#$] ")
        terminal.type(b"ls\n")
        terminal.until(rb"results(?s:.*)[#$] ")
        terminal.type(b"touch stop-here; exit\n")

    def attach(terminal: Terminal) -> None:
        terminal.until(rb"epoch 1\r\n")
        found = re.search(rb"localhost:(\d+) -> port 8888", terminal.shown)
        assert found is not None, terminal.shown
        tree.wait_until(lambda: answers(int(found[1])), "the forwarded port")
        terminal.type(b"\x03")

    def sftp(terminal: Terminal) -> None:
        terminal.until(rb"sftp> ")
        terminal.type(b"ls results\n")
        terminal.until(rb"results/log")
        terminal.type(b"bye\n")

    done = {
        "fleetform shell --cpus 1 --memory 1GB --time 2h": lambda line: page.record(line, shell),
        "fleetform shell --name keeper --keep --time 1h": lambda line: page.show(line, keeper),
        "fleetform exec keeper -- hostname": page.run,
        "fleetform stop keeper": page.run,
        "fleetform attach train": lambda line: page.record(line, attach, 130),
        "fleetform ssh train": lambda line: page.record(line, ssh),
        "fleetform ssh-config > ~/.ssh/fleetform": page.run,
        "ssh train.fleetform nproc": page.run,
        "scp -r train.fleetform:results .": page.run,
        "sftp train.fleetform": lambda line: page.show(line, sftp),
        "rsync -a -e ssh results/ train.fleetform:results/": page.run,
        "ssh -N -L 9000:localhost:8888 train.fleetform": page.forwarded,
    }
    assert sorted(done) == sorted(page_commands())
    # A run that ends is the last to be looked at.
    last = "fleetform ssh train"
    for line in [*(one for one in page_commands() if one != last), last]:
        done[line](line)
    tree.wait_until_state("train", "done")
    assert (tree.tree / "results/log").read_text() == "epoch 1\n"
    assert tree.run("logs", "train").stdout == "epoch 1\nepoch 2\n"
    if shutil.which("mpirun") is not None:
        tree.declare(first, mpi)
        applied = tree.run("apply", "-y")
        assert applied.returncode == 0, applied.stdout + applied.stderr
        assert sorted(tree.run("logs", "mpi", "--rank", "0").stdout.split()) == ["node1", "node2"]
    text = PAGE.read_text()
    for line, recorded in page.recorded.items():
        block = f"    {line}\n\n```text\n"
        begin = text.index(block) + len(block)
        text = text[:begin] + recorded + text[text.index("```", begin) :]
    if os.environ.get("FLEETFORM_TEST_RECORD"):
        PAGE.write_text(text)
    assert text == PAGE.read_text()
