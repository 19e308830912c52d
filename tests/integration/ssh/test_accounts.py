"""Jobs over SSH that run as the account of the person who applied them."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from fleetform.agents.host import layout
from integration.ledger.lab import FLEETFORM, Lab, task
from lab import Lab as Hosts
from required import need

PEOPLE = {"alice": 4001, "bob": 4002}
"""With their user ids on this machine; hosts give them others."""

_RIGHTS = "+dac_override,+dac_read_search"
"""The interpreter and the tests are in folders of root. No right that changes whose process it is."""

_AS_A_PERSON = f"""\
set -e
mount --bind "$1" /etc/passwd
id=$2
shift 2
exec setpriv --reuid="$id" --regid="$id" --clear-groups --inh-caps="{_RIGHTS}" \
    --ambient-caps="{_RIGHTS}" -- "$@"
"""


class Person(Lab):
    """An environment of a person: each command is a process of an account that has their name."""

    def __init__(self, folder: Path, name: str) -> None:
        super().__init__(folder)
        self.name = name
        users = folder / "passwd"
        lines = [f"{one}:x:{number}:{number}::/:/bin/sh\n" for one, number in PEOPLE.items()]
        users.write_text(Path("/etc/passwd").read_text() + "".join(lines))
        self._prefix = [
            "unshare", "--mount", "sh", "-c", _AS_A_PERSON, "sh", str(users), str(PEOPLE[name]),
        ]  # fmt: skip
        self.state.mkdir(mode=0o700)
        self.own()

    def variables(self) -> dict[str, str]:
        """As for everybody, with folders that no other person has."""
        homes = {f"FLEETFORM_{one}_HOME": str(self.folder / one) for one in ("CONFIG", "CACHE")}
        return super().variables() | homes

    def own(self) -> None:
        for path in (self.folder, *self.folder.rglob("*")):
            os.lchown(path, PEOPLE[self.name], PEOPLE[self.name])

    def declare(self, *documents: str) -> None:
        super().declare(*documents)
        self.own()

    def _run(
        self,
        *command: str,
        cwd: Path | None = None,
        pass_fds: Sequence[int] = (),
        variables: Mapping[str, str] | None = None,
    ) -> subprocess.CompletedProcess[str]:
        return super()._run(
            *self._prefix, *command, cwd=cwd, pass_fds=pass_fds, variables=variables
        )

    def begin(self, *arguments: str) -> subprocess.Popen[str]:
        child = subprocess.Popen(
            [*self._prefix, FLEETFORM, *arguments],
            cwd=self.tree,
            env=self.variables(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self._children.append(child)
        return child


def fleet(*hosts: str, more: str = "", **config: str) -> str:
    """Write a fleet; `more` is YAML of its top level, `config` of `ssh_config`."""
    lines = "".join(f"  {name}: {value}\n" for name, value in config.items())
    return f"type: fleet\nname: lab\n{more}ssh_config:\n  hosts: [{', '.join(hosts)}]\n{lines}"


@pytest.fixture(scope="module")
def people(hosts: Hosts) -> Hosts:
    """Alice has an account on both hosts, and bob on node1; each has a umask or groups of their own."""
    for host in hosts.hosts:
        hosts.run(host, "useradd", "--create-home", "--groups", "games,lab", "alice")
    hosts.run("node1", "useradd", "--create-home", "--comment", "Bob,,,,umask=027", "bob")
    return hosts


@pytest.fixture
def env(home: Path, people: Hosts, tmp_path: Path) -> Iterator[dict[str, Person]]:
    """One environment a person."""
    found = {name: Person(tmp_path / name, name) for name in PEOPLE}
    yield found
    for one in found.values():
        one.close()


def start(person: Person, *documents: str) -> subprocess.Popen[str]:
    person.declare(*documents)
    return person.begin("apply", "-y")


def user_of(hosts: Hosts, host: str, text: str) -> list[str]:
    """Return the accounts of the processes of a host whose arguments are exactly this text."""
    lines = hosts.run(host, "ps", "-eo", "user:32,args").splitlines()
    return [line.split(None, 1)[0] for line in lines if line.split(None, 1)[1].strip() == text]


def test_each_job_runs_as_the_person_who_applied_it(env, people: Hosts) -> None:
    """Two people at once: ids, groups, umask and home are those of their accounts on the host."""
    says = "id -un; id -Gn; umask; echo $HOME $USER; touch made; stat -c %U:%a made; pwd"
    children = {
        name: start(one, fleet("node1", user="root"), task("who", says, f"exec sleep 77{PEOPLE[name]}"))
        for name, one in env.items()
    }  # fmt: skip
    for name, one in env.items():
        one.wait_until(
            lambda name=name: user_of(people, "node1", f"sleep 77{PEOPLE[name]}") == [name],
            f"the job of {name}",
        )
        entered = one.run("exec", "who", "--", "sh", "-c", "id -un; umask; pwd")
        assert entered.stdout.splitlines()[0] == name, entered
        one.declare(fleet("node1", user="root"))
        assert one.run("apply", "-y", "--allow-destroy").returncode == 0
        code, output = one.finish(children[name])
        assert "stopped" in output, (code, output)
    alice, bob = (env[name].run("logs", "who").stdout.splitlines() for name in PEOPLE)
    assert alice[:5] == ["alice", "alice games lab", "0022", "/home/alice alice", "alice:644"]
    assert bob[:5] == ["bob", "bob", "0027", "/home/bob bob", "bob:640"]
    assert alice[5].startswith("/var/lib/fleetform/jobs/node1-")


def test_an_account_that_is_missing_blocks_the_run(env, people: Hosts) -> None:
    """The plan names the host, also right after the account was created; nothing starts as another one."""
    bob = env["bob"]
    bob.declare(fleet("node2", user="root"))
    assert bob.run("apply", "-y").returncode == 0
    bob.declare(fleet("node2", user="root"), task("work", "id -un"))
    planned = bob.run("plan").stdout
    assert "account bob does not exist on host node2" in planned
    bob.run("apply", "-y")
    assert "work" not in bob.states()
    checked = bob.run("fleet", "check").stdout
    assert "error    jobs" in checked
    assert "useradd --create-home bob" in checked
    people.run("node2", "useradd", "--create-home", "bob")
    try:
        assert bob.run("apply", "-y").returncode == 0
        assert bob.run("logs", "work").stdout == "bob\n"
    finally:
        people.run("node2", "userdel", "--remove", "bob")


def test_a_run_waits_for_an_account_where_no_plan_could_know(env, people: Hosts) -> None:
    """Before the first connection nothing is known of a host: the run waits, and starts with the account."""
    bob = env["bob"]
    child = start(bob, fleet("node2", user="root"), task("work", "id -un"))
    reason = "account bob does not exist on host node2"
    bob.wait_until(lambda: reason in bob.run("why", "work").stdout, "the reason")
    people.run("node2", "useradd", "--create-home", "bob")
    try:
        code, output = bob.finish(child)
        assert code == 0, output
        assert bob.run("logs", "work").stdout == "bob\n"
    finally:
        people.run("node2", "userdel", "--remove", "bob")


def test_a_run_that_was_left_and_waits_for_an_account(
    home: Path, people: Hosts, tmp_path: Path
) -> None:
    """`apply --detach` says what waits and why, with the code of a blocked change, and so does `status`."""
    tree = Lab(tmp_path / "root")
    tree.declare(fleet("node2", user="root"), task("work", "id -un"))
    reason = "root applied it, and jobs run as their owner on host node2"
    try:
        applied = tree.run("apply", "-y", "--detach")
        assert applied.returncode == 3, applied.stdout + applied.stderr
        assert f"work waits: {reason}" in applied.stderr
        assert "Applied; 1 run is blocked." in applied.stdout
        shown = tree.run("status", "--exit-code")
        assert shown.returncode == 3, shown.stdout
        assert f"! work waits: {reason}" in shown.stdout
        assert "Needs attention: 1 run waits for an account on hosts" in shown.stdout
        (blocked,) = tree.json("status")["runs"]["blocked"]
        assert blocked["name"] == "work"
        assert reason in blocked["reason"]
        gone = tree.run("destroy", "-y", "--allow-destroy")
        assert gone.returncode == 0, gone.stdout + gone.stderr
        assert tree.json("status")["runs"]["blocked"] == []
    finally:
        tree.run("controller", "stop")
        tree.close()


def test_root_needs_a_grant(env, people: Hosts) -> None:
    """`run_as: root` is held until the environment grants it."""
    alice = env["alice"]
    documents = fleet("node1", more="run_as: root\n", user="root"), task("work", "id -un")
    alice.declare(*documents)
    planned = alice.run("plan").stdout
    assert "would run as root, which the environment does not grant" in planned
    with (alice.tree / "environment.yaml").open("a") as file:
        file.write("grants: {root: true}\n")
    assert alice.run("apply", "-y").returncode == 0
    assert alice.run("logs", "work").stdout == "root\n"


def test_an_agent_of_a_plain_account_runs_jobs_as_that_account(env, people: Hosts) -> None:
    """It can do nothing else, and `fleet check` says so."""
    alice = env["alice"]
    alice.declare(fleet("node1", user="lab"), task("work", "id -un"))
    assert "run as lab for every person" in alice.run("fleet", "check").stdout
    assert alice.run("apply", "-y").returncode == 0
    assert alice.run("logs", "work").stdout == "lab\n"


def test_jobs_of_others_outlive_their_agent_and_end_at_their_limit(env, people: Hosts) -> None:
    """The agent is killed; the job goes on, its time limit ends it, and its output is whole."""
    alice = env["alice"]
    script = "n=0; while :; do n=$((n + 1)); echo line $n; sleep 0.1; done"
    child = start(
        alice, fleet("node1", user="root"), task("long", script, more="max_duration: 8s\n")
    )
    alice.wait_until(lambda: "line 3" in alice.run("logs", "long").stdout, "output")
    root = (
        people.directory / f"hosts/node1/root/root/.local/state/fleetform/hosts/{alice.uid}/node1"
    )
    people.run("node1", "kill", "-KILL", (root / "agent.pid").read_text().strip())
    alice.finish(child)
    lines = alice.run("logs", "long").stdout.splitlines()
    assert lines == [f"line {number}" for number in range(1, len(lines) + 1)]
    assert len(lines) > 40
    assert "ran longer than its max_duration of 8s" in alice.run("why", "long").stdout


def test_an_array_of_a_person(env, people: Hosts) -> None:
    """Each element runs as its owner, and leaves nothing behind."""
    alice = env["alice"]
    alice.declare(
        fleet("node1", "node2", user="root"),
        task("many", "id -un; touch left", more="array: 1-20\n"),
    )
    assert alice.run("apply", "-y").returncode == 0
    for index in (1, 20):
        assert alice.run("logs", f"many[{index}]").stdout == "alice\n"
    alice.declare()
    assert alice.run("apply", "-y", "--allow-destroy").returncode == 0
    for host in people.hosts:
        root = f"/root/.local/state/fleetform/hosts/{alice.uid}/{host}"
        disk = f"{people.directory}/hosts/{host}/root"
        assert not Path(f"{disk}{root}").exists()
        assert not Path(f"{disk}{layout.accounts_folder(root)}").exists()


@contextlib.contextmanager
def sudoers(hosts: Hosts, host: str, *lines: str) -> Iterator[None]:
    """Give a host these rules, beside those that it has."""
    folder = hosts.directory / f"hosts/{host}/root/etc/sudoers.d"
    folder.mkdir(exist_ok=True)
    path = folder / "fleetform-test"
    path.write_text("".join(f"{line}\n" for line in lines))
    path.chmod(0o440)
    try:
        yield
    finally:
        path.unlink()


@pytest.fixture
def sudo() -> None:
    found = shutil.which("sudo") is not None
    need("sudo", found, "it is not installed; `sh tests/services.sh` installs it")


RULE = "lab ALL=(root) NOPASSWD: ALL"


@pytest.mark.parametrize("terminal", ["", "Defaults requiretty"])
@pytest.mark.usefixtures("sudo")
def test_a_plain_account_becomes_root_by_sudo(env, people: Hosts, terminal: str) -> None:
    """The agent is root's, also where sudo wants a terminal, and jobs run as their owners."""
    alice = env["alice"]
    alice.declare(fleet("node1", user="lab", become="sudo"), task("work", "id -un", "echo done"))
    with sudoers(people, "node1", RULE, terminal):
        applied = alice.run("apply", "-y")
        assert applied.returncode == 0, applied.stdout + applied.stderr
        assert alice.run("logs", "work").stdout == "alice\ndone\n"
        daemon = [one for one in people.run("node1", "ps", "-eo", "user,args").splitlines()
                  if alice.uid in one and "daemon" in one]  # fmt: skip
        assert {one.split()[0] for one in daemon} == {"root"}
        assert "run as alice" in alice.run("fleet", "check").stdout
        alice.declare()
        assert alice.run("apply", "-y", "--allow-destroy").returncode == 0


@pytest.mark.usefixtures("sudo")
def test_what_sudo_lacks_is_said_with_the_next_step(env, people: Hosts) -> None:
    """A password that is asked for keeps the agent from being installed; check and apply say so."""
    alice = env["alice"]
    alice.declare(fleet("node1", user="lab", become="sudo"))
    with sudoers(people, "node1", "lab ALL=(root) ALL"):
        for command in (("fleet", "check"), ("apply", "-y")):
            done = alice.run(*command)
            said = done.stdout + done.stderr
            assert done.returncode != 0
            assert "sudo asks lab for a password" in said
            assert "lab ALL=(root) NOPASSWD: ALL" in said


def test_mpirun_over_two_hosts_of_a_person(env, people: Hosts) -> None:
    """Processes that the job's launcher starts on the other host run as the same account."""
    need("mpirun", shutil.which("mpirun") is not None, "openmpi-bin is not installed")
    alice = env["alice"]
    program = "sh -c 'echo rank $OMPI_COMM_WORLD_RANK on $(hostname) as $(id -un)'"
    master = f"mpirun -np 2 --hostfile $FLEETFORM_HOSTFILE {program}"
    command = f'if [ "$FLEETFORM_NODE_RANK" = 0 ]; then {master}; else sleep 1000; fi'
    fields = "nodes: 2\nstop_criteria: master-done\nmax_duration: 60s\n"
    alice.declare(fleet("node1", "node2"), task("mpi", command, more=fields))
    applied = alice.run("apply", "-y")
    assert applied.returncode == 0, (
        applied.stdout + applied.stderr + alice.run("logs", "mpi").stdout
    )
    printed = alice.run("logs", "mpi", "--rank", "0").stdout
    assert sorted(printed.splitlines()) == [
        "rank 0 on node1 as alice",
        "rank 1 on node2 as alice",
    ]
