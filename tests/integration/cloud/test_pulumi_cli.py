"""The Pulumi CLI that the tests of clouds start."""

from __future__ import annotations

import os
import subprocess

from cloud import pulumi_program


def test_the_program_is_of_the_pinned_version(pulumi):
    """The program in the cache says the version that `go.mod` pins."""
    said = subprocess.check_output([pulumi, "version"], text=True)
    assert said.strip() == pulumi_program.pulumi_version()


def test_a_second_build_changes_nothing(pulumi):
    """`build.sh` ends at once when the program is there, also without Go."""
    before = pulumi.stat()
    script = pulumi_program.BUILD
    subprocess.check_call(["sh", str(script)], env={**os.environ, "PATH": "/usr/bin:/bin"})
    assert pulumi.stat() == before


def test_without_go_the_build_says_what_to_install(tmp_path):
    """A machine without Go learns which version to install and which command follows."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("sh", "sed", "dirname"):
        (programs / name).symlink_to(f"/usr/bin/{name}")
    finished = subprocess.run(
        ["/bin/sh", str(pulumi_program.BUILD)],
        env={"PATH": str(programs), "XDG_CACHE_HOME": str(tmp_path), "FLEETFORM_TEST_GO": "/nowhere"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert finished.returncode == 1
    assert "install Go 1.26 or newer" in finished.stderr
    assert "sh tests/cloud/pulumi_cli/build.sh" in finished.stderr
