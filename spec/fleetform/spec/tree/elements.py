"""
From a document's values to the runs it declares: validation, interpolation, canonical forms.

A sweep of ten thousand elements is validated once. Texts are filled in behind the validation,
element by element. A parameter in a field that is read (`nodes: ${{ matrix.nodes }}`) is
filled in before it; documents that come out equal are validated once.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from fleetform.spec import interpolate
from fleetform.spec.expand import Element, expand, values_by_element
from fleetform.spec.findings import Level, Problem
from fleetform.spec.kinds import Kind
from fleetform.spec.kinds.base import Document
from fleetform.spec.names import parameter_value
from fleetform.spec.tree.budget import PROBLEMS_MAX, Budget
from fleetform.spec.tree.cache import ENVIRONMENT_UID
from fleetform.spec.tree.files import Files
from fleetform.spec.tree.validation_errors import complain, meant_field

if TYPE_CHECKING:
    from fleetform.spec.kinds.run import Run

NAMELESS = "nameless"
"""Stands for the name of a document that has none, or a wrong one; it declares nothing."""

# Any text is valid in these, so they are filled in after validation.
TEXTS = ("commands", "env", "description", "tags")
# What elements are made from cannot depend on the element.
_FIXED = ("type", "name", "array", "matrix", "key")

_BY_ELEMENT: Mapping[str, Callable[[list[Any]], Any]] = {
    # No number that was asked for is ever taken back.
    "rerun": max,
    # As in any list of patterns, an exception stands behind the rule.
    "state": lambda states: states[-1],
}
"""Fields that may say a value for single elements, and which counts where several entries name one."""


# What expressions in documents other than runs may name besides the environment's values.
_KNOWN: Mapping[str, Mapping[str, Collection[str]]] = {"gateway": {"run": {"project_name"}}}


@dataclass(frozen=True, slots=True)
class Reading:
    """
    What one document's values say.

    Attributes:
        model: None when it could not be read at all.
        shared: Fields that all elements have in common; the others stand in `elements`.
        elements: Each with the fields of its own.
        documents: The distinct canonical forms as far as they refer to or ask for anything.
    """

    problems: list[Problem]
    model: Document | None = None
    shared: Mapping[str, Any] = field(default_factory=dict)
    elements: Sequence[tuple[Element, Mapping[str, Any]]] = ()
    documents: Sequence[Mapping[str, Any]] = ()


def read(
    value: Mapping[str, Any],
    kind: Kind,
    files: Files,
    folder: str | Sequence[str],
    *,
    has_marks: bool,
    values: Mapping[str, Any] | None = None,
    budget: Budget | None = None,
) -> Reading:
    """
    Read the values of a document whose kind is known.

    `folder` is where its files are looked for; one for each of them, where the entries were
    written in several places. `has_marks` is False when no `${{` stands anywhere in the file, which spares the search.
    `values` are the environment's own, for `${{ values.x }}`. `budget` is what the tree may
    still ask for; None: as much as a tree of this one document.
    """
    marked = {
        name: interpolate.compile_value(item)
        for name, item in value.items()
        if has_marks and interpolate.mentions(item)
    }
    if kind.name != "run":
        return _read_plain(value, marked, kind, values or {}, budget or Budget())
    return _RunReader(value, marked, kind, files, folder, values or {}, budget or Budget()).read()


def _read_plain(
    value: Mapping[str, Any],
    marked: Mapping[str, Any],
    kind: Kind,
    values: Mapping[str, Any],
    budget: Budget,
) -> Reading:
    values = _nameable(values)
    known = {"values": values, **_KNOWN.get(kind.name, {})}
    told = list(islice(interpolate.problems(marked, known), PROBLEMS_MAX))
    wrong = _wrong_fields(told)
    if any(kind.model.model_fields[name].is_required() for name in wrong & _fields(kind)):
        # Without them nothing can be said of the others.
        return Reading(told)
    marked = {name: item for name, item in marked.items() if name not in wrong}
    excess = budget.take_text(interpolate.size(marked, {"values": values}), 0)
    if excess is not None:
        return Reading([*told, excess])
    filled = interpolate.render(dict(marked), {"values": values}, native=True)
    model, problems = _validate({**_without(value, wrong), **filled}, kind)
    problems.extend(told)
    if model is None:
        return Reading(problems)
    document = model.to_canonical()
    problems.extend(_own_problems(model, value, _unread(value, kind, model)))
    return Reading(problems, model, document, [(Element(model.name), {})], [document])


def _validate(value: Mapping[str, Any], kind: Kind) -> tuple[Document | None, list[Problem]]:
    """
    Return the model, and what is wrong.

    Fields with an error are left out of the model where it can do without them, so that problems
    between the others are reported in the same run. No model can do without a name: one that is
    missing or wrong is `NAMELESS` in it.
    """
    try:
        return kind.model.model_validate(value), []
    except ValidationError as exc:
        problems = list(complain(exc, kind.model, str(value.get("type", ""))))
        wrong = {details["loc"][0] for details in exc.errors(include_url=False) if details["loc"]}
    said = _without(value, wrong)
    if "name" in wrong or "name" not in value:
        said["name"] = NAMELESS
    try:
        return kind.model.model_validate(said), problems
    except ValidationError:
        return None, problems


def _nameable(values: Mapping[str, Any]) -> Mapping[str, Any]:
    """Those that an expression can name."""
    return {name: value for name, value in values.items() if name != ENVIRONMENT_UID}


def _wrong_fields(problems: Sequence[Problem]) -> frozenset[Any]:
    """Top-level fields with an error."""
    return frozenset(one.path[0] for one in problems if one.level is Level.ERROR and one.path)


def _fields(kind: Kind) -> frozenset[str]:
    return frozenset(kind.model.model_fields)


def _without(value: Mapping[str, Any], names: Collection[Any]) -> dict[str, Any]:
    return {name: item for name, item in value.items() if name not in names}


def _unread(value: Mapping[str, Any], kind: Kind, model: Document) -> frozenset[str]:
    """What the document has and the model does not: by the fields' names, where it has others."""
    left_out = value.keys() - model.model_fields_set
    # Of thousands, no more is told than of the first.
    looked_at = sorted(left_out)[:PROBLEMS_MAX]
    meant = (meant_field(name, kind.model, str(value["type"])) for name in looked_at)
    # In small letters too, which is how fields are refused.
    named = (*left_out, *map(str.lower, left_out))
    return frozenset(named).union(name.partition(".")[0] for name in meant if name)


def _own_problems(
    model: Document, value: Mapping[str, Any], unread: frozenset[str]
) -> Iterator[Problem]:
    yield from (one for one in model.problems() if unread.isdisjoint(one.for_lack_of))
    for name in model.model_fields_set:
        # Some fields give nothing a meaning: `certificate:` of a gateway.
        if value.get(name) is not None or getattr(model, name) is not None:
            continue
        yield Problem(
            "empty-field",
            (name,),
            f"`{name}` has no value, which is the same as an unset field.",
            "Remove it, or give it a value.",
            level=Level.WARNING,
            at_key=True,
        )


class _OutOfBudget(Exception):
    """Filling in a document's texts would come to more than a tree may have."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.detail)
        self.problem = problem


class _RunReader:
    def __init__(
        self,
        value: Mapping[str, Any],
        marked: Mapping[str, Any],
        kind: Kind,
        files: Files,
        folder: str | Sequence[str],
        values: Mapping[str, Any],
        budget: Budget,
    ) -> None:
        self._value = value
        self._kind = kind
        self._files = files
        self._folder = folder
        self._environment_uid = str(values.get(ENVIRONMENT_UID, ""))
        self._values = _nameable(values)
        self._budget = budget
        self._marked = marked
        self._typed = {name: item for name, item in marked.items() if name not in TEXTS + _FIXED}
        self._variants: dict[str, tuple[Mapping[str, Any], list[Problem]]] = {}
        self._by_element: dict[str, dict[str, Any]] = {}

    def read(self) -> Reading:
        fixed = list(self._fixed_problems())
        field = self._sweeping_field()
        if field and not self._budget.elements:
            excess = self._budget.take_elements(1, field)
            return Reading([*fixed, *([excess] if excess else [])])
        wrong = _wrong_fields(fixed)
        said = {**self._value, "name": NAMELESS} if "name" in wrong else self._value
        said = _without(said, {*self._typed, *(wrong - {"name"})})
        model, problems = _validate(said, self._kind)
        problems.extend(fixed)
        if model is None:
            return Reading(problems)
        model = _run(model)
        # Before it forgets them: a field that is wrong is not missing as well.
        unread = _unread(self._value, self._kind, model)
        if problems:
            # What was left out is wrong in each element, and told already.
            kept = {*model.model_fields_set, *self._typed}
            self._value = {name: item for name, item in self._value.items() if name in kept}
        elements, expansion = ([], []) if fixed else self._expand(model)
        problems.extend(expansion)
        problems.extend(_own_problems(model, self._value, unread))
        shared = self._with_files(model, problems)
        for field, choose in _BY_ELEMENT.items():
            if isinstance(shared.get(field), dict):
                values = shared.pop(field)
                found, unmatched = values_by_element(field, values, model, elements)
                problems.extend(unmatched)
                for name, own in found.items():
                    self._by_element.setdefault(name, {})[field] = choose(own)
        texts = {
            name: interpolate.compile_value(shared[name])
            for name in TEXTS
            if name in self._marked and name in shared
        }
        if fixed:
            # What elements there would be is unknown, and with it what expressions may name.
            return Reading(problems, model, documents=[shared])
        unresolved = list(islice(self._unresolved(model, texts), PROBLEMS_MAX))
        problems.extend(unresolved)
        if not elements or not self._goes_on_without(_wrong_fields(unresolved), texts):
            return Reading(problems, model, documents=[shared])
        return self._fill(model, shared, texts, elements, problems)

    def _goes_on_without(self, wrong: frozenset[str], texts: dict[str, Any]) -> bool:
        """Leave out fields with a wrong expression, and tell whether others are left to fill in."""
        if not wrong:
            return True
        for name in wrong:
            texts.pop(name, None)
            self._typed.pop(name, None)
        # What elements have in fields that are read is judged; variables may be named in these.
        needed = {name for name in wrong & _fields(self._kind) if self._is_required(name)}
        if needed or "env" in wrong or not self._typed:
            return False
        self._value = _without(self._value, wrong - set(TEXTS))
        return True

    def _is_required(self, name: str) -> bool:
        return self._kind.model.model_fields[name].is_required()

    def _expand(self, model: Run) -> tuple[list[Element], list[Problem]]:
        elements, problems = expand(model, self._environment_uid)
        field = self._sweeping_field()
        excess = self._budget.take_elements(len(elements), field) if field else None
        return (elements, problems) if excess is None else ([], [excess])

    def _sweeping_field(self) -> str:
        return next((name for name in ("array", "matrix") if name in self._value), "")

    def _fixed_problems(self) -> Iterator[Problem]:
        for name in _FIXED:
            if name in self._marked:
                yield Problem(
                    "unknown-expression",
                    (name,),
                    f"`{name}` decides which resources exist, so it cannot contain expressions.",
                    "Write the value out.",
                )

    def _with_files(self, model: Run, problems: list[Problem]) -> dict[str, Any]:
        document = model.to_canonical()
        if model.files is not None:
            document["files"], wrong = self._files.resolve(model.files, self._folder)
            problems.extend(wrong)
        return document

    def _unresolved(self, model: Run, texts: Mapping[str, Any]) -> Iterator[Problem]:
        """Expressions of the whole document that name nothing."""
        from fleetform.spec.kinds.task import Task

        known: dict[str, Any] = {"run": {"name", "args"}, "values": self._values}
        if isinstance(model, Task) and model.array is not None:
            known["run"] = {"name", "args", "index"}
        if isinstance(model, Task) and model.matrix is not None:
            known["matrix"] = set(model.matrix)
        if "env" in texts:
            yield from interpolate.problems(texts["env"], known, ("env",))
        known["env"] = set(model.env or {})
        yield from self._unset_problems(model.env or {})
        if not self._typed:
            yield from self._address_problems(model)
        for name, compiled in self._marked.items():
            if name != "env":
                yield from interpolate.problems(compiled, known, (name,))

    def _unset_problems(self, env: Mapping[str, str | None]) -> Iterator[Problem]:
        """Variables without a value in fields that are read: they are known at submission."""
        for path, (namespace, key) in interpolate.references(self._typed):
            if namespace == "env" and key in env and env[key] is None:
                detail = f"`${{{{ env.{key} }}}}`: `{key}` has no value in `env`."
                yield Problem("not-supported", path, detail, level=Level.NOTE, word=f"env.{key}")

    def _address_problems(self, model: Run) -> Iterator[Problem]:
        from fleetform.spec.tree.document_problems import address_problems

        return address_problems(model, self._marked)

    def _fill(
        self,
        model: Run,
        shared: dict[str, Any],
        texts: Mapping[str, Any],
        elements: Sequence[Element],
        problems: list[Problem],
    ) -> Reading:
        own = []
        repeated = len(elements) - 1
        common = interpolate.size(shared, {}) * repeated if repeated else 0
        try:
            self._spend(0, common)
            for element in elements:
                rendered = self._render(element, shared, texts, problems)
                named = self._by_element.get(element.name, {})
                own.append((element, {**self._parameters(element), **named, **rendered}))
        except _OutOfBudget as exc:
            return Reading([*problems, exc.problem], model)
        # Texts as they were written: they may name secrets, which are the same for each element.
        whole = dict(shared)
        for name in texts:
            del shared[name]
        documents = [{**whole, **variant} for variant, _ in self._variants.values()] or [whole]
        return Reading(problems, model, shared, own, documents)

    def _spend(self, written: int, digested: int) -> None:
        excess = self._budget.take_text(written, digested)
        if excess is not None:
            raise _OutOfBudget(excess)

    def _filled(self, compiled: Any, scope: interpolate.Scope, *, native: bool = False) -> Any:
        written = interpolate.size(compiled, scope)
        self._spend(written, written)
        return interpolate.render(compiled, scope, native=native)

    @staticmethod
    def _parameters(element: Element) -> dict[str, Any]:
        if element.index is not None:
            return {"index": element.index}
        if element.matrix is None:
            return {}
        return {"matrix": {name: parameter_value(one) for name, one in element.matrix.items()}}

    def _render(
        self,
        element: Element,
        shared: Mapping[str, Any],
        texts: Mapping[str, Any],
        problems: list[Problem],
    ) -> dict[str, Any]:
        if not texts and not self._typed:
            return {}
        scope = {
            "run": {"name": element.name, "index": element.index},
            "matrix": element.matrix or {},
            "values": self._values,
        }
        rendered = {}
        if "env" in texts:
            rendered["env"] = self._filled(texts["env"], scope)
        scope["env"] = _known_later(rendered.get("env", shared.get("env", {})))
        for name, compiled in texts.items():
            if name != "env":
                rendered[name] = self._filled(compiled, scope)
        if self._typed:
            rendered.update(self._variant(element, scope, problems))
        return rendered

    def _variant(
        self, element: Element, scope: interpolate.Scope, problems: list[Problem]
    ) -> Mapping[str, Any]:
        """The canonical form of the fields that had to be filled in before they were read."""
        values = self._filled(self._typed, scope, native=True)
        memo = repr(values)
        if memo not in self._variants:
            self._variants[memo] = self._validate_variant(values)
            for problem in self._variants[memo][1]:
                if not _is_reported(problem, problems):
                    problems.append(_for_element(problem, element))
        return self._variants[memo][0]

    def _validate_variant(
        self, values: Mapping[str, Any]
    ) -> tuple[Mapping[str, Any], list[Problem]]:
        model, problems = _validate({**self._value, **values}, self._kind)
        if model is None:
            return {}, problems
        model = _run(model)
        problems.extend(model.problems())
        problems.extend(self._address_problems(model))
        document = self._with_files(model, problems) if "files" in values else model.to_canonical()
        return {name: document[name] for name in values if name in document}, problems


def _is_reported(problem: Problem, known: Sequence[Problem]) -> bool:
    """
    Whether the place of the problem is reported already.

    One place with ten thousand wrong values is one mistake. The form of a text with a secret in
    it is judged when the secret is known, so a note there hides every error but an expression
    that can never be filled in.
    """
    there = [one for one in known if one.path == problem.path]
    if problem.code == "unknown-expression":
        return any(one.level is problem.level for one in there)
    return bool(there)


def _run(model: Document) -> Run:
    # Its model is the largest there is, and a tree in which no run has changed needs none of it.
    from fleetform.spec.kinds.run import Run

    assert isinstance(model, Run), model
    return model


def _known_later(env: Mapping[str, str | None]) -> dict[str, str]:
    """Variables whose value is taken over when the run is submitted stand for themselves."""
    return {name: f"${{{{ env.{name} }}}}" if text is None else text for name, text in env.items()}


def _for_element(problem: Problem, element: Element) -> Problem:
    where = f" (in the element `{element.identity}`)" if element.identity else ""
    return replace(problem, detail=problem.detail + where)
