from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest

from fleetform.agents.host import bundles
from fleetform.agents.host.bundles import BundleError, unpack


def entry(name: str, **said: object) -> tarfile.TarInfo:
    made = tarfile.TarInfo(name)
    for field, value in said.items():
        setattr(made, field, value)
    return made


def link(name: str, target: str) -> tarfile.TarInfo:
    return entry(name, type=tarfile.SYMTYPE, linkname=target)


def archive(tmp_path: Path, *members: tuple[tarfile.TarInfo, bytes] | tarfile.TarInfo) -> str:
    path = tmp_path / "bundle"
    with tarfile.open(path, "w") as made:
        for member in members:
            one, content = member if isinstance(member, tuple) else (member, b"")
            one.size = len(content)
            made.addfile(one, io.BytesIO(content))
    return str(path)


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


def test_files_folders_and_links_lie_as_they_did(tmp_path: Path, work: Path) -> None:
    """Contents, whether one is a program, and links that stay inside."""
    made = archive(
        tmp_path,
        (entry("src/train.py", mode=0o755), b"print()"),
        (entry("conf", mode=0o600), b"x"),
        link("src/conf", "../conf"),
        link("again", "src/conf"),
        entry("empty", type=tarfile.DIRTYPE),
    )
    unpack(made, str(work))
    assert (work / "src/train.py").read_bytes() == b"print()"
    assert (work / "src/train.py").stat().st_mode & 0o777 == 0o755
    assert (work / "conf").stat().st_mode & 0o777 == 0o644
    assert (work / "again").read_bytes() == b"x"
    assert (work / "empty").is_dir()


@pytest.mark.parametrize(
    "members",
    [
        [entry("/etc/passwd")],
        [entry("../out")],
        [entry("a/../../out")],
        [entry(".")],
        [link("a", "/etc")],
        [link("a", "..")],
        [link("a/b", "../../out")],
        # Behind another link, a step up begins where that one leads.
        [link("d/e/top", "../.."), link("out", "d/e/top/../x")],
        [link("a", "b"), entry("a/x")],
        [entry("a"), entry("a")],
        [entry("pipe", type=tarfile.FIFOTYPE)],
        [entry("device", type=tarfile.BLKTYPE)],
        [entry("hard", type=tarfile.LNKTYPE, linkname="a")],
    ],
    ids=lambda members: " ".join(f"{one.name}->{one.linkname}" for one in members),
)
def test_what_leads_out_or_is_no_file_is_refused(
    tmp_path: Path, work: Path, members: list[tarfile.TarInfo]
) -> None:
    """Before anything of it is written."""
    made = archive(tmp_path, entry("harmless"), *members)
    with pytest.raises(BundleError):
        unpack(made, str(work))
    assert list(work.iterdir()) == []


def test_what_is_no_archive_is_refused(tmp_path: Path, work: Path) -> None:
    """Any content may be named as a bundle."""
    path = tmp_path / "bundle"
    path.write_bytes(b"no archive, only words" * 100)
    with pytest.raises(BundleError, match="not an archive"):
        unpack(str(path), str(work))


def test_bounds_hold(tmp_path: Path, work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of files and of bytes, as the header says them: nothing is written for a lie of zeros."""
    monkeypatch.setattr(bundles, "BUNDLE_FILES_MAX", 2)
    with pytest.raises(BundleError, match="more than 2 files"):
        unpack(archive(tmp_path, entry("a"), entry("b"), entry("c")), str(work))
    monkeypatch.setattr(bundles, "BUNDLE_BYTES_MAX", 3)
    with pytest.raises(BundleError, match="more than 0 MB"):
        unpack(archive(tmp_path, (entry("a"), b"1234")), str(work))
