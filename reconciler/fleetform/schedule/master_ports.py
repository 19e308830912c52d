"""
Which port rank 0 of a run on several nodes gets, for the other ranks to reach it.

Two runs whose ranks 0 are on one host must not get the same port. The rule is simpler and holds more: no two
runs of an environment that hold hosts at the same time have the same one. The scheduler does not know which
ports other programs of a host use, so one of them may have the port when rank 0 starts to listen.
"""

from __future__ import annotations

import zlib
from collections.abc import Collection, Iterator

PORTS = range(20_000, 29_500)
"""
Below the ports that Linux gives to outgoing connections (`ip_local_port_range`: 32768 and up), below those of
services of Kubernetes (30000 to 32767), and below 29500, the default of `torchrun`.
"""


def free_ports(environment_uid: str, used: Collection[int]) -> Iterator[int]:
    """
    Yield the ports that are not in `used`, each once: upwards from one that depends on the environment.

    Environments that share a host do not know each other's ports; as they begin at different ones,
    they seldom choose the same.
    """
    start = zlib.crc32(environment_uid.encode()) % len(PORTS)
    for offset in range(len(PORTS)):
        port = PORTS[(start + offset) % len(PORTS)]
        if port not in used:
            yield port
