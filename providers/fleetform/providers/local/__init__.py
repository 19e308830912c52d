"""This machine as a fleet: an agent a share of it, under the state folder."""
