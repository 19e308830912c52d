"""The agent's answers to commands about jobs; each carries the record that it rests on."""

from __future__ import annotations

from typing import Any

from fleetform.agents.host.effects import Send
from fleetform.agents.host.memory import Entry
from fleetform.agents.protocol.messages import Reply


def accept(id_: int, entry: Entry) -> Send:
    return Send(Reply(id_, True, body={"record": entry.record}))


def refuse(id_: int, code: str, message: str, entry: Entry | None = None) -> Send:
    """`code` is one of `Reply`'s; `entry` is what is known instead of what was asked for."""
    body: dict[str, Any] = {} if entry is None else {"record": entry.record}
    return Send(Reply(id_, False, code, message, body))


def refuse_boot(id_: int, asked: str, current: str, entry: Entry | None) -> Send:
    message = f"the host was rebooted: its boot is {current}, not {asked}"
    return refuse(id_, "boot_changed", message, entry)
