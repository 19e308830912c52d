"""What is wrong between fleets, and between them and the runs that are to be placed there."""

from __future__ import annotations

import pytest

from unit.spec.trees import load

RUN = "---\ntype: task\nname: train\ncommands: [echo]\n"


def fleet(rest: str, name: str = "gpus") -> str:
    return f"---\ntype: fleet\nname: {name}\n{rest}\n"


def told(loaded, code: str) -> list[str]:
    """The details of one code; notes on what is not carried out are another matter."""
    return [finding.detail for finding in loaded.findings if finding.code == code]


SOURCES = {
    "local": "local: {cpu: 8, memory: 32GB, disk: 1TB, gpu: A100:40GB:2}\nnodes: 2",
    "ssh": (
        "ssh_config:\n  hosts:\n"
        "  - {hostname: one, capacity: {cpu: 8, memory: 32GB, disk: 1TB, gpu: A100:40GB:2}}\n"
        "  - {hostname: two, capacity: {cpu: 4, memory: 16GB, disk: 1TB, gpu: A100:40GB:1}}"
    ),
    "cloud": "nodes: 0..2\nresources: {cpu: 4..8, memory: ..32GB, disk: 1TB, gpu: 'A100:40GB:1..2'}",
    "kubernetes": (
        "kubernetes: true\nnodes: ..2\n"
        "resources: {cpu: 8, memory: 32GB, disk: ..1TB, gpu: 'A100:40GB:2'}"
    ),
    "slurm": (
        "slurm: {partitions: gpu}\nnodes: 2\n"
        "resources: {cpu: 8, memory: 32GB, disk: 1TB, gpu: {name: A100, memory: 40GB, count: 2}}"
    ),
}
ASKED = {
    "nodes: 3": "`gpus` has at most 2 nodes of the 3 asked for.",
    "resources: {cpu: 16}": "`gpus` has 8 CPUs of the 16 asked for.",
    "resources: {cpu: 'x86:16'}": "`gpus` has 8 CPUs of the 16 asked for.",
    "resources: {memory: 64GB..}": "`gpus` has 32GB of memory of the 64GB asked for.",
    "resources: {disk: 2TB}": "`gpus` has 1TB of disk of the 2TB asked for.",
    "resources: {gpu: 4}": "`gpus` has 2 GPUs a node of the 4 asked for.",
    "resources: {gpu: 'H100:1'}": "`gpus` has A100 and not H100.",
    "resources: {gpu: '80GB:1'}": "`gpus` has 40GB a GPU of the 80GB asked for.",
}
FITTING = [
    "resources: {cpu: 2..16, memory: 8GB.., gpu: 'a100:1..8'}",
    "resources: {gpu: {name: [H100, A100], count: 2}}",
    "resources: {gpu: 0}",
    "nodes: 2",
    "priority: 3",
]


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("asked", ASKED)
def test_never_placed(tmp_path, source, asked):
    """What no host of a fleet can have is told with the amount, wherever its hosts come from."""
    loaded = load(tmp_path, fleet(SOURCES[source]) + RUN + asked)
    (detail,) = told(loaded, "never-placed")
    assert detail == ASKED[asked]
    assert not loaded.errors


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("asked", FITTING)
def test_what_fits_is_not_told(tmp_path, source, asked):
    """What a host of a fleet may have gives no warning, wherever its hosts come from."""
    assert told(load(tmp_path, fleet(SOURCES[source]) + RUN + asked), "never-placed") == []


@pytest.mark.parametrize(
    "rest",
    [
        "",
        "nodes: 1..",
        "local: true",
        "ssh_config: {hosts: [one]}",
        "kubernetes: true",
        "slurm: true",
    ],
)
def test_what_nobody_declares_is_not_judged(tmp_path, rest):
    """A fleet that says nothing of its hosts may have anything."""
    asked = "resources: {cpu: 512, memory: 8TB, gpu: 'B200:16'}"
    assert told(load(tmp_path, fleet(rest) + RUN + asked), "never-placed") == []


def test_lost_hosts_do_not_count(tmp_path):
    """A lost host is none, and a drained one comes back."""
    hosts = "ssh_config: {hosts: [a, {hostname: b, lost: gone}, {hostname: c, drain: hot}]}"
    text = fleet(f"{hosts}\nplacement: cluster") + RUN
    assert told(load(tmp_path, f"{text}nodes: 2"), "never-placed") == []
    assert told(load(tmp_path, f"{text}nodes: 3"), "never-placed") == [
        "`gpus` has at most 2 nodes of the 3 asked for."
    ]


def test_each_fleet_has_its_reason(tmp_path):
    """The reasons of several fleets stand in one warning; one that will do silences it."""
    text = fleet("local: {cpu: 1}", "small") + fleet("nodes: 1\nresources: {cpu: 2}", "large")
    loaded = load(tmp_path, f"{text}{RUN}resources: {{cpu: 4}}")
    assert told(loaded, "never-placed") == [
        "`large` has 2 CPUs of the 4 asked for; `small` has 1 CPUs of the 4 asked for."
    ]
    assert told(load(tmp_path, f"{text}{RUN}resources: {{cpu: 2}}"), "never-placed") == []


JOINED = {
    "local: true\nnodes: 4": True,
    "kubernetes: true": True,
    "slurm: {partitions: gpu}": True,
    "nodes: 0..4\nplacement: cluster": True,
    "ssh_config: {hosts: 'gpu[1-4]', network: 10.0.0.0/24}": True,
    "ssh_config: {hosts: 'gpu[1-4]'}\nplacement: cluster": True,
    "nodes: 0..4": False,
    "nodes: 0..4\nplacement: any": False,
    "ssh_config: {hosts: 'gpu[1-4]'}": False,
}


@pytest.mark.parametrize("rest", JOINED)
@pytest.mark.parametrize("nodes", [1, 2])
def test_nodes_need_a_network(tmp_path, rest, nodes):
    """A run on several nodes is told where nothing joins them; one on a single node never is."""
    loaded = load(tmp_path, f"{fleet(rest)}{RUN}nodes: {nodes}")
    found = told(loaded, "no-interconnect")
    assert bool(found) == (nodes > 1 and not JOINED[rest])
    if found:
        assert found == [
            "Its 2 nodes must reach each other, and no fleet declares that the hosts of `gpus` can."
        ]
        (finding,) = [one for one in loaded.findings if one.code == "no-interconnect"]
        assert finding.level == "warning"
        assert finding.advice.startswith("Add `placement: cluster` to `gpus`")


def test_one_joined_fleet_is_enough(tmp_path):
    """Of several fleets that will do, one that joins its hosts is enough, if it may be used."""
    text = fleet("nodes: 4", "loose") + fleet("nodes: 4\nplacement: cluster", "close")
    assert told(load(tmp_path, f"{text}{RUN}nodes: 4"), "no-interconnect") == []
    loaded = load(tmp_path, f"{text}{RUN}nodes: 4\nfleets: loose")
    assert len(told(loaded, "no-interconnect")) == 1


def test_without_fleets_nothing_is_judged(tmp_path):
    """A file of dstack has its fleets on a server; nothing is said of what is not here."""
    loaded = load(tmp_path, f"{RUN}nodes: 4\nresources: {{gpu: 'A100:80GB:8'}}")
    assert loaded.findings == ()


@pytest.mark.parametrize(
    ("one", "two", "detail"),
    [
        ("[a, b]", "[b, c]", "The host `b` belongs to the fleet `{}`"),
        ("[a, b]", "[B., c]", "The host `"),
        ("['n[1-4]']", "['n[3-6]']", "The hosts `n3` and 1 more belong to the fleet `{}`"),
        ("[{hostname: a, port: 22}]", "[a]", "The host `a` belongs"),
        ("[a]", "[{hostname: a, port: 2222}]", ""),
        ("[a]", "[{hostname: a, lost: gone}]", ""),
        ("[a]", "[b]", ""),
    ],
)
def test_one_host_of_two_fleets(tmp_path, one, two, detail):
    """A host that two fleets claim is an error at both, each naming the other."""
    config = "ssh_config: {{hosts: {}}}"
    loaded = load(tmp_path, fleet(config.format(one), "one") + fleet(config.format(two), "two"))
    found = told(loaded, "host-claimed-twice")
    assert len(found) == (2 if detail else 0)
    for text, other in zip(found, ("two", "one"), strict=False):
        assert text.startswith(detail.format(other))
        assert f"`{other}` (tree.yaml:" in text


FLEET = fleet("ssh_config: {hosts: 'gpu[1-4]'}")
RESERVATION = "---\ntype: reservation\nname: {}\nfleet: gpus\nprojects: vision\n{}\n"
PROJECT = "---\ntype: project\nname: vision\n"


@pytest.mark.parametrize(
    ("one", "two", "overlap"),
    [
        # Once and once.
        ("begin: 2026-12-01T00:00Z\nduration: 2h", "begin: 2026-12-01T01:00Z\nduration: 2h", True),
        ("begin: 2026-12-01T00:00Z\nduration: 1h", "begin: 2026-12-01T01:00Z\nduration: 2h", False),
        ("begin: 2026-12-01T00:00Z", "begin: 2027-12-01T01:00Z\nduration: 2h", True),
        (
            "begin: 2026-12-01T01:00+01:00\nduration: 1h",
            "begin: 2026-12-01T00:30Z\nduration: 1h",
            True,
        ),
        # Again and again, and once.
        (
            "begin: 2026-12-01T00:00Z\nduration: 2h\nrepeat: daily",
            "begin: 2026-12-24T01:00Z\nduration: 1h",
            True,
        ),
        (
            "begin: 2026-12-01T00:00Z\nduration: 2h\nrepeat: daily",
            "begin: 2026-12-24T02:00Z\nduration: 22h",
            False,
        ),
        (
            "begin: 2026-12-01T00:00Z\nduration: 2h\nrepeat: weekly",
            "begin: 2026-12-02T00:00Z\nduration: 6d",
            False,
        ),
        (
            "begin: 2026-12-01T00:00Z\nduration: 2h\nrepeat: weekly",
            "begin: 2026-12-02T00:00Z\nduration: 7d",
            True,
        ),
        (
            "begin: 2026-12-01T00:00Z\nduration: 2h\nrepeat: daily",
            "begin: 2026-11-01T00:00Z\nduration: 1d",
            False,
        ),
        # Again and again, both.
        (
            "begin: 2026-12-01T00:00Z\nduration: 2h\nrepeat: daily",
            "begin: 2026-12-03T01:00Z\nduration: 2h\nrepeat: weekly",
            True,
        ),
        (
            "begin: 2026-12-01T00:00Z\nduration: 2h\nrepeat: daily",
            "begin: 2026-12-03T02:00Z\nduration: 22h\nrepeat: weekly",
            False,
        ),
        (
            "begin: 2026-12-01T23:00Z\nduration: 2h\nrepeat: daily",
            "begin: 2026-12-03T00:30Z\nduration: 1h\nrepeat: daily",
            True,
        ),
    ],
)
def test_reservations_at_one_time(tmp_path, one, two, overlap):
    """Two reservations of a whole fleet at one time are an error at both."""
    text = FLEET + PROJECT + RESERVATION.format("one", one) + RESERVATION.format("two", two)
    found = told(load(tmp_path, text), "reservations-overlap")
    assert len(found) == (2 if overlap else 0)
    if overlap:
        assert found[0].startswith("The reservation `two` (tree.yaml:")
        assert found[1].startswith("The reservation `one` (tree.yaml:")


@pytest.mark.parametrize(
    ("one", "two", "overlap"),
    [
        ("hosts: [gpu1, gpu2]", "hosts: [gpu3]", False),
        ("hosts: [gpu1, gpu2]", "hosts: [GPU2]", True),
        ("nodes: 2", "nodes: 2", False),
        ("nodes: 2", "nodes: 3", True),
        ("nodes: 3", "hosts: [gpu1]", False),
        ("nodes: 3", "hosts: [gpu1, gpu2]", True),
        ("nodes: 1", "", True),
    ],
)
def test_reservations_of_other_hosts(tmp_path, one, two, overlap):
    """At one time, two reservations agree if the fleet has hosts for both."""
    when = "begin: 2026-12-01T00:00Z\nduration: 2h"
    text = (
        FLEET
        + PROJECT
        + RESERVATION.format("one", f"{when}\n{one}")
        + RESERVATION.format("two", f"{when}\n{two}")
    )
    assert len(told(load(tmp_path, text), "reservations-overlap")) == (2 if overlap else 0)


def test_reservations_of_hosts_that_are_not(tmp_path):
    """A host that the fleet does not have, and more hosts than it has, are told."""
    when = "begin: 2026-12-01T00:00Z\nduration: 2h"
    loaded = load(
        tmp_path,
        FLEET
        + PROJECT
        + RESERVATION.format("one", f"{when}\nhosts: [gpu1, gpu7]")
        + RESERVATION.format("two", "begin: 2027-12-01T00:00Z\nnodes: 9"),
    )
    assert told(loaded, "unknown-reference") == ["The fleet `gpus` has no host `gpu7`."]
    assert told(loaded, "never-placed") == ["`gpus` has 4 hosts of the 9 that are to be reserved."]


def test_declared_devices_limit_the_gpus_of_a_host(tmp_path):
    """A run that needs more GPUs than the environment may use gets a finding before it waits."""
    text = fleet("ssh_config: {hosts: [{hostname: one, capacity: {devices: [3, 0]}}]}") + RUN
    assert told(load(tmp_path, f"{text}resources: {{gpu: 2}}"), "never-placed") == []
    assert told(load(tmp_path, f"{text}resources: {{gpu: 3}}"), "never-placed") == [
        "`gpus` has 2 GPUs a node of the 3 asked for."
    ]


@pytest.mark.parametrize(
    ("capacity", "code", "text"),
    [
        ("{devices: [0], gpu: 1}", "contradiction", "`devices` selects among them"),
        ("{devices: [], gpu: 'A100:80GB:8'}", "contradiction", "`devices` selects among them"),
        ("{devices: [1, 0, 1]}", "bad-value", "The device `1` is named twice."),
        ("{devices: [GPU-5e, GPU-5e]}", "bad-value", "`GPU-5e` is named twice."),
        ("{devices: 0}", "bad-value", "expected a list of GPUs"),
        ("{devices: [-1]}", "bad-value", "`-1` is a number; expected the index or the UUID"),
        ("{devices: [true]}", "bad-value", "`true` is a boolean; expected the index"),
        ("{devices: [5e1f]}", "bad-value", "`5e1f` is text; expected the index"),
        ("{devices: [GPU-5E]}", "bad-value", "`GPU-5E` is text; expected the index"),
    ],
)
def test_devices_that_are_no_list_of_different_gpus(tmp_path, capacity, code, text):
    """Each mistake is a finding that says what is wrong; none hides a GPU or allots another one."""
    hosts = f"ssh_config: {{hosts: [{{hostname: one, capacity: {capacity}}}]}}"
    (error,) = load(tmp_path, fleet(hosts)).errors
    assert (error.code, text in error.detail) == (code, True), error


def test_the_order_of_devices_means_nothing(tmp_path):
    """Two orders of one list are one configuration; indices come before UUIDs."""
    documents = []
    for number, devices in enumerate(("[GPU-5e, 3, 0]", "[0, GPU-5e, 3]")):
        folder = tmp_path / str(number)
        folder.mkdir()
        hosts = f"ssh_config: {{hosts: [{{hostname: one, capacity: {{devices: {devices}}}}}]}}"
        (declared,) = load(folder, fleet(hosts)).desired.resources.values()
        documents.append(declared.document["ssh_config"]["hosts"][0]["capacity"])
    assert documents == [{"devices": [0, 3, "GPU-5e"]}] * 2


def test_a_local_fleet_has_no_devices(tmp_path):
    """It divides the GPUs of this machine among its nodes."""
    loaded = load(tmp_path, fleet("local: {devices: [0]}"))
    assert [error.code for error in loaded.errors] == ["unknown-field"]
