"""What runs on a host, and the protocol to it."""
