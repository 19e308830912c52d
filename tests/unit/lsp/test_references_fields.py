from __future__ import annotations

import typing

import pytest

from fleetform.lsp.references import ROWS, target_at
from fleetform.spec.environment import EnvironmentDocument
from fleetform.spec.kinds import KINDS, RESOURCES
from fleetform.spec.kinds.base import Model

PATHS = [(kind, path) for kind, rows in ROWS.items() for path in rows]
# One dependency may stand where several would: the model has only the longer form.
SHORTER = {"depends_on[].run": "depends_on.runs[].run"}


def models(annotation):
    if isinstance(annotation, type) and issubclass(annotation, Model):
        yield annotation
    for argument in typing.get_args(annotation):
        yield from models(argument)


def has_path(model, steps):
    name, *rest = steps
    field = model.model_fields.get(name.removesuffix("[]"))
    if field is None:
        return False
    return (
        not rest
        or any(has_path(one, rest) for one in models(field.annotation))
        or not list(models(field.annotation))
    )


@pytest.mark.parametrize(("kind", "path"), PATHS)
def test_a_row_is_about_a_field_that_exists(kind, path):
    """In a model of that kind; a mapping that a validator takes apart has none to look into."""
    candidates = [one.model for one in KINDS.values() if one.name == kind]
    candidates += [EnvironmentDocument] if kind == "environment" else []
    assert any(has_path(model, SHORTER.get(path, path).split(".")) for model in candidates)


@pytest.mark.parametrize(
    ("kind", "field", "named"),
    [
        (name, field, named)
        for name, kind in RESOURCES.items()
        for field, named in kind.refers.items()
    ],
)
def test_what_the_tree_looks_up_an_editor_can_follow(kind, field, named):
    """The loader's table is of canonical documents, this one of what people write."""
    written = {path.replace("[]", ""): target.kind for path, target in ROWS[kind].items()}
    assert written[field] == named


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        (("fleets",), "fleet"),
        (("fleets", 0), "fleet"),
        (("volumes", 1, "name"), "volume"),
        (("depends_on", "runs", 0, "run"), "run"),
        (("commands", 0), None),
        (("name",), None),
    ],
)
def test_a_place_in_a_run_names_a_kind(path, kind):
    """Positions in lists do not matter."""
    target = target_at("run", path)
    assert (target.kind if target else None) == kind
