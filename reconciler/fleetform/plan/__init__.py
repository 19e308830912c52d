"""Desired against live: what would have to change, in which order, and what is held back."""
