"""What is wrong between documents."""

from __future__ import annotations

import time

import pytest

from unit.spec.trees import codes, good, load

FLEET = "---\ntype: fleet\nname: local\nlocal: {cpu: 8, memory: 32GB, gpu: A100:80GB:2}\nnodes: 2\n"


def task(name: str, rest: str = "") -> str:
    return f"---\ntype: task\nname: {name}\ncommands: [echo]\n{rest}\n"


def details(loaded) -> list[str]:
    return [finding.detail for finding in loaded.findings]


def test_unknown_references(tmp_path):
    """A fleet, a volume and a run that nobody declares are told where they are named; a volume may come later."""
    loaded = load(
        tmp_path,
        FLEET
        + task(
            "one", "fleets: [loca]\nvolumes: ['data:/x']\ndepends_on: [{run: tow, when: finished}]"
        )
        + task("two"),
    )
    assert codes(loaded) == ["unknown-reference", "undeclared-reference", "unknown-reference"]
    assert [finding.level for finding in loaded.findings] == ["error", "warning", "error"]
    assert [finding.advice for finding in loaded.findings] == [
        "Did you mean `local`?",
        "The configuration declares no volume; add a document with `type: volume`. Until then, plans block this.",
        "Did you mean `two`?",
    ]
    assert [(finding.place.line, finding.place.column) for finding in loaded.findings] == [
        (10, 10),
        (11, 11),
        (12, 20),
    ]


def test_broken_is_no_unknown(tmp_path):
    """Who refers to a broken document is not told off for it."""
    loaded = load(tmp_path, task("one", "nods: 3") + task("two", "depends_on: one"))
    assert codes(loaded) == ["unknown-field"]


def test_elements_are_known(tmp_path):
    """A dependency may name one element, which has to exist."""
    sweep = task("sweep", "matrix: {lr: [0.1, 0.2]}")
    desired = good(tmp_path, sweep + task("one", "depends_on: 'sweep[lr=0.1]'"))
    assert {one.upstream for one in desired.resources.values()} == {(), ("sweep[lr=0.1]",)}
    loaded = load(tmp_path, sweep + task("one", "depends_on: 'sweep[lr=0.15]'"))
    assert codes(loaded) == ["unknown-reference"]


def test_cycles_have_a_way(tmp_path):
    """Each run in a cycle is told with the way around; one that only waits for it is not."""
    loaded = load(
        tmp_path,
        task("one", "depends_on: two")
        + task("two", "depends_on: three")
        + task("three", "depends_on: one")
        + task("after", "depends_on: one")
        + task("self", "depends_on: self"),
    )
    assert codes(loaded) == ["dependency-cycle"] * 4
    assert details(loaded) == [
        "None of them can ever start: one → two → three → one.",
        "None of them can ever start: two → three → one → two.",
        "None of them can ever start: three → one → two → three.",
        "`self` waits for itself.",
    ]


def test_a_long_chain_is_no_cycle(tmp_path):
    """Three thousand runs in a chain are followed in linear time and without recursion."""
    chain = "".join(task(f"run-{n}", f"depends_on: run-{n - 1}" if n else "") for n in range(3000))
    began = time.perf_counter()
    desired = good(tmp_path, chain)
    assert len(desired.resources) == 3000
    assert time.perf_counter() - began < 20


def test_upstream_of_a_sweep_is_shared(tmp_path):
    """All who wait for a sweep hold one tuple of its elements, in order of name."""
    desired = good(tmp_path, task("one", "array: 1-3") + task("two", "array: 1-9\ndepends_on: one"))
    waiting = [one.upstream for one in desired.resources.values() if one.parent == "two"]
    assert waiting[0] == ("one[1]", "one[2]", "one[3]")
    assert all(names is waiting[0] for names in waiting)


@pytest.mark.parametrize(
    ("one", "two", "detail"),
    [
        ("array: 1-3", "array: 1-4", "`two[4]` would wait for the element `one[4]`"),
        ("array: 1-4", "array: 1-3", "Nothing would wait for `one[4]`"),
        ("", "array: 1-3", "`one` is one run"),
        ("array: 1-3", "", "`two` is one run"),
    ],
)
def test_each_needs_equal_elements(tmp_path, one, two, detail):
    """`each` between runs whose elements differ is told with one that has no partner."""
    loaded = load(
        tmp_path, task("one", one) + task("two", f"{two}\ndepends_on: [{{run: one, each: true}}]")
    )
    assert codes(loaded) == ["element-mismatch"]
    assert detail in loaded.findings[0].detail


def test_volumes_at_one_path(tmp_path):
    """Two volumes at one path of one fleet are told."""
    volume = "---\ntype: volume\nname: {}\nfleet: local\npath: /data{}\n"
    loaded = load(tmp_path, FLEET + volume.format("one", "") + volume.format("two", "/./"))
    assert codes(loaded) == ["path-claimed-twice"]


@pytest.mark.parametrize(
    ("one", "two", "told"),
    [
        ("/data", "/data/sets/a", True),
        ("/data/sets", "/data", True),
        ("/", "/data", True),
        ("sets", "sets/a", True),
        (".", "sets", True),
        ("/data", "/data2", False),
        ("data", "/data/sets", False),
    ],
)
def test_a_volume_in_another(tmp_path, one, two, told):
    """Whichever is written first, the inner one is told, with the name of the outer one."""
    volume = "---\ntype: volume\nname: {}\nfleet: local\npath: {}\n"
    loaded = load(tmp_path, FLEET + volume.format("one", one) + volume.format("two", two))
    assert codes(loaded) == ["path-inside-another"] * told
    if told:
        (finding,) = loaded.findings
        outer = "one" if len(one) < len(two) else "two"
        assert f"directory of the volume `{outer}`" in finding.detail


@pytest.mark.parametrize(
    ("rest", "detail"),
    [
        ("nodes: 3", "`local` has at most 2 nodes of the 3 asked for."),
        ("resources: {cpu: 16}", "`local` has 8 CPUs of the 16 asked for."),
        ("resources: {memory: 64GB}", "`local` has 32GB of memory of the 64GB asked for."),
        ("resources: {gpu: 4}", "`local` has 2 GPUs a node of the 4 asked for."),
        ("resources: {gpu: 'H100:1'}", "`local` has A100 and not H100."),
        ("resources: {gpu: '141GB:1'}", "`local` has 80GB a GPU of the 141GB asked for."),
    ],
)
def test_never_placed_is_a_warning(tmp_path, rest, detail):
    """A run that no declared fleet can take is told, and declared all the same."""
    loaded = load(tmp_path, FLEET + task("one", rest))
    assert codes(loaded) == ["never-placed"]
    assert loaded.findings[0].detail == detail
    assert not loaded.errors


@pytest.mark.parametrize(
    "rest",
    ["nodes: 2", "resources: {cpu: 2..16, gpu: 'a100:40GB..:1..8'}", "resources: {disk: 9TB}"],
)
def test_what_may_fit_is_not_told(tmp_path, rest):
    """Bounds that a fleet can meet, and what it does not declare, give no warning."""
    assert codes(load(tmp_path, FLEET + task("one", rest))) == []


def test_detected_fleet_may_take_anything(tmp_path):
    """A fleet whose capacity is detected is never judged."""
    fleet = "---\ntype: fleet\nname: local\nlocal: true\n"
    assert codes(load(tmp_path, fleet + task("one", "resources: {cpu: 512, gpu: 8}"))) == []
