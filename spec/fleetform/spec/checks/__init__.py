"""
Check documents against each other, in the order of `order`'s table.

A check sees the catalogue and yields each problem with the entry that it is about. It reports what
it alone knows: a name that does not exist is reported by `check_unknown`, and every other check
passes over it.
"""
