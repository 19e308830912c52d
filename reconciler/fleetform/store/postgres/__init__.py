"""The ledger on PostgreSQL; its driver is imported by `connection` and nowhere else."""
