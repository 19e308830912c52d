"""Machines and disks of clouds, created by Pulumi: the engine and the recovery of its changes."""
