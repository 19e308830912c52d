"""Bring the state of a stack back in line with the cloud after a change that was cut off."""
