"""
Where a PostgreSQL ledger is, and how that is said without its password.

The address is a secret. It comes from the process's environment or from a file that only its
owner can read, never from the tree or from arguments, and nothing but the driver sees all of it.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from fleetform.store.errors import AddressError

__all__ = ["DRIVER_VARIABLES", "SCHEMA_PREFIX", "Address", "schema_of"]

DRIVER_VARIABLES = (
    "PGDATABASE",
    "PGGSSLIB",
    "PGHOST",
    "PGKRBSRVNAME",
    "PGPASSFILE",
    "PGPASSWORD",
    "PGPORT",
    "PGSERVICE",
    "PGSERVICEFILE",
    "PGSSLCERT",
    "PGSSLCRL",
    "PGSSLKEY",
    "PGSSLMAXPROTOCOLVERSION",
    "PGSSLMINPROTOCOLVERSION",
    "PGSSLMODE",
    "PGSSLNEGOTIATION",
    "PGSSLROOTCERT",
    "PGTARGETSESSIONATTRS",
    "PGUSER",
)
"""Variables that the driver reads in addition to the address, as libpq does."""

SCHEMA_PREFIX = "fleetform_"

_NAME_BYTES_MAX = 63
"""Of PostgreSQL's identifiers (NAMEDATALEN - 1)."""

_EXAMPLE = "postgresql://USER:PASSWORD@HOST/DATABASE"


@dataclass(frozen=True, slots=True)
class Address:
    """
    Attributes:
        url: As libpq understands it, password and TLS options included (`?sslmode=verify-full`).
        shown: The same without its password and options, for people.
    """

    url: str = field(repr=False)
    shown: str

    @classmethod
    def parse(cls, url: str) -> Address:
        """
        Raises:
            AddressError: It names no PostgreSQL database. The message never quotes it.
        """
        advice = f"write it as {_EXAMPLE}"
        try:
            parts = urlsplit(url.strip())
            # Read here: a port that is none is found on the first look only.
            host, port = parts.hostname or "", parts.port
        except ValueError as problem:
            raise AddressError("the address of the ledger is not a URL", advice=advice) from problem
        if parts.scheme not in {"postgresql", "postgres"}:
            raise AddressError(
                "the address of the ledger does not begin with postgresql://", advice=advice
            )
        who = f"{parts.username}@" if parts.username else ""
        where = f"{host}:{port}" if port else host
        return cls(url.strip(), f"postgresql://{who}{where}{parts.path}")


def schema_of(environment_uid: str) -> str:
    """
    Name the schema that holds an environment's ledger.

    A schema each, in one database: an environment is then listed, copied, granted and dropped
    as a whole, and no statement can reach into another's rows by a forgotten condition.

    No two uids have the same name: a uid has no `_`, which stands for its dashes, and none begins with
    one, as the digest of a long uid does. PostgreSQL cuts off what a name has beyond 63 bytes.
    """
    name = SCHEMA_PREFIX + environment_uid.replace("-", "_")
    if len(name) <= _NAME_BYTES_MAX:
        return name
    return f"{SCHEMA_PREFIX}_{hashlib.sha256(environment_uid.encode()).hexdigest()[:40]}"
