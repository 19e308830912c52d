"""
Run changes of one Pulumi stack in a process of its own.

`program` is the value that describes a stack, `stack` the caller's end, `runner` the process.
Only `automation` imports Pulumi, and only the process imports `automation`.
"""
