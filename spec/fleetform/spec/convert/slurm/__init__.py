"""
A batch script of Slurm's as a task: what its directives ask for, and the script as its command.

`sbatch` reads a script, `options` says in one table what each directive is here, `amounts` turns what
Slurm counts for tasks and GPUs into what a node needs, `commands` takes over the script, and
`task` puts the document together.
"""

from fleetform.spec.convert.slurm.task import SlurmTask, convert_slurm

__all__ = ["SlurmTask", "convert_slurm"]
