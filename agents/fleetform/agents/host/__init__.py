"""The agent: everything that runs on a host. Standard library only, Python 3.9."""
