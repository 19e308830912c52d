"""Fields of a fleet: where hosts may come from, what is refused, and in which words."""

from __future__ import annotations

import itertools

import pytest

from fleetform.spec.desired import ResourceKey
from fleetform.spec.kinds.fleet import SOURCES
from unit.spec.trees import codes, good, load

FLEET = "type: fleet\nname: gpus\n"
LOCAL = f"{FLEET}local: true\n"
SSH = f"{FLEET}ssh_config:\n  user: ubuntu\n"
SAID = {
    "local": "local: true",
    "ssh_config": "ssh_config: {hosts: [one]}",
    "aws": 'aws: {account: "123456789012", ssh_from: 203.0.113.7/32, image: ami-0f1e2d3c4b5a69788}',
    "kubernetes": "kubernetes: {namespace: research}",
    "slurm": "slurm: {partitions: gpu}",
}


def document(tmp_path, text):
    """The canonical form of the only fleet, which is blocked or not."""
    desired = good(tmp_path, text)
    key = ResourceKey("fleet", "gpus")
    held = desired.beyond.get(key)
    return held.declared.document if held else desired.resources[key].document


@pytest.mark.parametrize(
    ("rest", "code", "words"),
    [
        ("blocks: 0", "bad-value", "the least is 1"),
        ("blocks: AUTO", "bad-value", "`AUTO`"),
        ("sharing: blocks", "contradiction", "Add `blocks:`"),
        ("sharing: whole\nblocks: 2", "contradiction", "no effect with `sharing: whole`"),
        ("nodes: 1..", "bad-value", "A local fleet needs a maximum."),
        ("nodes: -1", "bad-value", "negative"),
        ("nodes: {target: 3, max: 2}", "bad-value", "not between"),
        ("nodes: 100000000", "bad-value", "the most is 20000"),
        ("nodes: 0..20001", "bad-value", "the most is 20000"),
        ("placement: spread", "bad-value", "Choose one of `any`, `cluster`"),
        ("update: {strategy: rolling}", "bad-value", "`drain`, `surge`, `recreate`"),
        ("update: {max_unavailable: 0}", "bad-value", "the least is 1"),
        ("run_as: nobody", "bad-value", "`owner`"),
        ("runtime: podman", "bad-value", "`process`, `container`"),
        ("local: false", "wrong-type", "Remove the document if you do not want the fleet."),
    ],
)
def test_refused(tmp_path, rest, code, words):
    """Each mistake in a local fleet has its code, and words that say what to do."""
    text = FLEET if rest.startswith("local") else LOCAL
    loaded = load(tmp_path, f"{text}{rest}\n")
    (finding,) = loaded.errors
    assert finding.code == code
    assert words in f"{finding.detail} {finding.advice}"


@pytest.mark.parametrize(("one", "two"), list(itertools.combinations(SOURCES, 2)))
def test_hosts_come_from_one_place(tmp_path, one, two):
    """Two places that hosts come from contradict each other, told at the second."""
    loaded = load(tmp_path, f"{FLEET}{SAID[one]}\n{SAID[two]}\n")
    (finding,) = loaded.errors
    assert finding.code == "contradiction"
    assert finding.detail.startswith(f"The hosts come from `{one}` already")
    assert finding.place.line == 4


@pytest.mark.parametrize("source", sorted(SOURCES.keys() - {"aws"}))
@pytest.mark.parametrize(
    "field",
    [
        "backends: aws",
        "regions: eu-west-1",
        "spot_policy: spot",
        "max_price: 2",
        "reservation: cr-1",
    ],
)
def test_offers_are_for_clouds(tmp_path, source, field):
    """What chooses among offers is refused where there are none to choose from."""
    loaded = load(tmp_path, f"{FLEET}{SAID[source]}\n{field}\n")
    (finding,) = loaded.errors
    assert finding.code == "contradiction"
    name = field.partition(":")[0]
    assert finding.detail.startswith(f"`{name}` chooses among available hosts")
    assert finding.address == f"fleet.gpus.{name}"


@pytest.mark.parametrize(
    ("field", "refusing"),
    [
        ("nodes: 2", {"ssh_config"}),
        ("idle_duration: 1h", {"ssh_config", "local"}),
        ("retry: true", {"ssh_config", "local"}),
        ("resources: {gpu: 1}", {"ssh_config", "local"}),
    ],
)
@pytest.mark.parametrize("source", [*SOURCES, ""])
def test_what_a_place_can_do(tmp_path, source, field, refusing):
    """Counts, patience and requirements are refused only where they can mean nothing."""
    region = "regions: us-east-1\n" if source == "aws" else ""
    loaded = load(tmp_path, f"{FLEET}{SAID.get(source, '')}\n{region}{field}\n")
    assert bool(loaded.errors) == (source in refusing)


@pytest.mark.parametrize(
    ("source", "place", "words"),
    [
        ("kubernetes", (3, 1), "Kubernetes cluster"),
        ("slurm", (3, 1), "Slurm cluster"),
        ("", (1, 1), "clouds"),
    ],
)
def test_what_is_not_local_is_held(tmp_path, source, place, words):
    """A fleet of other hosts has one note, whatever else it says, and is held."""
    loaded = load(tmp_path, f"{FLEET}{SAID.get(source, '')}\nplacement: cluster\nrun_as: owner\n")
    (finding,) = loaded.findings
    assert (finding.level, finding.code) == ("note", "not-supported")
    assert (finding.place.line, finding.place.column) == place
    assert words in finding.detail
    assert loaded.desired is not None
    assert list(loaded.desired.beyond) == [ResourceKey("fleet", "gpus")]
    assert not loaded.desired.resources


@pytest.mark.parametrize(
    ("field", "code", "is_held"),
    [
        ("placement: cluster", "", False),
        ("update: {strategy: surge}", "", False),
        ("run_as: owner", "", False),
        ("env: {A: b}", "", False),
        ("env: [A]", "not-supported", True),
        ("blocks: auto", "not-supported", True),
        ("runtime: container", "not-supported", True),
        ("runtime: process", "", False),
        ("blocks: 2", "", False),
    ],
)
def test_what_a_local_fleet_can_do(tmp_path, field, code, is_held):
    """A local fleet goes on without what it can do without, and is held for the rest."""
    loaded = load(tmp_path, f"{LOCAL}{field}\n")
    assert codes(loaded) == ([code] if code else [])
    assert loaded.desired is not None
    assert bool(loaded.desired.beyond) == is_held


@pytest.mark.parametrize(
    "value", ["$${{ secrets.a }}", "${{ secrets.a }}", "${{ node.rank }}", None]
)
def test_env_is_held_as_that_of_a_run_is(tmp_path, value):
    """What a run's `env` cannot have yet, a fleet's cannot either, for the same reason."""
    env = "env: [A]" if value is None else f'env: {{A: "{value}"}}'
    declared = f"{LOCAL}{env}\n---\ntype: task\nname: train\ncommands: [a]\n{env}\n"
    secret = "---\ntype: secret\nname: a\nenv: A\n"
    loaded = load(tmp_path, declared + secret)
    assert loaded.errors == ()
    assert loaded.desired is not None
    held = {key.kind: one.obstacles for key, one in loaded.desired.beyond.items()}
    assert held.get("fleet") == held.get("run")
    assert ("run" in held) == (value != "$${{ secrets.a }}")


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("one", ["one"]),
        ("gpu[01-03]", ["gpu01", "gpu02", "gpu03"]),
        ("gpu[1,3-4].x", ["gpu1.x", "gpu3.x", "gpu4.x"]),
        ("gpu[08-11]", ["gpu08", "gpu09", "gpu10", "gpu11"]),
        ("fe80::1%eth0", ["fe80::1%eth0"]),
    ],
)
def test_ranges_of_names(tmp_path, text, names):
    """A name with a range in brackets is that many hosts."""
    found = document(tmp_path, f"{SSH}  hosts: ['{text}']\n")
    assert [host["hostname"] for host in found["ssh_config"]["hosts"]] == names


@pytest.mark.parametrize(
    ("hosts", "code", "words"),
    [
        ("[root@one]", "bad-value", "Write `{hostname: one, user: root}`."),
        ("['-oProxyCommand=x']", "bad-value", "not a host's name"),
        ("['a b']", "bad-value", "not a host's name"),
        ("['gpu[3-1]']", "bad-value", "has an end before its begin"),
        ("['gpu[1-99999]']", "bad-value", "more than 20000 hosts"),
        ("['gpu[a-b]']", "bad-value", "not a host's name"),
        ("[one, two, ONE.]", "said-twice", "is named twice"),
        ("['gpu[01-03]', gpu02]", "said-twice", "`gpu02` is named twice"),
        ("[{hostname: one, port: 0}]", "bad-value", "the least is 1"),
        ("[{hostname: one, internal_ip: 8.8.8.8}]", "bad-value", "public address"),
        ("[{hostname: one, internal_ip: x}]", "bad-value", "not an IP address"),
        ("[{hostname: 'gpu[1-2]', internal_ip: 10.0.0.1}]", "contradiction", "one by one"),
        ("[{host: one}]", "unknown-field", "Did you mean `hostname`?"),
        ("[{hostname: one, drain: {}}]", "missing-field", "`reason` is missing"),
        (
            "[{hostname: one, maintenance: {from: 2026-12-24T18:00Z, to: 2026-12-24T17:00Z}}]",
            "contradiction",
            "ends before it begins",
        ),
        (
            "[{hostname: one, maintenance: {from: 2026-12-24 18:00, to: 2026-12-25T17:00Z}}]",
            "bad-value",
            "has no time zone;",
        ),
        ("[{hostname: one, proxy_jump: 'a b'}]", "bad-value", "`user@host:22`"),
        ("[{hostname: one, capacity: {cpu: 0}}]", "bad-value", "0 CPUs runs no job"),
        ("[{hostname: one, capacity: {memory: 1KB}}]", "bad-value", "the least is 64MB"),
        ("7", "wrong-type", "a list of hosts"),
    ],
)
def test_refused_hosts(tmp_path, hosts, code, words):
    """Each mistake in a list of hosts has its code, and words that say what to do."""
    loaded = load(tmp_path, f"{SSH}  hosts: {hosts}\n")
    told = {finding.code: f"{finding.detail} {finding.advice}" for finding in loaded.errors}
    assert words in told[code]


def test_ports_tell_hosts_apart(tmp_path):
    """One name with two ports is two hosts; 22 is the port of those that say none."""
    two = "[{hostname: one, port: 2201}, {hostname: one, port: 2202}]"
    assert load(tmp_path, f"{SSH}  hosts: {two}\n").errors == ()
    same = "[{hostname: one, port: 22}, one]"
    assert "said-twice" in codes(load(tmp_path, f"{SSH}  hosts: {same}\n"))


def test_order_of_hosts_means_nothing(tmp_path):
    """Two lists of the same hosts are one canonical document."""
    one = document(tmp_path / "1", f"{SSH}  hosts: [b, a, {{hostname: c, blocks: 2}}]\n")
    two = document(tmp_path / "2", f"{SSH}  hosts: [{{hostname: c, blocks: 2}}, a, b]\n")
    assert one == two


def test_keys_in_clear(tmp_path):
    """A private key in the tree is a warning, and does not reach the canonical document."""
    key = "ssh_key: {public: p, private: hunter2}"
    loaded = load(tmp_path, f"{SSH}  {key}\n  hosts: [one]\n")
    assert sorted(codes(loaded)) == ["not-supported", "secret-in-clear"]
    assert loaded.desired is not None
    (held,) = loaded.desired.beyond.values()
    assert "hunter2" not in str(held.declared.document)
    assert held.declared.document["ssh_config"]["ssh_key"]["private"].startswith("sha256:")


def test_amounts_are_whole(tmp_path):
    """Prices are micro-dollars, moments seconds, and `off` is not the same as nothing."""
    found = document(tmp_path, f"{FLEET}max_price: $0.35\nidle_duration: off\n")
    assert found["max_price"] == 350_000
    assert found["idle_duration"] == -1
    window = "{from: 1970-01-02T00:00+01:00, to: 1970-01-02T00:00Z}"
    found = document(tmp_path, f"{SSH}  hosts: [{{hostname: a, maintenance: {window}}}]\n")
    assert found["ssh_config"]["hosts"][0]["maintenance"] == {"begin": 82_800, "end": 86_400}
