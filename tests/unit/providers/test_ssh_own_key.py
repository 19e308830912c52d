"""The first key of a host is replaced, wherever the controller or the host is killed."""

from __future__ import annotations

import asyncio
import dataclasses
import json

import pytest

from fleetform.providers.contract.errors import PermanentError, TemporaryError
from fleetform.providers.contract.hosts import InstanceRequest
from fleetform.providers.ssh import own_key
from fleetform.providers.ssh.own_key import replace_first_key
from fleetform.providers.ssh.setup import Output

FIRST, OWN = "ssh-ed25519 FIRST", "ssh-ed25519 OWN"
REQUEST = InstanceRequest("u1", "gpus-1", "gpus", {}, host_key=FIRST)


class KilledError(Exception):
    pass


@dataclasses.dataclass
class Site:
    """A host and the ledger of a controller that dies before its effect number `dies_at`."""

    serves: str = FIRST
    """The key that its SSH server shows; it reads the file when it is hung up."""
    file: str = FIRST
    made: str = ""
    pinned: str = FIRST
    dies_at: int = -1
    effects: int = 0
    history: list[str] = dataclasses.field(default_factory=list)

    def effect(self) -> None:
        if self.effects == self.dies_at:
            raise KilledError
        self.effects += 1

    async def connect(self, request):
        if self.serves not in request.host_key.splitlines():
            raise PermanentError("the host key has changed")
        return Connection(self, self.serves)

    async def pin(self, keys: str) -> None:
        self.effect()
        self.pinned = keys
        self.history.append(keys)
        # Whoever dies now reaches the host later.
        assert self.serves in keys.splitlines()

    async def replace(self) -> str:
        request = dataclasses.replace(REQUEST, host_key=self.pinned)
        return await replace_first_key(request, FIRST, self.pin, self.connect)


@dataclasses.dataclass
class Connection:
    site: Site
    host_key: str

    async def close(self) -> None:
        pass

    async def run(self, command):
        program = command.stdin.decode()
        if "run(json.loads(" not in program:
            return Output("python /usr/bin/python3\n")
        line = program.strip().splitlines()[-1]
        asked = json.loads(json.loads(line.removeprefix("run(json.loads(").removesuffix("))")))
        return Output(json.dumps(getattr(self, asked.pop("operation"))(**asked)))

    def report(self, first):
        site = self.site
        if site.file != first:
            return {"key": site.file}
        if not site.made:
            site.effect()
            site.made = OWN
        return {"key": site.made}

    def install(self, own):
        site = self.site
        if site.file != own:
            assert site.made == own
            site.effect()
            site.file, site.made = own, ""
        site.effect()
        site.serves = site.file
        return {}


def test_both_keys_are_pinned_until_the_second_is_proven() -> None:
    """The host changes after both are durable, and the first one goes after a connection by the second."""
    site = Site()
    assert asyncio.run(site.replace()) == OWN
    assert site.history == [f"{FIRST}\n{OWN}", OWN]
    assert (site.serves, site.pinned) == (OWN, OWN)


@pytest.mark.parametrize("dies_at", range(5))
def test_a_kill_at_any_step_ends_well(dies_at: int) -> None:
    """The next controller reaches the host by a pinned key, and only the host's own key is left."""
    site = Site(dies_at=dies_at)
    with pytest.raises(KilledError):
        asyncio.run(site.replace())
    assert site.serves in site.pinned.splitlines()
    site.dies_at = -1
    assert asyncio.run(site.replace()) == OWN
    assert (site.serves, site.file, site.pinned) == (OWN, OWN, OWN)


def test_every_step_is_among_those_that_are_cut_off() -> None:
    """Five effects: make, pin, replace, restart, pin."""
    site = Site()
    asyncio.run(site.replace())
    assert site.effects == 5


def test_a_repeated_call_changes_nothing() -> None:
    """A host that has its own key keeps it."""
    site = Site(serves=OWN, file=OWN, pinned=OWN)
    assert asyncio.run(site.replace()) == OWN
    assert site.history == [OWN]


def test_a_host_that_keeps_its_first_key_stays_pinned_to_both(monkeypatch) -> None:
    """Where the server does not read the new key, the call fails and may be repeated."""
    monkeypatch.setattr(own_key, "_RESTART_SECONDS", 0.0)
    site = Site()

    async def lose_server(request):
        if FIRST not in request.host_key:
            raise TemporaryError("the host does not answer")
        return await Site.connect(site, request)

    request = dataclasses.replace(REQUEST, host_key=site.pinned)
    with pytest.raises(TemporaryError):
        asyncio.run(replace_first_key(request, FIRST, site.pin, lose_server))
    assert site.pinned == f"{FIRST}\n{OWN}"
    assert asyncio.run(site.replace()) == OWN


def test_a_host_that_reports_its_first_key_is_refused() -> None:
    """Such a host has made none."""
    site = Site(made=FIRST)
    with pytest.raises(PermanentError, match="reports its first key"):
        asyncio.run(site.replace())
    assert site.history == []
