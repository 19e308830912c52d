"""
A batch script of Slurm's as a task: what its directives ask for, and the script as its command.

`sbatch` reads a script, `options` decides what each directive is here, `amounts` turns what Slurm counts for
tasks and GPUs into what a node needs, `commands` takes over the script, `local_files` finds the files that it
uses, `needs` reports what else it takes to run, and `task` puts the document together.
"""

from fleetform.spec.convert.slurm.job import NO_PARTITIONS, Partitions
from fleetform.spec.convert.slurm.task import SlurmTask, convert_slurm

__all__ = ["NO_PARTITIONS", "Partitions", "SlurmTask", "convert_slurm"]
