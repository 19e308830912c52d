"""
Decides which facts about a host are problems, and what a person does about each.

An error keeps jobs from running there; a warning is a limit that a person should know. The facts
come from `providers.contract.checks`; this reads no host and no clock.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from fleetform.model import figures
from fleetform.model.account import ROOT, account_obstacle, job_account
from fleetform.model.instance import LOCAL, Instance, InstanceState, missing_devices_text

if TYPE_CHECKING:
    from fleetform.providers.contract.checks import AgentFacts, HostChecked, HostFacts

__all__ = [
    "HostFinding",
    "HostResult",
    "HostTarget",
    "Severity",
    "evaluate",
    "mark_same_machines",
    "unreached",
]

CLOCK_MS = 2_000
"""Below it clocks differ on well-kept hosts; above it times in logs of two hosts mislead."""

FREE_BYTES = 1 << 30
"""The agent needs 1 MB, and a job's output and files need the rest."""

FREE_FILES = 10_000
OPEN_FILES = 4_096
"""A data loader with many workers opens some thousand files."""

_NETWORK_FILE_SYSTEMS = frozenset(
    {"9p", "afs", "beegfs", "ceph", "cifs", "fuse.glusterfs", "fuse.sshfs", "gpfs", "lustre"}
    | {"nfs", "nfs4", "smb3"}
)


_ELSEWHERE = (
    "set `agent_dir` in `ssh_config` of the fleet to a folder on a local disk, such as"
    " /var/lib/fleetform"
)


class Severity(enum.StrEnum):
    OK = "ok"
    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class HostFinding:
    """One fact with its meaning; `advice` is empty where there is nothing to do."""

    topic: str
    severity: Severity
    text: str
    advice: str = ""


@dataclass(frozen=True, slots=True)
class HostTarget:
    """
    A declared host.

    `uid` is that of the instance in the ledger, or empty before the first apply. `declared` is the
    declared capacity in canonical form.
    """

    fleet: str
    name: str
    provider: str
    uid: str = ""
    declared: Mapping[str, Any] = field(default_factory=dict)
    run_as: str = ""
    """The field of the fleet; empty: as `model.account` says."""


@dataclass(frozen=True, slots=True)
class HostResult:
    """
    What the check of one host found.

    `severity` is the worst of the findings. `facts` is None where nothing could be read; in it
    `environment_uid` of an agent is `this` or `another`.
    """

    fleet: str
    host: str
    provider: str
    where: str
    severity: Severity
    findings: tuple[HostFinding, ...]
    facts: HostFacts | None


def evaluate(target: HostTarget, checked: HostChecked, environment_uid: str) -> HostResult:
    """Judge a host that was reached."""
    facts = checked.facts
    if facts is None:
        return _result(target, checked.where, [_error(checked.problem, checked.advice)])
    findings = [
        *_account(facts),
        *_jobs(target, facts),
        *_system(facts),
        *_capacity(target, facts),
        *_folder(facts),
        *_limits(facts),
        *_logout(facts),
        *_service(target, facts),
        *_gpu(target, facts),
        *_clock(checked, facts),
        *_agent(target, checked, facts, environment_uid),
    ]
    return replace(_result(target, checked.where, findings), facts=_shown(facts, environment_uid))


def _shown(facts: HostFacts, environment_uid: str) -> HostFacts:
    """Leave out uids of environments: with one, weak secrets can be found from their versions."""
    agents = tuple(
        replace(
            one, environment_uid="this" if one.environment_uid == environment_uid else "another"
        )
        for one in facts.agents
    )
    return replace(facts, agents=agents)


def unreached(target: HostTarget, message: str, advice: str = "", *, where: str = "") -> HostResult:
    """Judge a host that was not reached; `where` is its declared address."""
    return _result(target, where, [_error(message, advice)])


def mark_same_machines(results: Sequence[HostResult]) -> list[HostResult]:
    """Warn where two declared hosts are one machine, whose resources would be allocated twice."""
    first: dict[tuple[str, str], HostResult] = {}
    marked = []
    for result in results:
        facts = result.facts
        if facts is None or not facts.machine_id or not facts.boot_id:
            marked.append(result)
            continue
        other = first.setdefault((facts.machine_id, facts.boot_id), result)
        if other is result:
            marked.append(result)
            continue
        finding = HostFinding(
            "machine",
            Severity.WARNING,
            f"it is the same machine as {other.host} of fleet {other.fleet}; its resources would be"
            " allocated twice",
            "remove one of the two from the configuration",
        )
        marked.append(
            replace(
                result,
                severity=_worst((*result.findings, finding)),
                findings=(*result.findings, finding),
            )
        )
    return marked


def _result(target: HostTarget, where: str, findings: Sequence[HostFinding]) -> HostResult:
    return HostResult(
        target.fleet,
        target.name,
        target.provider,
        where,
        _worst(findings),
        tuple(findings),
        None,
    )


def _worst(findings: Sequence[HostFinding]) -> Severity:
    found = {one.severity for one in findings}
    order = (Severity.ERROR, Severity.WARNING)
    return next((one for one in order if one in found), Severity.OK)


def _error(message: str, advice: str) -> HostFinding:
    return HostFinding("connection", Severity.ERROR, message, advice)


# -- the rules, in the order in which people read them --------------------------------------------


def _account(facts: HostFacts) -> Iterator[HostFinding]:
    rights = "root" if facts.is_root else "sudo without a password" if facts.has_sudo else "no sudo"
    name = facts.account if facts.is_root else f"{facts.account}, {rights}"
    yield HostFinding("account", Severity.OK, name)


def _jobs(target: HostTarget, facts: HostFacts) -> Iterator[HostFinding]:
    """Say which account jobs will run as, or why none can start."""
    instance = Instance(
        uid=target.uid,
        name=target.name,
        fleet=target.fleet,
        number=0,
        state=InstanceState.READY,
        provider=target.provider,
        run_as=target.run_as,
        agent_account=ROOT if facts.is_root else facts.account,
        accounts=None if facts.has_person else frozenset(),
    )
    if why := account_obstacle(instance, facts.person):
        missing = facts.is_root and not facts.has_person and facts.person != ROOT
        advice = f"run `useradd --create-home {facts.person}` on the host" if missing else ""
        yield HostFinding("jobs", Severity.ERROR, why, advice)
        return
    account = job_account(instance, facts.person) or instance.agent_account
    why = "" if facts.is_root else " for every person, because the agent is not root"
    yield HostFinding(
        "jobs", Severity.OK, f"run as {account}{why if target.provider != LOCAL else ''}"
    )


def _system(facts: HostFacts) -> Iterator[HostFinding]:
    yield HostFinding(
        "system",
        Severity.OK,
        f"{facts.system}, {facts.machine}, kernel {facts.kernel},"
        f" {figures.cpus(facts.cpus * 1000)}, {figures.size(facts.memory_bytes)}",
    )
    yield HostFinding("python", Severity.OK, f"{facts.python_version} at {facts.python}")
    if facts.open_files_max < OPEN_FILES:
        yield HostFinding(
            "open files",
            Severity.WARNING,
            f"a process may open {facts.open_files_max} files; jobs with many data loaders need more",
            f"have an administrator add `{facts.account} hard nofile 1048576` to"
            " /etc/security/limits.conf",
        )


_CORRECT_CAPACITY = "correct `capacity:` of the host; if it is declared on purpose, as for a trial without GPUs, leave it"


def _capacity(target: HostTarget, facts: HostFacts) -> Iterator[HostFinding]:
    """Compare what the configuration declares with what the host has; GPUs have a rule of their own."""
    cpus, memory = target.declared.get("cpu"), target.declared.get("memory")
    if isinstance(cpus, int) and cpus > facts.cpus * 1000:
        yield HostFinding(
            "capacity",
            Severity.WARNING,
            f"the configuration declares {figures.cpus(cpus)}, and the account may use"
            f" {figures.cpus(facts.cpus * 1000)}, so jobs share them",
            _CORRECT_CAPACITY,
        )
    if isinstance(memory, int) and memory > facts.memory_bytes:
        yield HostFinding(
            "capacity",
            Severity.WARNING,
            f"the configuration declares {figures.size(memory)} of memory, and the host has"
            f" {figures.size(facts.memory_bytes)}, so jobs may be killed for want of it",
            _CORRECT_CAPACITY,
        )


def _folder(facts: HostFacts) -> Iterator[HostFinding]:
    folder = facts.folder
    where = f"{folder.nearest} ({folder.file_system})"
    if not folder.is_folder:
        text = f"{folder.nearest} is not a folder, and {folder.path} must be created there"
        yield HostFinding("home", Severity.ERROR, text, f"move {folder.nearest} away")
    elif folder.is_read_only:
        text = f"{where} is on a read-only file system"
        advice = f"remount {folder.mount} with `rw`, or {_ELSEWHERE}"
        yield HostFinding("home", Severity.ERROR, text, advice)
    elif not folder.is_writable:
        yield HostFinding(
            "home",
            Severity.ERROR,
            f"the account {facts.account} may not write {folder.nearest}",
            f"change the owner of the folder, or {_ELSEWHERE}",
        )
    elif folder.is_noexec:
        yield HostFinding(
            "home",
            Severity.ERROR,
            f"{where} is mounted noexec, so jobs cannot run programs there",
            f"remount {folder.mount} with `exec`, or {_ELSEWHERE}",
        )
    elif folder.file_system in _NETWORK_FILE_SYSTEMS:
        yield HostFinding(
            "home",
            Severity.WARNING,
            f"{where} is on a network file system: jobs and the agent stop while the server does not"
            " answer, and sockets, locks and root access (root squash) may be refused there",
            _ELSEWHERE,
        )
    else:
        yield HostFinding("home", Severity.OK, f"{where} is writable")
    yield from _space(facts)


def _space(facts: HostFacts) -> Iterator[HostFinding]:
    folder = facts.folder
    if folder.free_bytes is None:
        return
    text = f"{figures.size(folder.free_bytes)} free"
    if folder.free_bytes < FREE_BYTES:
        advice = f"free space on {folder.mount}"
        # Without a block the agent itself cannot be stored.
        is_full = folder.free_bytes < 4 << 20
        yield HostFinding("space", Severity.ERROR if is_full else Severity.WARNING, text, advice)
    else:
        yield HostFinding("space", Severity.OK, text)
    if folder.files and folder.free_files is not None and folder.free_files < FREE_FILES:
        yield HostFinding(
            "inodes",
            Severity.ERROR if folder.free_files < 100 else Severity.WARNING,
            f"{folder.free_files} of {folder.files} inodes are free",
            f"remove small files on {folder.mount}",
        )


def _limits(facts: HostFacts) -> Iterator[HostFinding]:
    if facts.memory_limit != "count":
        yield HostFinding("memory limit", Severity.OK, f"enforced with {facts.memory_limit}")
        return
    yield HostFinding(
        "memory limit",
        Severity.WARNING,
        "no control group is delegated to the account: the agent counts the memory of jobs and stops"
        " a job that exceeds its limit, but the kernel does not enforce the limit",
        "" if facts.is_root else "sign in as root, or delegate a control group to the account",
    )


def _logout(facts: HostFacts) -> Iterator[HostFinding]:
    logout = facts.logout
    if not logout.has_systemd:
        yield HostFinding("logout", Severity.OK, "no systemd, so nothing ends at logout")
        return
    if logout.kills_processes and not logout.lingers and not facts.is_root:
        yield HostFinding(
            "logout",
            Severity.ERROR,
            "systemd ends the processes of the account at logout (`KillUserProcesses=yes`), and with"
            " them the agent and its jobs, unless the account lingers",
            f"have an administrator run `loginctl enable-linger {facts.account}`",
        )
    elif logout.removes_ipc and not logout.lingers:
        yield HostFinding(
            "logout",
            Severity.WARNING,
            "systemd removes the shared memory of the account at logout (`RemoveIPC=yes`), which data"
            " loaders of running jobs use",
            f"have an administrator run `loginctl enable-linger {facts.account}`",
        )
    else:
        yield HostFinding("logout", Severity.OK, "jobs continue after logout")


def _service(target: HostTarget, facts: HostFacts) -> Iterator[HostFinding]:
    """Say what starts the agent after a reboot; that of this machine starts when it has work."""
    if target.provider == LOCAL:
        return
    if facts.service == "linger":
        yield HostFinding(
            "reboot",
            Severity.WARNING,
            "the account does not linger; `fleetform apply` asks systemd for that, and where systemd"
            " refuses it, the agent gets no unit and jobs may end at logout",
            f"have an administrator run `loginctl enable-linger {facts.account}`",
        )
        return
    texts = {
        "system": "a unit of systemd starts the agent",
        "user": "a unit of the account's own systemd starts the agent",
        "cron": "cron starts the agent",
    }
    none = "no systemd and no cron: the agent starts when fleetform next connects"
    yield HostFinding("reboot", Severity.OK, texts.get(facts.service, none))


def _gpu(target: HostTarget, facts: HostFacts) -> Iterator[HostFinding]:
    gpu = facts.gpu
    found = len(gpu.names)
    wanted = _count((target.declared.get("gpu") or {}).get("count"))
    advice = "run `nvidia-smi` on the host"
    if gpu.complaint or (gpu.tool and gpu.cards > found):
        reason = gpu.complaint or f"the driver lists {found} of {figures.counted(gpu.cards, 'GPU')}"
        yield HostFinding("GPU", Severity.WARNING, reason, advice)
    elif gpu.cards and not gpu.tool:
        yield HostFinding(
            "GPU",
            Severity.WARNING,
            f"{figures.counted(gpu.cards, 'NVIDIA GPU')} and no nvidia-smi, so jobs get no GPU",
            "install the driver of NVIDIA on the host",
        )
    elif found:
        models = ", ".join(dict.fromkeys(gpu.names))
        yield HostFinding("GPU", Severity.OK, f"{models}: {found}, driver {gpu.driver}")
    elif not wanted:
        yield HostFinding("GPU", Severity.OK, "none")
    for one in gpu.users:
        yield HostFinding(
            "GPU",
            Severity.WARNING,
            f"process {one.pid} ({one.program}) of {one.user} uses a GPU, and is no job of fleetform",
            f"`ps -fp {one.pid}` on the host shows it; a job may get the same GPU",
        )
    if missing := missing_devices_text(target.declared, gpu.devices):
        yield HostFinding(
            "GPU",
            Severity.ERROR,
            missing,
            "correct `devices` of the host; `nvidia-smi -L` on the host lists its GPUs",
        )
    if wanted > found:
        yield HostFinding(
            "GPU",
            Severity.WARNING,
            f"the configuration declares {figures.counted(wanted, 'GPU')}, and the driver lists"
            f" {found or 'none'}",
            _CORRECT_CAPACITY,
        )


def _count(amount: Any) -> int:
    if isinstance(amount, Mapping):
        amount = amount.get("min")
    return amount if isinstance(amount, int) else 0


def _clock(checked: HostChecked, facts: HostFacts) -> Iterator[HostFinding]:
    # The reading began within these two moments of this machine.
    earliest, latest = checked.asked_at_ms, checked.answered_at_ms - facts.took_ms
    difference = max(facts.now_ms - latest, 0) or min(facts.now_ms - earliest, 0)
    if abs(difference) <= CLOCK_MS:
        yield HostFinding("clock", Severity.OK, "as on this machine")
        return
    direction = "ahead of" if difference > 0 else "behind"
    yield HostFinding(
        "clock",
        Severity.WARNING,
        f"{figures.span(abs(difference))} {direction} this machine, so times in logs mislead",
        "synchronize both clocks, for example with `chronyc makestep` or `timedatectl set-ntp true`",
    )


_SHARE = frozenset({"cpu", "devices", "memory"})
"""With these in `capacity` an environment leaves the rest of a host to others."""


def _agent(
    target: HostTarget, checked: HostChecked, facts: HostFacts, environment_uid: str
) -> Iterator[HostFinding]:
    mine = [one for one in facts.agents if _is_of(one, target, environment_uid)]
    if not mine:
        yield _not_installed(target)
    for one in mine:
        yield _installed(one, target, checked)
    others = [one for one in facts.agents if one.environment_uid != environment_uid]
    if others:
        names = ", ".join(f"{one.name} of fleet {one.fleet}" for one in others)
        there = f"other environments have agents of the account here ({names})"
        if target.declared.keys() >= _SHARE:
            text = f"{there}; `capacity` declares the share of this one"
            yield HostFinding("other agents", Severity.OK, text)
            return
        yield HostFinding(
            "other agents",
            Severity.WARNING,
            f"{there}; they would allocate the resources of the host as well",
            "declare `devices`, `cpu` and `memory` in `capacity` of the host in each environment, or"
            " remove the host from one of them",
        )


def _is_of(one: AgentFacts, target: HostTarget, environment_uid: str) -> bool:
    if one.environment_uid != environment_uid:
        return False
    if target.provider == LOCAL:
        return one.fleet == target.fleet
    return one.uid == target.uid or one.name == target.name


def _not_installed(target: HostTarget) -> HostFinding:
    if target.uid:
        return HostFinding(
            "agent",
            Severity.WARNING,
            "not installed, and the fleet was applied",
            "`fleetform plan` shows what would change, `fleetform apply` installs it",
        )
    return HostFinding("agent", Severity.OK, "not installed; `fleetform apply` installs it")


def _installed(one: AgentFacts, target: HostTarget, checked: HostChecked) -> HostFinding:
    if target.provider == "ssh" and one.uid != target.uid:
        return HostFinding(
            "agent",
            Severity.ERROR if target.uid else Severity.WARNING,
            f"an agent of this environment that the ledger does not know: {one.uid}",
            "if its jobs are not needed, end them and remove its folder in"
            " ~/.local/state/fleetform/hosts on the host",
        )
    if not one.is_running:
        # That of this machine ends when there is nothing to do.
        severity = Severity.OK if target.provider == LOCAL else Severity.WARNING
        advice = "" if severity is Severity.OK else "`fleetform apply` starts it"
        return HostFinding("agent", severity, f"{one.name}: installed, does not run now", advice)
    if one.bundle != checked.bundle:
        return HostFinding(
            "agent",
            Severity.WARNING,
            f"{one.name}: runs from {one.bundle} of another release; this one installs {checked.bundle}",
        )
    return HostFinding("agent", Severity.OK, f"{one.name}: runs, of this release")
