"""What a hostile folder does to whoever loads it: findings, soon, and nothing opened outside."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fleetform.spec.desired import Loaded
from fleetform.spec.findings import Finding, render_findings
from fleetform.spec.tree import git as tree_git
from fleetform.spec.tree import load_tree, read_environment, walk
from fleetform.spec.tree.walk import LeadsOutError, open_below
from unit.spec.trees import ENVIRONMENT, codes

TASK = "type: task\nname: train\ncommands: [python train.py]\n"
SECRET = "type: task\nname: outside\ncommands: [cat]\n"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A sound environment, beside which something lies that is none of its business."""
    folder = tmp_path / "tree"
    folder.mkdir()
    (folder / "environment.yaml").write_text(ENVIRONMENT)
    (folder / "train.yaml").write_text(TASK)
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.yaml").write_text(SECRET)
    return folder


def make_fifo(path: Path) -> None:
    os.mkfifo(path)


def make_folder(path: Path) -> None:
    path.mkdir()


def make_socket(path: Path) -> None:
    # Its path would be too long: an address has a hundred bytes.
    before = Path.cwd()
    os.chdir(path.parent)
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(path.name)
    finally:
        os.chdir(before)


def make_device(path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("devices are made by root")
    try:
        os.mknod(path, 0o644 | 0o020000, os.makedev(1, 5))  # /dev/zero
    except PermissionError:
        pytest.skip("no devices may be made here")


def link_to(target: str) -> Callable[[Path], None]:
    return lambda path: path.symlink_to(target)


ODD = {
    "a pipe": (make_fifo, "file-unreadable"),
    "a socket": (make_socket, "file-unreadable"),
    "a device": (make_device, "file-unreadable"),
    "a link to a device": (link_to("/dev/zero"), "file-outside"),
    "a link to a process's memory": (link_to("/proc/self/mem"), "file-outside"),
    "a link out": (link_to("../outside/secret.yaml"), "file-outside"),
    "a link out by its full path": (link_to("/etc/passwd"), "file-outside"),
    "a link to a folder outside": (link_to("../outside"), "file-outside"),
    "a link to the file system": (link_to("/"), "file-outside"),
    "a link to nothing": (link_to("nothing.yaml"), "file-unreadable"),
    "a link to itself": (link_to("x.yaml"), "file-unreadable"),
    "a link to the tree": (link_to("."), ""),
    "a link to the folder above": (link_to(".."), "file-outside"),
    "a folder": (make_folder, ""),
}


@pytest.mark.parametrize("name", ODD)
def test_what_is_no_file_is_not_opened(tree: Path, name: str):
    """Whatever bears a document's name is a finding, or nothing to read, and the rest is read."""
    make, code = ODD[name]
    make(tree / "x.yaml")
    loaded = load_tree(tree)
    assert codes(loaded) == ([code] if code else [])
    assert [str(key) for key in loaded.desired.resources] == ["run/train"]
    assert loaded.desired.unread == (("x.yaml",) if code else ())


def test_a_folder_outside_that_nobody_reads_is_a_note(tree: Path):
    """A link to data stands in many trees: it is told, not followed, and holds nothing back."""
    (tree / "data").symlink_to("../outside")
    loaded = load_tree(tree)
    assert [(one.code, one.level.value) for one in loaded.findings] == [("file-outside", "note")]
    assert [str(key) for key in loaded.desired.resources] == ["run/train"]
    assert loaded.desired.unread == ()


def test_a_file_behind_a_link_out_is_an_error_where_it_is_named(tree: Path):
    """A run that takes a file from there is refused; nothing of it is opened."""
    (tree / "data").symlink_to("../outside")
    (tree / "x.yaml").write_text(
        "type: task\nname: other\ncommands: [x]\nfiles: [data/secret.yaml]\n"
    )
    loaded = load_tree(tree)
    assert [one.code for one in loaded.errors] == ["file-outside"]
    assert [str(key) for key in loaded.desired.resources] == ["run/train"]


@pytest.mark.parametrize("name", ODD)
def test_an_environment_that_is_no_file(tree: Path, name: str):
    """In place of `environment.yaml` it leaves nothing declared, and is not followed out."""
    make, _ = ODD[name]
    (tree / "environment.yaml").unlink()
    make(tree / "environment.yaml")
    loaded = load_tree(tree)
    assert loaded.desired is None
    assert loaded.errors
    assert read_environment(tree)[0] is None


def test_an_environment_elsewhere_is_not_read(tree: Path):
    """A link to another environment's file would make its resources ours."""
    (tree.parent / "outside" / "environment.yaml").write_text(ENVIRONMENT)
    (tree / "environment.yaml").unlink()
    (tree / "environment.yaml").symlink_to("../outside/environment.yaml")
    loaded = load_tree(tree)
    assert loaded.desired is None
    assert "file-outside" in codes(loaded)
    assert read_environment(tree)[0] is None


NAMES = [
    b"a\nb.yaml", b"\xff\xfe.yaml", b"\x1b[2J.yaml", b"a\tb.yaml", b"\xe2\x80\xae.yaml",
    b"-rf.yaml", b"$(touch x).yaml", b"a'b\".yaml", b" .yaml", b"%s.yaml", b"x" * 250 + b".yaml",
    "\u0130\u0131.yaml".encode(), b"CON.yaml", b"a\\b.yaml",
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_a_name_of_a_file_is_any_bytes(tree: Path, name: bytes):
    """Its documents are read, and a finding about it can be printed on any terminal."""
    path = tree / os.fsdecode(name)
    path.write_text("type: task\nname: other\ncommands: [x]\nnmae: y\n")
    loaded = load_tree(tree)
    assert codes(loaded) == ["unknown-field"]
    text = render_findings(loaded.findings)
    assert all(letter.isprintable() or letter == "\n" for letter in text)
    text.encode("utf-8")


def test_names_that_differ_by_case(tree: Path):
    """Files of one name in two cases are two files."""
    (tree / "Train.yaml").write_text(TASK.replace("train", "other"))
    (tree / "TRAIN.YAML").write_text("no document")  # Another ending.
    if len(list(tree.iterdir())) < 4:
        pytest.skip("the file system does not tell cases apart")
    assert len(load_tree(tree).desired.resources) == 2


def test_folders_in_folders(tree: Path):
    """A thousand of them are a finding; so many as people make are read."""
    deep = tree.joinpath(*["d"] * walk.DEPTH_MAX)
    deep.mkdir(parents=True)
    (deep / "other.yaml").write_text(TASK.replace("train", "other"))
    assert len(load_tree(tree).desired.resources) == 2
    before = Path.cwd()
    os.chdir(deep)
    try:
        for _ in range(1000):  # No path is as long: the kernel takes them a step at a time.
            Path("dddd").mkdir()
            os.chdir("dddd")
        Path("other.yaml").write_text(SECRET)
    finally:
        os.chdir(before)
    loaded = load_tree(tree)
    assert codes(loaded) == ["tree-too-large"]
    assert len(loaded.desired.resources) == 2
    subprocess.run(["rm", "-rf", str(tree / "d")], check=True)  # Python's own goes too deep.


def test_a_hundred_thousand_files(tree: Path):
    """One too many, and nothing is read of them: the folder of somebody's data, by mistake."""
    many = tree / "many"
    many.mkdir()
    for number in range(walk.FILES_MAX + 1):
        os.close(os.open(f"{many}/{number}.yaml", os.O_CREAT | os.O_WRONLY))
    loaded = load_tree(tree)
    assert codes(loaded)[0] == "tree-too-large"
    assert loaded.desired.unread == (".",)
    assert loaded.files_count == 1


def test_a_tree_of_terabytes(tree: Path):
    """What all files come to is bounded too; files of holes cost their author nothing."""
    for number in range(9):
        with (tree / f"{number}.yaml").open("wb") as file:
            file.truncate(2**40)
    loaded = load_tree(tree)
    assert codes(loaded)[0] == "tree-too-large"
    assert loaded.files_count == 1


def test_many_entries_that_are_no_documents(tree: Path, monkeypatch: pytest.MonkeyPatch):
    """Folders of data are counted, whatever lies in them."""
    monkeypatch.setattr(walk, "ENTRIES_MAX", 50)
    (tree / "data").mkdir()
    for number in range(60):
        (tree / "data" / f"{number}.bin").touch()
    assert codes(load_tree(tree))[0] == "tree-too-large"


# Whoever may not read


@contextlib.contextmanager
def as_nobody() -> Iterator[None]:
    """Without root's rights: to root, every file can be read."""
    if os.geteuid() != 0:
        yield
        return
    os.setegid(65534)
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)


@pytest.fixture
def open_tree() -> Iterator[Path]:
    """An environment that anybody may read: pytest's folders are their owner's alone."""
    folder = Path(tempfile.mkdtemp(prefix="fleetform-hostile-"))
    folder.chmod(0o755)
    (folder / "environment.yaml").write_text(ENVIRONMENT)
    (folder / "train.yaml").write_text(TASK)
    load_tree(folder)  # Imports what nobody may not read.
    yield folder
    folder.chmod(0o755)
    for path in folder.iterdir():
        if not path.is_symlink():
            path.chmod(0o755)
    shutil.rmtree(folder)


def load_as_nobody(folder: Path) -> Loaded:
    with as_nobody():
        return load_tree(folder)


def test_what_may_not_be_read_is_left_as_it_is(open_tree: Path):
    """A file and a folder without rights are findings, and what they declare is not forgotten."""
    (open_tree / "x.yaml").write_text(SECRET)
    (open_tree / "x.yaml").chmod(0)
    (open_tree / "folder").mkdir(mode=0)
    (open_tree / "link.yaml").symlink_to("folder/x.yaml")
    loaded = load_as_nobody(open_tree)
    assert set(codes(loaded)) == {"file-unreadable"}
    assert {"folder/", "x.yaml"} <= set(loaded.desired.unread)
    assert [str(key) for key in loaded.desired.resources] == ["run/train"]


def test_an_environment_that_may_not_be_read(open_tree: Path):
    """It is a finding, and nothing is declared."""
    (open_tree / "environment.yaml").chmod(0)
    loaded = load_as_nobody(open_tree)
    assert loaded.desired is None
    assert "file-unreadable" in codes(loaded)


@pytest.mark.parametrize("mode", [0, 0o400, 0o444, 0o111])
def test_a_folder_that_may_not_be_read(open_tree: Path, mode: int):
    """Neither entering nor listing it is a finding, whichever is forbidden."""
    open_tree.chmod(mode)
    loaded = load_as_nobody(open_tree)
    assert loaded.errors
    assert loaded.desired is None or loaded.desired.unread == (".",)


# What changes while it is read


def during(monkeypatch: pytest.MonkeyPatch, path: Path, change: Callable[[], None]) -> None:
    """Let somebody change things between the first bytes of a file and the next."""
    read = os.read
    inode = path.stat().st_ino

    def changed_read(descriptor: int, size: int) -> bytes:
        data = read(descriptor, min(size, 10))
        if os.fstat(descriptor).st_ino == inode:
            monkeypatch.setattr(os, "read", read)
            change()
        return data

    monkeypatch.setattr(os, "read", changed_read)


CHANGES: dict[str, Callable[[Path], None]] = {
    "grows": lambda path: path.write_bytes(path.read_bytes() + b"rerun: 2\n"),
    "is cut": lambda path: os.truncate(path, 5),
    "is emptied": lambda path: os.truncate(path, 0),
    "is written anew": lambda path: path.write_text(TASK.replace("train", "other")),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_file_that_changes_while_it_is_read(
    tree: Path, monkeypatch: pytest.MonkeyPatch, name: str
):
    """Half of one and half of another is no document: it is told, and left as it is."""
    path = tree / "train.yaml"
    during(monkeypatch, path, lambda: CHANGES[name](path))
    loaded = load_tree(tree)
    assert "file-changed" in codes(loaded)
    assert loaded.desired.unread == ("train.yaml",)
    assert loaded.desired.resources == {}


def test_a_file_that_is_replaced_while_it_is_read(tree: Path, monkeypatch: pytest.MonkeyPatch):
    """Whoever has it open reads what it was, whole, even when it goes away."""
    path = tree / "train.yaml"

    def replace() -> None:
        (tree / "new").write_text(SECRET)
        (tree / "new").rename(path)

    during(monkeypatch, path, replace)
    assert [str(key) for key in load_tree(tree).desired.resources] == ["run/train"]


@pytest.mark.parametrize(
    "error", [OSError(5, "Input/output error"), OSError(116, "Stale file handle")]
)
def test_a_disk_that_fails(tree: Path, monkeypatch: pytest.MonkeyPatch, error: OSError):
    """What the disk does not give is a finding."""

    def fail(_descriptor: int, _size: int) -> bytes:
        raise error

    monkeypatch.setattr(os, "read", fail)
    loaded = load_tree(tree)
    assert set(codes(loaded)) == {"file-unreadable"}
    assert loaded.desired is None


def test_nothing_outside_is_read_in_a_race(tree: Path):
    """While files and folders become links out and back again, nothing of what lies there is read."""
    folder = tree / "folder"
    folder.mkdir()
    (folder / "secret.yaml").write_text(TASK.replace("train", "inside"))
    (tree / "x.yaml").write_text(TASK.replace("train", "file"))
    over = threading.Event()

    def swap() -> None:
        number = 0
        while not over.is_set():
            number += 1
            for path, target in (
                (folder, "../outside"),
                (tree / "x.yaml", "../outside/secret.yaml"),
            ):
                path.rename(tree / f"kept.{path.name}")
                path.symlink_to(target)
                path.unlink()
                (tree / f"kept.{path.name}").rename(path)

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        for _ in range(150):
            loaded = load_tree(tree)
            assert "run/outside" not in {str(key) for key in loaded.desired.resources}
            assert {"file-changed", "file-outside", "file-unreadable", "duplicate-name"} >= set(
                codes(loaded)
            )
    finally:
        over.set()
        thread.join()


def test_a_way_stays_inside(tree: Path):
    """Opening follows links that stay, and none that leave, whichever step they are."""
    (tree / "folder").mkdir()
    (tree / "folder" / "a.yaml").write_text("a")
    (tree / "in").symlink_to("folder")
    (tree / "out").symlink_to("../outside")
    (tree / "round").symlink_to("../tree/folder/../in/a.yaml")
    for path in ("folder/a.yaml", "in/a.yaml", "round"):
        descriptor = open_below(tree, path)
        assert os.read(descriptor, 9) == b"a"
        os.close(descriptor)
    for path in ("out/secret.yaml", "in/../../outside/secret.yaml", "../tree/out/../x.yaml"):
        with pytest.raises(LeadsOutError):
            open_below(tree, path)


def test_no_descriptor_is_left_open(tree: Path):
    """Whatever a file turns out to be, what was opened on the way is closed."""
    for name, (make, _) in ODD.items():
        with contextlib.suppress(pytest.skip.Exception):
            make(tree / f"{name}.yaml")
    load_tree(tree)
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(3):
        load_tree(tree)
    assert len(list(Path("/proc/self/fd").iterdir())) == before


# A repository that comes with its configuration


def git(folder: Path, *arguments: str) -> None:
    subprocess.run(
        ["git", "-C", str(folder), "-c", "user.name=x", "-c", "user.email=x@example.com", *arguments],
        check=True, capture_output=True,
    )  # fmt: skip


@pytest.fixture
def repository(tree: Path) -> Path:
    git(tree, "init", "-q")
    (tree / ".gitattributes").write_text("* filter=evil\n")
    git(tree, "add", ".")
    git(tree, "commit", "-qm", "one")
    return tree


def run_by(tree: Path) -> str:
    """A command that leaves a trace; files look changed, so that git has to compare them."""
    for path in tree.glob("*.yaml"):
        os.utime(path, (1, 1))
    return f"touch '{tree.parent}/executed'; cat"


@pytest.mark.parametrize(
    "keys",
    [
        ("filter.evil.clean",),
        ("filter.evil.process", "filter.evil.required"),
        ("filter.evil.smudge", "filter.evil.clean"),
        ("core.fsmonitor",),
        ("core.pager",),
        ("pager.status",),
        ("diff.external",),
        ("core.sshCommand",),
        ("core.askPass",),
        ("gpg.program",),
        ("alias.status",),
    ],
    ids=" ".join,
)
def test_no_program_of_a_repository_is_run(repository: Path, keys: tuple[str, ...]):
    """Filters, pagers, monitors and aliases of its configuration stay words."""
    command = run_by(repository)
    for key in keys:
        said = {"alias.status": f"!{command}", "filter.evil.required": "true"}
        git(repository, "config", key, said.get(key, command))
    loaded = load_tree(repository)
    assert len(loaded.desired.commit) >= 40
    assert not (repository.parent / "executed").exists()


def test_no_filter_is_run_that_is_included(repository: Path):
    """A configuration may name another file, inside of the tree or not, that has the programs."""
    command = run_by(repository)
    (repository / "included").write_text(f'[filter "evil"]\n\tclean = "{command}"\n')
    git(repository, "config", "include.path", "../included")
    load_tree(repository)
    assert not (repository.parent / "executed").exists()


def test_no_filter_is_run_whose_name_is_odd(repository: Path):
    """A name may have dots, spaces and equals signs in it."""
    command = run_by(repository)
    for name in ("e.v.i.l", "e=x", "E", "é"):
        (repository / ".gitattributes").write_text(f"* filter={name}\n")
        git(repository, "config", f"filter.{name}.clean", command)
        load_tree(repository)
        assert not (repository.parent / "executed").exists()


def test_no_worktree_filter_is_run(repository: Path):
    """A working copy may have a configuration of its own."""
    command = run_by(repository)
    git(repository, "config", "extensions.worktreeConfig", "true")
    git(repository, "config", "--worktree", "filter.evil.clean", command)
    load_tree(repository)
    assert not (repository.parent / "executed").exists()


def test_no_hook_is_run(repository: Path):
    """Neither the hooks' folder nor one that the configuration names."""
    command = run_by(repository)
    hooks = repository / ".git" / "hooks"
    hooks.mkdir(exist_ok=True)
    for name in ("post-index-change", "pre-commit", "post-checkout", "reference-transaction"):
        (hooks / name).write_text(f"#!/bin/sh\n{command}\n")
        (hooks / name).chmod(0o755)
    git(repository, "config", "core.hooksPath", str(hooks))
    load_tree(repository)
    assert not (repository.parent / "executed").exists()


def test_nothing_is_fetched_that_is_missing(repository: Path):
    """A clone that says it is partial would fetch, by a program that its configuration names."""
    command = run_by(repository)
    git(repository, "config", "extensions.partialClone", "origin")
    git(repository, "config", "remote.origin.url", str(repository.parent / "outside"))
    git(repository, "config", "remote.origin.promisor", "true")
    git(repository, "config", "remote.origin.uploadpack", command)
    for path in (repository / ".git" / "objects").glob("??/*"):
        path.unlink()
    load_tree(repository)
    assert not (repository.parent / "executed").exists()


@pytest.mark.parametrize("name", ["a pipe", "a link to itself", "a folder", "a link to a device"])
@pytest.mark.parametrize(
    "where", [".git", ".git/config", ".git/index", ".git/HEAD", ".git/included"]
)
def test_a_repository_that_is_none(
    repository: Path, monkeypatch: pytest.MonkeyPatch, where: str, name: str
):
    """Whatever git is given in place of a file of its own, loading ends when git is given up."""
    monkeypatch.setattr(tree_git, "_ANSWER_SECONDS", 0.5)
    monkeypatch.setattr(tree_git, "_CONFIG_SECONDS", 0.5)
    git(repository, "config", "include.path", "included")
    path = repository / where
    shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    make, _ = ODD[name]
    make(path)
    loaded = load_tree(repository)
    assert [str(key) for key in loaded.desired.resources] == ["run/train"]


def test_findings_are_the_same_each_time(tree: Path):
    """Order of what the folder lists means nothing, and neither does the moment."""
    for number in range(5):
        (tree / f"{number}.yaml").write_text("type: task\nname: a\nname: b\nx: [\n")
    (tree / "link.yaml").symlink_to("/etc/passwd")
    first: tuple[Finding, ...] = load_tree(tree).findings
    assert all(load_tree(tree).findings == first for _ in range(3))
    assert list(first) == sorted(first, key=lambda one: one.sort_key)
