"""What hardware a host has: one module a subject, each a reader of recorded output and a thin call."""
