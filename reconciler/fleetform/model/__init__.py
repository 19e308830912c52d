"""What the ledger knows and what is decided from it, as values; and the ports to the drivers."""
