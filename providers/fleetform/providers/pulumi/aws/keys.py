"""
The two secrets of an environment with clouds: the SSH key of its hosts, and the passphrase of its stacks.

Both are files, apart from the ledger and from the state of the stacks. The public half of the key and a digest of the passphrase are
recorded when they are created. A machine without a file, or with another file, gets an error: a second key would open
no host, and a second passphrase no stack.
"""

from __future__ import annotations

import hashlib
import json
import socket
from collections.abc import Callable
from pathlib import Path

from fleetform.providers.contract.errors import PermanentError
from fleetform.providers.contract.stacks import OF_ENVIRONMENT, StackRecords
from fleetform.providers.private_files import create_private
from fleetform.providers.pulumi.engine.stack_settings import passphrase_file

__all__ = ["PREVIEWED_KEY", "EnvironmentKeys"]

_KIND = "keys"

_ADVICE = "copy it with `scp -p`, so that no other user can read it"

PREVIEWED_KEY = f"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI{'A' * 43} fleetform"
"""In a preview, which creates no key."""


class EnvironmentKeys:
    """
    The key and the passphrase of one environment.

    `folder` has the key, `passphrases` the passphrase; `records` says which ones are right.
    """

    def __init__(
        self, folder: Path, passphrases: Path, environment_uid: str, records: StackRecords
    ) -> None:
        self._key = folder / "id_ed25519"
        self._passphrases = passphrases
        self._environment_uid = environment_uid
        self._records = records
        self._checked: set[str] = set()

    def key_file(self) -> Path:
        """
        Return where the private half of the key is.

        Raises:
            PermanentError: This machine does not have it.
        """
        if not self._key.exists():
            raise _missing("SSH key of the hosts", self._key, self._known().get("host", ""))
        return self._key

    def previewed_key(self) -> str:
        """Return the public half if there is one; nothing is created."""
        return self._known().get("key", PREVIEWED_KEY)

    def public_key(self) -> str:
        """
        Return the public half of the key; create the key if the environment has none.

        Raises:
            PermanentError: This machine does not have the key of the environment.
        """
        self._require("key", "SSH key of the hosts", self._key, self._create_key, self._read_key)
        return self._read_key()

    def passphrase(self) -> Path:
        """
        Return the file with the passphrase; create it if the environment has none.

        Raises:
            PermanentError: This machine does not have the passphrase of the environment.
        """
        path = self._passphrases / f"{self._environment_uid}.passphrase"
        self._require(
            "passphrase",
            "passphrase of the stacks",
            path,
            lambda: passphrase_file(self._passphrases, self._environment_uid),
            lambda: hashlib.sha256(path.read_bytes()).hexdigest(),
        )
        return path

    def _require(
        self,
        kind: str,
        what: str,
        path: Path,
        create: Callable[[], object],
        read: Callable[[], str],
    ) -> None:
        if kind in self._checked and path.exists():
            return
        known = self._known()
        if not path.exists():
            if kind in known:
                raise _missing(what, path, known["host"])
            create()
        found = read()
        if kind not in known:
            said = {"host": socket.gethostname(), **known, kind: found}
            self._records.write(OF_ENVIRONMENT, _KIND, json.dumps(said, sort_keys=True))
        elif known[kind] != found:
            raise PermanentError(
                f"{path} is not the {what} of this environment: replace it with the file of"
                f" {known['host']}",
                advice=_ADVICE,
            )
        self._checked.add(kind)

    def _known(self) -> dict[str, str]:
        known: dict[str, str] = json.loads(self._records.read(OF_ENVIRONMENT, _KIND) or "{}")
        return known

    def _read_key(self) -> str:
        # Here: a key is needed only where hosts are created.
        import asyncssh

        return asyncssh.read_private_key(self._key).export_public_key().decode().strip()

    def _create_key(self) -> None:
        import asyncssh

        key = asyncssh.generate_private_key("ssh-ed25519", comment="fleetform")
        create_private(self._key, key.export_private_key())


def _missing(what: str, path: Path, host: str) -> PermanentError:
    return PermanentError(
        f"this machine has no {path}, the {what} of this environment: copy it from"
        f" {host or 'the machine that has it'}",
        advice=_ADVICE,
    )
