"""A plan in words: text, Markdown and JSON print the same rows."""
