"""
The key by which a new host is recognised before it has one of its own.

It is derived from a secret of the environment and the uid of the instance, so no file, plan or
ledger has its private half, and a controller that was killed derives the same one again. The
document of the first boot carries it to the host, where everyone who can read that document can
read the key: it is for the first connection, over which the host reports a key that it made itself
(`ssh.own_key`).
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from dataclasses import dataclass, field

import asyncssh

__all__ = ["FirstKey", "first_key"]

_PURPOSE = b"fleetform first host key 1"
"""Keeps the key apart from all else that is derived from the same secret."""

# RFC 8410, section 7: what is before the 32 bytes of a private key of Ed25519.
_PKCS8_HEAD = bytes.fromhex("302e020100300506032b657004220420")

_SECRET_BYTES_MIN = 32
"""Everyone who can connect to the host sees the public half, and could try shorter secrets."""

_LINE_CHARACTERS = 70
_BLOCK_BYTES = 8


@dataclass(frozen=True, slots=True)
class FirstKey:
    """`public` is type and key as `known_hosts` has them, `private` a file of OpenSSH."""

    public: str
    private: str = field(repr=False)


def first_key(secret: bytes, instance_uid: str) -> FirstKey:
    """
    Derive the first host key of an instance; the same arguments give the same bytes.

    Args:
        secret: Random, of the environment, and kept apart from the ledger: the passphrase of its
            stacks.
        instance_uid: Each instance has a key that says nothing about those of others.
    """
    assert len(secret) >= _SECRET_BYTES_MIN, "the secret is too short"
    seed = hmac.digest(secret, b"\0".join((_PURPOSE, instance_uid.encode())), hashlib.sha256)
    public = asyncssh.import_private_key(_PKCS8_HEAD + seed).public_data
    return FirstKey(f"ssh-ed25519 {base64.b64encode(public).decode()}", _openssh_file(seed, public))


def _openssh_file(seed: bytes, public: bytes) -> str:
    """
    Write the private key in OpenSSH's own format (its `PROTOCOL.key`), the one that every sshd reads.

    Libraries put random numbers into it; here they follow from the key, so that a program with the
    same hosts has the same digest.
    """
    check = hashlib.sha256(seed).digest()[:4]
    inner = check * 2 + public + _string(seed + public[-len(seed) :]) + _string(b"")
    inner += bytes(range(1, 1 + -len(inner) % _BLOCK_BYTES))
    whole = b"".join((
        b"openssh-key-v1\0", _string(b"none"), _string(b"none"), _string(b""),
        (1).to_bytes(4, "big"), _string(public), _string(inner),
    ))  # fmt: skip
    text = base64.b64encode(whole).decode()
    lines = [text[at : at + _LINE_CHARACTERS] for at in range(0, len(text), _LINE_CHARACTERS)]
    name = "OPENSSH PRIVATE KEY"
    return "\n".join([f"-----BEGIN {name}-----", *lines, f"-----END {name}-----", ""])


def _string(value: bytes) -> bytes:
    # RFC 4251, section 5.
    return len(value).to_bytes(4, "big") + value
