"""The words of an `ssh` command that opens a host over SSH, or a running job."""

from __future__ import annotations

import posixpath
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fleetform.model.instance import Instance

DOMAIN = "fleetform"
"""What follows the name of a run in the name that OpenSSH knows: `ssh train.fleetform`."""


@dataclass(frozen=True, slots=True)
class JobName:
    """A run and, where it is not the first, a rank."""

    run: str
    rank: int | None = None


def parse_job_name(text: str, domain: str = DOMAIN) -> JobName:
    """
    Read RUN, RUN.DOMAIN or RUN.RANK.DOMAIN.

    Names of runs have no dot, and those of elements end with a bracket.
    """
    name = text.removesuffix(f".{domain}")
    run, dot, rank = name.rpartition(".")
    if name != text and dot and rank.isdecimal():
        return JobName(run, int(rank))
    return JobName(name)


@dataclass(frozen=True, slots=True)
class JobServer:
    """
    How OpenSSH reaches jobs of an environment, through a program that speaks SSH on its pipes.

    `proxy` is the words of that program without the name of the job, `alias` the name that the
    key of the server has in the file `known_hosts`.
    """

    proxy: Sequence[str]
    alias: str
    known_hosts: str

    def options(self) -> Mapping[str, str]:
        """Return options of ssh_config(5); `%n` is the name as it was typed."""
        proxy = shlex.join(self.proxy).replace("%", "%%")
        return {
            # Quoted for the shell that runs it: brackets of an element are its pattern otherwise.
            "ProxyCommand": f"{proxy} '%n'",
            "HostKeyAlias": self.alias,
            "UserKnownHostsFile": f'"{self.known_hosts.replace("%", "%%")}"',
            "GlobalKnownHostsFile": "/dev/null",
            "StrictHostKeyChecking": "yes",
            # No key of the user is of use, and none is offered.
            "PreferredAuthentications": "none",
            "CheckHostIP": "no",
            "CanonicalizeHostname": "no",
        }


def job_words(server: JobServer, job: JobName, command: Sequence[str] = ()) -> list[str]:
    """Return the command line of the user's own OpenSSH to a job; `command` as in `ssh_words`."""
    words = ["ssh"]
    for name, value in server.options().items():
        words += ["-o", f"{name}={value}"]
    rank = "" if job.rank is None else f".{job.rank}"
    words += ["--", f"{job.run}{rank}.{DOMAIN}"]
    if command:
        words.append(command[0] if len(command) == 1 else shlex.join(command))
    return words


def config_text(server: JobServer, environment: str, domain: str = DOMAIN) -> str:
    """Return lines for OpenSSH's configuration: each running job is a host under `domain`."""
    lines = [f"# Running jobs of the environment {environment}.", f"Host *.{domain}"]
    lines += [f"  {name} {value}" for name, value in server.options().items()]
    return "\n".join(lines) + "\n"


def ssh_words(
    instance: Instance,
    command: Sequence[str] = (),
    *,
    home: str,
    config: str = "",
    known_hosts: str = "",
) -> list[str]:
    """
    Return the command line of the user's own OpenSSH.

    What the endpoint leaves open is as the user's configuration says.

    Args:
        instance: Of the provider `ssh`.
        command: None: a shell. One word is read by the host's shell, several are quoted for it.
        home: Of the user, for paths that begin with `~`.
        config: The user's configuration, where OpenSSH would not find it by itself.
        known_hosts: A file with `known_hosts_lines`; empty: the user's own files.
    """
    endpoint = instance.endpoint
    words = ["ssh", *_server_options(endpoint, home)]
    if endpoint.get("openssh_config") == "off":
        config = "none"
        if endpoint.get("identity_file"):
            # Keys of an agent would be offered first, and a server refuses a client that offers too many.
            words += ["-o", "IdentitiesOnly=yes"]
    if config:
        words += ["-F", config]
    if jump := endpoint.get("proxy_jump"):
        words += _jump_options(jump, home, config)
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


def known_hosts_lines(instance: Instance) -> str:
    """Return the keys that the host may have, as lines of `known_hosts`."""
    alias = key_alias(instance)
    return "".join(f"{alias} {key}\n" for key in instance.host_key.splitlines())


def _server_options(endpoint: Mapping[str, Any], home: str) -> list[str]:
    words = []
    if endpoint.get("port"):
        words += ["-p", str(endpoint["port"])]
    if endpoint.get("user"):
        words += ["-l", str(endpoint["user"])]
    if endpoint.get("identity_file"):
        words += ["-i", _expanded(str(endpoint["identity_file"]), home)]
    return words


def _jump_options(jump: Mapping[str, Any], home: str, config: str) -> list[str]:
    if not jump.get("identity_file"):
        user = f"{jump['user']}@" if jump.get("user") else ""
        host = f"[{jump['hostname']}]" if ":" in jump["hostname"] else jump["hostname"]
        port = f":{jump['port']}" if jump.get("port") else ""
        return ["-J", f"{user}{host}{port}"]
    # `-J` takes no key, and passes the configuration on.
    options = [*_server_options(jump, home), *(["-F", config] if config else ())]
    server = shlex.join([*options, "--", jump["hostname"]]).replace("%", "%%")
    return ["-o", f"ProxyCommand=ssh -W [%h]:%p {server}"]


def _expanded(path: str, home: str) -> str:
    return posixpath.join(home, path[2:]) if path.startswith("~/") else path
