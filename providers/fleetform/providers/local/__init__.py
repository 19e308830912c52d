"""Hosts that are this machine: each instance is an agent with a folder of its own."""
