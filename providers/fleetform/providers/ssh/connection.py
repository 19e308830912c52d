"""
One SSH connection to a host: opened, checked, and used for many channels.

The user's OpenSSH configuration (`~/.ssh/config`) applies, and the fields of the endpoint win. The
key of the host is always checked, whatever that configuration says. All that asyncssh raises is
translated here, in `_translated`.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import os
import socket
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import asyncssh

from fleetform.providers.contract.errors import (
    NameUnknown,
    PermanentError,
    ProviderError,
    SignInRefused,
    TemporaryError,
)
from fleetform.providers.ssh.endpoint import Endpoint
from fleetform.providers.ssh.host_keys import (
    CONNECT_SECONDS,
    HostKeyCheck,
    is_address,
    where_of,
)
from fleetform.providers.ssh.setup import MARKER, Command, Output

_CIPHERS_FIRST = "^aes256-gcm@openssh.com,aes128-gcm@openssh.com"
"""
What asyncssh encrypts fastest comes before its own order, which begins with ChaCha20: a packet of
80 bytes takes 30 µs instead of 230 µs, and with many hosts that is most of the controller's work.
"""

_KEEPALIVE_COUNT = 2
"""Questions to a silent host; asyncssh gives it up when a third one would be due."""

COMMAND_SECONDS = 120.0
"""Uploads half a megabyte; on a slow line that takes a minute."""

_PREFACE_BYTES_MAX = 64 << 10
"""What shell start-up files may print before a command begins."""

_READ_BYTES = 1 << 16


async def open_connection(
    name: str,
    endpoint: Endpoint,
    host_key: str,
    *,
    keepalive_seconds: float,
    connect_seconds: float = CONNECT_SECONDS,
) -> Connection:
    """
    Sign in to the host of instance `name`.

    Args:
        name: For messages.
        endpoint: Where the host is and who signs in.
        host_key: With `host_keys: first-use` the keys that the host may have, one a line; empty:
            any.
        connect_seconds: For each of the two: the TCP connection, and signing in.
        keepalive_seconds: A host that is silent for three times this is lost.

    Raises:
        TemporaryError: The host cannot be reached now.
        PermanentError: It refuses us, or its key is not the right one.
    """
    opening = _Opening(name, connect_seconds, keepalive_seconds)
    client = await opening.sign_in(endpoint, host_key)
    key = client.get_server_host_key()
    return Connection(
        name,
        client,
        host_key="" if key is None else _key_text(key),
        address=endpoint.internal_ip or _peer(client),
        where=_location(client),
    )


class Connection:
    """
    An open connection.

    Attributes:
        host_key: The key by which the host was recognised, as `known_hosts` has it.
        address: The address of the host for its peers; empty where only a jump host or a tunnel
            knows it.
        where: For messages: `USER@HOST port 22`.
    """

    def __init__(
        self,
        name: str,
        client: asyncssh.SSHClientConnection,
        *,
        host_key: str,
        address: str,
        where: str = "",
    ) -> None:
        self.host_key = host_key
        self.address = address
        self.where = where
        self._name = name
        self._client = client
        self._loop = asyncio.get_running_loop()

    @property
    def is_open(self) -> bool:
        return self._loop is asyncio.get_running_loop() and not self._client.is_closed()

    async def run(self, command: Command) -> Output:
        """Run a command and return what it printed after the marker."""
        with _channel_trouble(self._name, self._client):
            async with asyncio.timeout(COMMAND_SECONDS):
                process = await self._client.create_process(
                    command.line, encoding=None, **_terminal(command)
                )
                # A shell that runs no command has ended by now, and what it printed says why.
                with contextlib.suppress(BrokenPipeError):
                    process.stdin.write(command.stdin)
                    process.stdin.write_eof()
                done = await process.wait()
        printed, complaint = _bytes(done.stdout), _bytes(done.stderr)
        preface, found, text = _split(printed)
        return Output(
            text=(text if found else preface).decode("utf-8", "replace"),
            complaint=complaint.decode("utf-8", "replace"),
            exit_code=done.exit_status,
            has_begun=found,
        )

    async def open_stream(self, command: Command) -> tuple[StreamReader, StreamWriter]:
        """Start a command whose input and output are a stream of bytes, from the marker on."""
        with _channel_trouble(self._name, self._client):
            async with asyncio.timeout(CONNECT_SECONDS):
                process = await self._client.create_process(
                    command.line, encoding=None, stderr=asyncssh.DEVNULL, **_terminal(command)
                )
        try:
            with _channel_trouble(self._name, self._client):
                async with asyncio.timeout(CONNECT_SECONDS):
                    rest = await self._skip_preface(process)
        except BaseException:
            process.close()
            raise
        return StreamReader(process, rest), StreamWriter(process)

    async def close(self) -> None:
        """End the connection with all its channels; agents and jobs go on."""
        if self._loop is not asyncio.get_running_loop():
            return  # It ended with its event loop.
        self._client.close()
        with contextlib.suppress(TimeoutError, asyncssh.Error, OSError):
            async with asyncio.timeout(5):
                await self._client.wait_closed()

    def abort(self) -> None:
        """End the connection at once, without telling the host."""
        self._client.abort()

    async def _skip_preface(self, process: asyncssh.SSHClientProcess[bytes]) -> bytes:
        data = b""
        while True:
            preface, found, rest = _split(data)
            if found:
                return rest
            more = await process.stdout.read(_READ_BYTES)
            if not more or len(preface) > _PREFACE_BYTES_MAX:
                raise TemporaryError(
                    f"instance {self._name}: the login shell of its host does not start the agent's"
                    f" connection; it printed {preface[-200:].decode('utf-8', 'replace')!r}"
                )
            data += more


# RFC 4254, section 8: nothing of what passes is echoed, collected into lines or changed.
_RAW_ON = (asyncssh.PTY_CS8,)
_RAW_OFF = (
    asyncssh.PTY_ECHO, asyncssh.PTY_ICANON, asyncssh.PTY_ICRNL, asyncssh.PTY_IEXTEN,
    asyncssh.PTY_IGNCR, asyncssh.PTY_INLCR, asyncssh.PTY_ISIG, asyncssh.PTY_ISTRIP,
    asyncssh.PTY_IXOFF, asyncssh.PTY_IXON, asyncssh.PTY_OPOST, asyncssh.PTY_PARENB,
)  # fmt: skip


def _terminal(command: Command) -> dict[str, Any]:
    """Return the options of a channel with the terminal that a command needs, or without one."""
    if not command.has_terminal:
        return {"request_pty": False}
    modes = {**dict.fromkeys(_RAW_ON, 1), **dict.fromkeys(_RAW_OFF, 0)}
    return {"request_pty": "force", "term_type": "dumb", "term_modes": modes}


class StreamReader:
    """The output of a command, for `agents.client.session`."""

    def __init__(self, process: asyncssh.SSHClientProcess[bytes], rest: bytes) -> None:
        self._process = process
        self._rest = rest

    async def read(self, n: int) -> bytes:
        if self._rest:
            data, self._rest = self._rest[:n], self._rest[n:]
            return data
        try:
            return await self._process.stdout.read(n)
        except asyncssh.Error as error:
            raise ConnectionResetError(f"the SSH connection is lost: {error.reason}") from error


class StreamWriter:
    """The input of a command, for `agents.client.session`."""

    def __init__(self, process: asyncssh.SSHClientProcess[bytes]) -> None:
        self._process = process

    def write(self, data: bytes) -> None:
        try:
            self._process.stdin.write(data)
        except asyncssh.Error as error:
            raise ConnectionResetError(f"the SSH connection is lost: {error.reason}") from error

    def close(self) -> None:
        self._process.close()

    async def wait_closed(self) -> None:
        with contextlib.suppress(asyncssh.Error):
            await self._process.wait_closed()


# -- signing in -------------------------------------------------------------------------------


class _Opening:
    def __init__(self, name: str, connect_seconds: float, keepalive_seconds: float) -> None:
        self._name = name
        self._connect_seconds = connect_seconds
        self._keepalive_seconds = keepalive_seconds

    async def sign_in(
        self,
        endpoint: Endpoint,
        host_key: str = "",
        tunnel: asyncssh.SSHClientConnection | None = None,
    ) -> asyncssh.SSHClientConnection:
        """Sign in to one server, through its jump hosts; they end with the connection."""
        fields = self._fields(endpoint)
        options = self._options(endpoint, fields)
        for jump in _jumps(endpoint, options.tunnel) if tunnel is None else ():
            tunnel = await self.sign_in(jump, tunnel=tunnel)
        try:
            check = HostKeyCheck(self._name, endpoint, host_key, options)
            try:
                with _translated(self._name, endpoint, options):
                    # An explicit tunnel, also None, keeps asyncssh from opening jump hosts
                    # itself, without a check of their keys.
                    async with asyncio.timeout(self._connect_seconds):
                        client = await asyncssh.connect(
                            **{**fields, **_prepared(options, endpoint)},
                            known_hosts=check.known_hosts,
                            tunnel=tunnel,
                        )
            except _KeyRefused:
                raise await check.refusal(tunnel) from None
        except BaseException:
            if tunnel is not None:
                tunnel.close()
            raise
        if tunnel is not None:
            # Where a `ProxyCommand` leads to the host, asyncssh keeps its process in this place.
            client.set_tunnel(tunnel)
        return client

    def _fields(self, endpoint: Endpoint) -> dict[str, Any]:
        """Return the options of asyncssh; the user's configuration has what is missing."""
        config = Path("~/.ssh/config").expanduser()
        fields: dict[str, Any] = {
            "host": endpoint.hostname,
            "config": [str(config)] if endpoint.reads_config and config.is_file() else None,
        }
        if endpoint.port:
            fields["port"] = endpoint.port
        if endpoint.user:
            fields["username"] = endpoint.user
        if endpoint.identity_file:
            fields["client_keys"] = [endpoint.identity_file]
        return {
            **fields,
            # A key with a passphrase is one for `ssh-agent`.
            "ignore_encrypted": True,
            "agent_forwarding": False,
            "keepalive_interval": self._keepalive_seconds,
            "keepalive_count_max": _KEEPALIVE_COUNT,
            # `sign_in` counts. With a limit, asyncssh uses `asyncio.wait_for`, which loses a cancellation
            # that comes as the connection opens: its task would never end (Python before 3.12).
            "connect_timeout": None,
            "login_timeout": self._connect_seconds,
        }

    def _options(
        self, endpoint: Endpoint, fields: dict[str, Any]
    ) -> asyncssh.SSHClientConnectionOptions:
        """Read the user's configuration for this host, with the endpoint's fields above it."""
        try:
            return asyncssh.SSHClientConnectionOptions(**fields)
        except (OSError, ValueError, asyncssh.Error) as error:
            reason = str(error)
            if isinstance(error, OSError) and error.filename:
                reason = f"{error.filename}: {error.strerror}"
            raise PermanentError(
                f"instance {self._name}: {endpoint.hostname} cannot be signed in to: {reason}",
                advice="correct `identity_file:` in `ssh_config`, or ~/.ssh/config",
            ) from error


def _prepared(options: asyncssh.SSHClientConnectionOptions, endpoint: Endpoint) -> dict[str, Any]:
    """Return what was read already, and the order of ciphers where the user has none."""
    fields: dict[str, Any] = {}
    if options.config.get("Ciphers") is None:
        fields["encryption_algs"] = _CIPHERS_FIRST
    if endpoint.identity_file:
        # Reading a private key takes longer than signing with it.
        fields["client_keys"] = options.client_keys
    return fields


def _jumps(endpoint: Endpoint, configured: object) -> Sequence[Endpoint]:
    """Return the servers before this one, the first that is reached first."""
    if endpoint.proxy_jump is not None:
        return (endpoint.proxy_jump,)
    if not isinstance(configured, str) or configured.lower() == "none":
        return ()
    return tuple(_jump(text.strip()) for text in configured.split(","))


def _jump(text: str) -> Endpoint:
    """Read `[USER@]HOST[:PORT]` of the configuration's `ProxyJump`."""
    user, _, place = text.removeprefix("ssh://").rpartition("@")
    host, colon, port = place.rpartition(":")
    if colon and port.isdigit() and not host.endswith(":"):
        return Endpoint(host.strip("[]"), int(port), user)
    return Endpoint(place.strip("[]"), None, user)


class _KeyRefused(Exception):
    pass


def _key_text(key: asyncssh.SSHKey) -> str:
    """Return type and key, without a comment."""
    return " ".join(key.export_public_key("openssh").decode("ascii").split()[:2])


def _peer(client: asyncssh.SSHClientConnection) -> str:
    peer = client.get_extra_info("peername")
    for place in (
        peer[0] if isinstance(peer, tuple) and peer else "",
        client.get_extra_info("host"),
    ):
        address = str(place).partition("%")[0]
        if is_address(address):
            # Loopback is the near end of a tunnel, and on each host of a fleet the host itself.
            return "" if ipaddress.ip_address(address).is_loopback else address
    # Through a jump host, which alone can resolve its name.
    return ""


def _location(client: asyncssh.SSHClientConnection) -> str:
    named = {name: client.get_extra_info(name) for name in ("username", "host", "port")}
    return f"{named['username']}@{named['host']} port {named['port']}"


# -- errors -----------------------------------------------------------------------------------


@contextlib.contextmanager
def _translated(
    name: str, endpoint: Endpoint, options: asyncssh.SSHClientConnectionOptions
) -> Iterator[None]:
    """Raise what goes wrong while signing in as an error of the contract."""
    try:
        yield
    except (asyncssh.Error, OSError, ValueError) as error:
        raise _translate(name, endpoint, options, error) from error


def _translate(
    name: str, endpoint: Endpoint, options: asyncssh.SSHClientConnectionOptions, error: Exception
) -> Exception:
    where = where_of(options)
    # In this order: the first that fits. TimeoutError is an OSError.
    if isinstance(error, asyncssh.HostKeyNotVerifiable):
        return _KeyRefused()
    if isinstance(error, asyncssh.PermissionDenied) and (locked := _locked_key(endpoint, options)):
        return SignInRefused(
            f"instance {name}: {where} refuses to sign in{_as_user(endpoint)}: the key {locked} has a"
            " passphrase, so that only ssh-agent can use it",
            advice=f"load it with `ssh-add {locked}`",
        )
    if isinstance(error, asyncssh.PermissionDenied):
        return SignInRefused(
            f"instance {name}: {where} refuses to sign in{_as_user(endpoint)}: {error.reason}",
            advice="set `identity_file:` and `user:` in `ssh_config`, or load the key with `ssh-add`;"
            f" try `{_command_line(endpoint)}`",
        )
    if isinstance(error, (asyncssh.KeyExchangeFailed, asyncssh.ProtocolNotSupported)):
        return PermanentError(
            f"instance {name}: {where} has no algorithm in common with this client: {error.reason}",
            advice="update the SSH server of the host",
        )
    if isinstance(error, TimeoutError):
        return TemporaryError(f"instance {name}: {where} does not answer in time", delay_seconds=5)
    if isinstance(error, asyncssh.Error):
        return TemporaryError(
            f"instance {name}: the SSH connection to {where} fails: {error.reason}", delay_seconds=5
        )
    if isinstance(error, socket.gaierror):
        kind = NameUnknown if error.errno in _NO_SUCH_NAME else TemporaryError
        return kind(
            f"instance {name}: the name {options.host} cannot be resolved: {error.strerror}",
            delay_seconds=5,
        )
    if isinstance(error, OSError):
        # asyncio's own text repeats the address.
        number = error.errno or 0
        reason = os.strerror(number) if number > 0 else error.strerror or str(error)
        return TemporaryError(
            f"instance {name}: {where} cannot be reached: {reason}", delay_seconds=5
        )
    return PermanentError(
        f"instance {name}: {where} cannot be signed in to: {error}",
        advice=f"try `{_command_line(endpoint)}`",
    )


_NO_SUCH_NAME = frozenset({socket.EAI_NONAME, socket.EAI_NODATA})
"""Answers of name servers that say that the name has no address; others say that they cannot tell."""


@contextlib.contextmanager
def _channel_trouble(name: str, client: asyncssh.SSHClientConnection) -> Iterator[None]:
    """Raise the loss of an open connection as an error of the contract."""
    try:
        yield
    except ProviderError:
        raise
    except TimeoutError as error:
        # The connection is given up: the next call opens another one.
        client.abort()
        raise TemporaryError(f"instance {name}: its host does not answer in time") from error
    except (asyncssh.Error, OSError) as error:
        reason = error.reason if isinstance(error, asyncssh.Error) else str(error)
        why = "" if reason in _SAYS_ONLY_THAT else f": {reason}"
        raise TemporaryError(f"instance {name}: the SSH connection is lost{why}") from error


_SAYS_ONLY_THAT = frozenset({"", "Connection lost", "SSH connection closed"})
"""Reasons of asyncssh that repeat what is said already."""


def _locked_key(endpoint: Endpoint, options: asyncssh.SSHClientConnectionOptions) -> str:
    """Return the path of the first configured key that has a passphrase; empty where none has one."""
    configured: object = options.config.get("IdentityFile")
    paths = configured if isinstance(configured, list) else []
    if endpoint.identity_file:
        paths = [endpoint.identity_file]
    for path in paths:
        try:
            asyncssh.read_private_key(str(Path(str(path)).expanduser()))
        except asyncssh.KeyImportError as error:
            if "assphrase" in str(error):
                return str(path)
        except (OSError, asyncssh.Error, ValueError):
            continue
    return ""


def _as_user(endpoint: Endpoint) -> str:
    return f" as {endpoint.user}" if endpoint.user else ""


def _command_line(endpoint: Endpoint) -> str:
    words = ["ssh"]
    if endpoint.port:
        words += ["-p", str(endpoint.port)]
    if endpoint.identity_file:
        words += ["-i", endpoint.identity_file]
    return " ".join([*words, f"{endpoint.user}@" * bool(endpoint.user) + endpoint.hostname])


# -- output -----------------------------------------------------------------------------------


def _split(data: bytes) -> tuple[bytes, bool, bytes]:
    """Return what was printed before the marker, whether it has come, and what follows."""
    line = MARKER.encode() + b"\n"
    preface, found, rest = data.partition(line)
    return preface, bool(found), rest


def _bytes(output: object) -> bytes:
    return output if isinstance(output, bytes) else b""
