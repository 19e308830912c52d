"""The documents in dstack's own examples and documentation, where they are at hand."""

from __future__ import annotations

import yaml

from conformance import dstack_itself
from conformance.deviations import DOCUMENTS_OF_DSTACK
from fleetform.spec.tree import load_tree
from unit.spec.trees import ENVIRONMENT, write


def test_each_document_of_dstack_loads_with_the_same_meaning(tmp_path, summarise):
    """With a name where it has none, and with the files and fleets that it names."""
    examples = dstack_itself.examples()
    assert len(examples) == DOCUMENTS_OF_DSTACK
    for number, (path, document, _) in enumerate(examples):
        folder = tmp_path / f"{number}"
        write(folder, "environment.yaml", ENVIRONMENT)
        write(folder, "one.yaml", yaml.safe_dump({"name": "one", **document}, sort_keys=False))
        for name in _fleets(document):
            write(folder, f"fleet-{name}.yaml", f"type: fleet\nname: {name}\nlocal: true\n")
        for file in document.get("files", ()):
            local = file["local_path"] if isinstance(file, dict) else file.partition(":")[0]
            if not local.startswith(("/", "~", ".")):
                write(folder, local, "")
        assert load_tree(folder).errors == (), (path, document)
    different = [(one.path, dstack_itself.differences(one)) for one in examples]
    assert [one for one in different if one[1]] == []
    summarise(f"dstack's own documents: {len(examples)}, all load with the same meaning")


def _fleets(document: dict) -> list[str]:
    selected = [one["fleet"] for one in document.get("instances", ()) if "fleet" in one]
    return [name for name in [*document.get("fleets", ()), *selected] if "/" not in str(name)]
