"""
The one text from which the values of many elements are made: `echo ${{ matrix.lr }}`.

A plan has each element's value and its parameters, and not the document that they were written in.
So the text is inferred, and nothing is taken on trust: a template is returned for those elements
only for which it renders to exactly their value, by the same code that fills in documents. A wrong
guess therefore costs a longer plan, and never hides a value.
"""

from __future__ import annotations

import contextlib
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

from fleetform.spec import interpolate
from fleetform.spec.names import scalar_text
from fleetform.views.lines import Written

MARK = interpolate.MARK

STATES_MAX = 20_000
"""
Places in the texts of a few elements that the search looks at before it gives up.

An ordinary script needs one for each occurrence of a parameter; only texts that repeat a
parameter's characters over and over, as `1` in `1111…`, come near.
"""

ATTEMPTS_MAX = 24
"""Searches for one field. Each adds one element that the text before did not fit."""

SEEDS_MAX = 3
"""Elements tried as the first: the first of all may be the one that was patched."""


class Sample(NamedTuple):
    """
    One element's value, before and after, each with what expressions named at that time.

    A side that is not set has the value None, in all samples of one search.
    """

    before: Any
    after: Any
    scope_before: interpolate.Scope
    scope_after: interpolate.Scope


class Family(NamedTuple):
    """Elements, by their places in the samples, whose values one template gives."""

    before: Any
    after: Any
    members: tuple[int, ...]


_Reference: TypeAlias = tuple[str, str]
_Part: TypeAlias = str | _Reference


class _NoTemplateError(Exception):
    """The values have no text in common, or none that is found soon enough."""


def families(samples: Sequence[Sample], *, members_min: int) -> Iterator[Family]:
    """
    Find templates, the first for as many elements as one is found for.

    Args:
        samples: In any order; the result depends on it and on nothing else.
        members_min: Elements below which a template says no more than the values.

    Returns:
        Nothing for elements that no template covers: their values have to be shown.
    """
    rest = list(range(len(samples)))
    while len(rest) >= members_min:
        found = _largest(samples, rest)
        if found is None or len(found.members) < members_min:
            return
        yield found
        taken = frozenset(found.members)
        rest = [place for place in rest if place not in taken]


def reproduces(template: Any, value: Any, scope: interpolate.Scope) -> bool:
    """Tell whether a template's every text renders to exactly the value's."""
    if isinstance(template, Written) and not isinstance(value, str):
        sole = _compiled(template).sole
        return sole is not None and _same(_looked_up(sole, scope), value)
    if isinstance(template, str):
        return isinstance(value, str) and _rendered(template, scope) == value
    if type(template) is not type(value):
        return False
    if isinstance(template, Mapping):
        return template.keys() == value.keys() and all(
            reproduces(template[name], value[name], scope) for name in template
        )
    if isinstance(template, list | tuple):
        return len(template) == len(value) and all(
            reproduces(one, other, scope) for one, other in zip(template, value, strict=True)
        )
    return bool(template == value)


def _largest(samples: Sequence[Sample], rest: Sequence[int]) -> Family | None:
    best: Family | None = None
    for seed in rest[:: max(1, len(rest) // SEEDS_MAX)][:SEEDS_MAX]:
        found = _family(samples, seed, rest)
        if found is not None and (best is None or len(found.members) > len(best.members)):
            best = found
        if best is not None and len(best.members) * 2 > len(rest):
            break
    return best


def _family(samples: Sequence[Sample], seed: int, rest: Sequence[int]) -> Family | None:
    """Widen a template from one element to the next that it does not fit, if there is one for both."""
    known = [seed]
    try:
        template = _infer([samples[seed]])
    except _NoTemplateError:
        return None
    attempts = 0
    for one in rest:
        if attempts == ATTEMPTS_MAX:
            break
        if _fits(template, samples[one]):
            continue
        attempts += 1
        with contextlib.suppress(_NoTemplateError):
            template = _infer([samples[each] for each in (*known, one)])
            known.append(one)
    # What fitted the template of a moment ago need not fit the last one.
    members = tuple(one for one in rest if _fits(template, samples[one]))
    return Family(*template, members)


_Pair: TypeAlias = tuple[Any, Any]


def _fits(template: _Pair, sample: Sample) -> bool:
    return reproduces(template[0], sample.before, sample.scope_before) and reproduces(
        template[1], sample.after, sample.scope_after
    )


def _infer(samples: Sequence[Sample]) -> _Pair:
    """
    Find a template for each side.

    Where one text gives both sides, it is the answer for both: only the parameters changed.
    """
    before = [(one.before, one.scope_before) for one in samples]
    after = [(one.after, one.scope_after) for one in samples]
    if all(one.scope_before != one.scope_after for one in samples):
        try:
            both = _value_template([*before, *after])
        except _NoTemplateError:
            pass
        else:
            return both, both
    return _value_template(before), _value_template(after)


_Known: TypeAlias = Sequence[tuple[Any, interpolate.Scope]]


def _value_template(known: _Known) -> Any:
    first = known[0][0]
    if any(type(value) is not type(first) for value, _ in known):
        raise _NoTemplateError
    if isinstance(first, str):
        return _text_template(known)
    if isinstance(first, Mapping):
        if any(value.keys() != first.keys() for value, _ in known):
            raise _NoTemplateError
        return {
            name: _value_template([(value[name], scope) for value, scope in known])
            for name in first
        }
    if isinstance(first, list | tuple):
        if any(len(value) != len(first) for value, _ in known):
            raise _NoTemplateError
        return [
            _value_template([(value[place], scope) for value, scope in known])
            for place in range(len(first))
        ]
    return _scalar_template(known)


def _scalar_template(known: _Known) -> Any:
    first = known[0][0]
    if all(_same(value, first) for value, _ in known):
        return first
    for reference in _varying([scope for _, scope in known]):
        if all(_same(_looked_up(reference, scope), value) for value, scope in known):
            return Written(_spelled(reference))
    raise _NoTemplateError


def _text_template(known: _Known) -> str:
    """A text in the language's own spelling, which renders to each of the values."""
    parts = _parts([value for value, _ in known], [scope for _, scope in known])
    kind = Written if isinstance(known[0][0], Written) else str
    # A reference to a secret stays in a value as it is written, and so it does in the template.
    # What only looks like an expression is escaped, as its author had to.
    for escape in ("", "$"):
        text = "".join(
            part.replace(MARK, f"{escape}{MARK}") if isinstance(part, str) else _spelled(part)
            for part in parts
        )
        if all(_rendered(text, scope) == value for value, scope in known):
            return kind(text)
    raise _NoTemplateError


def _parts(texts: Sequence[str], scopes: Sequence[interpolate.Scope]) -> list[_Part]:
    """
    Walk through all texts at once: each step is text that all have, or a parameter of each.

    A state is the place reached in each text. Parameters go before text, so that the longest
    explanation is found first; visited states are not tried again, so the search ends.
    """
    if all(text == texts[0] for text in texts):
        return [texts[0]]
    references = _varying(scopes)
    words = {one: [scalar_text(_looked_up(one, scope)) for scope in scopes] for one in references}
    texts, words = _longest_first(texts, words)
    pivot = texts[0]
    ordered = sorted((one for one in words if words[one][0]), key=lambda one: -len(words[one][0]))
    starts = sorted({start for one in ordered for start in _occurrences(words[one][0], pivot)})
    begin = (0,) * len(texts)
    came: dict[tuple[int, ...], tuple[tuple[int, ...], _Part]] = {begin: (begin, "")}
    stack = [begin]
    while stack:
        state = stack.pop()
        if all(place == len(text) for place, text in zip(state, texts, strict=True)):
            return _way(came, state)
        if len(came) > STATES_MAX:
            break
        steps: list[tuple[_Part, list[str]]] = []
        at = state[0]
        following = bisect_left(starts, at)
        if following < len(starts) and starts[following] == at:
            steps = [(one, words[one]) for one in reversed(ordered)]
            following += 1
        end = starts[following] if following < len(starts) else len(pivot)
        literal = pivot[at:end]
        for part, of_each in [(literal, [literal] * len(texts)), *steps]:
            if part and all(map(str.startswith, texts, of_each, state)):
                reached = tuple(
                    place + len(word) for place, word in zip(state, of_each, strict=True)
                )
                if reached not in came:
                    came[reached] = (state, part)
                    stack.append(reached)
    raise _NoTemplateError


def _way(
    came: Mapping[tuple[int, ...], tuple[tuple[int, ...], _Part]], state: tuple[int, ...]
) -> list[_Part]:
    parts: list[_Part] = []
    while any(state):
        state, part = came[state]
        parts.append(part)
    # Text next to text is one: an expression may begin in the one and go on in the other.
    joined: list[_Part] = []
    for part in reversed(parts):
        if isinstance(part, str) and joined and isinstance(last := joined[-1], str):
            joined[-1] = last + part
        else:
            joined.append(part)
    return joined


def _longest_first(
    texts: Sequence[str], words: Mapping[_Reference, list[str]]
) -> tuple[list[str], dict[_Reference, list[str]]]:
    """
    Put the element with the longest parameters first: it decides where parameters are looked for.

    An empty parameter would be everywhere in its text.
    """
    places = sorted(
        range(len(texts)),
        key=lambda place: (
            -sum(bool(of_each[place]) for of_each in words.values()),
            -sum(len(of_each[place]) for of_each in words.values()),
            place,
        ),
    )
    return (
        [texts[place] for place in places],
        {one: [of_each[place] for place in places] for one, of_each in words.items()},
    )


def _occurrences(word: str, text: str) -> Iterator[int]:
    place = text.find(word)
    while place >= 0:
        yield place
        place = text.find(word, place + 1)


def _varying(scopes: Sequence[interpolate.Scope]) -> list[_Reference]:
    """What expressions can name and what is not the same everywhere, in order of name."""
    first = scopes[0]
    found: list[_Reference] = []
    for namespace in ("matrix", "run"):
        for key in sorted(first.get(namespace, {})):
            if not all(key in scope.get(namespace, {}) for scope in scopes):
                continue
            values = [scope[namespace][key] for scope in scopes]
            if any(not _same(value, values[0]) for value in values):
                found.append((namespace, key))
    return found


def _same(one: Any, other: Any) -> bool:
    return type(one) is type(other) and bool(one == other)


def _spelled(reference: _Reference) -> str:
    return f"{MARK} {interpolate.spelled(reference)} }}}}"


def _looked_up(reference: _Reference, scope: interpolate.Scope) -> Any:
    return scope.get(reference[0], {}).get(reference[1])


@lru_cache(maxsize=64)
def _compiled(text: str) -> interpolate.Text:
    return interpolate.compile_text(text)


def _rendered(text: str, scope: interpolate.Scope) -> str | None:
    """None where the text names what there is not."""
    if MARK not in text:
        return text
    try:
        return str(interpolate.render(_compiled(text), scope))
    except KeyError:
        return None
