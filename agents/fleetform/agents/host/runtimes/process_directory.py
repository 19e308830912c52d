"""
A job as plain processes of this host: from `StartJob` to a directory and a `Launch`.

All that can fail without executing anything of the job fails here, while it is prepared: what
is wrong is then said before any rank of a gang has begun.
"""

from __future__ import annotations

import functools
import os
import shlex
import shutil
import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from fleetform.agents.host import (
    accounts,
    job_environment,
    launch,
    layout,
    rank_environment,
    volumes,
)
from fleetform.agents.host.accounts import AccountError
from fleetform.agents.host.blobs import BlobStore
from fleetform.agents.host.bundles import BundleError, unpack
from fleetform.agents.host.job_dir_pool import JobDirPool
from fleetform.agents.host.launch import Account, Bind, Launch
from fleetform.agents.host.runtimes.base import PrepareError
from fleetform.agents.host.slurm import stand_ins
from fleetform.agents.protocol.host_report import DECLARED_GPU
from fleetform.agents.protocol.messages import FileEntry, Mount, StartJob

_SCRIPT_ARGUMENT_BYTES_MAX = 100_000
"""The kernel takes one argument of at most 131 072 bytes (MAX_ARG_STRLEN)."""

_HOSTFILE_VARIABLES = ("FLEETFORM_HOSTFILE", "DSTACK_MPI_HOSTFILE")


@dataclass(frozen=True)
class Host:
    """
    What preparing needs to know of the host.

    `root` is absolute. `mounts_obstacle` says why there are no mount namespaces, or is empty.
    `memory_limit` is how memory is limited.
    """

    root: str
    skeletons: JobDirPool
    mounts_obstacle: str
    memory_limit: str
    environment: Mapping[str, str] = field(default_factory=job_environment.of_this_process)
    """What each job's variables begin with."""


def prepare(job: StartJob, digest: str, host: Host) -> None:
    """
    Make the job's directory; it appears complete or not at all.

    Raises:
        PrepareError: It cannot be made.
    """
    try:
        account = accounts.find(job.account)
        path = host.skeletons.take()
        try:
            _fill(job, digest, host, path, account)
            host.skeletons.place(path, job.job_uid)
        except BaseException:
            shutil.rmtree(path, ignore_errors=True)
            if account is not None:
                shutil.rmtree(_folder_of(job, host), ignore_errors=True)
            raise
    except AccountError as error:
        raise PrepareError(str(error)) from error
    except (OSError, ValueError) as error:
        # ValueError: a NUL, or a character that no name on this host can have.
        raise PrepareError(f"the host cannot prepare the job: {error}") from error


@dataclass(frozen=True)
class _Place:
    """
    Where a job works.

    `path` is where its files are put together, `home` the name under which it will find them. With an
    account both are a folder outside of the agent's root, which only root can enter until it is
    given to the account.
    """

    path: str
    home: str
    account: Account | None


def _fill(job: StartJob, digest: str, host: Host, path: str, account: Account | None) -> None:
    place = _make_place(job, host, path, account)
    directory = _working_directory(job.working_dir)
    # Absolute ones win here, and stay as they are.
    inside = os.path.join(place.path, directory)
    is_own = inside == place.path or inside.startswith(f"{place.path}/")
    if is_own and inside != f"{place.path}/{layout.WORK}":
        os.makedirs(inside, exist_ok=True)
    _unpack_bundle(job.bundle, f"{place.path}/{layout.WORK}", host.root)
    if account is not None:
        for mount in job.mounts:
            _check_source(mount)
            accounts.give_volume(mount.source, volumes.MARK, account)
    if is_own or account is None:
        _place_files(job.files, inside, BlobStore(f"{host.root}/{layout.BLOBS}").copy)
        _place_links(job.mounts, inside)
    else:
        _fill_as(account, job, inside, host.root)
    if hostfile := _hostfile(job):
        _write(f"{place.path}/{layout.HOSTFILE}", hostfile)
    described = _describe(job, digest, host, place, directory)
    if account is not None:
        accounts.give(place.path, account)
    _write(f"{path}/{layout.LAUNCH}", launch.dump(described))


def _folder_of(job: StartJob, host: Host) -> str:
    return f"{layout.accounts_folder(host.root)}/{job.job_uid}"


def _make_place(job: StartJob, host: Host, path: str, account: Account | None) -> _Place:
    if account is None:
        return _Place(path, f"{host.root}/{layout.JOBS}/{job.job_uid}", None)
    folder = _folder_of(job, host)
    accounts.make_passage(os.path.dirname(folder))
    if os.path.lexists(folder):
        # Of an agent that was killed while it prepared this job.
        shutil.rmtree(folder)
    for one in (folder, f"{folder}/{layout.WORK}", f"{folder}/{layout.TEMPORARY}"):
        os.mkdir(one, 0o700)
    return _Place(folder, folder, account)


def _fill_as(account: Account, job: StartJob, inside: str, root: str) -> None:
    """Place files in a directory of the account's, as the account: root would follow its links."""
    if not (job.files or job.mounts):
        return
    store = BlobStore(f"{root}/{layout.BLOBS}")
    opened: dict[str, int] = {}

    def copy(digest: str, target: str) -> None:
        os.lseek(opened[digest], 0, os.SEEK_SET)
        with open(opened[digest], "rb", closefd=False) as source, open(target, "wb") as file:
            shutil.copyfileobj(source, file)

    def fill() -> None:
        _place_files(job.files, inside, copy)
        _place_links(job.mounts, inside)

    try:
        for file in job.files:
            # Before, because the account cannot read the agent's root.
            if file.sha256 not in opened:
                path = _path_of(file, store)
                opened[file.sha256] = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        accounts.carry_out(account, fill)
    finally:
        for descriptor in opened.values():
            os.close(descriptor)


def _path_of(file: FileEntry, store: BlobStore) -> str:
    try:
        return store.path(file.sha256)
    except FileNotFoundError:
        raise _missing(file) from None


def _missing(file: FileEntry) -> PrepareError:
    return PrepareError(
        f"the content of {file.path} ({file.sha256}) has not been sent to this host"
    )


def _describe(job: StartJob, digest: str, host: Host, place: _Place, directory: str) -> Launch:
    account, home = place.account, place.home
    env = _environment(job, host, place, directory)
    shell = _find_shell(job.shell, env["PATH"])
    # Programs that open a shell, such as tmux, open the one that the document asks for.
    env.setdefault("SHELL", shell)
    checkpoint = job.checkpoint_signal
    limit = job.max_duration_seconds
    return Launch(
        job_uid=job.job_uid,
        run_uid=job.key.run_uid,
        attempt=job.key.attempt,
        rank=job.key.rank,
        gen=job.gen,
        digest=digest,
        executable=shell,
        argv=_arguments(job, place.path, home),
        env=env,
        directory=directory if account is None else os.path.join(home, directory),
        binds=_binds(job.mounts, host, account),
        memory_bytes=job.memory_bytes,
        memory_limit=host.memory_limit,
        max_duration_ms=None if limit is None else limit * 1000,
        grace_ms=job.stop_grace_seconds * 1000,
        checkpoint_signal=None if checkpoint is None else _signal_number(checkpoint),
        checkpoint_lead_ms=job.checkpoint_lead_seconds * 1000,
        log_head_bytes=job.log_head_bytes,
        log_tail_bytes=job.log_tail_bytes,
        account=account,
        silence_ms=None if job.silence_seconds is None else job.silence_seconds * 1000,
    )


# -- the command ----------------------------------------------------------------------------


def script(commands: Sequence[str]) -> str:
    """
    Join commands into one script that ends at the first failure, with its exit code.

    `set -e` alone lets a command such as `test -f x && echo y` fail and goes on; so each
    command's own status is looked at too.
    """
    return "set -e\n" + "".join(f"{command}\n{_CHECK}\n" for command in commands)


# `exit` without a number takes the status of the last command, and `case` has none of its own.
_CHECK = "case $? in 0) ;; *) exit ;; esac"


def _arguments(job: StartJob, path: str, home: str) -> list[str]:
    name = os.path.basename(job.shell)
    # One command is its own check, and leaves a shell that may replace itself by it.
    text = script(job.commands) if len(job.commands) != 1 else f"set -e\n{job.commands[0]}"
    if "\0" in text:
        raise PrepareError("a command contains a NUL character, which no program can receive")
    if len(os.fsencode(text)) <= _SCRIPT_ARGUMENT_BYTES_MAX:
        return [name, "-c", text]
    _write(f"{path}/{layout.SCRIPT}", os.fsencode(text))
    return [name, f"{home}/{layout.SCRIPT}"]


@functools.lru_cache(maxsize=64)
def _find_shell(shell: str, path: str) -> str:
    """Find it once for all jobs; one that is missing is reported by the job itself, as 127."""
    return shutil.which(shell, path=path) or shell


def _signal_number(name: str) -> int:
    plain = name if name.startswith("SIG") else f"SIG{name}"
    try:
        return int(signal.Signals[plain])
    except KeyError:
        raise PrepareError(f"this host has no signal {name!r}") from None


# -- the environment --------------------------------------------------------------------------


def _environment(job: StartJob, host: Host, place: _Place, directory: str) -> dict[str, str]:
    account, home = place.account, place.home
    temporary = f"{home}/{layout.TEMPORARY}"
    common = {**host.environment, **({} if account is None else accounts.variables(account))}
    # A home that can be written to, where the account has none.
    env = {"HOME": temporary, **common, "TMPDIR": temporary}
    has_others = bool(_hostfile(job))
    if has_others:
        env.update(rank_environment.variables(job.env))
    env.update(job.env)
    # Not to be overridden: one finds the job's processes, the other keeps it to its GPUs.
    env[layout.JOB_UID_VARIABLE] = job.job_uid
    env["CUDA_VISIBLE_DEVICES"] = visible_gpus(job.gpus)
    if has_others:
        env["PATH"] = rank_environment.path(
            env["PATH"], _programs_folder(host, account), is_shared=account is not None
        )
        env.update(dict.fromkeys(_HOSTFILE_VARIABLES, f"{home}/{layout.HOSTFILE}"))
    if "slurm" in job.compat:
        work = os.path.join(home, directory)
        env.update(stand_ins.variables(env, _programs_folder(host, account), work, account))
    for name, value in env.items():
        if "\0" in name + value or "=" in name or not name or not _is_encodable(name + value):
            raise PrepareError(f"{name!r} cannot be an environment variable with that value")
    return env


def _programs_folder(host: Host, account: Account | None) -> str:
    """Return where the programs for jobs are: where the job's account can read them."""
    if account is None:
        return host.root
    accounts.make_passage(layout.SHARED)
    return layout.SHARED


def _hostfile(job: StartJob) -> bytes:
    """
    Return a line for each node of the run, in the order of ranks; empty for a run on one node.

    All nodes of a run have as many GPUs as this one. A node without GPUs gets one process, for
    `mpirun` would count all of its cores.
    """
    addresses = job.env.get("FLEETFORM_NODES_IPS", "").split("\n")
    if len(addresses) == 1:
        # A file of its own would keep its directory from the next job, see `job_dir_pool`.
        return b""
    slots = max(1, len(job.gpus))
    return "".join(f"{address} slots={slots}\n" for address in addresses).encode()


def _is_encodable(text: str) -> bool:
    try:
        os.fsencode(text)
    except UnicodeEncodeError:
        return False
    return True


def visible_gpus(gpus: Sequence[str]) -> str:
    """Return CUDA_VISIBLE_DEVICES: uuids, or indices of GPUs that are only declared."""
    return ",".join(gpu.removeprefix(DECLARED_GPU) for gpu in gpus)


# -- files and directories --------------------------------------------------------------------


def _working_directory(declared: str) -> str:
    """Return where the command starts: absolute, or relative to the job's directory."""
    if not declared:
        return layout.WORK
    if not os.path.isabs(declared):
        return _below(layout.WORK, declared)
    if not os.path.isdir(declared):
        raise PrepareError(f"working_dir {declared} is not a directory on this host")
    return declared


def _unpack_bundle(digest: str, directory: str, root: str) -> None:
    if not digest:
        return
    try:
        unpack(BlobStore(f"{root}/{layout.BLOBS}").path(digest), directory)
    except FileNotFoundError:
        raise PrepareError(f"the run's code ({digest}) has not been sent to this host") from None
    except BundleError as error:
        raise PrepareError(f"the run's code cannot be unpacked: {error}") from error


def _place_files(
    files: Sequence[FileEntry], directory: str, copy: Callable[[str, str], None]
) -> None:
    """`copy` copies the content with a digest to a path."""
    for file in files:
        target = _below(directory, file.path)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        try:
            # A copy, since the job may change it, and the next one must get what was declared.
            copy(file.sha256, target)
        except FileNotFoundError:
            raise _missing(file) from None
        os.chmod(target, file.mode & 0o777)


def _place_links(mounts: Sequence[Mount], directory: str) -> None:
    for mount in mounts:
        _check_source(mount)
        if os.path.isabs(mount.path):
            continue
        link = _below(directory, mount.path)
        os.makedirs(os.path.dirname(link), exist_ok=True)
        if os.path.islink(link) and os.readlink(link) == mount.source:
            continue  # In a working directory that jobs share.
        os.symlink(mount.source, link)


def _binds(mounts: Sequence[Mount], host: Host, account: Account | None) -> list[Bind]:
    binds = [Bind(m.source, m.path, m.read_only) for m in mounts if os.path.isabs(m.path)]
    if binds and host.mounts_obstacle:
        raise PrepareError(host.mounts_obstacle)
    for bind in binds:
        make = functools.partial(os.makedirs, bind.target, exist_ok=True)
        try:
            if account is None:
                make()
            else:
                accounts.carry_out(account, make)
        except OSError as error:
            raise PrepareError(
                f"the directory {bind.target} to mount at does not exist and cannot be created "
                f"({error.strerror}): create it on the host, or mount at a relative path"
            ) from error
    return binds


def _check_source(mount: Mount) -> None:
    if not os.path.isdir(mount.source):
        raise PrepareError(f"volume {mount.name} has no directory {mount.source} on this host")


def _below(directory: str, path: str) -> str:
    """Join, and refuse what would lead out: the job's own tree is all that we write to."""
    joined = os.path.normpath(f"{directory}/{path}")
    within = joined == os.path.normpath(directory) or joined.startswith(f"{directory}/")
    if os.path.isabs(path) or not within:
        raise PrepareError(f"{shlex.quote(path)} points outside of the working directory")
    return joined


def _write(path: str, data: bytes) -> None:
    # Overwritten and then cut, not cut and then written: see `job_dir_pool`.
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        written = 0
        while written < len(data):
            written += os.write(descriptor, data[written:])
        os.ftruncate(descriptor, len(data))
    finally:
        os.close(descriptor)
