"""State is private whatever the umask, and a folder that others can write to is refused."""

from __future__ import annotations

import os
import pwd
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from forkserver import program
from leftovers import end_agents

UID = "c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2"
PATIENCE_SECONDS = 60.0

ENVIRONMENT = f"type: environment\nname: lab\nuid: {UID}\n"
DOCUMENTS = """\
type: fleet
name: local
local: {cpu: 2, memory: 1GB}
---
type: volume
name: data
fleet: local
path: data
---
type: task
name: write
volumes: [{name: data, path: data}]
files: [note.txt]
commands:
  - cat note.txt > data/result; umask; stat -c %a data/result
"""


class Lab:
    """An environment with a state home and a cache home of its own."""

    def __init__(self, folder: Path) -> None:
        self.state = folder / "home" / "state"
        self.cache = folder / "home" / "cache"
        self.config = folder / "home" / "config"
        self.tree = folder / "lab"
        self.tree.mkdir(mode=0o755)
        (self.tree / "environment.yaml").write_text(ENVIRONMENT)
        (self.tree / "all.yaml").write_text(DOCUMENTS)
        (self.tree / "note.txt").write_text("hello\n")
        (self.tree / "try.sh").write_text("echo tried\n")

    def run(self, *arguments: str, umask: int = 0o022) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [program(), *arguments],
            cwd=self.tree,
            env={
                **os.environ,
                "FLEETFORM_STATE_HOME": str(self.state),
                "FLEETFORM_CACHE_HOME": str(self.cache),
                "FLEETFORM_CONFIG_HOME": str(self.config),
            },
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
            check=False,
            umask=umask,
        )

    def do(self, *arguments: str, umask: int = 0o022) -> str:
        done = self.run(*arguments, umask=umask)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    lab = Lab(tmp_path)
    yield lab
    end_agents(lab.state)


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def kept_by_us(home: Path) -> Iterator[Path]:
    """Yield a home and all below it, but not what jobs have made in their folders and in volumes."""
    for folder, names, files in os.walk(home):
        here = Path(folder)
        yield here
        if here.name in {"work", "tmp"} or here.parent == home / "volumes" / UID:
            names.clear()
        else:
            yield from (here / file for file in files)


def open_to_others(home: Path) -> list[str]:
    """Return what gives others any right, with its mode."""
    return [f"{mode_of(one):o} {one}" for one in kept_by_us(home) if mode_of(one) & 0o077]


@pytest.mark.parametrize("umask", [0o000, 0o077], ids=oct)
def test_all_state_is_private_whatever_the_umask(lab: Lab, umask: int) -> None:
    """After a whole life each folder is 0700 and each file 0600, and jobs have umask 022."""
    lab.do("apply", "-y", umask=umask)
    assert lab.do("logs", "write", umask=umask).splitlines() == ["0022", "644"]
    lab.do("submit", "try.sh", "-n", "try", umask=umask)
    lab.do("rerun", "write", "--apply", "-y", umask=umask)
    lab.do("state", "backup", str(lab.state / "copy.jsonl"), umask=umask)
    lab.do("plan", "--out", str(lab.state / "plan.json"), umask=umask)
    for home in (lab.state, lab.cache, lab.config):
        assert any(home.rglob("*"))
        assert open_to_others(home) == []


def test_looser_modes_of_an_older_version_are_tightened(lab: Lab) -> None:
    """Folders that others could read are closed when they are next used, and nothing is asked."""
    lab.do("apply", "-y")
    loose = [lab.cache, *lab.cache.rglob("*"), lab.state]
    for one in lab.state.rglob("*"):
        top, *below = one.relative_to(lab.state).parts
        # What agents have made, instances and volumes, was always private.
        if top not in {"hosts", "volumes"} or len(below) < 2:
            loose.append(one)
    for one in loose:
        one.chmod(0o755 if one.is_dir() else 0o644)
    lab.do("apply", "-y")
    assert open_to_others(lab.state) + open_to_others(lab.cache) == []


def refusal(lab: Lab) -> str:
    done = lab.run("plan")
    assert done.returncode == 1, done.stdout + done.stderr
    assert not done.stdout
    return done.stderr


@pytest.mark.parametrize("mode", [0o777, 0o707, 0o1777], ids=oct)
@pytest.mark.parametrize("which", ["state", "cache", "config"])
def test_a_home_that_others_can_write_to_is_refused(lab: Lab, which: str, mode: int) -> None:
    """Another user could plant what we run or believe; the command that is named cures it."""
    home = getattr(lab, which)
    home.mkdir(parents=True)
    home.chmod(mode)
    said = refusal(lab)
    assert f"{home} can be written to by other users" in said
    assert f"`chmod go-w {home}`" in said
    subprocess.run(["chmod", "go-w", str(home)], check=True)
    lab.do("plan")
    assert mode_of(home) & 0o777 == 0o700


def test_a_folder_above_that_others_can_write_to_is_refused(lab: Lab) -> None:
    """Who can write to it can put another folder in our place, unless it is sticky as /tmp is."""
    above = lab.state.parent
    lab.state.mkdir(parents=True, mode=0o700)
    above.chmod(0o777)
    said = refusal(lab)
    assert f"{above} can be written to by other users" in said
    assert f"`chmod go-w {above}`" in said
    above.chmod(0o1777)
    lab.do("plan")


def test_a_link_in_a_folder_that_others_can_write_to_is_refused(lab: Lab, tmp_path: Path) -> None:
    """The folder that a link leads to may be safe: the link can be replaced."""
    real, shared = tmp_path / "real", tmp_path / "shared"
    real.mkdir(mode=0o700)
    shared.mkdir()
    shared.chmod(0o777)
    lab.state = shared / "link"
    lab.state.symlink_to(real)
    assert f"`chmod go-w {shared}`" in refusal(lab)


def test_a_group_of_others_counts_and_a_group_of_ones_own_does_not(lab: Lab) -> None:
    """Where each user has a group, umask 002 is usual, and its folders are nobody else's."""
    if os.geteuid() != 0:
        pytest.skip("giving a folder to another group needs root")
    lab.state.mkdir(parents=True)
    lab.state.chmod(0o775)
    lab.do("plan")
    assert mode_of(lab.state) == 0o700
    os.chown(lab.state, -1, pwd.getpwnam("nobody").pw_gid)
    lab.state.chmod(0o775)
    assert f"`chmod go-w {lab.state}`" in refusal(lab)


def test_a_home_of_another_user_is_refused(lab: Lab) -> None:
    """Its owner can change what lies in it."""
    if os.geteuid() != 0:
        pytest.skip("giving a folder to another user needs root")
    lab.state.mkdir(parents=True)
    nobody = pwd.getpwnam("nobody").pw_uid
    os.chown(lab.state, nobody, -1)
    said = refusal(lab)
    assert f"{lab.state} belongs to nobody" in said
    assert f"`chown {pwd.getpwuid(os.geteuid()).pw_name} {lab.state}`" in said


@pytest.mark.parametrize("harm", ["damaged", "foreign-writable"])
def test_an_agents_archive_that_was_changed_heals(lab: Lab, harm: str) -> None:
    """It is named by its digest, which is verified before each start."""
    lab.do("apply", "-y")
    end_agents(lab.state)
    (archive,) = (lab.state / "agent").glob("*.pyz")
    whole = archive.read_bytes()
    if harm == "damaged":
        archive.write_bytes(b"\0" * len(whole))
    else:
        archive.chmod(0o666)
    lab.do("rerun", "write", "--apply", "-y")
    assert archive.read_bytes() == whole
    assert mode_of(archive) == 0o600
