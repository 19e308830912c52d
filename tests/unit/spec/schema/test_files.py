from __future__ import annotations

import fnmatch
import json

from fleetform.spec.schema import ALL_KINDS, MODELS, editor_files, generate
from fleetform.spec.schema.files import CATALOG_ENTRY, EDITORS


def test_each_kind_has_a_file():
    """And so has any document, for programs and for editors; beside them lies the catalogue's."""
    names = {f"{kind}.json" for kind in MODELS} | {ALL_KINDS}
    assert set(generate()) == names | {f"{EDITORS}/{ALL_KINDS}", CATALOG_ENTRY}


def test_an_environment_keeps_the_twin_of_any_document():
    """One file of one line, the one in `schemas/`."""
    (text,) = editor_files().values()
    assert text == generate()[f"{EDITORS}/{ALL_KINDS}"]
    assert text.count("\n") == 1


def test_a_file_has_what_its_readers_read():
    """An editor shows no classes of fields, and a program inserts no snippets."""
    files = generate()
    for keyword in ("x-class", "x-on-change", "x-carried-out-by", "x-unit"):
        assert f'"{keyword}"' in files["task.json"]
        assert f'"{keyword}"' not in files[f"{EDITORS}/{ALL_KINDS}"]
    for keyword in ("defaultSnippets", "markdownDescription", "patternErrorMessage"):
        assert f'"{keyword}"' not in files["task.json"]
        assert f'"{keyword}"' in files[f"{EDITORS}/{ALL_KINDS}"]


def test_the_catalogue_entry_claims_only_names_that_say_fleetform():
    """A public catalogue is asked about everybody's files."""
    entry = json.loads(generate()[CATALOG_ENTRY])
    assert set(entry) == {"name", "description", "fileMatch", "url"}
    assert entry["url"] == f"https://json.schemastore.org/{ALL_KINDS}"
    # The catalogue lists itself by these words, so they are not in a description.
    assert "schema" not in entry["description"].lower()
    matched = {
        name: any(fnmatch.fnmatch(name, pattern) for pattern in entry["fileMatch"])
        for name in ("train.fleetform.yaml", "a.fleetform.yml", "train.yaml", "environment.yaml")
    }
    assert list(matched.values()) == [True, True, False, False]
