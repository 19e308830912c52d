"""
Bytes of a YAML file to nodes with positions, and findings for what cannot be read.

Nothing in here raises, whatever the bytes: a tree may come from anybody's branch. Time and
memory are bounded by `Limits`, no tag is ever carried out, and a document that is broken does
not take the others of its file with it.
"""

from fleetform.spec.bounds import DEFAULT, Limits
from fleetform.spec.documents.source import quote_lines
from fleetform.spec.documents.stream import Document, read_documents, read_stream

__all__ = ["DEFAULT", "Document", "Limits", "quote_lines", "read_documents", "read_stream"]
