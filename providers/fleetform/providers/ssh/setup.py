"""
How a host gets its agent: generators of commands, whose outputs are sent back.

Nothing here connects to anything: one driver runs the commands over SSH, a test sends outputs from
a list. A command is a line for the account's login shell, which may be bash, zsh, dash, fish or
tcsh, and the bytes of its standard input. Shell start-up files may print: what a command says
begins after a line with the marker.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

from fleetform.providers import host_facts, host_service
from fleetform.providers.contract.checks import HostFacts
from fleetform.providers.contract.errors import AgentFound, PermanentError, TemporaryError
from fleetform.providers.contract.hosts import InstanceRequest
from fleetform.providers.ssh import host_program

MARKER = "fleetform-begins-here"

_PYTHONS = (
    "python3.13",
    "python3.12",
    "python3.11",
    "python3.10",
    "python3.9",
    "python3",
    "python3.14",
)
"""The newest with which the agent is tested comes first."""  # fmt: skip

_IS_FIT = """\
import sys, importlib.util
parts = ("json", "zipfile", "asyncio")
sys.exit(sys.version_info < (3, 9) or None in map(importlib.util.find_spec, parts))
"""
"""Minimal installations lack some parts; they are looked for, as importing them takes 0.1 s."""

# POSIX, and read from standard input, so that no login shell interprets it.
_FIND_PYTHON = f"""\
PATH=${{PATH:-/usr/bin:/bin}}:/usr/local/bin:/usr/bin:/bin
system=$(uname -s)
if [ "$system" != Linux ]; then echo "system $system"; exit 0; fi
for name in {" ".join(_PYTHONS)}; do
    path=$(command -v "$name" 2>/dev/null) || continue
    if "$path" -I -S -c '{_IS_FIT}' </dev/null >/dev/null 2>&1
    then echo "python $path"; exit 0; fi
done
"""

# `sudo` as it is called later: a rule may permit this program and no other. In the language of the
# answers that are known below.
_TRY_SUDO = """\
LC_ALL=C; export LC_ALL
answer=$(sudo -n -H "$path" -I -S -c "" </dev/null 2>&1)
echo "sudo $? $(printf %s "$answer" | tr '\\n' ' ')"
"""

_NEEDS_TERMINAL = "must have a tty"
"""sudoers(5), `requiretty`."""

_NEEDS_PASSWORD = ("a password is required", "no askpass program")

# In single quotes all of the shells above take these literally.
_PLAIN = re.compile(r"[^'\\!\n]+")

_Answer = TypeVar("_Answer")


@dataclass(frozen=True, slots=True)
class Command:
    """
    A line for the login shell, which prints the marker first, and its standard input.

    `has_terminal`: it gets a terminal that passes all bytes as they are, and no end of its input.
    """

    line: str
    stdin: bytes = b""
    has_terminal: bool = False


@dataclass(frozen=True, slots=True)
class Output:
    """What a command printed after the marker, on standard error, and how it ended."""

    text: str
    complaint: str = ""
    exit_code: int | None = 0
    has_begun: bool = True
    """The marker was printed; without it `text` is all that came."""


Steps = Generator[Command, Output, _Answer]


@dataclass(frozen=True, slots=True)
class Python:
    """
    The Python of a host, and how the account becomes root to run it.

    `has_terminal`: sudo wants a terminal.
    """

    path: str
    by_sudo: bool = False
    has_terminal: bool = False

    def command(self, words: Sequence[str], stdin: bytes = b"") -> Command:
        """Return the command that runs it, with this standard input."""
        line = " ".join(_quoted(word) for word in (self.path, *words))
        if self.by_sudo:
            line = f"sudo -n -H {line}"
        return Command(f"echo {MARKER}; exec {line}", stdin, self.has_terminal)


@dataclass(frozen=True, slots=True)
class Bundle:
    """The agent as one file; `sha256` is the whole digest of it."""

    content: bytes
    sha256: str

    @classmethod
    def read(cls, path: Path) -> Bundle:
        content = path.read_bytes()
        return cls(content, hashlib.sha256(content).hexdigest())


@dataclass(frozen=True, slots=True)
class Installed:
    """An agent's place on its host, as absolute paths there."""

    python: Python
    bundle: str
    root: str
    volumes: str
    """The folder that has the volumes of all environments."""

    failure: str = ""
    """Why the agent of this release does not run; `bundle` is that of the earlier one, which does."""

    notes: tuple[str, ...] = ()
    """What a person should know about the host."""

    @property
    def connect(self) -> Command:
        """Return the command that connects its input and output to the agent."""
        return self.python.command(("-I", "-S", self.bundle, "connect", "--root", self.root))


@dataclass(frozen=True, slots=True)
class Claimed:
    """
    An instance's place on its host before its agent is started.

    `earlier` is the bundle of the agent that runs, or ran last; empty where there was none.
    """

    python: Python
    bundle: str
    root: str
    folder: str
    earlier: str
    volumes: str
    is_ready: bool
    """The agent of the bundle runs and listens already."""

    @property
    def is_update(self) -> bool:
        return self.earlier not in {"", self.bundle}


def claim(request: InstanceRequest, environment_uid: str, bundle: Bundle) -> Steps[Claimed]:
    """Make the instance's folder, and upload the agent where it is missing."""
    python = yield from find_python(request)
    facts = _facts(request, environment_uid, bundle)
    found = yield from _operation(request.name, python, "claim", facts)
    if not found["is_sound"]:
        content = base64.b64encode(bundle.content).decode("ascii")
        yield from _operation(request.name, python, "store", {**facts, "content": content})
    return Claimed(
        python,
        found["bundle"],
        found["root"],
        facts["folder"],
        found["earlier"],
        found["volumes"],
        found["is_ready"],
    )


def start(name: str, claimed: Claimed, bundle: str) -> Steps[Installed]:
    """Have an agent of the bundle run; where it does not start, the earlier one runs."""
    if claimed.is_ready and bundle == claimed.bundle:
        return Installed(claimed.python, bundle, claimed.root, claimed.volumes)
    place = {"bundle": bundle, "root": claimed.root, "folder": claimed.folder}
    found = yield from _operation(name, claimed.python, "start", place)
    return Installed(
        claimed.python,
        found["bundle"],
        claimed.root,
        claimed.volumes,
        found["failure"],
        tuple(found["notes"]),
    )


def install(request: InstanceRequest, environment_uid: str, bundle: Bundle) -> Steps[Installed]:
    """Make the instance's folder, upload the agent where it is missing, and start it."""
    claimed = yield from claim(request, environment_uid, bundle)
    return (yield from start(request.name, claimed, claimed.bundle))


def resume(request: InstanceRequest, installed: Installed) -> Steps[None]:
    """Start an agent that has ended; one that runs stays, of whichever release it is."""
    place = {"bundle": installed.bundle, "root": installed.root, "folder": _folder(request)}
    yield from _operation(request.name, installed.python, "start", {**place, "is_update": False})


@dataclass(frozen=True, slots=True)
class FoundInstance:
    """An instance of the environment whose folder is on a host."""

    uid: str
    name: str
    fleet: str
    is_alive: bool


def instances(request: InstanceRequest, environment_uid: str) -> Steps[list[FoundInstance]]:
    """List the instances of an environment on a host, without changing anything there."""
    python = yield from find_python(request)
    asked = {"environment_uid": environment_uid, "folder": _folder(request)}
    answer = yield from _operation(request.name, python, "list", asked)
    return [
        FoundInstance(one["uid"], one["name"], one["fleet"], bool(one["is_alive"]))
        for one in answer["instances"]
    ]


def find(request: InstanceRequest, environment_uid: str, bundle: Bundle) -> Steps[Installed | None]:
    """Find the instance's agent, installed by whichever release; None where there is none."""
    python = yield from find_python(request)
    facts = _facts(request, environment_uid, bundle)
    found = yield from _operation(request.name, python, "find", facts)
    if not found["root"]:
        return None
    return Installed(python, found["any_bundle"], found["root"], found["volumes"])


def remove(request: InstanceRequest, environment_uid: str, bundle: Bundle) -> Steps[None]:
    """Remove the folder of an agent that has ended."""
    python = yield from find_python(request)
    facts = _facts(request, environment_uid, bundle)
    yield from _operation(request.name, python, "remove", facts)


def check(request: InstanceRequest, person: str) -> Steps[HostFacts]:
    """Read what the host is like for a person's account, without changing anything there."""
    python = yield from find_python(request)
    answer = yield from run_program(
        request.name,
        python,
        "check",
        host_facts,
        {"folder": _folder(request) or host_program.STATE, "person": person},
    )
    try:
        return HostFacts.read(answer)
    except ValueError as error:
        raise PermanentError(f"instance {request.name}: {error}") from error


def find_python(request: InstanceRequest) -> Steps[Python]:
    name = request.name
    by_sudo = bool(request.endpoint.get("become"))
    script = _FIND_PYTHON
    if by_sudo:
        script = script.replace(
            'echo "python $path"; exit', f'echo "python $path"\n{_TRY_SUDO}exit'
        )
    output = yield _command("/bin/sh -s", script.encode())
    _check_begun(name, output)
    path = ""
    for line in output.text.splitlines():
        word, _, value = line.partition(" ")
        if word == "python" and value.startswith("/"):
            path = value
        if path and not by_sudo:
            return Python(path)
        if path and word == "sudo":
            return _by_sudo(request, path, value)
        if word == "system":
            raise PermanentError(
                f"instance {name}: its host runs {value}, and agents run on Linux only",
                advice="replace the host in `ssh_config`",
            )
    raise PermanentError(
        f"instance {name}: its host has no Python 3.9 or newer",
        advice="install one on the host, for example `apt-get install python3` or `dnf install python3`",
    )


def _by_sudo(request: InstanceRequest, path: str, answer: str) -> Python:
    """Judge what `sudo` answered: its exit code and what it printed."""
    code, _, printed = answer.partition(" ")
    if code == "0":
        return Python(path, by_sudo=True)
    if _NEEDS_TERMINAL in printed:
        # Whether it permits the program shows when it has one.
        return Python(path, by_sudo=True, has_terminal=True)
    user = request.endpoint.get("user") or "the account"
    rule = (
        f"`{user} ALL=(root) NOPASSWD: ALL`"
        if user != "the account"
        else "a rule with `NOPASSWD: ALL`"
    )
    visudo = f"add {rule} to the sudoers of the host with `visudo -f /etc/sudoers.d/fleetform`"
    if code == "127" or "not found" in printed:
        message, advice = "its host has no sudo", "install it on the host, or sign in as root"
    elif any(words in printed for words in _NEEDS_PASSWORD):
        message, advice = f"sudo asks {user} for a password on its host", visudo
    else:
        last = printed.strip()[-300:] or f"exit code {code}"
        message, advice = f"{user} cannot become root by sudo on its host: {last}", visudo
    raise PermanentError(f"instance {request.name}: {message}", advice=advice)


def _operation(name: str, python: Python, operation: str, facts: Mapping[str, Any]) -> Steps[Any]:
    """Run one operation of `host_program`, and raise what it refuses."""
    request = {"operation": operation, **facts}
    answer = yield from run_program(name, python, operation, host_program, request)
    if "error" not in answer:
        return answer
    message = f"instance {name}: {answer['error']}"
    if answer["is_temporary"]:
        raise TemporaryError(message, delay_seconds=10.0)
    if found_uid := answer.get("found_uid"):
        raise AgentFound(message, uid=found_uid, advice=answer["advice"])
    raise PermanentError(message, advice=answer["advice"])


def run_program(
    name: str, python: Python, purpose: str, module: ModuleType, request: Mapping[str, Any]
) -> Steps[Any]:
    """Run `run` of a module in the host's Python; returns the JSON that it prints."""
    # JSON twice: a JSON string in ASCII is a Python string.
    text = json.dumps(json.dumps(request))
    program = (
        f"{_LOADER}\nload({host_service.__name__!r}, {_source(host_service)})\n"
        f"run = load({module.__name__!r}, {_source(module)}).run\nrun(json.loads({text}))\n"
    )
    words = ["-"]
    if python.has_terminal:
        # A terminal has no end of input, so the program is read by its size.
        size = len(program.encode())
        words = ["-c", f'import sys; exec(compile(sys.stdin.buffer.read({size}), "-", "exec"))']
    output = yield python.command(("-I", "-S", *words), program.encode())
    _check_begun(name, output)
    try:
        # What comes before it on a terminal was said by sudo.
        return json.loads(output.text.strip().rpartition("\n")[2])
    except ValueError:
        sudo = "sudo -n " if python.by_sudo else ""
        raise PermanentError(
            f"instance {name}: its host cannot be set up ({purpose}): {_last_line(output)}",
            advice=f"try `{sudo}{python.path} -I -S -c 'import json'` on the host",
        ) from None


# Modules of the host's side import each other by their names here.
_LOADER = """\
import json, sys, types
def load(name, source):
    module, above = types.ModuleType(name), name.split(".")[:-1]
    for count in range(1, len(above) + 1):
        sys.modules.setdefault(".".join(above[:count]), types.ModuleType(".".join(above[:count])))
    sys.modules[name] = module
    setattr(sys.modules[".".join(above)], name.split(".")[-1], module)
    exec(compile(source, name, "exec"), module.__dict__)
    return module
"""


def _source(module: ModuleType) -> str:
    """Return the source of a module as a string of Python."""
    assert module.__file__ is not None, "it is a file"
    return json.dumps(Path(module.__file__).read_text(encoding="utf-8"))


def _check_begun(name: str, output: Output) -> None:
    if not output.has_begun:
        raise PermanentError(
            f"instance {name}: the login shell of its host runs no commands: {_last_line(output)}",
            advice="give the account a shell such as /bin/bash with `chsh`",
        )


def _last_line(output: Output) -> str:
    text = output.complaint.strip() or output.text.strip()
    if not text:
        return f"it printed nothing and ended with exit code {output.exit_code}"
    return text.splitlines()[-1][:300]


def _facts(request: InstanceRequest, environment_uid: str, bundle: Bundle) -> dict[str, str]:
    return {
        "uid": request.uid,
        "name": request.name,
        "fleet": request.fleet,
        "environment_uid": environment_uid,
        "sha256": bundle.sha256,
        "folder": _folder(request),
    }


def _folder(request: InstanceRequest) -> str:
    """Return the declared folder of the agents; empty: that of every account."""
    return str(request.endpoint.get("agent_dir") or "")


def _command(line: str, stdin: bytes = b"") -> Command:
    return Command(f"echo {MARKER}; exec {line}", stdin)


def _quoted(word: str) -> str:
    if not _PLAIN.fullmatch(word):
        raise PermanentError(
            f"the path {word!r} on the host has a character that shells read differently",
            advice="use a home folder and a Python without quotes, backslashes and ! in their paths",
        )
    return f"'{word}'"
