"""
Commands that write to git, in a repository whose configuration names programs.

A branch of anybody's is edited and submitted; what its repository names must not run as whoever does
so. Each program that is planted here would leave its name behind.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import applied
from fleetform.cli.main import main
from fleetform.source.bundle import make_bundle

TASK = "type: task\nname: train\ncommands: [echo hi]\n"

HOOKS = (
    "applypatch-msg", "commit-msg", "fsmonitor-watchman", "post-applypatch", "post-checkout",
    "post-commit", "post-index-change", "post-merge", "post-rewrite", "pre-applypatch",
    "pre-auto-gc", "pre-commit", "pre-merge-commit", "pre-push", "pre-rebase",
    "prepare-commit-msg", "push-to-checkout", "reference-transaction",
)  # fmt: skip

PROGRAMS = (
    "core.fsmonitor", "core.editor", "core.pager", "core.askPass", "core.sshCommand",
    "core.gitProxy", "core.alternateRefsCommand", "credential.helper",
    "credential.https://example.org.helper", "diff.external", "diff.planted.command",
    "diff.planted.textconv", "filter.planted.clean", "filter.planted.process",
    "filter.planted.smudge", "gpg.program", "gpg.openpgp.program", "gpg.ssh.program",
    "gpg.ssh.defaultKeyCommand", "gpg.x509.program", "interactive.diffFilter",
    "merge.planted.driver", "remote.origin.receivepack", "remote.origin.uploadpack",
    "sequence.editor", "uploadpack.packObjectsHook",
)  # fmt: skip


_GIT = ("git", "-c", "core.fsmonitor=", "-c", "core.hooksPath=/dev/null")
"""For a test's own questions."""


class Planted:
    """A repository with an environment, in which everything that can name a program does."""

    def __init__(self, folder: Path) -> None:
        self.root = applied.write_tree(folder / "lab", applied.FLEET, TASK)
        self.origin = folder / "origin.git"
        self._ran = folder / "ran"
        self._ran.mkdir()
        (self.root / "data.bin").write_text("data\n")
        (self.root / "notes.txt").write_text("notes\n")
        self.git("init", "-q", "-b", "main")
        self.git("add", ".")
        self.git("commit", "-qm", "first")
        subprocess.run(["git", "init", "-q", "--bare", str(self.origin)], check=True)
        self.git("remote", "add", "origin", str(self.origin))
        self._plant()

    def _plant(self) -> None:
        hooks = self.root / ".git/hooks"
        hooks.mkdir(exist_ok=True)
        for name in HOOKS:
            (hooks / name).write_text(f"#!/bin/sh\n{self._program(f'hook-{name}')}\n")
            (hooks / name).chmod(0o755)
        # It names the same hooks: they are found with the setting and without.
        self.git("config", "core.hooksPath", str(hooks))
        attributes = "*.bin filter=planted diff=planted merge=planted\n*.txt filter=planted\n"
        (self.root / ".git/info/attributes").write_text(attributes)
        for key in PROGRAMS:
            self.git("config", key, self._program(key))
        self.git("config", "filter.planted.required", "true")
        # What is to be looked at once more is given to its filter.
        for name in ("data.bin", "notes.txt"):
            os.utime(self.root / name, (1, 1))

    def _program(self, name: str) -> str:
        return f"touch {self._ran / name.replace('/', '_')}"

    def ran(self) -> list[str]:
        return sorted(path.name for path in self._ran.iterdir())

    def git(self, *words: str) -> str:
        asked = subprocess.run(
            [*_GIT, *words], cwd=self.root, check=True, capture_output=True, text=True
        )
        return asked.stdout.strip()


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A person's own configuration: who they are, and nothing else."""
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.setenv("FLEETFORM_STATE_HOME", str(tmp_path / "state"))
    (home / ".gitconfig").write_text("[user]\nname = Ada\nemail = ada@example.org\n")
    return home


@pytest.fixture
def planted(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Planted]:
    made = Planted(tmp_path)
    monkeypatch.chdir(made.root)
    yield made
    assert made.ran() == []


def test_what_is_planted_would_run(home: Path, tmp_path: Path) -> None:
    """A person's own `git commit` runs hooks, filters and monitor: the witness can be believed."""
    made = Planted(tmp_path)
    (made.root / "data.bin").write_text("more\n")
    subprocess.run(["git", "commit", "-qam", "x"], cwd=made.root, check=False, capture_output=True)
    assert {"core.fsmonitor", "filter.planted.process"} <= set(made.ran())
    for key in ("clean", "process", "required"):
        made.git("config", "--unset", f"filter.planted.{key}")
    subprocess.run(["git", "commit", "-qam", "x"], cwd=made.root, check=False, capture_output=True)
    assert {"hook-pre-commit", "hook-commit-msg", "hook-reference-transaction"} <= set(made.ran())


@pytest.mark.parametrize(
    "words",
    [
        ("set", "train", "priority=5", "--commit"),
        ("set", "train", "priority=5", "--branch", "try"),
        ("set", "train", "priority=5", "--push"),
        ("stop", "train", "--commit"),
        ("stop", "train", "--branch", "halt", "--push"),
    ],
)
def test_a_commit_runs_nothing_that_the_repository_names(planted: Planted, words) -> None:
    """It is made all the same, with the edit and nothing else in it."""
    head = planted.git("rev-parse", "HEAD")
    assert main(list(words)) == 0
    revision = words[words.index("--branch") + 1] if "--branch" in words else "main"
    assert planted.git("rev-parse", f"{revision}~1") == head
    named = planted.git("diff-tree", "-r", "--name-only", "--no-commit-id", revision)
    assert named == "tree.yaml"
    assert planted.git("log", "-1", "--format=%an", revision) == "Ada"
    if "--push" in words:
        there = subprocess.run(
            ["git", "rev-parse", revision], cwd=planted.origin, check=True, capture_output=True,
            text=True,
        )  # fmt: skip
        assert there.stdout.strip() == planted.git("rev-parse", revision)


def test_a_bundle_runs_nothing_that_the_repository_names(planted: Planted, tmp_path: Path) -> None:
    """`submit` takes files as they are; what git says of them is asked without its programs."""
    bundle = make_bundle(planted.root, tmp_path, files_max=100, bytes_max=1 << 20)
    assert bundle.files == 4
    assert bundle.commit.startswith(planted.git("rev-parse", "HEAD"))


def test_a_submodule_is_not_looked_into(home: Path, tmp_path: Path) -> None:
    """It has a configuration of its own, with programs of its own."""
    inner = Planted(tmp_path)
    outer = tmp_path / "outer"
    outer.mkdir()

    def git(*words: str) -> None:
        subprocess.run(["git", *words], cwd=outer, check=True, capture_output=True)

    git("init", "-q")
    (outer / "file").write_text("x\n")
    inner.root.rename(outer / "inner")
    head = subprocess.run(
        ["git", "rev-parse", "HEAD"],
        cwd=outer / "inner",
        check=True,
        capture_output=True,
        text=True,
    ).stdout.strip()
    git("add", "file")
    git("update-index", "--add", "--cacheinfo", f"160000,{head},inner")
    git("commit", "-qm", "first")
    for path in inner.ran():
        (tmp_path / "ran" / path).unlink()
    make_bundle(outer, tmp_path, files_max=100, bytes_max=1 << 20)
    assert inner.ran() == []


def test_a_file_with_a_filter_is_not_committed_without_it(
    planted: Planted, capsys: pytest.CaptureFixture[str]
) -> None:
    """It may be what encrypts it: refused before anything is written, with what to do."""
    (planted.root / ".gitattributes").write_text("tree.yaml filter=planted\n")
    before = (planted.root / "tree.yaml").read_bytes()
    assert main(["set", "train", "priority=5", "--commit"]) == 1
    said = capsys.readouterr().err
    assert "tree.yaml goes through the filter `planted`" in said
    assert "git commit tree.yaml" in said
    assert (planted.root / "tree.yaml").read_bytes() == before


def test_a_remote_within_the_working_tree_is_not_pushed_to(
    planted: Planted, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its hooks would run here, and whoever made the branch may have made them."""
    subprocess.run(["git", "init", "-q", "--bare", "theirs.git"], cwd=planted.root, check=True)
    planted.git("config", "remote.origin.url", "theirs.git")
    assert main(["set", "train", "priority=5", "--push"]) == 1
    assert "is in the working tree" in capsys.readouterr().err


# -- a person's own programs -------------------------------------------------------------------

_SIGN = """\
#!/bin/sh
cat > /dev/null
printf -- '-----BEGIN PGP SIGNATURE-----\\n\\nown\\n-----END PGP SIGNATURE-----\\n'
echo >&2
echo '[GNUPG:] SIG_CREATED ' >&2
"""


def test_a_person_who_signs_still_does(planted: Planted, home: Path) -> None:
    """By the program of their own configuration, not by the repository's."""
    program = home / "sign"
    program.write_text(_SIGN)
    program.chmod(0o755)
    with (home / ".gitconfig").open("a") as config:
        config.write(f"[commit]\ngpgSign = true\n[gpg]\nprogram = {program}\n")
    planted.git("config", "--unset", "gpg.openpgp.program")
    for words in (("--commit",), ("--branch", "try")):
        assert main(["set", "train", f"priority={len(words)}", *words]) == 0
        revision = "try" if "try" in words else "main"
        assert "gpgsig -----BEGIN PGP SIGNATURE-----" in planted.git("cat-file", "-p", revision)


@pytest.fixture
def without_lfs(home: Path, tmp_path: Path) -> Callable[[str], Path]:
    """A repository with files for LFS, whose program is not installed here."""

    def make(scope: str) -> Path:
        root = applied.write_tree(tmp_path / "lab", applied.FLEET, TASK)
        (root / "model.bin").write_text("weights\n")

        def git(*words: str) -> None:
            subprocess.run(["git", *words], cwd=root, check=True, capture_output=True)

        git("init", "-q")
        git("add", ".")
        git("commit", "-qm", "first")
        (root / ".gitattributes").write_text("*.bin filter=lfs diff=lfs merge=lfs -text\n")
        for key, value in (
            ("clean", "no-such-git-lfs clean -- %f"), ("smudge", "no-such-git-lfs smudge -- %f"),
            ("process", "no-such-git-lfs filter-process"), ("required", "true"),
        ):  # fmt: skip
            git("config", scope, f"filter.lfs.{key}", value)
        os.utime(root / "model.bin", (1, 1))
        return root

    return make


@pytest.mark.parametrize("scope", ["--global", "--local"])
def test_a_filter_that_is_not_installed_is_gone_on_without(
    without_lfs: Callable[[str], Path], tmp_path: Path, scope: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """`git status` fails there; the working copy is bundled, and an edit committed, all the same."""
    root = without_lfs(scope)
    asked = subprocess.run(["git", "status"], cwd=root, check=False, capture_output=True)
    assert asked.returncode != 0
    bundle = make_bundle(root, tmp_path, files_max=100, bytes_max=1 << 20)
    assert bundle.files == 4
    monkeypatch.chdir(root)
    assert main(["set", "train", "priority=5", "--commit"]) == 0
