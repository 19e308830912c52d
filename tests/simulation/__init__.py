"""The whole product in one process under a virtual clock, with faults from a seed, and a judge."""
