"""Jobs of an agent of root that run as other accounts of the host: those that every Linux has."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import json
import os
import pwd
import subprocess
import tempfile
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import pytest

from fleetform.agents.host import layout, volumes
from fleetform.agents.protocol.messages import FileEntry, Mount, StartJob
from fleetform.agents.protocol.states import Cause, JobState
from integration.agent.rig import Agent, await_true, is_alive, job, kill, managing, uid
from integration.agent.test_exec import Command, entered

OWNER = "daemon"
OTHER = "games"

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="other accounts need an agent of root")


@pytest.fixture(autouse=True)
def shared(root: Path) -> Iterator[Path]:
    """The folder with the working directories of the agent's jobs; removed with what is empty above."""
    folder = Path(layout.accounts_folder(str(root)))
    yield folder
    programs = [f"{layout.SHARED}/{name}" for name in (layout.SLURM, layout.LAUNCHER)]
    subprocess.run(["rm", "-rf", "--", str(folder), *programs], check=True)
    for parent in folder.parents[:2]:
        with contextlib.suppress(OSError):
            parent.rmdir()


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder of the owner's, that others may enter."""
    with tempfile.TemporaryDirectory(prefix="fleetform-owner-") as name:
        Path(name).chmod(0o755)
        os.chown(name, pwd.getpwnam(OWNER).pw_uid, pwd.getpwnam(OWNER).pw_gid)
        yield Path(name)


def ran(agent: Agent, started: StartJob) -> tuple[bytes, Cause | None, str]:
    """Run a job; returns its output, how it ended, and the message of that."""

    async def story() -> tuple[bytes, Cause | None, str]:
        async with managing(agent) as manager:
            record = await manager.run(started)
            return manager.output(started.job_uid), record.cause, record.message

    return asyncio.run(story())


def put(agent: Agent, content: bytes) -> str:
    """Give the agent a content; returns its digest."""
    digest = sha256(content).hexdigest()
    blob = agent.root / layout.BLOBS / digest[:2] / digest
    blob.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    blob.write_bytes(content)
    blob.chmod(0o600)
    return digest


def test_a_job_has_ids_groups_and_home_of_its_account(agent):
    """All that a login would give, and nothing of root: neither ids nor groups nor folders."""
    out, cause, _ = ran(
        agent,
        job("ids", "id -un; id -gn; id -G; umask; echo $HOME $USER $LOGNAME; pwd -P; echo $TMPDIR;"
            " grep -E '^(Uid|Gid|CapEff|CapPrm)' /proc/self/status; : > made; ls -n made; touch $TMPDIR/x",
            account=OWNER),
    )  # fmt: skip
    account = pwd.getpwnam(OWNER)
    lines = out.decode().splitlines()
    work = f"{layout.accounts_folder(str(agent.root))}/{uid('ids')}"
    groups = " ".join(map(str, os.getgrouplist(OWNER, account.pw_gid)))
    assert cause is Cause.EXITED, lines
    assert lines[:7] == [
        OWNER, OWNER, groups, "0022", f"{account.pw_dir} {OWNER} {OWNER}", f"{work}/work", f"{work}/tmp",
    ]  # fmt: skip
    ids = {line.split()[0]: set(line.split()[1:]) for line in lines[7:11]}
    assert ids["Uid:"] == {str(account.pw_uid)}
    assert ids["Gid:"] == {str(account.pw_gid)}
    assert ids["CapEff:"] == ids["CapPrm:"] == {"0" * 16}
    assert lines[11].split()[2] == str(account.pw_uid)


def test_accounts_see_nothing_of_each_other(agent):
    """The working directory of one account is closed to another, and what root keeps to both."""

    async def story() -> bytes:
        async with managing(agent) as manager:
            first = job("mine", "umask 000; echo secret > file; exec sleep 60", account=OWNER)
            assert (await manager.session.prepare(first)).ok
            await manager.record(first.job_uid, JobState.RUNNING)
            work = Path(layout.accounts_folder(str(agent.root))) / first.job_uid / "work"
            await_true((work / "file").exists)
            probe = f"cat {work}/file || ls {work} || ls {agent.job(first.job_uid)} || kill -9 {agent.pid} || :"
            second = job("yours", probe, account=OTHER)
            await manager.run(second)
            assert (
                await manager.session.stop(
                    first.key, first.job_uid, 2, cause=Cause.STOPPED, grace_seconds=None
                )
            ).ok
            await manager.record(first.job_uid)
            return manager.output(second.job_uid)

    said = asyncio.run(story())
    assert said.count(b"denied") == 3, said
    assert b"not permitted" in said
    assert b"secret" not in said


def test_output_opens_by_its_name(agent):
    """A command may open its output and its errors again, as `tee` does."""
    out, _, _ = ran(
        agent, job("tee", "echo one | tee /dev/stderr; echo two > /dev/stdout", account=OWNER)
    )
    assert out.splitlines() == [b"one", b"one", b"two"]


def test_files_and_a_long_script_reach_the_account(agent):
    """Files of the run are its account's, with their modes, and so is a script too long for an argument."""
    digest = put(agent, b"#!/bin/sh\necho from a file\n")
    files = (FileEntry("bin/tool", digest, 26, 0o755),)
    out, _, _ = ran(
        agent,
        job("files", "bin/tool", "ls -n bin/tool", f": {'x' * 110_000}", "echo long", account=OWNER, files=files),
    )  # fmt: skip
    first, listed, last = out.decode().splitlines()
    assert (first, last) == ("from a file", "long")
    assert listed.split()[0] == "-rwxr-xr-x"
    assert listed.split()[2] == str(pwd.getpwnam(OWNER).pw_uid)


def test_root_follows_no_link_out_of_a_directory_of_the_account(agent, tmp_path, open_folder):
    """Files go into a declared directory as the account: its link to a folder of root leads nowhere."""
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    (open_folder / "bin").symlink_to(closed)
    (open_folder / "data").symlink_to(closed / "data")
    digest = put(agent, b"content")
    for name in ("bin/tool", "data"):
        started = job(
            f"link-{name[:3]}", "true", account=OWNER, working_dir=str(open_folder),
            files=(FileEntry(name, digest, 7),),
        )  # fmt: skip
        _, cause, message = ran(agent, started)
        # A link that the account cannot follow looks to it like a file in the way.
        found = any(words in message for words in ("denied", "File exists"))
        assert (cause, found) == (Cause.PREPARE_FAILED, True), message
    assert list(closed.iterdir()) == []
    started = job("plain", "cat own; ls -n own", account=OWNER, working_dir=str(open_folder),
                  files=(FileEntry("own", digest, 7),))  # fmt: skip
    out, _, _ = ran(agent, started)
    assert out.startswith(b"content")
    assert out.split()[2].decode() == str(pwd.getpwnam(OWNER).pw_uid)


def test_a_directory_that_is_closed_to_the_account_is_no_working_directory(agent, tmp_path):
    """The working directory is entered as the account."""
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    _, cause, message = ran(agent, job("cwd", "true", account=OWNER, working_dir=str(closed)))
    assert (cause, "denied" in message) == (Cause.PREPARE_FAILED, True), message


def test_a_mount_opens_nothing_that_is_closed_to_the_account(agent, tmp_path, open_folder):
    """Source and target are looked up as the account, and setuid programs gain nothing behind a mount."""
    closed = tmp_path / "closed"
    (closed / "inner").mkdir(parents=True, mode=0o755)
    closed.chmod(0o700)
    (open_folder / "way").symlink_to(closed / "inner")
    way = Mount("data", str(open_folder / "way"), str(open_folder / "seen"))
    _, cause, message = ran(agent, job("way", "true", account=OWNER, mounts=(way,)))
    assert (cause, "denied" in message) == (Cause.PREPARE_FAILED, True), message
    data = open_folder / "data"
    data.mkdir(mode=0o755)
    (data / "file").write_text("seen\n")
    good = Mount("data", str(data), str(open_folder / "seen"), read_only=True)
    commands = f"cat {open_folder}/seen/file; grep NoNewPrivs /proc/self/status; touch {open_folder}/seen/x"
    out, _, _ = ran(agent, job("good", commands, account=OWNER, mounts=(good,)))
    assert out.startswith(b"seen\nNoNewPrivs:\t1\n"), out
    assert b"Read-only" in out


def test_a_missing_account_is_named_before_anything_starts(agent):
    """The host refuses to prepare the job; nothing of it has run, as root or otherwise."""
    _, cause, message = ran(agent, job("missing", "id", account="no-such-person"))
    assert cause is Cause.PREPARE_FAILED
    assert message.startswith("account no-such-person does not exist on this host: create it")


def test_another_name_of_root_is_root(agent):
    """Root needs `run_as: root`: no account with the user id 0 is a way around that."""
    # `root` itself is the agent's own account, with which the controller sends no name.
    _, cause, _ = ran(agent, job("root", "id -u", account="root"))
    assert cause is Cause.EXITED


def test_a_stop_reaches_what_the_account_has_started(agent):
    """Signals, the grace and the clean-up work for processes of another account."""

    async def story() -> None:
        async with managing(agent) as manager:
            started = job(
                "stop", "trap 'echo asked' TERM; setsid sleep 600 & while :; do sleep 0.1; done",
                account=OWNER,
            )  # fmt: skip
            assert (await manager.session.prepare(started)).ok
            await manager.record(started.job_uid, JobState.RUNNING)
            pids = agent.processes(started.job_uid, 2)
            assert (
                await manager.session.stop(
                    started.key, started.job_uid, 2, cause=Cause.STOPPED, grace_seconds=None
                )
            ).ok
            record = await manager.record(started.job_uid)
            assert record.cause is Cause.STOPPED
            assert b"asked" in manager.output(started.job_uid)
            assert not any(map(is_alive, pids))

    asyncio.run(story())


def test_a_job_survives_its_agent_and_its_folder_goes_with_it(agent, shared):
    """An agent that is killed and started again finds the job; forgetting it removes its directory."""

    async def begin() -> StartJob:
        async with managing(agent) as manager:
            started = job(
                "keep", "until [ -e go ]; do sleep 0.05; done; echo went on", account=OWNER
            )
            assert (await manager.session.prepare(started)).ok
            await manager.record(started.job_uid, JobState.RUNNING)
            return started

    async def end(started: StartJob) -> None:
        async with managing(agent) as manager:
            await manager.session.follow_log(started.job_uid, 0)
            (shared / started.job_uid / "work/go").touch()
            record = await manager.record(started.job_uid)
            assert (record.cause, record.exit_code) == (Cause.EXITED, 0)
            assert manager.output(started.job_uid) == b"went on\n"
            await manager.acknowledge()
            assert (await manager.session.forget([started.key])).ok
            await_true(lambda: not (shared / started.job_uid).exists())
            await_true(lambda: not any((shared / "trash").iterdir()))

    started = asyncio.run(begin())
    agent.kill()
    agent.start()
    asyncio.run(end(started))


def test_the_processes_of_a_killed_supervisor_end(agent):
    """What another account's job leaves behind is found by its tag, also outside of the agent's root."""

    async def story() -> None:
        async with managing(agent) as manager:
            started = job("lost", "env -i sleep 600", account=OWNER)
            assert (await manager.session.prepare(started)).ok
            await manager.record(started.job_uid, JobState.RUNNING)
            pids = agent.processes(started.job_uid, 1)
            kill(agent.supervisor(started.job_uid))
            record = await manager.record(started.job_uid)
            assert record.cause is Cause.LOST
            assert not any(map(is_alive, pids))

    asyncio.run(story())


@pytest.mark.parametrize("size", [{}, {"rows": 24, "columns": 80, "term": "dumb"}])
def test_a_command_joins_a_job_as_its_account(agent, size):
    """`exec` has the ids, the umask and the directory of the job, and opens its terminal by name."""

    async def story() -> bytes:
        started = job("enter", "exec sleep 60", account=OWNER)
        async with entered(agent, started) as session:
            command = (
                "id -un; id -G; umask; pwd; echo shown > /dev/stdout; echo $USER; kill -9 $PPID"
            )
            parameters = {
                "key": str(started.key),
                "job_uid": started.job_uid,
                "argv": ["sh", "-c", command],
            }
            channel = await session.open_channel("exec", {**parameters, **size})
            entry = Command(channel)
            await entry.end()
            return entry.printed + entry.errors

    said = asyncio.run(story()).replace(b"\r", b"").decode().splitlines()
    groups = " ".join(map(str, os.getgrouplist(OWNER, pwd.getpwnam(OWNER).pw_gid)))
    work = f"{layout.accounts_folder(str(agent.root))}/{uid('enter')}/work"
    assert said[:6] == [OWNER, groups, "0022", work, "shown", OWNER]
    assert "not permitted" in said[6]


def test_the_commands_of_slurm_and_the_hostfile_can_be_read(agent):
    """What the host adds to a run lies where its account can read it."""
    nodes = {"FLEETFORM_NODES_IPS": "10.0.0.1\n10.0.0.2"}
    out, _, _ = ran(
        agent,
        job("slurm", "cat $FLEETFORM_HOSTFILE; command -v srun; echo $SLURM_JOB_UID",
            account=OWNER, compat=("slurm",), env=nodes),
    )  # fmt: skip
    lines = out.decode().splitlines()
    assert lines[:2] == ["10.0.0.1 slots=1", "10.0.0.2 slots=1"]
    assert lines[2].startswith(f"{layout.SHARED}/slurm/")
    assert lines[-1] == str(pwd.getpwnam(OWNER).pw_uid)


def test_a_folder_that_another_account_could_change_is_refused(agent, shared):
    """Whoever may write above a working directory could exchange it."""
    ran(agent, job("first", "true", account=OWNER))
    shared.chmod(0o777)
    _, cause, message = ran(agent, job("second", "true", account=OWNER))
    assert cause is Cause.PREPARE_FAILED
    assert f"{shared} must be a folder that belongs to root" in message


def test_an_agent_says_which_accounts_its_host_has(agent):
    """A plan can then name a host that lacks one."""

    async def story() -> object:
        async with managing(agent) as manager:
            return await manager.session.probe()

    report = asyncio.run(story())
    assert (report.account, report.is_root) == ("root", True)
    assert {OWNER, OTHER, "root"} <= set(report.accounts)


def test_a_job_of_the_agent_looks_as_ever_to_an_earlier_release(agent):
    """What is written for it has no field that the release before does not know."""
    ran(agent, job("old", "true"))
    text = (agent.job(uid("old")) / "started").read_bytes().partition(b"\n")[0]
    assert "account" not in json.loads(text)
    assert "account" in {one.name for one in dataclasses.fields(StartJob)}


def test_a_new_volume_is_given_to_the_first_account_that_mounts_it(agent, shared):
    """Its owner writes there, by a link and by a mount; one with data stays whose it is."""
    path = f"{layout.SHARED}/volumes/test-{os.getpid()}/sets"

    async def make() -> None:
        async with managing(agent) as manager:
            assert (await manager.session.make_volume("op", "volume-1", "sets", path)).ok

    asyncio.run(make())
    try:
        linked = Mount("sets", path, "sets")
        out, _, message = ran(
            agent, job("write", "echo kept > sets/file", "ls -ln sets/file", account=OWNER, mounts=(linked,))
        )  # fmt: skip
        assert out.split()[2].decode() == str(pwd.getpwnam(OWNER).pw_uid), message
        out, _, _ = ran(agent, job("read", "cat sets/file", account=OTHER, mounts=(linked,)))
        assert b"denied" in out
    finally:
        subprocess.run(["rm", "-rf", "--", str(Path(path).parent)], check=True)
        with contextlib.suppress(OSError):
            Path(path).parents[1].rmdir()


def test_root_writes_through_no_link_of_a_volume(agent, tmp_path, open_folder):
    """An account may change what is in its volume: a link in place of the mark leads nowhere."""
    closed = tmp_path / "closed"
    (open_folder / volumes.MARK).symlink_to(closed)

    async def make() -> bool:
        async with managing(agent) as manager:
            command = "op", "volume-1", "sets", str(open_folder)
            return (await manager.session.make_volume(*command, take="found")).ok

    assert not asyncio.run(make())
    assert not closed.exists()
