#!/usr/bin/env python3
"""
Four SSH hosts on this machine, to try fleetform and to test it.

A host is a network namespace and a process 1 in namespaces of its own: `sshd`. It has its own host
name, machine id, boot id, users and process ids, and folders of its own wherever a job may write.
The programs in /usr are those of this machine, read-only. The hosts share a switch, which is a
bridge in a namespace of its own, so that no firewall of this machine is between two hosts. One link
leads from the switch to this machine. No host has a route to anything else.

Whoever kills process 1 cuts the power: the kernel kills everything else in that host.

With `--machines N` the lab has also whole machines, with systemd and files of their own: see
`machines`.

All names and process ids are in `lab.json`, and are written there before the thing itself is made.
`down` removes what is written there, so it works after any command was killed at any moment.
"""

from __future__ import annotations

import argparse
import ipaddress
import os
import sys
from pathlib import Path

from hosts import HOSTS, Lab
from networks import NETWORK
from processes import PROGRAMS, SYSTEM_PATH, LabError, find_program, locked

import machines

DIRECTORY = Path(__file__).resolve().parent / ".lab"
HOSTS_MAX = 100
MACHINES_MAX = 20


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="lab.py", description=__doc__.strip().splitlines()[0])
    shared = argparse.ArgumentParser(add_help=False)
    shared.add_argument("--directory", type=Path, default=DIRECTORY, metavar="DIR",
                        help="folder of the lab (default: .lab beside this program)")  # fmt: skip
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    def add(name: str, text: str) -> argparse.ArgumentParser:
        return commands.add_parser(name, parents=[shared], help=text, description=text)

    up = add("up", "Start the lab; boot hosts that are off")
    up.add_argument("--hosts", type=int, metavar="N", choices=range(HOSTS_MAX + 1),
                    help=f"number of hosts (default: {HOSTS}, with --machines 0)")  # fmt: skip
    up.add_argument("--machines", type=int, metavar="N", choices=range(MACHINES_MAX + 1),
                    help="number of whole machines, with systemd (default: 0)")  # fmt: skip
    up.add_argument("--include", action="store_true",
                    help="write an `Include` of the hosts into ~/.ssh/config, until `down`")  # fmt: skip
    up.add_argument("--network", type=_network, help=f"private network (default: {NETWORK})")
    add("down", "End the lab: hosts, namespaces and links; disks and keys are kept")
    add("status", "List the hosts")
    for name, text in (
        ("kill", "Cut the power of a host"),
        ("start", "Boot a host: with a new boot id and the disk that it had"),
        ("cut", "Pull the network cable of a host"),
        ("join", "Put the network cable of a host back"),
        ("rekey", "Give a host new SSH host keys"),
        ("run", "Run a command in a host as root, without SSH"),
        ("add", "Boot one more host, for tests"),
        ("remove", "End a host, and delete its disk"),
    ):
        command = add(name, text)
        command.add_argument("host", metavar="HOST")
        if name == "add":
            command.add_argument("--address", type=_address, required=True)
            command.add_argument("--files", type=Path, metavar="DIR",
                                 help="folder whose files lie on its disk when it boots")  # fmt: skip
        if name == "run":
            command.add_argument("words", nargs=argparse.REMAINDER, metavar="CMD")
    return parser.parse_args(arguments)


def _network(text: str) -> str:
    try:
        network = ipaddress.IPv4Network(text)
    except ValueError as exc:
        raise argparse.ArgumentTypeError(f"{exc}; write for example {NETWORK}") from None
    if not network.is_private:
        raise argparse.ArgumentTypeError(f"{text} is public; write for example {NETWORK}")
    return str(network)


def _address(text: str) -> str:
    return str(ipaddress.IPv4Address(text))


def main(arguments: list[str]) -> int:
    options = parse(arguments)
    try:
        refuse_plain_user()
        if options.command == "run":
            Lab(options.directory).run(options.host, options.words or ["sh"])
        for name in PROGRAMS:
            find_program(name)
        os.environ["PATH"] = f"{os.environ.get('PATH', '')}:{SYSTEM_PATH}"
        options.directory.mkdir(parents=True, exist_ok=True)
        with locked(options.directory / "lock"):
            execute(Lab(options.directory), options)
    except LabError as exc:
        print(f"lab: {exc}", file=sys.stderr)
        return exc.code
    except machines.MachineError as exc:
        print(f"lab: {exc}", file=sys.stderr)
        return LabError.code
    return 0


def refuse_plain_user() -> None:
    if os.geteuid() != 0:
        raise LabError("namespaces need root; run the same command with sudo")


def execute(lab: Lab, options: argparse.Namespace) -> None:
    if options.command == "up":
        lab.up(options.hosts, options.machines, options.network)
        lab.show()
        if options.include:
            lab.include()
    elif options.command == "down":
        lab.down()
    elif options.command == "status":
        lab.show()
    elif options.command == "kill":
        lab.power_off(options.host)
    elif options.command == "start":
        lab.host(options.host)
        lab.power_on(options.host)
    elif options.command in {"cut", "join"}:
        lab.set_cut(options.host, options.command == "cut")
    elif options.command == "add":
        lab.add(options.host, options.address, options.files)
    elif options.command == "remove":
        lab.remove(options.host)
    elif options.command == "rekey":
        lab.rekey(options.host)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
