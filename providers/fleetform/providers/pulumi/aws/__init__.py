"""Machines and disks of AWS: which resources of EC2 a fleet and a volume need."""
