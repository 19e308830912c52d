"""
Names of resources and of a run's elements, and addresses as people type them.

An element's name is its identity: what is inside the brackets is the canonical text of its
parameters, so `0.10` and `1e-1` are one element and a reordered sweep is the same sweep.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

__all__ = [
    "EXPRESSION_MARK",
    "HOSTS_MAX",
    "NAME",
    "Address",
    "bare_word",
    "counted",
    "element_name",
    "host_name",
    "indexed_name",
    "is_uid",
    "name_problem",
    "natural_order",
    "nearest",
    "parameter_value",
    "parse_address",
    "region_of",
    "scalar_text",
    "secret_name_problem",
    "split_element",
    "split_parameters",
]


EXPRESSION_MARK = "${{"
"""What begins an expression, in a name as in any other text; `interpolate` has the rest."""

# The bounds are dstack's, so that a tree can move over unchanged. Names become parts of host
# names and paths, which is why case and other characters are out.
NAME = re.compile(r"[a-z][a-z0-9-]{1,40}")
NAME_LENGTH_MAX = 41
HOSTS_MAX = 20_000
"""The most hosts of a fleet, and of one range of names; the largest clusters have about as many."""
# What an expression can name; as long as the longest names of variables that anybody uses.
SECRET_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,99}")
SECRET_NAME_LENGTH_MAX = 100

# A UUID is one, and so is what `fleetform init` mints.
_UID = re.compile(r"[a-z0-9](?:[a-z0-9-]{2,62}[a-z0-9])")
_KIND = re.compile(r"[a-z][a-z-]*")
_BARE = re.compile(r"[A-Za-z0-9._+-]+")
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"')
_INDICES = re.compile(r"\d{1,9}(?:-\d{1,9})?")
_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
_NUMBER = re.compile(r"[-+]?(?:\.\d+|\d+(?:\.\d*)?)(?:[eE][-+]?\d+)?")


def name_problem(text: object) -> str | None:
    """Return what keeps `text` from being a name, as a sentence for people, or None."""
    if not isinstance(text, str):
        return f"A name is text, and this is {_kind_of(text)}; put it in quotes or rename it."
    if NAME.fullmatch(text):
        return None
    if not text:
        return "The name is empty."
    if text != text.strip():
        return "The name begins or ends with a space or a newline."
    if len(text) < 2:
        return "The name has one character; it needs at least two."
    if len(text) > NAME_LENGTH_MAX:
        return f"The name has {len(text)} characters; the most is {NAME_LENGTH_MAX}."
    suggestion = _suggest_name(text)
    hint = f" `{suggestion}` would do." if suggestion else ""
    if not ("a" <= text[0] <= "z"):
        return f"The name begins with `{text[0]}`; it has to begin with a lower-case letter.{hint}"
    wrong = next(letter for letter in text if not re.fullmatch(r"[a-z0-9-]", letter))
    return (
        f"The name contains {_letter_text(wrong)}; only lower-case letters, digits and"
        f" dashes may occur.{hint}"
    )


def secret_name_problem(text: object) -> str | None:
    """
    The same for a secret, whose name is what `${{ secrets.NAME }}` can say.

    Upper case and underscores are in, because secrets of dstack and of other tools are named
    like variables.
    """
    if isinstance(text, str) and SECRET_NAME.fullmatch(text):
        return None
    if not isinstance(text, str) or not text or text != text.strip():
        return name_problem(text)
    if len(text) > SECRET_NAME_LENGTH_MAX:
        return f"The name has {len(text)} characters; the most is {SECRET_NAME_LENGTH_MAX}."
    wrong = next((letter for letter in text if not re.fullmatch(r"[A-Za-z0-9_-]", letter)), text[0])
    if wrong == text[0]:
        return f"The name begins with {_letter_text(wrong)}; it has to begin with a letter or `_`."
    return (
        f"The name contains {_letter_text(wrong)}; only letters, digits, underscores and dashes"
        " may occur."
    )


def scalar_text(value: Any) -> str:
    """
    Return the canonical text of a parameter: `0.10` is `0.1`, `1e-1` is `0.1`, true is `true`.

    It is also what `${{ matrix.lr }}` stands for, so that an element's name and its commands
    never disagree.
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None:
        return "null"
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, str):
        return value
    raise TypeError(f"a parameter is a string, a number or a boolean, not {_kind_of(value)}")


def parameter_value(value: Any) -> Any:
    """
    Return the value that stands for all spellings of a parameter: the number where it says one.

    Whether `1` was written in quotes is seen by no element: its name, its commands and its
    variables have `1` either way. So it decides nothing, and another execution least of all.
    """
    if not isinstance(value, str):
        return value
    if value in _TRUTH:
        return _TRUTH[value]
    for read in (int, float):
        try:
            number = read(value)
        except ValueError:
            continue
        # `0.10`, `1_000` and ` 1` are other texts to a program.
        if repr(number) == value and value not in _NOT_FINITE:
            return number
    return value


_TRUTH = {"true": True, "false": False}
# Canonical forms have none of them.
_NOT_FINITE = frozenset({"inf", "-inf", "nan"})


def host_name(hostname: str, port: int | None = None) -> str:
    """
    Name a host over SSH: `gpu01`, or `login.example.com:2201` where the host has a port of its own.

    One address may lead to several machines, by port.
    """
    return hostname if port is None else f"{hostname}:{port}"


def element_name(parent: str, params: Mapping[str, Any]) -> str:
    """Return `sweep[batch=32,lr=0.1]`: keys sorted, values in canonical text."""
    inside = ",".join(f"{key}={_quoted(scalar_text(params[key]))}" for key in sorted(params))
    return f"{parent}[{inside}]"


def indexed_name(parent: str, index: int) -> str:
    """Return `array[3]`."""
    return f"{parent}[{index}]"


def natural_order(name: str) -> list[tuple[float, str]]:
    """
    Return what sorts names as people do: `h2` before `h10`.

    Numbers in it compare as numbers, and come before text.
    """
    # What was captured has odd places.
    parts = _NUMBERS.split(name)
    return [(float(part), "") if place % 2 else (-1, part) for place, part in enumerate(parts)]


# `1e-05` is how a small parameter is written.
_NUMBERS = re.compile(r"([0-9]+(?:\.[0-9]+)?(?:e-[0-9]+)?)", re.ASCII)


def split_element(name: str) -> tuple[str, str]:
    """Return a name's document and element: `("sweep", "lr=0.1")`, or `("train", "")`."""
    parent, bracket, inside = name.partition("[")
    return (parent, inside[:-1]) if bracket and inside.endswith("]") else (name, "")


def split_parameters(element: str) -> dict[str, str]:
    """Return an element's parameters, `{"lr": "0.1"}`; empty where it has an index."""
    return dict(_split_params(element)) if "=" in element else {}


@dataclass(frozen=True, slots=True)
class Address:
    """
    An address as it was typed, which means one or more resources.

    Attributes:
        kind: `fleet`, `volume`, `run`; empty when it was not said.
        name: The document's name.
        params: Parameters that an element has to have, sorted by key: a part of them is enough. A
            key that stands here several times may have any of these values.
        indices: Inclusive bounds of the indices meant, in the order typed.
    """

    kind: str
    name: str
    params: tuple[tuple[str, str], ...] = ()
    indices: tuple[tuple[int, int], ...] = ()

    @property
    def is_element(self) -> bool:
        return bool(self.params or self.indices)

    def selects(self, kind: str, name: str) -> bool:
        """Tell whether the resource of this kind and name is meant; a document means its elements."""
        parent, element = split_element(name)
        if parent != self.name or (self.kind and self.kind != kind):
            return False
        if self.indices:
            is_index = element.isascii() and element.isdigit()
            return is_index and any(low <= int(element) <= high for low, high in self.indices)
        if self.params:
            has = split_parameters(element)
            return all(
                any(has.get(key) in {text, _canonical_number(text)} for text in texts)
                for key, texts in self._values().items()
            )
        return True

    def _values(self) -> dict[str, list[str]]:
        values: dict[str, list[str]] = {}
        for key, text in self.params:
            values.setdefault(key, []).append(text)
        return values

    def __str__(self) -> str:
        pairs = [f"{key}={'|'.join(map(_quoted, texts))}" for key, texts in self._values().items()]
        spans = [f"{low}-{high}" if high > low else f"{low}" for low, high in self.indices]
        inside = ",".join(pairs or spans)
        return f"{self.kind}{'/' if self.kind else ''}{self.name}{f'[{inside}]' if inside else ''}"


def parse_address(text: str) -> Address:
    """
    Read `train`, `run/train`, `sweep[lr=0.1]`, `sweep[lr=0.1|0.2]`, `array[3]`, `array[3-17,20]`.

    Raises:
        ValueError: With a sentence that says what was expected.
    """
    head, slash, rest = text.partition("/")
    if "[" in head:  # A slash inside a quoted parameter separates nothing.
        head, slash, rest = "", "", text
    kind, tail = (head, rest) if slash else ("", text)
    if slash and not _KIND.fullmatch(kind):
        raise ValueError(f"`{text}` has no kind before its slash; write for example `run/train`.")
    name, bracket, inside = tail.partition("[")
    problem = secret_name_problem(name) if kind == "secret" else name_problem(name)
    if problem is not None:
        raise ValueError(f"`{text}` is not an address. {problem}")
    if not bracket:
        return Address(kind, name)
    if not inside.endswith("]") or inside == "]":
        raise ValueError(
            f"`{text}` opens a bracket and does not close it around an element;"
            f" write for example `{name}[3]` or `{name}[lr=0.1]`."
        )
    return _parse_element(Address(kind, name), inside[:-1])


def is_uid(text: str) -> bool:
    """Whether `text` can mark an environment: it names folders, tags and sockets."""
    return _UID.fullmatch(text) is not None


def bare_word(word: str) -> str:
    """Return a word without what people spell differently: `maxDuration`, `max-duration`."""
    return word.lower().replace("-", "").replace("_", "")


_CLOSE_MAX = 5
"""Candidates among which one with the same letters is looked for."""


def nearest(word: str, candidates: Iterable[str], *, cutoff: float = 0.6) -> str | None:
    """
    Return the candidate that `word` is most likely a slip of, or None when none is close.

    Case, dashes and underscores do not count: `maxDuration` and `max-duration` both lead to
    `max_duration`. `cutoff` is how much of the two has to be the same, from 0 to 1.
    """
    folded: dict[str, str] = {}
    for candidate in sorted(candidates):
        folded.setdefault(bare_word(candidate), candidate)
    # SequenceMatcher takes quadratic time; nobody means a name by a whole paragraph.
    if len(word) > 100:
        return None
    import difflib  # Only a mistake needs it.

    bare = bare_word(word)
    close = difflib.get_close_matches(bare, folded, n=_CLOSE_MAX, cutoff=cutoff)
    # Two letters in the wrong order are likelier than another letter: `us-esat-1` is `us-east-1`, not `us-west-1`.
    swapped = [one for one in close if sorted(one) == sorted(bare)]
    return folded[[*swapped, *close][0]] if close else None


def _parse_element(address: Address, inside: str) -> Address:
    parts = [part.strip() for part in inside.split(",")]
    if all(_INDICES.fullmatch(part) for part in parts):
        spans = [part.partition("-") for part in parts]
        indices = tuple((int(low), int(high or low)) for low, _, high in spans)
        for low, high in indices:
            if high < low:
                raise ValueError(f"`{low}-{high}` runs backwards; write `{high}-{low}`.")
        return Address(address.kind, address.name, indices=indices)
    params = _split_params(inside)
    return Address(address.kind, address.name, params=tuple(sorted(params)))


def _split_params(inside: str) -> list[tuple[str, str]]:
    """Read `batch=32|64,note="a,b"` into pairs of key and text, one for each value of a key."""
    pairs: list[tuple[str, str]] = []
    at = 0
    while at <= len(inside):
        key = _KEY.match(inside, at)
        if key is None or inside[key.end() : key.end() + 1] != "=":
            raise ValueError(f"`{inside}` is neither indices (`3-17`) nor parameters (`lr=0.1`).")
        if key[0] in dict(pairs):
            raise ValueError(
                f"`{inside}` names a parameter twice; several values are `{key[0]}=A|B`."
            )
        at = key.end()
        while at == key.end() or inside[at : at + 1] == "|":
            value = _QUOTED.match(inside, at + 1) or _BARE.match(inside, at + 1)
            if value is None:
                raise ValueError(
                    f"`{key[0]}` has no value, or one that needs double quotes, in `{inside}`."
                )
            pairs.append((key[0], _unquoted(value[0])))
            at = value.end()
        if at == len(inside):
            return pairs
        if inside[at] != ",":
            raise ValueError(f"Expected a comma after `{inside[key.start() : at]}` in `{inside}`.")
        at += 1
    raise AssertionError("every turn of the loop returns, raises or moves on")


def _quoted(text: str) -> str:
    if _BARE.fullmatch(text):
        return text
    # What a terminal cannot show is escaped; letters of any script stay readable.
    return json.dumps(text, ensure_ascii=not text.isprintable())


def _unquoted(text: str) -> str:
    if not text.startswith('"'):
        return text
    try:
        return str(json.loads(text))
    except ValueError as exc:
        raise ValueError(f"{text} is not text in double quotes as JSON has it.") from exc


def _canonical_number(text: str) -> str:
    if len(text) > 100 or not _NUMBER.fullmatch(text):
        return text
    is_whole = text.lstrip("+-").isdigit()
    return repr(int(text)) if is_whole else repr(float(text))


def _suggest_name(text: str) -> str:
    lowered = re.sub(r"[^a-z0-9-]+", "-", text.lower()).strip("-").lstrip("0123456789-")
    return lowered if NAME.fullmatch(lowered) else ""


def _letter_text(letter: str) -> str:
    if letter.isprintable() and letter != " ":
        return f"`{letter}`"
    names = {" ": "a space", "\t": "a tab", "\n": "a newline"}
    return names.get(letter, f"the character U+{ord(letter):04X}")


def _kind_of(value: object) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, (int, float)):
        return "a number"
    return "a mapping" if isinstance(value, Mapping) else "a list"


# Numbers of things in sentences: `1 run`, `2 runs`.


def counted(number: int, noun: str, plural: str = "") -> str:
    """Write `1 run`, `2 runs`; `plural` is for nouns that take more than an `s`."""
    return f"{number} {noun}" if number == 1 else f"{number} {plural or f'{noun}s'}"


_REGION = re.compile(r"[a-z]+(?:-[a-z]+)+-[0-9]+")


_ZONE = re.compile(rf"{_REGION.pattern}(?:[a-z]|(?:-[a-z]+[0-9]*)+-[0-9]+[a-z]?)")


def is_zone(name: str) -> bool:
    """Tell whether AWS could name a zone so, such as `us-east-1a`, `us-west-2-lax-1a`, `us-east-1-wl1-bos-wlz-1`."""
    return _ZONE.fullmatch(name) is not None


def region_of(zone: str) -> str:
    """Return the region of a zone of AWS, such as `us-east-1a`, `us-east-1-bos-1a`; empty: it is no name of a zone."""
    found = _REGION.match(zone)
    return found[0] if found else ""
