"""
Terminal sessions of `fleetform shell`, `attach` and `ssh RUN`: recorded on two hosts over SSH.

    sudo .venv/bin/python docs/sessions.py     write docs/sessions/*.cast and *.svg

A `.cast` is played in a terminal with `asciinema play FILE`; the picture is what is on the screen at the end.
It starts a lab of its own in a temporary folder, which is ended afterwards, and needs root for that.
"""

from __future__ import annotations

import codecs
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from picture import drawn

from integration.terminal import Terminal
from lab import lab

FOLDER = Path(__file__).parent / "sessions"

ROWS, COLUMNS = 24, 92
_KEY_SECONDS = 0.03
_LOOK_SECONDS = 0.8
"""A person reads an answer before they type again."""

_DOCUMENTS = {
    "environment.yaml": "type: environment\nname: lab\nuid: 4a6d1c0f2b7e4f52a4a3c1d0ffee0002\n",
    "fleet.yaml": "type: fleet\nname: lab\nssh_config: {user: lab, hosts: [node1, node2]}\n",
    "train.yaml": """\
type: task
name: train
commands:
  - python3 -m http.server 8888 --bind 127.0.0.1 &
  - mkdir results
  - for epoch in $(seq 1000); do echo "epoch $epoch" | tee -a results/log; sleep 1; done
ports: ["*:8888"]
""",
}


class Session(Terminal):
    """A terminal with a shell, in which a person types."""

    def __init__(self, directory: Path, variables: dict[str, str]) -> None:
        self.began = time.monotonic()
        self.events: list[tuple[float, bytes]] = []
        self._read_from = 0
        command = ["bash", "--norc", "--noprofile"]
        super().__init__(command, directory, {**variables, "PS1": "$ "}, (ROWS, COLUMNS))
        self.wait(r"\$ $")

    def _read(self) -> None:
        before = len(self.shown)
        super()._read()
        if new := self.shown[before:]:
            self.events.append((time.monotonic() - self.began, new))

    def enter(self, line: str, answer: str = r"[$#] $") -> None:
        """Type a line; returns when the answer is there, without it the next prompt."""
        time.sleep(_LOOK_SECONDS)
        self._read_from = len(self.shown)
        for key in f"{line}\n":
            self.type(key.encode())
            time.sleep(_KEY_SECONDS)
            self._read()
        self.wait(answer)

    def press(self, key: bytes, answer: str = r"[$#] $") -> None:
        time.sleep(_LOOK_SECONDS)
        self._read_from = len(self.shown)
        self.type(key)
        self.wait(answer)

    def wait(self, answer: str) -> re.Match[str]:
        deadline = time.monotonic() + 60
        # The line that was typed is no answer.
        while not (found := re.search(answer, self.answer().partition("\n")[2] or self.answer())):
            if time.monotonic() > deadline:
                raise SystemExit(f"{answer} never came:\n{self.shown.decode()}")
            self._read()
        return found

    def answer(self) -> str:
        text = plain(self.shown[self._read_from :].decode(errors="replace"))
        return re.sub(r"\x1b\[[0-9;]*m", "", text)


def plain(shown: str) -> str:
    """Remove escape sequences other than colours."""
    text = re.sub(r"\x1b\][^\x07]*\x07|\x1b\[[0-9;?]*[A-LN-Za-ln-z]", "", shown)
    return text.replace("\r", "")


def play_shell(session: Session) -> None:
    session.enter(
        "fleetform shell --cpus 1 --memory 1GB --time 2h", r"ends the shell\n(?s:.*)[$#] $"
    )
    session.enter("hostname; whoami; echo $FLEETFORM_RUN_NAME")
    session.enter("exit", r"shell: done\n(?s:.*)\$ $")
    session.enter("fleetform ps shell")


def play_attach(session: Session) -> None:
    session.enter("fleetform attach train --tail 3", r"epoch \d+\n(?s:.*)epoch \d+\n")
    found = re.search(r"localhost:(\d+) -> port 8888", session.answer())
    assert found is not None, session.shown
    # As a browser on this machine does; the server in the job prints the request.
    with urllib.request.urlopen(f"http://localhost:{found[1]}/results/", timeout=10) as page:
        assert "log" in page.read().decode()
    session.wait(r"GET /results/(?s:.*)epoch \d+\n")
    session.press(b"\x03", r"attaches again\n(?s:.*)\$ $")
    session.enter("fleetform ps train")


def play_ssh(session: Session) -> None:
    session.enter("fleetform ssh train")
    session.enter("hostname; ls; tail -n 2 results/log")
    session.enter("exit", r"closed\.\n(?s:.*)\$ $")
    session.enter("fleetform ssh train -- 'wc -l < results/log'", r"\d+\n(?s:.*)\$ $")


PLAYS: dict[str, Callable[[Session], None]] = {
    "shell": play_shell,
    "attach": play_attach,
    "ssh": play_ssh,
}


def main() -> int:
    """Start a lab, record each session, and end the lab; the exit code of this program."""
    FOLDER.mkdir(exist_ok=True)
    program = shutil.which("fleetform", path=Path(sys.executable).parent)
    assert program is not None, "fleetform is not installed beside this Python"
    with tempfile.TemporaryDirectory() as name, lab(Path(name), hosts=2) as hosts:
        folder, home = Path(name, "environment"), Path(name, "home")
        (home / ".ssh").mkdir(parents=True, mode=0o700)
        (home / ".ssh/config").write_text(hosts.config.read_text())
        folder.mkdir()
        for file, text in _DOCUMENTS.items():
            (folder / file).write_text(text)
        variables = {
            "HOME": str(home),
            "PATH": f"{Path(program).parent}:{os.environ['PATH']}",
            "LANG": "C.UTF-8",
        }
        for host in hosts.hosts:
            # The folder of a job is too long for the prompt of a picture.
            hosts.run(host, "sh", "-c", "echo PROMPT_DIRTRIM=1 > /home/lab/.bashrc")
        call = [program, "apply", "-y", "--detach"]
        try:
            subprocess.run(call, cwd=folder, env=variables, check=True, stdin=subprocess.DEVNULL)
            _await_output(program, folder, variables)
            for title, play in PLAYS.items():
                _record(title, play, folder, variables)
        finally:
            subprocess.run([program, "controller", "stop"], cwd=folder, env=variables, check=False)
    return 0


def _await_output(program: str, folder: Path, variables: dict[str, str]) -> None:
    command = [program, "logs", "train"]
    while "epoch 2" not in subprocess.run(
        command, cwd=folder, env=variables, capture_output=True, text=True, check=False
    ).stdout:  # fmt: skip
        time.sleep(0.5)


def _record(
    title: str, play: Callable[[Session], None], folder: Path, variables: dict[str, str]
) -> None:
    session = Session(folder, variables)
    try:
        play(session)
    finally:
        session.close()
    header = {"version": 2, "width": COLUMNS, "height": ROWS, "title": f"fleetform {title}"}
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    lines = [json.dumps(header)]
    lines += [json.dumps([round(at, 3), "o", decoder.decode(new)]) for at, new in session.events]
    (FOLDER / f"{title}.cast").write_text("\n".join(lines) + "\n")
    shown = plain(session.shown.decode(errors="replace")).rstrip("$ \n")
    picture = drawn(
        shown, title=f"fleetform {title}: a terminal", program="docs/sessions.py", name=title
    )
    (FOLDER / f"{title}.svg").write_text(picture)


if __name__ == "__main__":
    sys.exit(main())
