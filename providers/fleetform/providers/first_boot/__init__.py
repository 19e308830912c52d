"""The first boot of a host that a cloud creates: what it reads, and the key by which it is recognised."""
