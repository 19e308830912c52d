"""
Read, edit and format YAML: bytes of a file to nodes with positions, and changes that keep what people wrote.

**Reading** raises nothing, whatever the bytes: a tree may come from anybody's branch. Time and memory
are bounded by `Limits`, no tag is ever carried out, and a document that is broken does not take the
others of its file with it.

**Edits** (`edit`) are functions from text to text. Each finds places by the scanner of the reader
(`layout`), replaces as little as it can (`splice`), and reads the result again: unless that says
exactly what was intended, in every document of the file, the edit is refused. So a file with anchors,
odd indentation or several documents is either changed as asked or not at all. Comments, quotes,
blank lines and line ends need no special care that way: what is not touched stays as it is, byte
for byte. `files` puts a text into a file at once.

**Format** is the one way to write a document, so that no review has to discuss it. `field_order` knows
from the models which field comes first, `pages` writes a document anew with its comments where they
belong, and `format` puts a file together and proves that it still says the same.
"""

from fleetform.spec.bounds import DEFAULT, Limits
from fleetform.spec.syntax.read import Document, quote_lines, read_documents, read_stream

__all__ = ["DEFAULT", "Document", "Limits", "quote_lines", "read_documents", "read_stream"]
