"""Amounts: slips are told with what was meant, and all are written as they are read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetform.spec.quantities import (
    OFF,
    Cpu,
    Gpu,
    Range,
    cpu_document,
    format_bytes,
    format_cpu,
    format_duration,
    format_gpu,
    format_millicores,
    format_range,
    gpu_document,
    parse_cpu,
    parse_disk,
    parse_duration,
    parse_gpu,
    parse_int_range,
    parse_memory,
    parse_memory_range,
)

GB = 2**30
AMOUNT_MAX = 2**63 - 1

PARSERS: tuple[Callable[[Any], object], ...] = (
    parse_cpu,
    parse_disk,
    parse_duration,
    parse_gpu,
    parse_int_range,
    parse_memory,
    parse_memory_range,
)


ADVICE = [
    (parse_memory, "8Gi", "`8GB`"),
    (parse_memory, "8GiB", "`8GB`"),
    (parse_memory, "512M", "`512MB`"),
    (parse_memory, "1,5TB", "`1.5TB`"),
    (parse_memory, "1PB", "MB, GB and TB"),
    (parse_memory, "8GB..", "is a range"),
    (parse_memory, float("nan"), "not a size"),
    (parse_memory, float("inf"), "not a size"),
    (parse_memory, 10**400, "not a size"),
    (parse_memory_range, "8GB...16GB", "`8GB..16GB`"),
    (parse_memory_range, "8GB…16GB", "`8GB..16GB`"),
    (parse_memory_range, "8GB+", "`8GB..`"),
    (parse_memory_range, ">=8GB", "`8GB..`"),
    (parse_memory_range, "<=8GB", "`..8GB`"),
    (parse_memory_range, "8GB-16GB", "`8GB..16GB`"),
    (parse_memory_range, "16GB..8GB", "swap"),
    (parse_memory_range, {"min": "8GB", "maximum": 1}, "`maximum`"),
    (parse_memory_range, {}, "neither `min` nor `max`"),
    (parse_int_range, "8-16", "`8..16`"),
    (parse_int_range, None, "No value is given"),
    (parse_cpu, "500m", "`0.5`"),
    (parse_cpu, "arm64:4", "`arm:4`"),
    (parse_cpu, "4:4", "twice"),
    (parse_cpu, "arm:x86", "twice"),
    (parse_cpu, "0.0001", "thousandth"),
    (parse_cpu, {"cores": 2}, "`cores`"),
    (parse_gpu, "A100:80", "`A100:80GB`"),
    (parse_gpu, "A100:80", "`A100:80..80`"),
    (parse_gpu, 24, "`24GB`"),
    (parse_gpu, "A100:80G", "`80GB`"),
    (parse_gpu, "A100:80Gi", "`80GB`"),
    (parse_gpu, "A100,,H100", "empty name"),
    (parse_gpu, "A100:H100", "commas"),
    (parse_duration, -300, "`-300` is negative; write a duration such as `300` or `5m`."),
    (parse_gpu, "H100x8", "`H100x8` is not a GPU's name; write `H100:8`."),
    (parse_gpu, "8xH100", "write `H100:8`."),
    (parse_gpu, "nvidia:MI300Xx4:192GB", "write `nvidia:MI300X:4:192GB`."),
    (parse_gpu, "RTX4090 x 2", "write `RTX4090:2`."),
    (parse_gpu, {"name": "H100x8"}, "the name `H100` and the count 8"),
    (parse_gpu, "gpu:4", "`gpu` in `gpu:4` is not a GPU's name; write `4`, which is of any model."),
    (parse_gpu, "gpu", "`gpu` is not a GPU's name; write `1`"),
    (parse_gpu, "nvidia:gpus:2", "write `nvidia:2`"),
    (parse_gpu, "gpu:a100:4", "write `a100:4`, without the `gpu:` of others"),
    (parse_gpu, "gres:gpu:1..4", "write `1..4`"),
    (parse_gpu, "2:GPU", "write `2`"),
    (parse_gpu, {"name": "gpu", "count": 4}, "`gpu` is not a GPU's name"),
    (parse_gpu, {"nme": "A100"}, "`nme`"),
    (parse_gpu, {"name": {"a": 1}}, "list of names"),
    (parse_gpu, {"compute_capability": "new"}, "`8.0`"),
    (parse_gpu, {"slice": "1g"}, "`1g.10gb`"),
    (parse_gpu, {"slice": "1g.10gb", "memory": "10GB"}, "leave out `memory`"),
    (parse_duration, "1M", "`1m`"),
    (parse_duration, "2 hours", "`2h`"),
    (parse_duration, "1.5h", "`1h30m`"),
    (parse_duration, "1y", "`365d`"),
    (parse_duration, "30m1h", "out of order"),
    (parse_duration, "never", "not a duration"),
    (parse_duration, 10**30, "hundred years"),
    (parse_duration, [1], "a list"),
]


@pytest.mark.parametrize(
    "name", ["RTX4090", "GTX16", "MI300X", "B200x", "v5p-8", "RTX 6000 Ada", "tt-n150"]
)
def test_a_model_with_an_x_in_its_name_is_a_name(name):
    """Only a count behind or before the `x` makes it another thing."""
    assert parse_gpu(f"{name}:8").names == (name,)


@pytest.mark.parametrize(("parse", "value", "said"), ADVICE)
def test_says_what_was_meant(parse: Callable[[Any], object], value: Any, said: str):
    """The message for a common slip contains what should have been written."""
    with pytest.raises(ValueError) as caught:
        parse(value)
    message = str(caught.value)
    assert said in message
    assert "\n" not in message
    assert message.endswith(".")


def test_sizes_are_powers_of_1024():
    """8GB is 2 ** 33 bytes, and shown as it was said."""
    assert parse_memory("8GB") == 8 * 2**30
    assert format_bytes(8589934592) == "8GB"
    assert format_bytes(1536 * 2**30) == "1.5TB"
    assert format_bytes(512 * 2**20) == "512MB"
    assert format_bytes(0) == "0GB"


def test_cpus_have_parts():
    """Half a CPU is 500 millicores, shown without trailing zeros."""
    assert parse_cpu("0.5..2") == Cpu(Range(500, 2000))
    assert [format_millicores(amount) for amount in (500, 2000, 1250, 1)] == [
        "0.5",
        "2",
        "1.25",
        "0.001",
    ]


def test_durations_are_shown_in_the_units_people_count_in():
    """Seconds are shown as days, hours, minutes and seconds."""
    shown = [format_duration(seconds) for seconds in (0, 45, 5400, 7200, 864000, OFF)]
    assert shown == ["0s", "45s", "1h30m", "2h", "10d", "off"]


def test_documents_contain_only_what_was_said():
    """The canonical forms lack what was not said, and an open end is null."""
    assert cpu_document(parse_cpu("x86")) == {"arch": "x86"}
    assert cpu_document(parse_cpu("2..")) == {"min": 2000, "max": None}
    assert gpu_document(parse_gpu("A100:80GB..")) == {
        "name": ["A100"],
        "memory": {"min": 80 * GB, "max": None},
    }
    assert gpu_document(parse_gpu(0)) == {"count": {"min": 0, "max": 0}}


def test_a_range_is_never_asked_back():
    """Many GPUs can be asked for when it is said as a range or with their memory."""
    assert parse_gpu("A100:80..80").count == Range(80, 80)
    assert parse_gpu("A100:40GB:80").count == Range(80, 80)


amounts = st.integers(0, AMOUNT_MAX)


def ranges(inner: st.SearchStrategy[int]) -> st.SearchStrategy[Range]:
    pairs = st.tuples(st.none() | inner, st.none() | inner).filter(
        lambda pair: pair != (None, None)
    )
    return pairs.map(lambda pair: Range(*pair) if None in pair else Range(min(pair), max(pair)))


@given(amounts)
def test_sizes_are_read_as_written(amount: int):
    """Every size is written exactly."""
    assert parse_memory(format_bytes(amount)) == amount


@given(ranges(amounts))
def test_ranges_are_read_as_written(range_: Range):
    """Ranges of sizes and counts are written exactly, and their documents are read too."""
    assert parse_memory_range(format_range(range_, format_bytes)) == range_
    assert parse_int_range(format_range(range_)) == range_
    assert parse_int_range(range_.document()) == range_


@given(st.integers(0, 100 * 365 * 86400) | st.just(OFF))
def test_durations_are_read_as_written(seconds: int):
    """Every duration is written exactly."""
    assert parse_duration(format_duration(seconds), off=True) == seconds


@given(
    st.builds(Cpu, st.none() | ranges(st.integers(0, 10**9)), st.sampled_from(["", "x86", "arm"]))
)
def test_cpus_are_read_as_written(cpu: Cpu):
    """Every requirement of CPUs that says something is written exactly."""
    if cpu != Cpu(None):
        assert parse_cpu(format_cpu(cpu)) == cpu
    assert Cpu.from_document(cpu_document(cpu)) == cpu


gpus = st.builds(
    Gpu,
    st.sampled_from(["", "nvidia", "amd", "google"]),
    st.lists(st.sampled_from(["A100", "H100", "RTX4090", "v5p-8"]), unique=True).map(tuple),
    st.none() | ranges(st.integers(0, 1000)),
    st.none() | ranges(amounts),
)
capable_gpus = st.builds(
    Gpu,
    total_memory=st.none() | ranges(amounts),
    compute_capability=st.none() | st.tuples(st.integers(0, 99), st.integers(0, 9)),
    slice=st.sampled_from(["", "1g.10gb", "3g.40gb", "1c.3g.40gb", "1g.10gb+me"]),
)


@given(gpus)
def test_gpus_are_read_as_written(gpu: Gpu):
    """Every requirement of GPUs that says something is written exactly."""
    if gpu != Gpu():
        assert parse_gpu(format_gpu(gpu)) == gpu
    assert Gpu.from_document(gpu_document(gpu)) == gpu


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=30),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=6,
)
tokens = st.lists(
    st.sampled_from(
        [
            "8",
            "80",
            "GB",
            "G",
            "..",
            ".",
            ":",
            ",",
            "A100",
            "x86",
            "-",
            "h",
            "m",
            " ",
            "+",
            "…",
            "0x",
        ]
    ),
    max_size=8,
).map("".join)
fields = st.dictionaries(
    st.sampled_from(["min", "max", "size", "arch", "count", "name", "vendor", "memory"]),
    tokens | anything,
    max_size=3,
)


@given(anything | tokens | fields)
def test_other_values_are_refused_in_one_sentence(value: Any):
    """Whatever YAML gives is read, or refused with a sentence on one line."""
    for parse in PARSERS:
        said = refusal(parse, value)
        assert said is None or (said.endswith(".") and said.isprintable() and len(said) < 500), said


@given(capable_gpus)
def test_documents_of_gpus_are_read_back(gpu: Gpu):
    """What has no short spelling survives in the document."""
    assert Gpu.from_document(gpu_document(gpu)) == gpu


def refusal(parse: Callable[[Any], object], value: Any) -> str | None:
    try:
        parse(value)
    except ValueError as exc:
        return str(exc)
    return None


def test_numbers_without_end_are_refused():
    """An integer too long for Python to print is refused like any other value."""
    for parse in PARSERS:
        for value in (10**5000, -(10**5000), [10**5000], {"min": 10**5000}):
            assert (refusal(parse, value) or "").endswith(".")
