"""A plan's steps carried out: in their order, many at once, each with its intent written first."""
