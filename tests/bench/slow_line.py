"""
A slow line with loss between this network namespace and that of a host.

    python tests/bench/slow_line.py NAMESPACE RATE DELAY LOSS     # root, Linux

Each end is a TUN device, and this process carries the packets: one after another at RATE bit/s
each way, DELAY seconds later, and a part of LOSS not at all. What waits for the line is at most
half a second of it, as in a router that is set up well; more is dropped. The first line of the
output has the two addresses. For each line of input it prints the bytes carried there so far, and
it ends when its input does.
"""

from __future__ import annotations

import asyncio
import ctypes
import fcntl
import os
import random
import struct
import subprocess
import sys
from pathlib import Path

NETWORK = "198.18.77"
"""A part of the addresses for measuring, RFC 2544; nothing else of a machine has them."""

MTU = 1500
BUFFER_SECONDS = 0.5

_TUNSETIFF = 0x400454CA
_IFF_TUN = 0x0001
_IFF_NO_PI = 0x1000
_CLONE_NEWNET = 0x40000000


class Way:
    """One direction of the line."""

    def __init__(self, out: int, rate: float, delay: float, loss: float, seed: int) -> None:
        self._out = out
        self._rate = rate
        self._delay = delay
        self._loss = loss
        self._random = random.Random(seed)
        self._free_at = 0.0
        self.carried_bytes = 0

    def carry(self, packet: bytes) -> None:
        loop = asyncio.get_running_loop()
        now = loop.time()
        if self._free_at - now > BUFFER_SECONDS:
            return
        self._free_at = max(now, self._free_at) + len(packet) * 8 / self._rate
        # A lost packet has used the line as well.
        if self._random.random() >= self._loss:
            loop.call_at(self._free_at + self._delay, self._deliver, packet)

    def _deliver(self, packet: bytes) -> None:
        self.carried_bytes += len(packet)
        os.write(self._out, packet)


def open_device(name: str, address: str, peer: str) -> int:
    """Make one end in the current namespace; it lasts as long as the descriptor."""
    descriptor = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    flags = struct.pack("16sH14x", name.encode(), _IFF_TUN | _IFF_NO_PI)
    fcntl.ioctl(descriptor, _TUNSETIFF, flags)
    for words in (
        ("address", "add", address, "peer", peer, "dev", name),
        ("link", "set", "dev", name, "mtu", str(MTU), "up"),
    ):
        subprocess.run(["ip", *words], check=True)
    return descriptor


def enter(namespace: str) -> None:
    """Move this process into another network namespace."""
    with Path(namespace).open("rb") as opened:
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.setns(opened.fileno(), _CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), f"cannot enter {namespace}")


async def relay(near: int, far: int, rate: float, delay: float, loss: float) -> None:
    """Carry packets until the input ends."""
    there, back = Way(far, rate, delay, loss, 1), Way(near, rate, delay, loss, 2)
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    loop.add_reader(near, lambda: there.carry(os.read(near, 65_536)))
    loop.add_reader(far, lambda: back.carry(os.read(far, 65_536)))

    def read_input() -> None:
        if os.read(0, 4096):
            print(there.carried_bytes, flush=True)
        else:
            ended.set()

    loop.add_reader(0, read_input)
    await ended.wait()


def main() -> None:
    namespace, rate, delay, loss = sys.argv[1], *map(float, sys.argv[2:5])
    ours, theirs = f"{NETWORK}.1", f"{NETWORK}.2"
    near = open_device("slow-near", ours, theirs)
    enter(namespace)
    far = open_device("slow-far", theirs, ours)
    print(ours, theirs, flush=True)
    asyncio.run(relay(near, far, rate, delay, loss))


if __name__ == "__main__":
    main()
