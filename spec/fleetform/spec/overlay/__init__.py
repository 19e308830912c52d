"""
What an environment makes of documents it did not write: a base's, patched, with profiles.

A pass from documents to documents, before any of them is read as its kind. The order is fixed,
and each part sees what the one before it left: the base's documents (themselves the result of
this, where the base has a base); the environment's own beside them; its patches; and last the
profiles, under what all of that says of a run. So a patch may choose another profile or change
one, and what it sets wins over the profile.

All of it works on nodes, so that every value keeps the place where it was written and a finding
points there. Nothing here reads files; `tree.environments` does.
"""
