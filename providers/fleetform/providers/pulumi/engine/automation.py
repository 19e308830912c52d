"""
Calls of the Pulumi Automation API for one stack.

It runs in the runner's process. The program is built from its value, events are passed on as our
changes, and failures are collected as values. Secrets never leave the engine: states are exported
with encrypted values, and outputs are read from the state instead of by a call that decrypts them.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pulumi
from pulumi import automation

from fleetform.providers.pulumi.engine.changes import Change, change_of
from fleetform.providers.pulumi.engine.failures import Failure, FailureKind, failure, failure_of
from fleetform.providers.pulumi.engine.installation import pulumi_program
from fleetform.providers.pulumi.engine.program import (
    OUTPUT,
    PROVIDER_TYPE,
    SECRET,
    Program,
    references,
)
from fleetform.providers.pulumi.engine.stack_settings import PROJECT, StackSettings, urn

__all__ = ["Engine", "EngineFailed"]

_LOCK_OWNER = re.compile(r"created by [^@\s]+@(\S+) \(pid")

Report = Callable[[Change], None]


class EngineFailed(Exception):
    """A call failed as a whole; no single resource is to blame."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.what)
        self.failure = failure


class Engine:
    """One stack, and the CLI that runs for it; `interrupt` may be called from another thread."""

    def __init__(self, settings: StackSettings, inherited: int) -> None:
        self._settings = settings
        self._folder = settings.folder / "work"
        self._folder.mkdir(mode=0o700, exist_ok=True)
        if settings.backend.startswith("file://"):
            Path(settings.backend.removeprefix("file://").partition("?")[0]).mkdir(
                parents=True, exist_ok=True
            )
        try:
            self._command = _Command(inherited)
        except FileNotFoundError:
            missing = failure(FailureKind.MISSING_CLI, where=settings.name)
            raise EngineFailed(missing) from None
        self._stack_made: automation.Stack | None = None
        self._deployment: dict[str, Any] | None = None
        """As the state has it; None: it is not known, or a change has begun since."""

    def interrupt(self) -> None:
        """Let the engine finish the calls that have begun; it starts no further calls."""
        self._command.interrupt()

    def resume(self) -> None:
        """Forget an interrupt: it was for the request before."""
        self._command.is_interrupted = False

    def preview(self, program: Program, report: Report) -> None:
        """Report each change, and save the plan that `up` is bound to."""
        plan = self._plan(program)
        plan.unlink(missing_ok=True)
        failures = self._call(
            lambda stack, listen: stack.preview(
                program=_function(program),
                plan=str(plan),
                replace=self._recreated(program),
                on_event=listen,
                color="never",
            ),
            report,
        )
        _raise_first(failures)

    def up(
        self, program: Program, report: Report, *, parallel: int, continue_on_error: bool
    ) -> list[Failure]:
        """
        Apply the plan of the preview of the same program; returns what failed.

        A stack that was created just now needs no preview: all that can happen is the creation of
        what the program has. A preview binds there too.
        """
        plan, plans = self._plan(program), list(self._settings.folder.glob("*.plan.json"))
        state = self.export_state()
        if plan not in plans and (state or plans):
            raise EngineFailed(failure(FailureKind.UNPLANNED, where=self._settings.name))
        if state.get("pending_operations"):
            raise EngineFailed(failure(FailureKind.PENDING, where=self._settings.name))
        failures = self._change(
            lambda stack, listen: stack.up(
                program=_function(program),
                plan=str(plan) if plan in plans else None,
                replace=self._recreated(program),
                parallel=parallel,
                continue_on_error=continue_on_error,
                on_event=listen,
                color="never",
                show_secrets=False,
            ),
            report,
        )
        # The state has changed, so every plan of it is stale.
        for stale in plans:
            stale.unlink()
        return failures

    def refresh(self, program: Program, report: Report) -> None:
        """Read from the cloud what each resource of the state is now."""
        failures = self._change(
            lambda stack, listen: stack.refresh(
                program=_function(program),
                run_program=True,
                on_event=listen,
                color="never",
                show_secrets=False,
            ),
            report,
        )
        _raise_first(failures)

    def destroy(self, report: Report) -> list[Failure]:
        """Delete all resources of the state."""
        return self._change(
            lambda stack, listen: stack.destroy(on_event=listen, color="never", show_secrets=False),
            report,
        )

    def export_state(self) -> dict[str, Any]:
        """Return the deployment as the state has it, with secrets encrypted; empty: of a new stack."""
        with self._engine_failures():
            self._stack()
            if self._deployment is None:
                done = self._run("stack", "export")
                self._deployment = dict(json.loads(done)["deployment"] or {})
        return self._deployment

    def import_state(self, deployment: Mapping[str, Any]) -> None:
        """Replace the deployment in the state."""
        path = self._settings.folder / "import.json"
        path.write_text(json.dumps({"version": 3, "deployment": deployment}), encoding="utf-8")
        with self._engine_failures():
            self._stack()
            self._deployment = None
            self._unlocked(lambda: self._run("stack", "import", "--file", str(path)))
        path.unlink()

    def create(self) -> None:
        """Create the stack again if the state has lost it."""
        _settings_file(str(self._folder), self._settings.name).unlink(missing_ok=True)
        self._stack_made = None
        with self._engine_failures():
            self._stack()

    def remove(self) -> None:
        """Remove the stack with its history; it must be empty."""
        with self._engine_failures():
            self._stack()
            self._unlocked(lambda: self._run("stack", "rm", "--yes", named=False))
        self._stack_made = self._deployment = None

    # -- calls ------------------------------------------------------------------------------------

    def _change(
        self,
        call: Callable[[automation.Stack, Callable[[Any], None]], Any],
        report: Report,
    ) -> list[Failure]:
        """Run a call that changes the state; returns the failures of resources."""
        self._deployment = None
        return self._call(call, report)

    def _call(
        self,
        call: Callable[[automation.Stack, Callable[[Any], None]], Any],
        report: Report,
    ) -> list[Failure]:
        """Run the call; returns the failures of resources, raises one of the whole."""
        messages: dict[str, list[str]] = {}

        def listen(event: Any) -> None:
            diagnostic = event.diagnostic_event
            if diagnostic is not None and diagnostic.severity == "error":
                messages.setdefault(diagnostic.urn or "", []).append(diagnostic.message)
            change = change_of(event)
            if change is not None:
                report(change)

        try:
            with self._engine_failures():
                stack = self._stack()
                self._unlocked(lambda: call(stack, listen))
        except EngineFailed as failed:
            if isinstance(failed.__cause__, _CommandKilled):
                # It is not known which of the others exist.
                raise
            found = [
                failure_of("\n".join(texts), where=_where(urn, self._settings.name))
                for urn, texts in sorted(messages.items())
            ]
            # The engine repeats the failures of resources as one of the stack.
            about_resources = [one for one in found if one.where != self._settings.name]
            if not found:
                raise
            return about_resources or found
        return []

    def _unlocked(self, call: Callable[[], Any]) -> None:
        """Run the call; delete locks that dead processes have left, and run it again."""
        try:
            call()
        except automation.ConcurrentUpdateError as error:
            owners = set(_LOCK_OWNER.findall(str(error)))
            here = {socket.gethostname()}
            if not (self._settings.breaks_locks or owners <= here):
                raise
            self._run("cancel", "--yes", named=False)
            call()

    @contextlib.contextmanager
    def _engine_failures(self) -> Iterator[None]:
        try:
            yield
        except (automation.errors.CommandError, RuntimeError) as error:
            if self._command.is_interrupted or isinstance(error, _CommandKilled):
                why = str(error) if isinstance(error, _CommandKilled) else ""
                interrupted = failure(FailureKind.INTERRUPTED, where=self._settings.name, why=why)
                raise EngineFailed(interrupted) from error
            raise EngineFailed(failure_of(str(error), where=self._settings.name)) from error

    def _stack(self) -> automation.Stack:
        if self._stack_made is None:
            workspace = _Workspace(
                work_dir=str(self._folder),
                secrets_provider="passphrase",
                project_settings=automation.ProjectSettings(name=PROJECT, runtime="python"),
                pulumi_command=self._command,
            )
            self._stack_made = self._create_or_select(workspace)
        return self._stack_made

    def _create_or_select(self, workspace: _Workspace) -> automation.Stack:
        """
        Select a stack that has settings in the work directory, and create any other.

        A stack that has some and no state has lost it: a new one would create everything again, so
        the next command fails instead. To look for each new stack first would cost a start of the CLI.
        """
        settings = _settings_file(str(self._folder), self._settings.name)
        # Starts no CLI, and so needs no stack: see `_Workspace`.
        made = automation.Stack.select(self._settings.name, workspace)
        if not settings.exists():
            try:
                self._unlocked(lambda: automation.Stack.create(self._settings.name, workspace))
            except automation.StackAlreadyExistsError:
                pass  # It has settings elsewhere, or has lost them: the engine reads the salt from the state.
            else:
                self._deployment = {}
        return made

    def _run(self, *words: str, named: bool = True) -> str:
        name = ["--stack", self._settings.name] if named else [self._settings.name]
        return self._command.run([*words, *name], str(self._folder), {}).stdout

    def _recreated(self, program: Program) -> list[str]:
        stack = self._settings.name
        return [urn(stack, one.type, one.name) for one in program.resources if one.recreate]

    def _plan(self, program: Program) -> Path:
        return self._settings.folder / f"{program.digest}.plan.json"


def _where(urn: str, stack: str) -> str:
    return urn.rpartition("::")[2] if urn and "::pulumi:pulumi:Stack::" not in urn else stack


def _raise_first(failures: list[Failure]) -> None:
    if failures:
        raise EngineFailed(failures[0])


class _Workspace(automation.LocalWorkspace):
    def select_stack(self, stack_name: str) -> None:
        """Start no CLI: each command names the stack."""

    def stack_outputs(self, stack_name: str) -> Any:
        """Return none: programs export none, and the library would ask for all of them in clear."""
        return {}


def _settings_file(folder: str, stack: str) -> Path:
    return Path(folder) / f"Pulumi.{stack}.yaml"


class _CommandKilled(RuntimeError):
    """Something killed the CLI, such as a machine without memory."""

    def __init__(self, number: int) -> None:
        super().__init__(f"the Pulumi CLI was killed by signal {number}")


class _Command(automation.PulumiCommand):
    """The CLI; it and its plugins inherit the lock of the stack."""

    def __init__(self, inherited: int) -> None:
        found = pulumi_program()
        if found is None:
            raise FileNotFoundError("pulumi")
        super().__init__()
        self.command = found
        self._inherited = inherited
        self._process: subprocess.Popen[str] | None = None
        self._guard = threading.Lock()
        self.is_interrupted = False

    def interrupt(self) -> None:
        with self._guard:
            self.is_interrupted = True
            if self._process is not None:
                self._process.send_signal(signal.SIGINT)

    def run(
        self,
        args: list[str],
        cwd: str,
        additional_env: Mapping[str, str],
        on_output: Any = None,
        on_error: Any = None,
    ) -> automation.CommandResult:
        with self._guard:
            if self.is_interrupted:
                raise automation.CommandError(automation.CommandResult("", "interrupted", 130))
            process = self._process = subprocess.Popen(
                [self.command, "--non-interactive", *args],
                cwd=cwd,
                env={**os.environ, **additional_env, "PULUMI_AUTOMATION_API": "true"},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                pass_fds=(self._inherited,),
                encoding="utf-8",
            )
        stdout, stderr = process.communicate()
        with self._guard:
            self._process = None
        if process.returncode < 0:
            raise _CommandKilled(-process.returncode)
        result = automation.CommandResult(stdout, stderr, process.returncode)
        if process.returncode:
            raise automation.errors.create_command_error(result)
        return result


# -- programs -------------------------------------------------------------------------------------


def _function(program: Program) -> Callable[[], None]:
    """Return the inline program of a value."""

    def declare() -> None:
        made: dict[str, pulumi.CustomResource] = {}
        providers: dict[str, pulumi.ProviderResource] = {}
        read = [output for one in program.resources for output in references(one.properties)]
        for one in program.resources:
            package = one.type.removeprefix(PROVIDER_TYPE).partition(":")[0]
            options = pulumi.ResourceOptions(
                protect=one.protect or None,
                depends_on=[made[name] for name in one.depends_on],
                provider=providers[one.provider] if one.provider else None,
                ignore_changes=list(one.ignore),
                replace_on_changes=list(one.replace_on),
                delete_before_replace=one.delete_before_replace or None,
                import_=one.import_id or None,
                version=program.plugin_versions.get(package),
            )
            properties = {name: _input(value, made) for name, value in one.properties.items()}
            # An output is only there for a property that was named; None names it without a value.
            for name, output in read:
                if name == one.name and output != "id":
                    properties.setdefault(output, None)
            if one.is_provider:
                provider = pulumi.ProviderResource(package, one.name, properties, options)
                made[one.name] = providers[one.name] = provider
            else:
                made[one.name] = pulumi.CustomResource(one.type, one.name, properties, options)

    return declare


def _input(value: Any, made: Mapping[str, pulumi.CustomResource]) -> Any:
    if isinstance(value, Mapping):
        if OUTPUT in value:
            name, output = value[OUTPUT]
            return made[name].id if output == "id" else getattr(made[name], output)
        if SECRET in value:
            return pulumi.Output.secret(_input(value[SECRET], made))
        return {key: _input(inner, made) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_input(inner, made) for inner in value]
    return value
