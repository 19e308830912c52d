"""The ledger on PostgreSQL. Its driver is an extra: who has no address of one imports nothing."""
