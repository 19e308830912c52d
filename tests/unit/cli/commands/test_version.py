from __future__ import annotations

import re


def test_the_version_is_one_line(typed):
    """The same by command and by option."""
    code, out, _err = typed("version")
    assert code == 0
    assert re.fullmatch(r"fleetform \d+\.\d+\.\d+ \(Python 3\.\d+\.\d+\)\n", out)
    assert typed("--version")[1] == out
