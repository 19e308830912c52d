"""
Which values are never shown: by the field's row, by a variable's name, and within addresses.

What people put into `env:` is theirs and reaches the job as it is. But a variable whose name says
that it holds a secret is warned of, and a plan shows a version of it and never the value.
"""

from __future__ import annotations

import hashlib
import hmac
import re

__all__ = ["PASSWORD_IN_ADDRESS", "SEALED_IN_NAME", "names_secret", "sealed_for_name"]

SEALED_IN_NAME = "sealed-"

_DIGITS = 12
"""As many as name a commit; that two values of one sweep share them is one chance in 2**48."""

_SECRET = re.compile(
    r"(?:^|_)(?:TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|PWD|CREDENTIALS?"
    r"|(?:API|ACCESS|SECRET|PRIVATE|AUTH|ENCRYPTION|ACCOUNT)_?KEY|APIKEY)$",
    re.IGNORECASE,
)

# Words of a vocabulary: `EOS_TOKEN=</s>` is no secret, and in the variables of many runs.
_VOCABULARY = re.compile(r"(?:^|_)(?:BOS|EOS|PAD|UNK|SEP|CLS|MASK)_TOKEN$", re.IGNORECASE)

# The shell's own: the folder that it is in.
_PLAIN = frozenset({"PWD", "OLDPWD"})

PASSWORD_IN_ADDRESS = re.compile(
    r"(?:(?<=://)[^\s/@:?#'\"]*:|(?<=http://)|(?<=https://))(?P<password>[^\s/@?#'\"]+)(?=@)",
    re.ASCII,
)
"""
What proves the user in `https://user:password@host`; RFC 3986 section 3.2.1.

Of an address that is read over HTTP the user alone as well: hosts of repositories take a token
there.
"""


def names_secret(name: str) -> bool:
    """Tell whether a variable of this name holds a secret: `HF_TOKEN`, `WANDB_API_KEY`."""
    if name.upper() in _PLAIN:
        return False
    return _SECRET.search(name) is not None and _VOCABULARY.search(name) is None


def sealed_for_name(environment_uid: str, text: str) -> str:
    """
    What stands for a secret in the name of a sweep's element: equal where the value is.

    The environment's uid is the key, as for the versions in a plan (`model.redaction`): who does not have it
    can try no words at a name.
    """
    if text.startswith(SEALED_IN_NAME):
        return text
    keyed = hmac.new(
        environment_uid.encode(), text.encode("utf-8", "surrogatepass"), hashlib.sha256
    )
    return f"{SEALED_IN_NAME}{keyed.hexdigest()[:_DIGITS]}"
