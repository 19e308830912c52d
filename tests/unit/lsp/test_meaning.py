from __future__ import annotations

import pytest

from fleetform.lsp.meaning import listed, meaning


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        ("resources.memory", "80GB..", "at least 80 GB: 85 899 345 920 bytes"),
        ("resources.memory", "..1.5TB", "at most 1.5 TB: 1 649 267 441 664 bytes"),
        ("resources.memory", 8, "exactly 8 GB: 8 589 934 592 bytes"),
        ("resources.disk", "1GB..2GB", "from 1 GB to 2 GB: 1 073 741 824 to 2 147 483 648 bytes"),
        ("max_duration", "2h", "7 200 s: 2h"),
        ("max_duration", "off", "no limit"),
        ("resources.cpu", "2..", "at least 2 CPUs"),
        ("resources.cpu", 0.25, "exactly 0.25 CPUs"),
        ("resources.cpu", "arm:1", "exactly 1 CPU, arm"),
        ("resources.gpu", "A100:80GB:2", "exactly 2 × A100, each with exactly 80 GB"),  # noqa: RUF001 -- the sign that is shown
        ("resources.gpu", "24GB..", "at least 1 × GPU of any kind, each with at least 24 GB"),  # noqa: RUF001 -- see above
        ("array", "1-100:2%10", "50 elements, 1 to 99, 10 at a time"),
        ("array", "7", "1 element, 7 to 7"),
        ("matrix", {"lr": [1, 2], "seed": [1, 2, 3]}, "6 elements: 2 lr × 3 seed"),  # noqa: RUF001 -- see above
        ("name", "train", ""),
        ("resources.memory", "8Gi", ""),
        ("array", "100-1", ""),
        ("max_duration", "${{ matrix.time }}", ""),
    ],
)
def test_a_value_is_said_in_words(path, value, words):
    """What it comes to; nothing where it is plain, or wrong."""
    assert meaning("run", path.split("."), value) == words


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ([0.1], "`0.1`"),
        ([1, True], "`1` and `true`"),
        ([1, 2, 3], "`1`, `2` and `3`"),
        (range(10), "`0`, `1`, `2`, `3`, `4`, `5`, `6`, `7` and 2 more"),
    ],
)
def test_values_are_listed_as_a_sentence_has_them(values, words):
    """The first of them where there are many."""
    assert listed(values) == words
