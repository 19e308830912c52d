"""Checks the key of an SSH server: against `known_hosts`, or the key that was kept of its first use."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import asyncssh

from fleetform.providers.contract.errors import PermanentError
from fleetform.providers.ssh.endpoint import Endpoint

CONNECT_SECONDS = 20.0
"""A host in another continent that wakes from idling answers in a few seconds."""


class HostKeyCheck:
    """The keys that one server may have."""

    def __init__(
        self,
        name: str,
        endpoint: Endpoint,
        host_key: str,
        options: asyncssh.SSHClientConnectionOptions,
    ) -> None:
        self._name = name
        self._options = options
        self._is_first_use = endpoint.host_keys == "first-use"
        self._host_key = host_key
        self._files: Sequence[Path] = ()
        self._known: asyncssh.SSHKnownHosts | None = None
        self._kept: list[asyncssh.SSHKey] = []
        if not self._is_first_use:
            self._files = _known_hosts_files(options.known_hosts)
            self._known = _read_known_hosts(name, self._files)
        elif host_key:
            self._kept = [asyncssh.import_public_key(key) for key in host_key.splitlines()]

    @property
    def known_hosts(self) -> Any:
        """Return what asyncssh accepts; None: whatever key the host has, for the first time."""
        if self._known is not None:
            return self._known
        return (self._kept, [], []) if self._kept else None

    async def refusal(self, tunnel: asyncssh.SSHClientConnection | None) -> PermanentError:
        """Say which key the server has, and which one it should have."""
        seen = await self._seen(tunnel)
        where, host = where_of(self._options), _known_name(self._options)
        port = self._options.port
        scan = f"ssh-keyscan {f'-p {port} ' if port != 22 else ''}{self._options.host}"
        file = next(iter(self._files), Path("~/.ssh/known_hosts"))
        trusted = self._trusted()
        if not trusted:
            return PermanentError(
                f"instance {self._name}: the host key of {where} is unknown: {seen} is not in"
                f" {file}",
                advice=f"compare it with the host's own (`ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub`"
                f" there), then `{scan} >> {file}`, or set `host_keys: first-use`",
            )
        # By name and by address it is the same key.
        known = " or ".join(dict.fromkeys(key.get_fingerprint() for key in trusted))
        message = (
            f"instance {self._name}: the host key of {where} has changed: it is {seen}, and"
            f" {known} was expected; another machine may be answering"
        )
        if self._is_first_use:
            return PermanentError(
                message,
                advice=f"if the host was reinstalled, `{scan} >> ~/.ssh/known_hosts`, add the keys of the"
                " fleet's other hosts there, and set `host_keys: known` in `ssh_config`",
            )
        return PermanentError(
            message,
            advice=f"if the host was reinstalled, `ssh-keygen -R '{host}' -f {file}` and"
            f" `{scan} >> {file}`",
        )

    def _trusted(self) -> Sequence[asyncssh.SSHKey]:
        if self._known is None:
            return self._kept
        host, port = self._options.host, self._options.port
        address = host if is_address(host) else ""
        return list(self._known.match(host, address, None if port == 22 else port)[0])

    async def _seen(self, tunnel: asyncssh.SSHClientConnection | None) -> str:
        # asyncssh does not tell which key it refused: ask for it, without signing in.
        with contextlib.suppress(OSError, asyncssh.Error, TimeoutError):
            async with asyncio.timeout(CONNECT_SECONDS):
                key = await asyncssh.get_server_host_key(
                    self._options.host,
                    self._options.port,
                    tunnel=tunnel or (),
                    proxy_command=self._options.proxy_command or (),
                    config=None,
                )
            if key is not None:
                return key.get_fingerprint()
        return "another one"


def _known_hosts_files(configured: object) -> Sequence[Path]:
    """Return the files that OpenSSH's configuration names, or OpenSSH's own."""
    names: list[str] = []
    if isinstance(configured, str):
        names = [configured]
    elif isinstance(configured, list):
        names = [str(name) for name in configured]
    # `UserKnownHostsFile none` would turn the check off.
    names = names or ["~/.ssh/known_hosts", "/etc/ssh/ssh_known_hosts"]
    return [Path(name).expanduser() for name in names]


def _read_known_hosts(name: str, files: Sequence[Path]) -> asyncssh.SSHKnownHosts:
    texts = []
    for file in files:
        try:
            texts.append(file.read_text(encoding="utf-8"))
        except FileNotFoundError:
            continue  # OpenSSH does so too.
        except (OSError, ValueError) as error:
            raise PermanentError(
                f"instance {name}: {file} cannot be read: {error}",
                advice=f"make it readable: `chmod u+r {file}`",
            ) from error
    try:
        return asyncssh.import_known_hosts("\n".join(texts))
    except ValueError as error:
        raise PermanentError(
            f"instance {name}: {', '.join(map(str, files))}: {error}",
            advice="remove the invalid line",
        ) from error


def is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def where_of(options: asyncssh.SSHClientConnectionOptions) -> str:
    return f"{options.host} port {options.port}"


def _known_name(options: asyncssh.SSHClientConnectionOptions) -> str:
    """Return the server's name as `known_hosts` has it."""
    return options.host if options.port == 22 else f"[{options.host}]:{options.port}"
