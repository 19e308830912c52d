"""What stands for an environment where its uid must not be shown."""

from __future__ import annotations

import hashlib

from fleetform.model.redaction import fingerprint

UID = "0b2f6a0e54c54a8e8f0c5d3f2f1c9a77"


def test_a_fingerprint_is_an_environments_own_and_not_its_uid():
    """Two environments have two; it is no plain digest of the uid, and of none there is none."""
    assert fingerprint(UID) == fingerprint(UID)
    assert len(fingerprint(UID)) == 32
    assert fingerprint(UID) != fingerprint("f" * 32)
    assert fingerprint(UID) != hashlib.sha256(UID.encode()).hexdigest()[:32]
    assert fingerprint("") == ""
