"""Under which addresses other hosts may reach this one: what the ranks of a gang are told."""

from __future__ import annotations

import fcntl
import socket
import struct

_SIOCGIFADDR = 0x8915
"""linux/sockios.h. The request and the answer are a `struct ifreq`: name, then sockaddr_in."""


def addresses() -> tuple[str, ...]:
    """Return the IPv4 address of each interface in the kernel's order, without loopback."""
    found = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        for _, name in socket.if_nameindex():
            request = struct.pack("256s", name.encode()[:15])
            try:
                answer = fcntl.ioctl(probe.fileno(), _SIOCGIFADDR, request)
            except OSError:
                continue  # It has no address.
            found.append(socket.inet_ntoa(answer[20:24]))
    return tuple(a for a in dict.fromkeys(found) if not a.startswith("127."))
