"""
A real PostgreSQL for tests: its own folder, a socket in it, no port; stopped by its own id.

`fsync` is on, as in production. It refuses to run as root, so root starts it as `postgres`.
"""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

PASSWORD = "planted-secret-of-the-ledger"
"""Looked for in all that commands leave behind."""


def find_programs() -> Path | None:
    """Return the folder with `initdb` and `pg_ctl`: on PATH, or where Debian puts them."""
    if found := shutil.which("pg_ctl"):
        return Path(found).resolve().parent if not shutil.which("initdb") else Path(found).parent
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin/pg_ctl"), key=_version)
    return folders[-1].parent if folders else None


def _version(path: Path) -> int:
    number = path.parts[-3]
    return int(number) if number.isdigit() else 0


def reason_missing() -> str:
    """Say why no server can be started here; empty when one can."""
    if find_programs() is None:
        return "postgresql is not installed; `make test` installs it as root on Debian"
    if os.getuid() == 0 and _postgres_user() is None:
        return "there is no user postgres, and PostgreSQL refuses to run as root"
    return ""


def _postgres_user() -> pwd.struct_passwd | None:
    try:
        return pwd.getpwnam("postgres")
    except KeyError:
        return None


class PostgresServer:
    """One running server; `url` names a database of it with user and password."""

    user = "fleetform"

    def __init__(self, *options: str) -> None:
        programs = find_programs()
        assert programs is not None
        self._programs = programs
        self.folder = Path(tempfile.mkdtemp(prefix="fleetform-pg-"))
        self.data = self.folder / "data"
        self._options = options
        self._runs_as: Sequence[str] = ()
        if os.getuid() == 0:
            user = _postgres_user()
            assert user is not None
            os.chown(self.folder, user.pw_uid, user.pw_gid)
            # Others may go in to the socket.
            self.folder.chmod(0o711)
            self._runs_as = ("setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}",
                             "--clear-groups")  # fmt: skip
        secret = self.folder / "password"
        secret.write_text(PASSWORD)
        secret.chmod(0o644)
        self._call(
            "initdb", "-D", str(self.data), "-U", self.user, "--auth=scram-sha-256",
            f"--pwfile={secret}", "-E", "UTF8", "--locale=C", "--no-sync",
        )  # fmt: skip
        self.start()

    @property
    def url(self) -> str:
        return self.url_of("postgres")

    def url_of(self, database: str, *, password: str = PASSWORD) -> str:
        return f"postgresql://{self.user}:{password}@/{database}?host={self.folder}&port=5432"

    def start(self) -> None:
        options = " ".join((f"-k {self.folder}", "-c listen_addresses=''", *self._options))
        self._call("pg_ctl", "-D", str(self.data), "-l", str(self.folder / "log"), "-w",
                   "-o", options, "start")  # fmt: skip

    def stop(self, mode: str = "fast") -> None:
        """Stop it; `immediate` is as if its power were cut, and it recovers on its next start."""
        if (self.data / "postmaster.pid").exists():
            self._call("pg_ctl", "-D", str(self.data), "-m", mode, "-w", "stop")

    def make_database(self, name: str) -> str:
        """Make an empty database; returns its address."""
        self._call("createdb", "-h", str(self.folder), "-U", self.user, name)
        return self.url_of(name)

    def log(self) -> str:
        return (self.folder / "log").read_text(errors="replace")

    def close(self) -> None:
        self.stop("immediate")
        shutil.rmtree(self.folder, ignore_errors=True)

    def _call(self, program: str, *arguments: str) -> None:
        # A server that is started keeps what it inherits open: a file, for nobody waits for that.
        with (self.folder / "said").open("w+b") as said:
            done = subprocess.run(
                [*self._runs_as, str(self._programs / program), *arguments],
                cwd="/",
                env={"PATH": os.environ["PATH"], "PGPASSWORD": PASSWORD, "LC_ALL": "C"},
                stdout=said,
                stderr=said,
                timeout=60,
                check=False,
            )
        assert done.returncode == 0, f"{program} failed:\n{(self.folder / 'said').read_text()}"
