"""The key and the passphrase of an environment, on the machine that created them and on others."""

from __future__ import annotations

import shutil
import stat

import asyncssh
import pytest

from fleetform.providers.contract.errors import PermanentError
from fleetform.providers.pulumi.aws.keys import PREVIEWED_KEY, EnvironmentKeys
from fleetform.providers.pulumi.engine.file_records import FileRecords


class Machine:
    """A machine with folders of its own, and the records that all machines share."""

    def __init__(self, folder, records):
        self.keys = EnvironmentKeys(folder / "pulumi", folder / "config", "e1", records)
        self.files = [folder / "pulumi" / "id_ed25519", folder / "config" / "e1.passphrase"]

    def use(self):
        return (self.keys.public_key(), self.keys.passphrase().read_text())


@pytest.fixture
def machines(tmp_path):
    records = FileRecords(tmp_path / "records")
    return [Machine(tmp_path / name, records) for name in ("first", "second")]


def test_both_are_created_once(machines):
    """For this user alone."""
    first = machines[0]
    assert first.use() == first.use()
    assert [stat.S_IMODE(path.stat().st_mode) for path in first.files] == [0o600, 0o600]
    assert first.keys.key_file() == first.files[0]


def test_a_preview_creates_none(machines):
    """It has the key of the environment as soon as there is one."""
    first, second = machines
    assert second.keys.previewed_key() == PREVIEWED_KEY
    assert not second.files[0].exists()
    assert second.keys.previewed_key() != first.keys.public_key()
    assert second.keys.previewed_key() == first.keys.public_key()


def test_another_machine_needs_copies(machines):
    """It creates none of its own, and names the file and where it is."""
    first, second = machines
    used = first.use()
    for ask in (second.keys.public_key, second.keys.passphrase, second.keys.key_file):
        with pytest.raises(PermanentError, match=r"this machine has no .*: copy it from "):
            ask()
    assert not any(path.exists() for path in second.files)
    for source, target in zip(first.files, second.files, strict=True):
        target.parent.mkdir(parents=True)
        shutil.copy(source, target)
    assert second.use() == used


def test_other_files_are_refused(machines):
    """They are named, with the machine that has the right ones."""
    first, second = machines
    first.use()
    for path in second.files:
        path.parent.mkdir(parents=True)
    second.files[0].write_bytes(asyncssh.generate_private_key("ssh-ed25519").export_private_key())
    second.files[1].write_text("other")
    for ask in (second.keys.public_key, second.keys.passphrase):
        with pytest.raises(PermanentError, match=r"is not the .*: replace it with the file of "):
            ask()


def test_a_file_that_is_lost_is_not_replaced(machines):
    """A new key would open no host."""
    first = machines[0]
    first.use()
    for path in first.files:
        path.unlink()
    for ask in (first.keys.public_key, first.keys.passphrase):
        with pytest.raises(PermanentError, match="this machine has no"):
            ask()
