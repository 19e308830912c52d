"""How a ledger of an earlier release becomes one of this; versions are numbered, never branched."""
