"""
Codes of findings about documents, and the one sentence that goes with each.

A code is for scripts and for the reference, so it never changes its meaning; what is wrong
with the document at hand stands in the finding's detail.
"""

from __future__ import annotations

from collections.abc import Mapping

SUMMARIES: Mapping[str, str] = {
    "abstract-environment": "The environment is a base for others",
    "bad-array": "An array's indices cannot be read",
    "bad-base": "The base of an environment cannot be used",
    "bad-name": "A name cannot be used",
    "bad-patch": "A patch cannot be read",
    "bad-path": "A path cannot be used",
    "bad-tag": "A tag's name cannot be used",
    "bad-uid": "The environment's uid cannot be used",
    "bad-value": "A value cannot be used",
    "bad-variable": "An environment variable cannot be set",
    "beyond-quota": "The run is larger than a quota",
    "contradiction": "Two fields contradict each other",
    "declared-in-base": "The base declares this resource already",
    "dependency-cycle": "Runs wait for each other",
    "duplicate-name": "Two documents declare the same resource",
    "element-mismatch": "Elements have nothing to be matched with",
    "empty-document": "The document is empty",
    "empty-field": "A field has no value",
    "empty-tree": "The tree declares nothing",
    "environment-elsewhere": "An environment is declared in the wrong place",
    "file-changed": "A file changed while it was read",
    "file-missing": "A file does not exist",
    "file-outside": "A path leads out of the tree",
    "file-unreadable": "A file cannot be read",
    "files-too-large": "The files of a run are too large",
    "host-claimed-twice": "Two fleets claim the same host",
    "missing-environment": "The tree does not say which environment it is",
    "missing-field": "A field is missing",
    "missing-type": "The document does not say what it declares",
    "mount-in-the-way": "A mount is in the way of something else",
    "never-placed": "No declared fleet can ever run this",
    "no-effect": "This has no effect yet",
    "no-interconnect": "Nothing joins the nodes of the run",
    "not-a-document": "This is not a document",
    "not-carried-out": "This is not carried out yet",
    "patch-failed": "A patch does not fit the document",
    "patch-matches-nothing": "A patch matches no document",
    "path-claimed-twice": "Two resources claim the same path",
    "queue-refuses": "The queue would never take the run",
    "reservations-overlap": "Two reservations keep the same hosts",
    "said-twice": "Something is said twice",
    "secret-in-clear": "A secret stands in the tree",
    "too-many-elements": "The document makes too many elements",
    "too-many-findings": "The file has more mistakes than are shown",
    "too-much-text": "The document comes to too much text",
    "tree-too-large": "The tree is too large",
    "two-defaults": "Two documents are the default",
    "undeclared-reference": "Something that is referred to is not declared",
    "unknown-expression": "An expression cannot be resolved",
    "unknown-field": "A field does not exist",
    "unknown-parameter": "A parameter does not exist",
    "unknown-reference": "Something that is referred to does not exist",
    "unknown-type": "There is no such kind of document",
    "unused": "Nothing uses this",
    "wrong-type": "A value is not of the field's type",
}
