"""
Exit codes: one table for every command, because pipelines branch on them.

Which of them an outcome means is `plan.exit`'s to say; this adds what only a command can meet, and
what people read about it in `--help` and in docs/reference/exit-codes.md.

A usage error is 1 and not click's 2, which here means "there are changes".
"""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence


class Exit(enum.IntEnum):
    """What a finished command says to the script that called it."""

    OK = 0
    """No error; of `apply` also: everything is as declared, and no run that it followed failed."""
    ERROR = 1
    """An error: of the command line, the configuration, the ledger, or the machine."""
    CHANGES = 2
    """`plan --detailed-exitcode`: there are changes."""
    HELD = 3
    """Something is blocked: it needs a permission, or waits for something."""
    RUN_FAILED = 4
    """A run failed, was aborted, is unschedulable, or its outcome is unknown."""
    STALE = 5
    """The plan is stale: what it touches has changed since it was made. Nothing was changed."""
    LOCKED = 6
    """Another process manages the environment."""
    POLICY = 7
    """A policy, a freeze window or an override forbids the change."""
    INTERRUPTED = 130
    """Ctrl-C: 128 + SIGINT, as in shells; of `apply` and `submit` also SIGTERM and SIGHUP."""
    BROKEN_PIPE = 141
    """The reader of the output closed it: 128 + SIGPIPE."""
    UNREACHABLE = 255
    """`exec`, `shell`, `proxy`: the host cannot be reached or refuses, or the connection was lost."""


_LOCKED = (Exit.LOCKED, "Another process manages the environment.")
_NOT_RUNNING = (Exit.ERROR, "The command line is wrong, or the run is not running.")

PLAN_CODES: Sequence[tuple[Exit, str]] = (
    (
        Exit.ERROR,
        (
            "An error, or the ledger is recovering or damaged. With --refresh or --refresh-only, also if a cloud was"
            " not asked."
        ),
    ),
    (Exit.HELD, "With --detailed-exitcode: a change is blocked."),
    (
        Exit.RUN_FAILED,
        (
            "With --detailed-exitcode: a run failed or was aborted earlier, is unschedulable, or its"
            " outcome is unknown."
        ),
    ),
    (Exit.CHANGES, "With --detailed-exitcode: there are changes."),
    (Exit.OK, "In all other cases."),
)
APPLY_CODES: Sequence[tuple[Exit, str]] = (
    (Exit.ERROR, "An error, a step failed, or the ledger is recovering or damaged."),
    (Exit.STALE, "The plan is stale: nothing was changed."),
    _LOCKED,
    (Exit.POLICY, "A policy, a freeze window or an override forbids the change."),
    (Exit.INTERRUPTED, "Ctrl-C, SIGTERM or SIGHUP: nothing is lost, and the runs continue."),
    (
        Exit.HELD,
        (
            "A change stays blocked, or a run that apply follows waits for a host that does not answer. With"
            " --detach, only a blocked change and a run whose account is missing on its hosts count."
        ),
    ),
    (
        Exit.RUN_FAILED,
        (
            "A run that apply followed, or that --target or --replace names, failed, was aborted, is"
            " unschedulable or unknown, or was stopped although its document does not say `state: stopped`."
            " With --detach, only a run that is unschedulable counts. Other failed runs do not count."
        ),
    ),
    (Exit.OK, "Everything is as declared; with --detach, the runs are submitted."),
)
SUBMIT_CODES: Sequence[tuple[Exit, str]] = (
    (Exit.ERROR, "An error, or a step failed."),
    (Exit.STALE, "The configuration or the ledger changed meanwhile: nothing was submitted."),
    _LOCKED,
    (Exit.POLICY, "A policy, a freeze window or an override forbids the run."),
    (Exit.INTERRUPTED, "Ctrl-C, SIGTERM or SIGHUP: the run continues."),
    (
        Exit.HELD,
        (
            "The run is blocked and was not submitted, for example because it needs a field that is not"
            " supported yet; or it waits for a host that does not answer, or with --detach for an account that"
            " is missing there."
        ),
    ),
    (
        Exit.RUN_FAILED,
        (
            "The run did not end in state `done`: it failed, was aborted, is unschedulable or unknown, or"
            " was stopped."
        ),
    ),
    (Exit.OK, "The run is done; with --detach, it is submitted."),
)
SERVE_CODES: Sequence[tuple[Exit, str]] = (
    (
        Exit.ERROR,
        (
            "An error; with --once, also if a document is invalid, a step failed, or the ledger is"
            " recovering."
        ),
    ),
    _LOCKED,
    (Exit.POLICY, "With --once: a freeze window or an override forbids the changes."),
    (
        Exit.HELD,
        "With --once: a change stays blocked, or a run waits for a host that does not answer.",
    ),
    (
        Exit.RUN_FAILED,
        (
            "With --once: a run that serve started, changed or followed failed, was aborted, is"
            " unschedulable or unknown, or was stopped although its document does not say"
            " `state: stopped`. Runs that failed earlier do not count."
        ),
    ),
    (Exit.OK, "With --once: everything is as declared. Without it: serve ended after a signal."),
)
STATUS_CODES: Sequence[tuple[Exit, str]] = (
    (Exit.ERROR, "The ledger cannot be read; with --exit-code, also if it is recovering."),
    (
        Exit.RUN_FAILED,
        "With --exit-code: a run failed, was aborted, is unschedulable, or its outcome is unknown.",
    ),
    (
        Exit.HELD,
        (
            "With --exit-code: the last apply of the whole environment left a change blocked, the last"
            " apply failed, a resource has drifted, a host does not answer, a run waits for an account that is"
            " missing on its hosts, or work is left and no controller is running. `fleetform drift` lists drift; drift that it calls `observed` does not"
            " count, but for hosts that are not in the ledger."
        ),
    ),
    (Exit.OK, "Otherwise."),
)
DRIFT_CODES: Sequence[tuple[Exit, str]] = (
    (
        Exit.ERROR,
        "An error, or a cloud was not asked: it does not answer, or refuses the credentials.",
    ),
    (Exit.CHANGES, "With --detailed-exitcode: there is drift."),
    (Exit.OK, "In all other cases."),
)
EXEC_CODES: Sequence[tuple[Exit, str]] = (
    (
        Exit.UNREACHABLE,
        "The host cannot be reached or refuses the command, or the connection was lost.",
    ),
    _NOT_RUNNING,
    (
        Exit.OK,
        (
            "Otherwise, the exit code is that of the command: 0 if it succeeded, 127 if there is no such"
            " program, 126 if it cannot be executed, 128 and the number of the signal that killed it."
        ),
    ),
)
ATTACH_CODES: Sequence[tuple[Exit, str]] = (
    (Exit.ERROR, "The command line is wrong, the run is over, or a local port is taken."),
    (Exit.INTERRUPTED, "Ctrl-C: the run continues."),
    (Exit.OK, "The run is done."),
    (
        Exit.RUN_FAILED,
        (
            "The run was stopped, aborted, is unschedulable or unknown. If a job failed, the exit code is that"
            " of the job, or 128 and the number of the signal that killed it."
        ),
    ),
)
SHELL_CODES: Sequence[tuple[Exit, str]] = (
    (Exit.UNREACHABLE, "The connection to the host was lost."),
    (Exit.ERROR, "An error, or a step failed."),
    (Exit.HELD, "The run is blocked and was not submitted."),
    (Exit.RUN_FAILED, "The run ended before a shell was opened."),
    (Exit.INTERRUPTED, "Ctrl-C while the run waited: it was stopped."),
    (Exit.OK, "Otherwise, the exit code is that of the shell."),
)
PROXY_CODES: Sequence[tuple[Exit, str]] = (
    (Exit.UNREACHABLE, "The host cannot be reached or refuses, or the connection was lost."),
    _NOT_RUNNING,
    (Exit.OK, "The client has left."),
)

CODES: Mapping[str, Sequence[tuple[Exit, str]]] = {
    "plan": PLAN_CODES,
    "apply": APPLY_CODES,
    "submit": SUBMIT_CODES,
    "serve": SERVE_CODES,
    "status": STATUS_CODES,
    "drift": DRIFT_CODES,
    "attach": ATTACH_CODES,
    "exec": EXEC_CODES,
    "shell": SHELL_CODES,
    "proxy": PROXY_CODES,
}
"""By command; the first row that fits holds."""
