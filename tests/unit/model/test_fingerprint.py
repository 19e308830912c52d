"""What stands for an environment where its uid must not be shown."""

from __future__ import annotations

import hashlib

from fleetform.model.fingerprint import fingerprint, short_uid

UID = "0b2f6a0e54c54a8e8f0c5d3f2f1c9a77"


def test_a_fingerprint_is_an_environments_own_and_not_its_uid():
    """Two environments have two; it is no plain digest of the uid, and of none there is none."""
    assert fingerprint(UID) == fingerprint(UID)
    assert len(fingerprint(UID)) == 32
    assert fingerprint(UID) != fingerprint("f" * 32)
    assert fingerprint(UID) != hashlib.sha256(UID.encode()).hexdigest()[:32]
    assert fingerprint("") == ""


def test_people_get_the_beginning_of_a_uid():
    """Enough to find the environment; a short word is shown as it is."""
    assert short_uid(UID) == "0b2f6a0e…"
    assert short_uid("lab") == "lab"
