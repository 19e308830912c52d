"""
The options of `srun` (srun(1)): which ones the stand-in carries out, and which ones need nothing done.

An option that would change what runs, and is not carried out, is an error: a step that silently does
something else is worse than one that does not start.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

VALUED = {
    "-n": "--ntasks", "-c": "--cpus-per-task", "-N": "--nodes", "-D": "--chdir", "-o": "--output",
    "-e": "--error", "-G": "--gpus", "-J": "--job-name", "-A": "--account", "-p": "--partition",
    "-q": "--qos", "-w": "--nodelist", "-m": "--distribution", "-C": "--constraint", "-W": "--wait",
}  # fmt: skip
"""Short options with a value, and what they are short for."""

FLAGS = {
    "-l": "--label", "-O": "--overcommit", "-s": "--oversubscribe", "-u": "--unbuffered",
    "-Q": "--quiet", "-v": "--verbose", "-k": "--no-kill", "-X": "--disable-status",
}  # fmt: skip
"""Short options without a value."""

OPTIONAL = {"-K": "--kill-on-bad-exit", "-I": "--immediate"}
"""Short options whose value, if any, is part of the same word."""

_SUPPORTED = frozenset(
    {
        "--ntasks", "--ntasks-per-node", "--nodes", "--cpus-per-task", "--label", "--chdir",
        "--output", "--error", "--export", "--gpus", "--gpus-per-node", "--gpus-per-task", "--gres",
        "--kill-on-bad-exit",
    }
)  # fmt: skip

IGNORED = {
    "The host does not bind tasks: they share the CPUs of the job.": (
        "--cpu-bind --cpu_bind --mem-bind --mem_bind --hint --distribution --threads-per-core --cores-per-socket"
        " --sockets-per-node --ntasks-per-core --ntasks-per-socket --cpu-freq --accel-bind"
    ),
    "Steps do not wait for each other: steps that run at the same time share the resources of the job.": (
        "--exclusive --exact --overlap --overcommit --oversubscribe --immediate --wait --whole --mem"
        " --mem-per-cpu --mem-per-gpu --cpus-per-gpu"
    ),
    "It selects or describes hosts, and the job already has its host.": (
        "--account --partition --qos --nodelist --constraint --contiguous --comment --job-name --network --no-kill"
    ),
    "Tasks are plain processes; a program that needs a process manager starts `mpirun`.": "--mpi",
    "Output is printed as it is written, and nothing else is printed.": (
        "--unbuffered --quiet --verbose --disable-status"
    ),
}
"""Options without an effect, by the reason why they need none."""

_IGNORED = frozenset(name for names in IGNORED.values() for name in names.split())
KNOWN = _SUPPORTED | _IGNORED

_WITHOUT_VALUE = frozenset(
    {
        "--label", "--exact", "--overlap", "--overcommit", "--oversubscribe", "--unbuffered",
        "--quiet", "--verbose", "--no-kill", "--disable-status", "--contiguous", "--whole",
    }
)  # fmt: skip
_MAYBE_VALUE = frozenset({"--exclusive", "--kill-on-bad-exit", "--immediate"})


class OptionError(Exception):
    """The options cannot be carried out; the message says which one and what to do."""


class Options(NamedTuple):
    """
    What a step is to be. `tasks` is None where the options say nothing about it.

    `gpus_per_task` is 0 where each task sees all GPUs of the job.
    """

    program: list[str]
    tasks: int | None = None
    cpus_per_task: int = 0
    label: bool = False
    directory: str = ""
    output: str = ""
    error: str = ""
    export: str = "ALL"
    gpus_per_task: int = 0
    kill_on_bad_exit: bool = False


def parse(arguments: Sequence[str], *, gpus: int = 0, nodes: int = 1) -> Options:
    """
    Read the words behind `srun`.

    Args:
        arguments: Up to the program are options; the rest is its own.
        gpus: How many the job has: a step has all of them.
        nodes: How many the job has; with more than one, nothing can be started.

    Raises:
        OptionError: An option is unknown, or asks for what is not supported.
    """
    rest = list(arguments)
    said: dict[str, str] = {}
    for name, value in _options(rest):
        if name in _IGNORED:
            continue
        if name not in _SUPPORTED:
            raise OptionError(
                f"option `{name}` is not supported by this stand-in for srun: leave it out, or start the"
                " program without srun"
            )
        said[name] = value
    if not rest:
        raise OptionError("there is no program to start: srun [OPTIONS] PROGRAM [ARGUMENTS]")
    _check_nodes(nodes, said.get("--nodes", str(nodes)))
    for name in ("--gpus", "--gpus-per-node", "--gres"):
        _check_gpus(name, said.get(name), gpus)
    tasks = said.get("--ntasks", said.get("--ntasks-per-node"))
    return Options(
        program=rest,
        tasks=None if tasks is None else _count("--ntasks", tasks),
        cpus_per_task=_count("--cpus-per-task", said["--cpus-per-task"])
        if "--cpus-per-task" in said
        else 0,
        label="--label" in said,
        directory=said.get("--chdir", ""),
        output=said.get("--output", ""),
        error=said.get("--error", ""),
        export=said.get("--export", "ALL"),
        gpus_per_task=_gpu_count("--gpus-per-task", said["--gpus-per-task"])
        if "--gpus-per-task" in said
        else 0,
        kill_on_bad_exit=said.get("--kill-on-bad-exit", "0") not in ("0", ""),
    )


def _options(rest: list[str]) -> Iterator[tuple[str, str]]:
    """Take the options off the front of `rest`, by their long names."""
    while rest and rest[0].startswith("-") and rest[0] != "-":
        word = rest.pop(0)
        if word == "--":
            return
        if word.startswith("--"):
            yield _long(word, rest)
        else:
            yield from _short(word, rest)


def _long(word: str, rest: list[str]) -> tuple[str, str]:
    name, equals, value = word.partition("=")
    if equals:
        return name, value
    if name in _MAYBE_VALUE:
        return name, "1"
    if name in _WITHOUT_VALUE or name not in KNOWN:
        return name, ""
    return name, _value(name, rest)


def _short(word: str, rest: list[str]) -> Iterator[tuple[str, str]]:
    """`-lN1` is `-l -N 1`."""
    for place in range(1, len(word)):
        letter, behind = f"-{word[place]}", word[place + 1 :]
        if letter in FLAGS:
            yield FLAGS[letter], ""
        elif letter in VALUED:
            yield VALUED[letter], behind or _value(letter, rest)
            return
        elif letter in OPTIONAL and (not behind or behind.isdigit()):
            yield OPTIONAL[letter], behind or "1"
            return
        elif letter in OPTIONAL:
            yield OPTIONAL[letter], "1"
        else:
            yield letter, ""


def _value(name: str, rest: list[str]) -> str:
    if not rest:
        raise OptionError(f"option `{name}` needs a value")
    return rest.pop(0)


def _count(name: str, text: str) -> int:
    if not text.isdigit() or not 0 < int(text) <= 65_536:
        raise OptionError(f"`{name}={text}`: the value must be a whole number from 1")
    return int(text)


def _check_nodes(nodes: int, text: str) -> None:
    if nodes > 1 or text not in ("1", "1-1"):
        raise OptionError(
            f"`--nodes={text}` in a job with {nodes} {'node' if nodes == 1 else 'nodes'}: srun on several nodes is not"
            " supported yet. The commands of a task run on each of its nodes: start the program there without srun"
        )


def _gpu_count(name: str, text: str) -> int:
    """`2`, `a100:2` or `gpu:a100:2`; a type without a number is one."""
    last = text.rpartition(":")[2]
    return _count(name, last if last.isdigit() else "1")


def _check_gpus(name: str, text: str | None, gpus: int) -> None:
    if text is None or text in ("none", "0"):
        return
    wanted = _gpu_count(name, text)
    if wanted != gpus:
        raise OptionError(
            f"`{name}={text}`: the job has {gpus} GPU{'' if gpus == 1 else 's'}, and a step with another number is not"
            " supported yet: set CUDA_VISIBLE_DEVICES for the program, or use `--gpus-per-task`"
        )
