"""
The one way to write a document, so that nobody has to talk about it in a review.

`order` knows from the models which field comes first, `pages` writes a document anew with its
comments where they belong, `text` puts a file together and proves that it still says the same,
`payload` tells which files of a tree are a run's data, and `files` goes over a tree.
"""

from fleetform.spec.format.files import FormattedFile, format_files
from fleetform.spec.format.text import Formatted, format_bytes, format_text

__all__ = ["Formatted", "FormattedFile", "format_bytes", "format_files", "format_text"]
