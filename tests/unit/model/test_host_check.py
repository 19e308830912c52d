"""Which facts about a host are errors and which are warnings, and what a person does."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fleetform.model.host_check import (
    HostTarget,
    Severity,
    evaluate,
    mark_same_machines,
    unreached,
)
from fleetform.providers.contract.checks import (
    AgentFacts,
    FolderFacts,
    GpuDevice,
    GpuFacts,
    GpuUser,
    HostChecked,
    HostFacts,
    LogoutFacts,
)

ENVIRONMENT = "e" * 32
TARGET = HostTarget("gpu", "gpu-0", "ssh")
APPLIED = replace(TARGET, uid="u-1")
BUNDLE = "fleetform-agent-1.pyz"
FOLDER = FolderFacts(
    path="/home/ada/.local/state/fleetform",
    nearest="/home/ada",
    mount="/home",
    file_system="ext4",
    source="/dev/sda1",
    is_folder=True,
    is_writable=True,
    is_read_only=False,
    is_noexec=False,
    free_bytes=100 << 30,
    free_files=1_000_000,
    files=2_000_000,
)
FACTS = HostFacts(
    now_ms=1_000_500,
    took_ms=400,
    hostname="gpu-0",
    machine_id="m",
    boot_id="b",
    account="ada",
    home="/home/ada",
    is_root=False,
    has_sudo=False,
    person="ada",
    has_person=True,
    python="/usr/bin/python3",
    python_version="3.11.2",
    system="Debian 12",
    kernel="6.1",
    machine="x86_64",
    cpus=8,
    memory_bytes=64 << 30,
    open_files_max=1 << 20,
    memory_limit="cgroup2",
    service="user",
    folder=FOLDER,
    logout=LogoutFacts(has_systemd=True, lingers=True, kills_processes=False, removes_ipc=True),
    gpu=GpuFacts(0, "", "", (), ""),
    agents=(),
)
AGENT = AgentFacts("u-1", "gpu-0", "gpu", ENVIRONMENT, is_running=True, bundle=BUNDLE)
H100 = GpuFacts(2, "/usr/bin/nvidia-smi", "550.54", ("H100", "H100"), "")


def check(target: HostTarget = TARGET, **facts: object):
    checked = HostChecked(
        "ada@10.0.0.1 port 22",
        replace(FACTS, **facts),
        asked_at_ms=1_000_000,
        answered_at_ms=1_001_000,
        bundle=BUNDLE,
    )
    return evaluate(target, checked, ENVIRONMENT)


def problems(result) -> list[tuple[str, Severity]]:
    found = [one for one in result.findings if one.severity is not Severity.OK]
    return [(one.topic, one.severity) for one in found]


def test_a_sound_host_has_no_problem() -> None:
    """Every topic has its line, and all are fine."""
    result = check()
    assert (result.severity, problems(result)) == (Severity.OK, [])
    assert {one.topic for one in result.findings} >= {"account", "python", "home", "clock", "agent"}


@pytest.mark.parametrize(
    ("folder", "severity", "text"),
    [
        ({"is_read_only": True}, Severity.ERROR, "read-only"),
        ({"is_writable": False}, Severity.ERROR, "may not write /home/ada"),
        ({"is_noexec": True}, Severity.ERROR, "mounted noexec"),
        ({"is_folder": False}, Severity.ERROR, "is not a folder"),
        ({"file_system": "nfs4"}, Severity.WARNING, "root squash"),
        ({"free_bytes": 500 << 20}, Severity.WARNING, "500MB free"),
        ({"free_bytes": 1 << 20}, Severity.ERROR, "1MB free"),
        ({"free_files": 50}, Severity.ERROR, "50 of 2000000 inodes"),
    ],
)
def test_home_folders(folder: dict[str, object], severity: Severity, text: str) -> None:
    """What keeps an agent from its files is an error; what makes it slow is a warning."""
    result = check(folder=replace(FOLDER, **folder))
    (found,) = (one for one in result.findings if one.severity is not Severity.OK)
    assert (found.severity, result.severity) == (severity, severity)
    assert text in found.text
    assert found.advice


def test_a_file_system_without_a_table_of_inodes_has_enough() -> None:
    """Btrfs reports 0 of 0."""
    assert problems(check(folder=replace(FOLDER, free_files=0, files=0))) == []


def test_what_starts_the_agent_after_a_reboot() -> None:
    """An account that does not linger is a warning with the administrator's command."""
    result = check(service="linger")
    assert problems(result) == [("reboot", Severity.WARNING)]
    assert any("loginctl enable-linger ada" in one.advice for one in result.findings)
    for service, text in (("system", "a unit of systemd"), ("cron", "cron"), ("daemon", "no cron")):
        result = check(service=service)
        assert problems(result) == []
        assert any(one.topic == "reboot" and text in one.text for one in result.findings)


def test_what_ends_at_logout() -> None:
    """Unless the account lingers, ended processes are an error and removed shared memory is a warning."""
    kills = LogoutFacts(has_systemd=True, lingers=False, kills_processes=True, removes_ipc=True)
    result = check(logout=kills)
    assert problems(result) == [("logout", Severity.ERROR)]
    assert any("loginctl enable-linger ada" in one.advice for one in result.findings)
    assert problems(check(logout=replace(kills, lingers=True))) == []
    removes = replace(kills, kills_processes=False, lingers=False)
    result = check(logout=removes)
    assert problems(result) == [("logout", Severity.WARNING)]
    assert any("loginctl enable-linger ada" in one.advice for one in result.findings)
    assert problems(check(logout=replace(removes, removes_ipc=None))) == []


@pytest.mark.parametrize(
    ("gpu", "text"),
    [
        (replace(H100, complaint="NVIDIA-SMI has failed"), "NVIDIA-SMI has failed"),
        (replace(H100, names=("H100",)), "the driver lists 1 of 2 GPUs"),
        (GpuFacts(2, "", "", (), ""), "2 NVIDIA GPUs and no nvidia-smi"),
    ],
)
def test_gpus_that_jobs_do_not_get(gpu: GpuFacts, text: str) -> None:
    """A card without its driver, and a driver that lists fewer than there are."""
    result = check(gpu=gpu)
    assert problems(result) == [("GPU", Severity.WARNING)]
    assert any(text in one.text for one in result.findings)
    assert problems(check(gpu=H100)) == []


def test_a_host_with_fewer_gpus_than_declared() -> None:
    """The scheduler would place jobs on GPUs that are not there."""
    declared = {"gpu": {"count": {"min": 8, "max": 8}}}
    result = check(replace(TARGET, declared=declared), gpu=H100)
    assert problems(result) == [("GPU", Severity.WARNING)]
    assert "declares 8 GPUs, and the driver lists 2" in result.findings[-3].text
    without = check(replace(TARGET, declared=declared), gpu=GpuFacts(0, "", "", (), ""))
    (found,) = [one for one in without.findings if one.topic == "GPU"]
    assert (found.severity, found.text) == (
        Severity.WARNING,
        "the configuration declares 8 GPUs, and the driver lists none",
    )


@pytest.mark.parametrize(
    ("devices", "missing"),
    [([0, "GPU-1"], ""), ([], ""), ([0, 2], "no GPU 2,"), ([3, "GPU-7"], "no GPU 3, GPU-7,")],
)
def test_declared_devices_that_the_host_does_not_have(devices, missing: str) -> None:
    """An error names them: runs would wait for GPUs that are not there."""
    listed = replace(H100, devices=(GpuDevice(0, "GPU-0"), GpuDevice(1, "GPU-1")))
    result = check(replace(TARGET, declared={"devices": devices}), gpu=listed)
    assert problems(result) == ([("GPU", Severity.ERROR)] if missing else [])
    assert any(missing in one.text for one in result.findings)


def test_a_declared_share_of_a_host_leaves_the_rest_to_other_environments() -> None:
    """Without one of the three parts, both environments would allocate that part whole."""
    other = replace(AGENT, uid="x", environment_uid="f" * 32)
    share = {"cpu": 1000, "memory": 1 << 30, "devices": []}
    for lacking in (None, *share):
        declared = {name: amount for name, amount in share.items() if name != lacking}
        result = check(replace(TARGET, declared=declared), agents=(other,))
        expected = [] if lacking is None else [("other agents", Severity.WARNING)]
        assert problems(result) == expected


@pytest.mark.parametrize(
    ("now_ms", "text"),
    [
        (1_002_600, ""),
        (1_002_700, "2.1s ahead of"),
        (1_010_600, "10s ahead of"),
        (998_000, ""),
        (940_000, "1m00s behind"),
    ],
)
def test_clocks_differ_by_what_the_way_does_not_explain(now_ms: int, text: str) -> None:
    """The host was asked between two moments of this machine, and its own reading took 400 ms."""
    clock = next(one for one in check(now_ms=now_ms).findings if one.topic == "clock")
    # Within 2 s of the time that the request took, both clocks count as equal.
    assert (clock.severity is Severity.WARNING) == bool(text)
    assert text in clock.text


def test_memory_that_the_kernel_does_not_limit() -> None:
    """The agent counts, and the finding says what does not hold."""
    result = check(memory_limit="count")
    assert problems(result) == [("memory limit", Severity.WARNING)]


@pytest.mark.parametrize(
    ("target", "agents", "expected"),
    [
        (TARGET, (), []),
        (APPLIED, (), [("agent", Severity.WARNING)]),
        (APPLIED, (AGENT,), []),
        (APPLIED, (replace(AGENT, is_running=False),), [("agent", Severity.WARNING)]),
        (APPLIED, (replace(AGENT, bundle="old.pyz"),), [("agent", Severity.WARNING)]),
        (APPLIED, (replace(AGENT, uid="u-2"),), [("agent", Severity.ERROR)]),
        (TARGET, (replace(AGENT, uid="u-2"),), [("agent", Severity.WARNING)]),
        (
            APPLIED,
            (AGENT, replace(AGENT, uid="x", environment_uid="f" * 32)),
            [("other agents", Severity.WARNING)],
        ),
    ],
)
def test_agents_on_the_host(target, agents, expected) -> None:
    """The environment's own agent by its uid and release, and those of other environments."""
    result = check(target, agents=agents)
    assert problems(result) == expected
    # With the uid of an environment weak secrets could be found from their versions.
    assert ENVIRONMENT not in repr(result)
    assert "f" * 32 not in repr(result)


def test_a_host_that_cannot_be_read_is_an_error() -> None:
    """The provider's sentence and its advice are the finding."""
    checked = HostChecked("ada@10.0.0.1 port 22", None, problem="no Python", advice="install one")
    for result in (evaluate(TARGET, checked, ENVIRONMENT), unreached(TARGET, "no Python", "install one")):  # fmt: skip
        (found,) = result.findings
        assert (found.text, found.advice) == ("no Python", "install one")
        assert result.severity is Severity.ERROR


def test_one_machine_under_two_names() -> None:
    """The second one is marked; another boot is another machine."""
    first, other = check(), check(replace(TARGET, name="gpu-1"))
    marked = mark_same_machines([first, other, check(boot_id="c"), unreached(TARGET, "silent")])
    assert [problems(one) for one in marked[:3]] == [[], [("machine", Severity.WARNING)], []]
    assert "the same machine as gpu-0" in marked[1].findings[-1].text


def test_declared_capacity_is_compared_with_what_the_host_has() -> None:
    """More than there is would be allocated; as much as there is, or less, is fine."""
    fits = {"cpu": FACTS.cpus * 1000, "memory": FACTS.memory_bytes}
    assert problems(check(replace(TARGET, declared=fits))) == []
    more = {"cpu": FACTS.cpus * 1000 + 1000, "memory": FACTS.memory_bytes + 1}
    result = check(replace(TARGET, declared=more))
    assert problems(result) == [("capacity", Severity.WARNING)] * 2


def test_a_process_that_uses_a_gpu_outside_fleetform_is_shown() -> None:
    """With its user and its id: a job may get the same GPU."""
    result = check(gpu=replace(H100, users=(GpuUser(4711, "ada", "python3"),)))
    (found,) = (one for one in result.findings if one.severity is not Severity.OK)
    assert "process 4711 (python3) of ada uses a GPU" in found.text
    assert "ps -fp 4711" in found.advice
