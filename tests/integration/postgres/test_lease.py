"""The lease: one holder, a term by the database's clock, and nobody acts on an old one."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass

import pytest

from contract.ledgers import CountingIds, StillClock
from fleetform.model.refusals import FenceLost
from fleetform.store.errors import LedgerError, UnreachableLedgerError
from fleetform.store.postgres import connection as connecting
from fleetform.store.postgres import lease as leasing
from fleetform.store.postgres.address import Address, schema_of
from fleetform.store.postgres.connection import Connection
from fleetform.store.postgres.lease import (
    Lease,
    LeaseLook,
    asking_for_lease,
    break_lease,
    try_lease,
)
from fleetform.store.postgres.opening import open_postgres
from integration.postgres.interleaving import beside, is_waiting


@dataclass
class Site:
    """One environment on a real server, with short terms."""

    address: Address
    uid: str
    clock: StillClock

    def take(self, who: str = "anna", command: str = "apply") -> Lease | None:
        return try_lease(
            self.address, self.uid, CountingIds(), self.clock, who=who, command=command
        )

    def must_take(self, who: str = "anna") -> Lease:
        lease = self.take(who)
        assert lease is not None
        return lease

    def ask(self, statement: str) -> object:
        connection = Connection(self.address, schema=schema_of(self.uid))
        try:
            return connection.execute(statement).fetchone()
        finally:
            connection.close()


@pytest.fixture
def site(address: Address, uid: str) -> Site:
    return Site(address, uid, StillClock())


@pytest.fixture
def silent(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Leases of this test are renewed when it says so, and never else; a term is four seconds."""
    monkeypatch.setattr(Lease, "_keep", lambda _: None)
    # Longer than a busy machine takes for what stands between taking a lease and asking for it.
    monkeypatch.setattr(leasing, "_TERM_MS", 4000)
    return


def test_one_holds(site: Site) -> None:
    """The second gets nothing; after the first has let go it gets the next fence."""
    first = site.must_take()
    assert site.take("bert") is None
    first.require()
    first.release()
    with pytest.raises(FenceLost):
        first.require()
    second = site.must_take("bert")
    assert second.holder.fence == first.holder.fence + 1
    second.release()


def test_everybody_sees_who_holds(site: Site) -> None:
    """Who asks is told name, command, fence and what is left; of a lease that ended, nobody."""
    with LeaseLook(site.address, site.uid) as look:
        assert not look.exists
        assert look.holder() is None
    lease = site.must_take()
    with LeaseLook(site.address, site.uid) as look:
        seen = look.holder()
        assert seen is not None
        assert (seen.who, seen.command, seen.fence) == ("anna", "apply", lease.holder.fence)
        assert seen.left_ms is not None
        assert 0 < seen.left_ms <= 10_000
        lease.release()
        assert look.holder() is None


@pytest.mark.usefixtures("silent")
def test_a_term_ends_by_the_databases_clock(site: Site) -> None:
    """A lease that nobody renews is free after its term, whatever the holder's wall clock says."""
    lease = site.must_take()
    site.clock.now = -(10**12)
    assert site.take("bert") is None
    time.sleep(4.05)
    taken = site.must_take("bert")
    with pytest.raises(FenceLost, match="taken"):
        lease.renew()
    with pytest.raises(FenceLost, match="taken"):
        lease.require()
    lease.release()
    taken.require()
    taken.release()


@pytest.mark.usefixtures("silent")
def test_a_holder_stops_half_a_term_after_it_asked(site: Site) -> None:
    """Half a term counts from the beginning of the last renewal, by the clock that counts suspend."""
    lease = site.must_take()
    site.clock.now += 4_999
    lease.require()
    lease.renew()
    site.clock.now += 4_999
    lease.require()
    site.clock.now += 1
    with pytest.raises(FenceLost, match=r"not renewed for 5\.0 s"):
        lease.require()
    lease.release()


def test_a_thread_renews(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """A holder that computes for several terms keeps its lease."""
    monkeypatch.setattr(leasing, "_TERM_MS", 3000)
    monkeypatch.setattr(leasing, "RENEW_SECONDS", 0.2)
    lease = site.must_take()
    time.sleep(7)
    assert site.take("bert") is None
    lease.require()
    lease.release()


def test_renewing_waits_for_no_transaction(site: Site) -> None:
    """A protected transaction may take long: the lease under which it runs is renewed meanwhile."""
    lease = site.must_take()
    ledger = open_postgres(site.address, site.uid, CountingIds(), site.clock)
    with ledger._database.write(fence=lease.holder.fence), beside() as start:
        renewing: Future[None] = start(lease.renew)
        renewing.result(60)
        # `FOR SHARE`, as it might be read, would hold it up; so it is not used.
    ledger.close()
    lease.release()


def test_a_paused_transaction_holds_nobody_up(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server ends a transaction that stands still: its successor gets on, and it is told."""
    monkeypatch.setattr(connecting, "IDLE_SECONDS", 4.0)
    lease = site.must_take()
    ledger = open_postgres(site.address, site.uid, CountingIds(), site.clock)
    began = time.monotonic()

    def stand_still() -> None:
        with (
            ledger._database.write(fence=lease.holder.fence) as transaction,
            beside() as start,
        ):
            transaction.execute("UPDATE meta SET note = 'never'")
            breaking = start(lambda: break_lease(site.address, site.uid, site.clock, who="bert"))
            assert is_waiting(breaking)
            assert breaking.result(60) is not None
            transaction.execute("UPDATE meta SET note = 'never'")

    with pytest.raises(UnreachableLedgerError):
        stand_still()
    assert time.monotonic() - began < 60
    assert site.ask("SELECT note FROM meta") == ("",)
    # The connection is made anew; the fence is another's.
    with pytest.raises(FenceLost), ledger._database.write(fence=lease.holder.fence):
        pass
    ledger.close()
    lease.release()


def test_a_broken_lease_ends_at_once(site: Site) -> None:
    """Breaking names who held it and says so in the events; the former holder learns of it."""
    lease = site.must_take()
    found = break_lease(site.address, site.uid, site.clock, who="bert")
    assert found is not None
    assert (found.who, found.pid) == ("anna", lease.holder.pid)
    assert break_lease(site.address, site.uid, site.clock, who="bert") is None
    with pytest.raises(FenceLost):
        lease.renew()
    next_one = site.must_take("bert")
    next_one.require()
    # Giving up what was lost does not touch the next one's.
    lease.release()
    assert site.take("carl") is None
    next_one.release()
    ledger = open_postgres(site.address, site.uid, CountingIds(), site.clock)
    said = [event.message for event in ledger.read_events() if event.kind == "manager.broken"]
    assert len(said) == 1
    assert said[0].startswith("bert took the environment from apply of anna")
    ledger.close()


def test_many_who_want_it_at_once(site: Site) -> None:
    """Of eight who make the ledger and take the lease at the same moment, one holds it."""
    with beside() as start:
        taking = [start(lambda who=f"who{n}": site.take(who)) for n in range(8)]
        leases = [one.result(30) for one in taking]
    held = [one for one in leases if one is not None]
    assert len(held) == 1
    assert site.ask("SELECT count(*) FROM meta") == (1,)
    held[0].release()


def test_a_server_that_is_away_ends_the_tenure(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without an answer the holder goes on for half a term and no longer; then it may ask again."""
    monkeypatch.setattr(Lease, "_keep", lambda _: None)
    lease = site.must_take()

    def away(*_: object) -> Callable[..., object]:
        raise UnreachableLedgerError("the server is away", advice="")

    with monkeypatch.context() as patch:
        patch.setattr(lease._database, "alone", away)
        with pytest.raises(LedgerError):
            lease.renew()
        lease.require()
        site.clock.now += 5_000
        with pytest.raises(FenceLost):
            lease.require()
    lease.renew()
    lease.require()
    lease.release()


def test_a_lease_is_asked_for_as_long_as_somebody_asks(site: Site) -> None:
    """The request is a row that its holder reads, and takes nothing from it."""
    with site.must_take() as lease, LeaseLook(site.address, site.uid) as look:
        assert not look.is_asked()
        with asking_for_lease(site.address, site.uid, site.clock, who="bert", term_ms=600_000):
            assert look.is_asked()
            lease.require()
            lease.renew()
            holder = look.holder()
            assert holder is not None
            assert holder.who == "anna"
        assert not look.is_asked()


def test_a_request_ends_with_its_term_and_not_with_another_one(site: Site) -> None:
    """Who asked and died is over; who asked first takes nobody else's request back."""
    with site.must_take(), LeaseLook(site.address, site.uid) as look:
        with asking_for_lease(site.address, site.uid, site.clock, who="bert", term_ms=600_000):
            with asking_for_lease(site.address, site.uid, site.clock, who="carl", term_ms=0):
                assert not look.is_asked()
            later = asking_for_lease(
                site.address, site.uid, site.clock, who="dora", term_ms=600_000
            )
            later.__enter__()
        assert look.is_asked()
        later.__exit__(None, None, None)
        assert not look.is_asked()
