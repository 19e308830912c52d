"""Directories that are made, used, taken back and used again."""

from __future__ import annotations

from pathlib import Path

import pytest

from fleetform.agents.host import result as slot
from fleetform.agents.host.job_dir_pool import JobDirPool
from unit.agents_host.jobs import result


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name in ("jobs", "spare", "trash"):
        (tmp_path / name).mkdir()
    return tmp_path


def use(skeletons: JobDirPool, root: Path, name: str = "a", *, ended: bool = True) -> Path:
    """Give one to a job that starts and, unless told otherwise, ends."""
    path = skeletons.take()
    (Path(path) / "launch").write_text("{}\n")
    skeletons.place(path, f"job-{name}")
    placed = root / "jobs" / f"job-{name}"
    (placed / "launch").rename(placed / "started")
    (placed / "log").write_text("output")
    if ended:
        slot.write(str(placed / "result"), result(name))
    return placed


def test_used_again(root: Path) -> None:
    """What a job leaves clean becomes the next one's, without output, result or start of it."""
    skeletons = JobDirPool(str(root))
    inode = use(skeletons, root).stat().st_ino
    assert skeletons.take_back("job-a")
    again = Path(skeletons.take())
    assert again.stat().st_ino == inode
    assert sorted(path.name for path in again.iterdir()) == [
        "control",
        "launch",
        "result",
        "tmp",
        "work",
    ]
    assert slot.read(str(again / "result"), "job-b") is None


@pytest.mark.parametrize("leave", ["work/file", "tmp/.hidden", "beside", "script"])
def test_left_behind(root: Path, leave: str) -> None:
    """A directory in which anything was left is not used again, and not changed."""
    skeletons = JobDirPool(str(root))
    placed = use(skeletons, root)
    (placed / leave).touch()
    assert not skeletons.take_back("job-a")
    assert (placed / "started").exists()


def test_changed_folders(root: Path) -> None:
    """A link in a folder's place, or other rights, keep a directory from being used again."""
    skeletons = JobDirPool(str(root))
    placed = use(skeletons, root, "a")
    (placed / "work").rmdir()
    (placed / "work").symlink_to(root / "trash")
    other = use(skeletons, root, "b")
    (other / "tmp").chmod(0o777)
    assert not skeletons.take_back("job-a")
    assert not skeletons.take_back("job-b")


def test_without_a_result(root: Path) -> None:
    """A job that was lost may have left processes, so its directory is nobody else's."""
    skeletons = JobDirPool(str(root))
    use(skeletons, root, ended=False)
    assert not skeletons.take_back("job-a")
    assert not skeletons.take_back("job-unknown")


def test_taken_over(root: Path) -> None:
    """The next agent uses whole spares and throws half ones away."""
    skeletons = JobDirPool(str(root))
    use(skeletons, root)
    assert skeletons.take_back("job-a")
    half = Path(skeletons._make())
    (half / "control").unlink()
    filled = Path(skeletons._make())
    (filled / "work" / "file").touch()
    later = JobDirPool(str(root))
    assert len(later._spares) == 1
    assert len(list((root / "trash").iterdir())) == 2
