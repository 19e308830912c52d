"""
Which values are shown to nobody: by the field's row, by a variable's name, and within addresses.

What people put into `env:` is theirs and reaches the job as it is. But a variable whose name says
that it holds a secret is warned of, and a plan shows a version of it and never the value.
"""

from __future__ import annotations

import re

__all__ = ["PASSWORD_IN_ADDRESS", "names_secret"]

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
