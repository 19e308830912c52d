"""
Finds the document that an address means: its file, and which of that file's documents it is.

The loader says where a resource's document begins, and that is what counts: a name may be an
expression, and a file may have several documents of one name in error. What the loader makes no
resource of, such as a profile, is looked for file by file.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from fleetform.app.problems import EditProblem
from fleetform.model.figures import first_of
from fleetform.model.selection import split_correction
from fleetform.spec.desired import Declared, ResourceKey
from fleetform.spec.kinds import KINDS
from fleetform.spec.names import Address, nearest, parse_address
from fleetform.spec.nodes import plain
from fleetform.spec.syntax import read_documents

if TYPE_CHECKING:
    from fleetform.app.workspace import Workspace
    from fleetform.spec.desired import Loaded


Steps: TypeAlias = tuple[str | int, ...]

ENVIRONMENT: Final = "environment.yaml"


class Source(NamedTuple):
    """
    A document of the configuration and where it stands.

    Attributes:
        key: `run/sweep` for a sweep; `environment/NAME` for the environment's own.
        type: As its `type:` says.
        file: Relative to the configuration.
        number: Which document of the file, from 0.
        value: What it says there, as JSON values.
        declared: The resources that it came to, in order; empty for what makes none.
        is_of_base: It stands in a base, which other environments extend too.
        is_inherited: Something else than its own text may have a say in what it comes to.
    """

    key: ResourceKey
    type: str
    file: str
    number: int
    value: dict[str, Any]
    declared: tuple[Declared, ...] = ()
    is_of_base: bool = False
    is_inherited: bool = False


def find_source(
    workspace: Workspace, loaded: Loaded, address: str, *, kinds: Sequence[str] = ()
) -> Source:
    """
    Find what `address` means: `train`, `run/train`, `fleet/local`, `environment`.

    `kinds` are those that are looked among where the address says none; empty: all.

    Raises:
        EditProblem: There is no such document, more than one, or one of an element.
    """
    typed = _parsed(address)
    if typed.name == "environment" and not typed.kind and not kinds:
        return _environment(workspace, loaded)
    wanted = _kind_of(typed.kind)
    found = _declared(loaded, typed.name, (wanted,) if wanted else tuple(kinds))
    if not found:
        found = _looked_for(workspace, typed, wanted, kinds)
    if not found:
        raise _unknown(loaded, typed, wanted, kinds)
    if len(found) > 1:
        names = " or ".join(f"`{key}`" for key in sorted(found))
        raise EditProblem(f"`{address}` may be {names}", "add the kind")
    ((key, declared),) = found.items()
    source = _source(workspace, loaded, key, declared)
    if typed.is_element:
        raise _of_an_element(source, address)
    return source


def documents_of(text: str) -> list[Any]:
    """The documents of a text as JSON values, in order; errors are not reported."""
    nodes, _ = read_documents(text.encode("utf-8", "surrogatepass"), "")
    return [plain(node) for node in nodes]


def is_environment(document: Any) -> bool:
    return isinstance(document, dict) and document.get("type") == "environment"


def value_at(value: Any, path: Steps) -> Any:
    """The value at a path; None where there is none, which means the same as nothing said."""
    for step in path:
        try:
            value = value[step]
        except (KeyError, IndexError, TypeError):
            return None
    return value


def written_path(document: Any, path: Steps, value: Any, *, absent: Any) -> tuple[Steps, Any]:
    """
    Where and how a document that is written like this one says `value` at `path`.

    `env` may be a list of `NAME=VALUE`, whose items are found by their names, and a number in a
    path leads into a list. `absent` stands for no value.
    """
    if len(path) == 2 and path[0] == "env" and isinstance(value_at(document, ("env",)), list):
        items = document["env"]
        name = str(path[1])
        place = next(
            (
                number
                for number, item in enumerate(items)
                if isinstance(item, str) and item.partition("=")[0] == name
            ),
            len(items),
        )
        return ("env", place), absent if value is absent else f"{name}={_text(value)}"
    steps: list[str | int] = []
    for step in path:
        is_list = isinstance(value_at(document, tuple(steps)), list)
        is_number = isinstance(step, str) and step.isascii() and step.isdigit()
        steps.append(int(step) if is_list and is_number else step)
    return tuple(steps), value


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


# -- among what the loader made ---------------------------------------------------------------


def _parsed(address: str) -> Address:
    try:
        return parse_address(address)
    except ValueError as problem:
        raise EditProblem(*split_correction(str(problem), "write `run/train`")) from None


def _kind_of(typed: str) -> str:
    """`task/train` means the run, as in a patch."""
    kind = KINDS.get(typed)
    return kind.name if kind is not None else typed


def _declared(loaded: Loaded, name: str, kinds: Sequence[str]) -> dict[ResourceKey, list[Declared]]:
    assert loaded.desired is not None, "editing refuses a configuration without an environment"
    desired = loaded.desired
    found: dict[ResourceKey, list[Declared]] = {}
    for declared in (*desired.resources.values(), *_beyond(loaded)):
        own = declared.parent or declared.key.name
        if own == name and (not kinds or declared.key.kind in kinds):
            found.setdefault(ResourceKey(declared.key.kind, own), []).append(declared)
    return found


def _beyond(loaded: Loaded) -> Iterator[Declared]:
    assert loaded.desired is not None
    return (one.declared for one in loaded.desired.beyond.values())


def _source(
    workspace: Workspace, loaded: Loaded, key: ResourceKey, declared: list[Declared]
) -> Source:
    place = declared[0].place
    for number, value, line in _numbered(workspace, place.file):
        if line == place.line and isinstance(value, dict):
            is_of_base = _is_of_base(loaded, place.file)
            return Source(
                key,
                str(value.get("type", "")),
                place.file,
                number,
                value,
                tuple(declared) if declared[0].digest else (),
                is_of_base,
                is_of_base or _is_overlaid(workspace) or "profile" in value,
            )
    raise EditProblem(
        f"{key} is an entry of a list in {place.file}, and not a separate document",
        "edit it by hand",
    )


def _is_of_base(loaded: Loaded, file: str) -> bool:
    return any(file.startswith(f"{base}/") for base in loaded.bases)


def _is_overlaid(workspace: Workspace) -> bool:
    """Whether patches may change what the environment's own documents say."""
    return any(
        is_environment(value) and bool(value.get("patches"))
        for _, value, _ in _numbered(workspace, ENVIRONMENT)
    )


def _numbered(workspace: Workspace, file: str) -> list[tuple[int, Any, int]]:
    """The documents of a file: number, value, line of the first character."""
    try:
        data = (workspace.root / file).read_bytes()
    except OSError as problem:
        raise EditProblem(
            f"{file} cannot be read: {problem.strerror}", "run the command again"
        ) from problem
    nodes, _ = read_documents(data, file)
    return [(number, plain(node), node.place.line) for number, node in enumerate(nodes)]


# -- among the files --------------------------------------------------------------------------


def _environment(workspace: Workspace, loaded: Loaded) -> Source:
    assert loaded.desired is not None
    name = loaded.desired.environment.name
    for number, value, _ in _numbered(workspace, ENVIRONMENT):
        if is_environment(value):
            key = ResourceKey("environment", name)
            return Source(key, "environment", ENVIRONMENT, number, value)
    raise EditProblem(f"{ENVIRONMENT} has no environment", "run the command again")


def _looked_for(
    workspace: Workspace, typed: Address, wanted: str, kinds: Sequence[str]
) -> dict[ResourceKey, list[Declared]]:
    """Documents that declare no resource of their own: a profile is a part of runs."""
    from fleetform.spec.findings import Place
    from fleetform.spec.tree.walk import walk

    found: dict[ResourceKey, list[Declared]] = {}
    for file in walk(workspace.root).files:
        for _, value, line in _numbered(workspace, file):
            if not isinstance(value, dict) or value.get("name") != typed.name:
                continue
            kind = _kind_of(str(value.get("type", "")))
            if wanted in {"", kind} and (not kinds or kind in kinds):
                key = ResourceKey(kind, typed.name)
                stand_in = Declared(key, kind, {}, "", "", "", place=Place(file, line))
                found.setdefault(key, []).append(stand_in)
    return found


# -- errors ----------------------------------------------------------------------------------


def _unknown(loaded: Loaded, typed: Address, wanted: str, kinds: Sequence[str]) -> EditProblem:
    assert loaded.desired is not None
    asked = (wanted,) if wanted else tuple(kinds)
    names = {
        str(ResourceKey(one.key.kind, one.parent or one.key.name))
        for one in (*loaded.desired.resources.values(), *_beyond(loaded))
        if not asked or one.key.kind in asked
    }
    word = asked[0] if len(asked) == 1 else "document"
    close = nearest(f"{wanted or word}/{typed.name}", names)
    if close:
        advice = f"did you mean `{close}`?"
    elif names:
        advice = f"there is {first_of([f'`{name}`' for name in sorted(names)], 5)}"
    else:
        advice = "the configuration has none"
    return EditProblem(f"the configuration has no {word} `{typed.name}`", advice)


def _of_an_element(source: Source, address: str) -> EditProblem:
    return EditProblem(
        f"`{address}` is an element of {source.key}, and the document declares all of them",
        f"name the sweep or array, `{source.key}`",
    )
