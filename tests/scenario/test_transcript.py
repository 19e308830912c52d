"""The runner of transcripts: what it accepts, and what its failures show."""

from __future__ import annotations

from pathlib import Path

import pytest

from scenario import transcript


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


def _run(folder: Path, *lines: str) -> int:
    document = folder.with_name("document.md")
    document.write_text("\n".join(["```console", *lines, "```", ""]), encoding="utf-8")
    return transcript.run(document, folder, folder.with_name("state"))


def _failure(folder: Path, *lines: str) -> str:
    with pytest.raises(AssertionError) as caught:
        _run(folder, *lines)
    return str(caught.value)


def test_a_session_is_typed(folder: Path) -> None:
    """Commands share folders and files, and `…` stands for text or lines."""
    typed = ("$ mkdir a; cd a; seq 9 > b", "$ cat b; pwd", "1", "…", "9", "/…/a")
    assert _run(folder, *typed) == 2


def test_a_failure_shows_the_whole_session(folder: Path) -> None:
    """Each command up to the wrong one is shown with its output and its exit code."""
    failure = _failure(
        folder, "$ echo one; ls nowhere 2> /dev/null; echo $?", "…", "2", "$ echo three; (exit 3)", "four"
    )  # fmt: skip
    assert "document.md:5: `echo three; (exit 3)` printed other lines than\nfour\n" in failure
    assert failure.endswith(
        "$ echo one; ls nowhere 2> /dev/null; echo $?\none\n2\n"
        "$ echo three; (exit 3)\nthree\n[exit code 3]"
    )


@pytest.mark.parametrize(
    "typed",
    [
        ("$ (exit 3)",),
        ("$ echo x; false; echo y", "x", "y"),
        ('$ (exit 3); echo "exit code $?"', "…"),
        ('$ (exit 3); echo "exit code $?"; (exit 4)', "exit code 3"),
    ],
)
def test_an_exit_code_that_is_not_stated_is_a_failure(folder: Path, typed: tuple[str, ...]) -> None:
    """A command that fails in silence is no session that a reader would follow."""
    assert "which is not stated" in _failure(folder, *typed)


@pytest.mark.parametrize(
    "typed",
    [
        ('$ (exit 3); echo "exit code $?"', "exit code 3"),
        ("$ (exit 3); echo $?", "3"),
        ("$ until [ -e made ]; do touch made; done; if false; then echo; fi; false || true",),
        ("$ (exit 3) | cat",),
    ],
)
def test_an_exit_code_that_is_stated_or_asked_for_is_none(
    folder: Path, typed: tuple[str, ...]
) -> None:
    """What the document states is right, and conditions may be false."""
    assert _run(folder, *typed) == 1


def test_a_command_that_does_not_end_shows_the_session(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it has printed by then is shown."""
    monkeypatch.setattr(transcript, "_WAIT_SECONDS", 1)
    failure = _failure(folder, "$ echo one", "one", "$ echo two; exec sleep 60", "two")
    assert "`echo two; exec sleep 60` has not ended within 1 s" in failure
    assert failure.endswith("$ echo one\none\n$ echo two; exec sleep 60\ntwo\n[not over]")
