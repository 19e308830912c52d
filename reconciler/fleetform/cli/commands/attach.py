"""`fleetform attach`: a run's output and its ports, here, until the run is over."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import re
import shlex
import sys
import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import click

from fleetform.cli.command import command as make_command
from fleetform.cli.command import directory_option
from fleetform.cli.exit import ATTACH_CODES, Exit
from fleetform.cli.failure import Refused
from fleetform.cli.screen import error_screen, say_line
from fleetform.cli.selection import Reread, complete_runs, one_run, select_runs, some
from fleetform.cli.tree import directory_words, open_reader, open_workspace, or_default
from fleetform.model.instance import LOCAL
from fleetform.model.run_state import FINAL, RunState

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fleetform.app.port_forwards import PortForwards, Target
    from fleetform.app.workspace import Workspace
    from fleetform.model.ports import Reader, RunHistory
    from fleetform.model.run import PortMapping

_EXAMPLES = (
    (
        "fleetform attach train",
        "Follow the output, and forward the ports that the document declares",
    ),
    ("fleetform attach train -p 9000:8888", "Reach the job's port 8888 at localhost:9000, too"),
    ("fleetform attach train --rank 1 --tail 20", "Forward from rank 1, from the last 20 lines on"),
)
_PORT = re.compile(r"(?:(?P<local>\d{1,5}|\*):)?(?P<port>\d{1,5})")
_PORT_MAX = 65_535


@make_command("attach", examples=_EXAMPLES, codes=ATTACH_CODES)
@click.argument("run", shell_complete=complete_runs)
@directory_option
@click.option(
    "-p",
    "--port",
    "ports",
    multiple=True,
    metavar="[LOCAL:]PORT",
    help="Forward this port of the job too; with LOCAL, from another local port, `*` for any free one.",
)
@click.option(
    "--rank", type=click.IntRange(min=0), help="Rank whose ports are forwarded.  [default: 0]"
)
@click.option(
    "--tail", type=click.IntRange(min=0), metavar="N", help="Begin with the last N lines."
)
def command(
    run: str, path: str | None, ports: tuple[str, ...], rank: int | None, tail: int | None
) -> int:
    """
    Follow RUN here: its output, and its ports on localhost.

    Prints the output of all ranks and forwards the ports that the document declares as `ports`: a
    program that listens on port 8888 of the job is at localhost:8888. If the run waits, attach waits
    and shows why. If the connection to the host is lost, attach connects again.

    Ends when the run is over, with its exit code. Ctrl-C detaches: the run continues.
    """
    workspace = open_workspace(or_default(path))
    reader = open_reader(workspace)
    history = _one(select_runs(reader, [run]), run)
    name = history.run.name
    mappings = _mappings(history.run.template.ports, ports)
    say = error_screen()
    try:
        with _forwarding(workspace, name, rank or 0, mappings, history):
            _follow(workspace, reader, name, tail)
    except KeyboardInterrupt:
        again = (
            f"fleetform attach{directory_words(workspace, finds_default=True)} {shlex.quote(name)}"
        )
        # The terminal may be closed: the line is lost then.
        with contextlib.suppress(OSError):
            say.line(f"\ndetached: {name} continues", "note")
            say.labelled("help", f"`{again}` attaches again")
            say.flush()
        return Exit.INTERRUPTED
    return _say_end(one_run(reader, name))


def _one(histories: Sequence[RunHistory], typed: str) -> RunHistory:
    if len(histories) > 1:
        raise Refused(
            f"`{typed}` means {len(histories)} runs, and attach takes one",
            advice=f"name one: {some([one.run.name for one in histories])};"
            f" `fleetform logs {shlex.quote(typed)} -f` follows all",
        )
    history = histories[0]
    if history.run.state in FINAL:
        name = history.run.name
        raise Refused(
            f"`{name}` is over: it is {history.run.state}",
            advice=f"`fleetform logs {shlex.quote(name)}` prints its output",
        )
    return history


# -- output -----------------------------------------------------------------------------------------


def _follow(workspace: Workspace, reader: Reader, name: str, tail: int | None) -> None:
    from fleetform.cli.logs import ControllerNotice, follow
    from fleetform.cli.wait_notices import WaitNotices

    say, out = error_screen(), sys.stdout.buffer
    notices = WaitNotices(reader, say)
    read = Reread(reader, lambda: one_run(reader, name))

    def reread() -> RunHistory:
        history = read()
        notices.look(history)
        return history

    for piece in follow(
        reread,
        workspace.logs(),
        rank=None,
        tail=tail,
        notice=lambda text: say.line(text, "note"),
        sleep=ControllerNotice(workspace, say),
    ):
        out.write(piece)
        out.flush()


def _say_end(history: RunHistory) -> int:
    run = history.run
    message = f": {run.message}" if run.message else ""
    tone = "good" if run.state is RunState.DONE else "bad"
    error_screen().line(f"{run.name}: {run.state}{message}", tone)
    if run.state is RunState.DONE:
        return Exit.OK
    jobs = history.attempts[-1].jobs if history.attempts else ()
    # Of the first rank that failed: a code that says more than that the run did.
    for job in jobs:
        if job.exit_code:
            return job.exit_code
        if job.signal:
            return 128 + job.signal
    return Exit.RUN_FAILED


# -- ports ------------------------------------------------------------------------------------------


def _mappings(declared: Sequence[PortMapping], typed: Sequence[str]) -> list[PortMapping]:
    """Join what the document and the options say; an option stands in place of a declared port."""
    wanted = [_mapping(text) for text in typed]
    instead = {one.port for one in wanted}
    return [*(one for one in declared if one.port not in instead), *wanted]


def _mapping(text: str) -> PortMapping:
    from fleetform.model.run import PortMapping

    found = _PORT.fullmatch(text)
    numbers = [] if found is None else [one for one in found.groups() if one and one != "*"]
    if found is None or not all(1 <= int(one) <= _PORT_MAX for one in numbers):
        raise Refused(f"-p {text} is not a port", advice="write -p 8888, or -p 9000:8888")
    port, local = int(found["port"]), found["local"]
    return PortMapping(port, None if local == "*" else int(local or port))


@contextlib.contextmanager
def _forwarding(
    workspace: Workspace,
    name: str,
    rank: int,
    mappings: Sequence[PortMapping],
    history: RunHistory,
) -> Iterator[None]:
    """
    Forward ports in a thread of their own, as long as the block lasts.

    Also without any: the connection is what tells that the host does not answer.
    """
    nodes = history.run.template.nodes
    if rank >= nodes:
        raise Refused(f"there is no rank {rank}", advice=f"the ranks are 0 to {nodes - 1}")
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True, name="ports")
    thread.start()

    def call(work: object) -> None:
        asyncio.run_coroutine_threadsafe(work, loop).result()  # type: ignore[arg-type]  # a coroutine

    running: list[asyncio.Future[None]] = []
    find = _finder(workspace, name, rank)
    forwards = _forwards(workspace, find)

    async def start() -> None:
        target = find()
        # A job that begins on this machine needs its port itself.
        later = [one for one in mappings if target is None and one.local_port == one.port]
        for mapping in mappings:
            if mapping not in later:
                await _listen(forwards, mapping, name, target)
        running.append(asyncio.ensure_future(listen_later(later)))
        running.append(asyncio.ensure_future(forwards.run()))

    async def listen_later(later: Sequence[PortMapping]) -> None:
        if later:
            # The first connection says that the job runs, and where.
            await forwards.has_begun.wait()
        for mapping in later:
            try:
                await _listen(forwards, mapping, name, forwards.target)
            except Refused as refused:
                # The output goes on.
                screen = error_screen()
                screen.labelled("warning", refused.message)
                screen.labelled("help", refused.advice)
                screen.flush()

    async def stop() -> None:
        others = [one for one in asyncio.all_tasks() if one is not asyncio.current_task()]
        for one in others:
            one.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    try:
        call(start())
        yield
    finally:
        call(stop())
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def _forwards(workspace: Workspace, find: Callable[[], Target | None]) -> PortForwards:
    from fleetform.app.exec_in_job import open_streams
    from fleetform.app.port_forwards import PortForwards

    return PortForwards(
        find, lambda instance: open_streams(workspace, instance, say_line), say_line
    )


def _finder(workspace: Workspace, name: str, rank: int) -> Callable[[], Target | None]:
    from fleetform.agents.protocol.states import JobState
    from fleetform.app.port_forwards import Target

    def find() -> Target | None:
        # A reader of this thread's own: a connection is not passed around.
        reader = workspace.reader()
        if reader is None:
            return None
        with contextlib.closing(reader):
            found = [one for one in reader.read_runs([name]) if one.run.name == name]
            jobs = found[-1].attempts[-1].jobs if found and found[-1].attempts else ()
            for job in jobs:
                if job.key.rank == rank and job.state is JobState.RUNNING:
                    instances = reader.read_book([found[-1].run.uid]).instances
                    return next(
                        (Target(job, one) for one in instances if one.uid == job.instance_uid), None
                    )
        return None

    return find


async def _listen(
    forwards: PortForwards, mapping: PortMapping, name: str, target: Target | None
) -> None:
    say = error_screen()
    is_here = target is not None and target.instance.provider == LOCAL
    if is_here and mapping.local_port == mapping.port:
        say.line(f"localhost:{mapping.port} is {name}: its host is this machine", "note")
        say.flush()
        return
    try:
        local = await forwards.listen(mapping)
    except OSError as error:
        if error.errno not in {errno.EADDRINUSE, errno.EACCES}:
            raise
        port, other = (
            mapping.port,
            (mapping.local_port or 0) + (10_000 if mapping.local_port else 0),
        )
        other = other if 1024 < other <= _PORT_MAX else 18_080
        is_taken = error.errno == errno.EADDRINUSE
        why = "is taken by another program" if is_taken else "needs the rights of root"
        raise Refused(
            f"port {mapping.local_port} of this machine {why}",
            advice=f'write `ports: ["{other}:{port}"]` in the document, `"*:{port}"` for any free port,'
            f" or `fleetform attach {shlex.quote(name)} -p {other}:{port}`",
        ) from None
    say.line(f"localhost:{local} -> port {mapping.port} of {name}", "note")
    say.flush()
