"""
What happens next to a run, and what is sent to its hosts: pure functions of rows and records.

`advance` decides, `as_ended` carries an end out on the row, `due` says which message is still to be sent, `job_request`
writes it, `exit_summary` says it to people.
"""

from fleetform.lifecycle.ending import as_ended, exit_summary
from fleetform.lifecycle.node_order import must_wait
from fleetform.lifecycle.progress import PREPARE_TIMEOUT_MS, START_TIMEOUT_MS, advance
from fleetform.lifecycle.sending import (
    LOG_HEAD_BYTES,
    LOG_TAIL_BYTES,
    Due,
    due,
    job_request,
)
from fleetform.lifecycle.slurm import SlurmFacts

__all__ = [
    "LOG_HEAD_BYTES",
    "LOG_TAIL_BYTES",
    "PREPARE_TIMEOUT_MS",
    "START_TIMEOUT_MS",
    "Due",
    "SlurmFacts",
    "advance",
    "as_ended",
    "due",
    "exit_summary",
    "job_request",
    "must_wait",
]
