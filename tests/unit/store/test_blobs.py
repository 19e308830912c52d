"""Contents by digest: whole or not there."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from fleetform.store.blobs import FileBlobStore


@pytest.fixture
def blobs(tmp_path) -> FileBlobStore:
    return FileBlobStore(tmp_path / "blobs")


def digest_of(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


@pytest.mark.parametrize("content", [b"", b"x", b"long" * 700_000], ids=["empty", "small", "large"])
def test_a_content_is_found_by_its_digest(blobs, tmp_path, content) -> None:
    """What was put lies at its path, and putting it again changes nothing."""
    source = tmp_path / "source"
    source.write_bytes(content)
    digest = digest_of(content)
    assert not blobs.has(digest)
    blobs.put_file(digest, str(source))
    blobs.put_file(digest, str(source))
    assert blobs.has(digest)
    assert Path(blobs.path(digest)).read_bytes() == content


def test_a_changed_file_leaves_nothing(blobs, tmp_path) -> None:
    """A content that is not its digest is refused, and no part of it stays."""
    source = tmp_path / "source"
    source.write_bytes(b"new")
    with pytest.raises(ValueError, match="has changed"):
        blobs.put_file(digest_of(b"old"), str(source))
    assert [path for path in (tmp_path / "blobs").rglob("*") if path.is_file()] == []


def test_a_missing_file_leaves_nothing(blobs, tmp_path) -> None:
    """The system's error passes through, with the file's name."""
    with pytest.raises(FileNotFoundError, match="nowhere"):
        blobs.put_file(digest_of(b"x"), str(tmp_path / "nowhere"))
    assert [path for path in (tmp_path / "blobs").rglob("*") if path.is_file()] == []


def test_what_is_there_is_not_read_again(blobs, tmp_path) -> None:
    """A content stays although the file it came from has gone."""
    source = tmp_path / "source"
    source.write_bytes(b"x")
    blobs.put_file(digest_of(b"x"), str(source))
    source.unlink()
    blobs.put_file(digest_of(b"x"), str(source))
    assert blobs.has(digest_of(b"x"))


@pytest.mark.parametrize("name", ["", "../../etc/passwd", "A" * 64, "0" * 63, "0" * 64 + "\n"])
def test_only_a_digest_names_a_content(blobs, name) -> None:
    """Nothing that leads elsewhere is ever a path."""
    with pytest.raises(ValueError, match="not a SHA-256"):
        blobs.path(name)
