"""Files that are not UTF-8: the advised command makes them so."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from unit.spec.trees import load, write

TEXT = "type: fleet\nname: lab\nlocal: true\ndescription: café\n"


@pytest.mark.parametrize(
    "encoding",
    ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be", "windows-1252"],
)
def test_the_advised_command_makes_the_file_utf8(tmp_path: Path, need, encoding: str):
    """It is run as it is printed; the file then says what was written."""
    need("iconv", shutil.which("iconv") is not None, "iconv is not installed")
    name = "my fleet.yaml"
    write(tmp_path, "environment.yaml", "type: environment\nname: testing\nuid: 0b2f6a0e-54c5\n")
    (tmp_path / name).write_bytes(TEXT.encode(encoding))
    (found,) = load(tmp_path).errors
    assert found.code == "not-utf8"
    command = found.advice[found.advice.index("iconv ") :]
    subprocess.run(["sh", "-c", command], cwd=tmp_path, check=True)
    assert (tmp_path / name).read_bytes().decode("utf-8").removeprefix("\ufeff") == TEXT
    assert load(tmp_path).errors == ()
    assert sorted(one.name for one in tmp_path.iterdir()) == ["environment.yaml", name]


@pytest.mark.parametrize("data", ["café\n".encode() + b"\xff\n", b"\x81\xff\n"])
def test_no_conversion_is_advised_that_would_do_harm(tmp_path: Path, data: bytes):
    """What is UTF-8 but for one character, or nothing that is known, is to be corrected by hand."""
    write(tmp_path, "environment.yaml", "type: environment\nname: testing\nuid: 0b2f6a0e-54c5\n")
    (tmp_path / "x.yaml").write_bytes(b"# " + data)
    (found,) = load(tmp_path).errors
    assert found.code == "not-utf8"
    assert "iconv" not in found.advice
