"""
Files of other tools as documents of fleetform: dstack's files and Slurm's batch scripts.

`dstack` edits a file in place, so that its comments stay; `slurm` makes a task of a script; `tree`
goes over a file or folder. Each says in findings what is said
otherwise, what is lost, and what somebody has to decide. Nothing is guessed in silence.
"""

from fleetform.spec.convert.conversion import (
    Conversion,
    Copied,
    Placement,
    Written,
    copy_single,
    place,
)
from fleetform.spec.convert.dstack import convert_dstack
from fleetform.spec.convert.slurm import Partitions, convert_slurm
from fleetform.spec.convert.tree import convert

__all__ = [
    "Conversion",
    "Copied",
    "Partitions",
    "Placement",
    "Written",
    "convert",
    "convert_dstack",
    "convert_slurm",
    "copy_single",
    "place",
]
