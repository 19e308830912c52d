"""
What is wrong between documents: one check a module, in the order of `order`'s table.

A check sees the catalogue and yields each problem with the entry that it is about. It tells
what it alone knows: a name that does not exist is told by `unknown`, and everybody else passes
over it.
"""
