"""Hosts that are reached over SSH: each gets an agent with a folder below the user's home."""
