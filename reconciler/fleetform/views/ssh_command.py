"""The words of an `ssh` command that opens a host of an SSH fleet."""

from __future__ import annotations

import posixpath
import shlex
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fleetform.model.instance import Instance
__all__ = ["key_alias", "known_hosts_line", "ssh_words"]


def ssh_words(
    instance: Instance, command: Sequence[str] = (), *, home: str, known_hosts: str = ""
) -> list[str]:
    """
    Return the command line of the user's own OpenSSH.

    What the endpoint leaves open is as the user's configuration says.

    Args:
        instance: Of the provider `ssh`.
        command: None: a shell. One word is read by the host's shell, several are quoted for it.
        home: Of the user, for paths that begin with `~`.
        known_hosts: A file with `known_hosts_line`; empty: the user's own files.
    """
    endpoint = instance.endpoint
    words = ["ssh", *_server_options(endpoint, home)]
    if endpoint.get("openssh_config") == "off":
        words += ["-F", "none"]
    if jump := endpoint.get("proxy_jump"):
        words += _jump_options(jump, home)
    if known_hosts:
        words += [
            "-o", f"HostKeyAlias={key_alias(instance)}",
            "-o", f'UserKnownHostsFile="{known_hosts.replace("%", "%%")}"',
            "-o", "StrictHostKeyChecking=yes",
        ]  # fmt: skip
    words += ["--", endpoint["hostname"]]
    if command:
        words.append(command[0] if len(command) == 1 else shlex.join(command))
    return words


def key_alias(instance: Instance) -> str:
    """Return the name under which the key of the host is looked up: addresses come again."""
    return f"fleetform-{instance.uid}"


def known_hosts_line(instance: Instance) -> str:
    """Return the key that the host had when it was first reached, as a line of `known_hosts`."""
    return f"{key_alias(instance)} {instance.host_key}\n"


def _server_options(endpoint: Mapping[str, Any], home: str) -> list[str]:
    words = []
    if endpoint.get("port"):
        words += ["-p", str(endpoint["port"])]
    if endpoint.get("user"):
        words += ["-l", str(endpoint["user"])]
    if endpoint.get("identity_file"):
        words += ["-i", _expanded(str(endpoint["identity_file"]), home)]
    return words


def _jump_options(jump: Mapping[str, Any], home: str) -> list[str]:
    if not jump.get("identity_file"):
        user = f"{jump['user']}@" if jump.get("user") else ""
        host = f"[{jump['hostname']}]" if ":" in jump["hostname"] else jump["hostname"]
        port = f":{jump['port']}" if jump.get("port") else ""
        return ["-J", f"{user}{host}{port}"]
    # `-J` takes no key.
    server = shlex.join([*_server_options(jump, home), "--", jump["hostname"]]).replace("%", "%%")
    return ["-o", f"ProxyCommand=ssh -W [%h]:%p {server}"]


def _expanded(path: str, home: str) -> str:
    return posixpath.join(home, path[2:]) if path.startswith("~/") else path
