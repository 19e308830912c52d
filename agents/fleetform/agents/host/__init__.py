"""The agent: everything that runs on a host. Standard library only, Python 3.9."""

VERSION = "0.1.0"
"""
The product's version, written here alone; the build takes it from here. It travels in `Welcome`;
the archive that the agent runs from is named by its digest instead.
"""
