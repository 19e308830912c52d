"""Addresses of ledgers: read, refused, and never shown with their password."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetform.spec.names import is_uid
from fleetform.store.errors import AddressError
from fleetform.store.postgres.address import Address, schema_of

SECRET = "pass-word"


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        (f"postgresql://anna:{SECRET}@db:5433/ledger", "postgresql://anna@db:5433/ledger"),
        (f" postgres://anna:{SECRET}@db/ledger\n", "postgresql://anna@db/ledger"),
        (f"postgresql:///ledger?host=/run&password={SECRET}", "postgresql:///ledger"),
        (f"postgresql://anna:{SECRET}@[::1]/x?sslmode=require", "postgresql://anna@::1/x"),
    ],
)
def test_what_is_shown(url: str, shown: str) -> None:
    """People see who, where and which database; neither password nor options."""
    address = Address.parse(url)
    assert address.shown == shown
    assert address.url == url.strip()
    assert SECRET not in repr(address) + str(address)


@pytest.mark.parametrize(
    "url",
    [
        "",
        f"mysql://anna:{SECRET}@db/ledger",
        f"anna:{SECRET}@db/ledger",
        f"postgresql://anna:{SECRET}@db:port/ledger",
        f"postgresql://anna:{SECRET}@[::1/ledger",
    ],
)
def test_what_is_refused(url: str) -> None:
    """What is no address is refused with how one is written, and is not quoted."""
    with pytest.raises(AddressError) as caught:
        Address.parse(url)
    assert SECRET not in f"{caught.value}{caught.value.advice}{caught.value!r}"
    assert "postgresql://" in caught.value.advice


def test_schema() -> None:
    """An environment's schema is named by its uid, whose dashes a name cannot have."""
    assert schema_of("ab12") == "fleetform_ab12"
    assert schema_of("0b2f6a0e-54c5") == "fleetform_0b2f6a0e_54c5"
    assert schema_of("a" * 64).startswith("fleetform__")


UIDS = st.from_regex(r"[a-z0-9](?:[a-z0-9-]{2,62}[a-z0-9])", fullmatch=True)


@given(UIDS, UIDS)
def test_no_two_environments_share_a_schema(one: str, other: str) -> None:
    """Each uid that may be declared has a name of its own, which PostgreSQL takes whole and unquoted."""
    assert is_uid(one)
    assert (schema_of(one) == schema_of(other)) is (one == other)
    assert (schema_of(one) == schema_of(one.replace("-", ""))) is ("-" not in one)
    assert re.fullmatch(r"[a-z_][a-z0-9_]{,62}", schema_of(one))
