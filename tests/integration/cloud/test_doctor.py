"""`fleetform doctor`: the CLI, the plugin and the credentials, and the installation of the CLI."""

from __future__ import annotations

import json
import os

import pytest

from cloud.pulumi_program import pulumi_version
from integration.cloud.aws_site import Site
from integration.cloud.download_host import DownloadHost

pytestmark = pytest.mark.waits

INSTALLER = """\
#!/bin/sh
# As that of Pulumi: --no-edit-path --install-root FOLDER --version VERSION.
mkdir -p "$3/bin"
printf '#!/bin/sh\\necho v%s\\n' "$5" > "$3/bin/pulumi"
chmod +x "$3/bin/pulumi"
"""


@pytest.fixture
def site(pulumi, cloud, image, tmp_path):
    made = Site(tmp_path, cloud, image)
    made.declare(1)
    return made


def states(site, *, code):
    rows = json.loads(site.run("doctor", "--format", "json", code=code))
    return {row["name"]: (row["is_ok"], row["text"]) for row in rows}


def test_what_is_there(site, cloud):
    """The versions that are found, and whose credentials they are."""
    found = states(site, code=0)
    assert all(is_ok for is_ok, _ in found.values())
    assert found["Pulumi CLI"][1].startswith(f"{pulumi_version()} at {cloud.programs}")
    assert "us-east-1" in found["account 123456789012"][1]

    site.variables["AWS_ACCESS_KEY_ID"] = cloud.access_key("999999999999")
    is_ok, text = states(site, code=1)["account 123456789012"]
    assert not is_ok
    assert "are of account 999999999999" in text


def test_the_cli_is_installed(site, tmp_path):
    """By the installer of Pulumi into its folder, where it is found although PATH has none; a second call changes nothing."""
    site.variables["PATH"] = os.environ["PATH"]
    site.variables["PULUMI_HOME"] = str(tmp_path / "pulumi-home")
    assert states(site, code=1)["Pulumi CLI"] == (False, "not installed")
    assert "run `fleetform doctor --install-pulumi`" in site.run("doctor", code=1)

    with DownloadHost(tmp_path, {"/install.sh": INSTALLER.encode()}) as host:
        site.variables |= host.environment
        said = site.run("doctor", "--install-pulumi", code=1)
    program = tmp_path / "pulumi-home" / "bin" / "pulumi"
    assert f"the Pulumi CLI is {program}" in said
    assert f" at {program}" in states(site, code=1)["Pulumi CLI"][1]
    assert "downloading" not in site.run("doctor", "--install-pulumi", code=1)


def test_nothing_can_be_downloaded(site, tmp_path):
    """One sentence says what failed, and what to do instead."""
    site.variables["PATH"] = os.environ["PATH"]
    site.variables["PULUMI_HOME"] = str(tmp_path / "pulumi-home")
    with DownloadHost(tmp_path, {}) as host:
        site.variables |= host.environment
        said = site.run("doctor", "--install-pulumi", code=1)
    assert "the Pulumi CLI could not be installed: " in said
    assert "Not Found" in said
    assert "allow connections to get.pulumi.com" in said
