"""
What a job with `compat: slurm` finds of Slurm on its host: variables, and stand-ins for its commands.

`stand_ins` belongs to the agent. The other modules are the commands: they run inside of jobs, from a copy
in the agent's folder, so they import nothing but each other and the standard library.
"""
