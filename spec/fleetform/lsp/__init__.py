"""
The language server: what an editor can show that no JSON schema knows.

A schema judges one document by itself. What is said here takes the whole environment: findings
of `validate`, where a name is declared and who refers to it, renaming across files, names to
complete, and what a value comes to. Fields and choices are left to the schema and to the YAML
language server that reads it; both run side by side.

`server` is the only module that speaks the protocol's methods; the others are functions over
values: a text, a tree of nodes, an index.
"""
