"""Canonical values as people write them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetform.views.field_text import VALUE_WIDTH, brief_leaves, change_texts, value_text
from fleetform.views.lines import printable

GB = 1 << 30

CASES: list[tuple[str, str, Any, str]] = [
    ("run", "resources.memory", {"min": 8 * GB, "max": None}, "8GB.."),
    ("run", "resources.memory", {"min": 8 * GB, "max": 8 * GB}, "8GB"),
    ("run", "resources.cpu", {"min": 500, "max": 2000}, "0.5..2"),
    ("run", "resources.shm_size", 16 * GB, "16GB"),
    ("run", "max_duration", 7200, "2h"),
    ("run", "max_duration", -1, "off"),
    ("run", "priority", 50, "50"),
    ("run", "priority", -1, "-1"),
    ("run", "checkpoint.lead", 300, "5m"),
    ("run", "nodes", 2, "2"),
    ("run", "env.LR", "0.1", '"0.1"'),
    ("run", "env.NAME", "resnet", "resnet"),
    ("run", "env.EMPTY", "", '""'),
    ("run", "env.FLAG", "true", '"true"'),
    ("run", "commands[0]", "python train.py --lr 0.1", "python train.py --lr 0.1"),
    ("run", "commands[0]", 'echo "a" > b', 'echo "a" > b'),
    ("run", "commands[0]", " a", '" a"'),
    ("run", "commands[0]", "", '""'),
    ("run", "commands[0]", "a\nb", '"a\\nb"'),
    ("run", "commands[0]", '"', '"\\""'),
    ("run", "commands[0]", '"a', '"\\"a"'),
    ("run", "commands[0]", '"a\\"b', '"\\"a\\\\\\"b"'),
    ("run", "commands[0]", '"a b/run" x', '"a b/run" x'),
    ("run", "commands[0]", "'", '"\'"'),
    ("run", "env.MARK", '"', '"\\""'),
    ("run", "env.MARK", "'", '"\'"'),
    ("run", "commands", ["a", "b c"], "[a, b c]"),
    ("run", 'files["a"].mode', 0o755, "0755"),
    ("run", 'files["a"].sha256', "0123456789abcdef", "0123456789ab"),
    ("run", 'files["a"].size', 1024, "1KB"),
    ("run", "depends_on.all", True, "true"),
    ("run", "matrix.lr", 0.1, "0.1"),
    ("run", "retry", None, "(no value)"),
    ("run", "env.HF_TOKEN", None, "(no value)"),
    ("run", "env.HF_TOKEN", "none", "none"),
    ("run", "concurrency", {"limit": 2, "group": "g"}, "{group: g, limit: 2}"),
    ("fleet", "nodes", {"min": 2, "target": 2, "max": 2}, "2"),
    ("fleet", "nodes", {"min": 0, "target": 1, "max": 2}, "0..2 (target 1)"),
    ("fleet", "nodes", {"min": 0, "target": 0, "max": 2}, "0..2"),
    ("fleet", "local.cpu", 256_000, "256"),
    ("fleet", "local", {}, "{}"),
    ("environment", "rules.delete_percent", 10, "10%"),
    (
        "run",
        "resources.gpu",
        {
            "vendor": "nvidia",
            "name": ["A100", "H100"],
            "memory": {"min": 80 * GB, "max": None},
            "count": {"min": 1, "max": 8},
        },
        "nvidia:A100,H100:80GB..:1..8",
    ),
]


@pytest.mark.parametrize(("kind", "path", "value", "text"), CASES)
def test_value(kind: str, path: str, value: Any, text: str) -> None:
    """Units come from the table of fields; what a reader could misread is quoted."""
    assert value_text(kind, path, value) == text


def test_a_file_size_has_a_unit() -> None:
    """A size that is no round number is written exactly."""
    assert value_text("run", "files.size", 3 * GB) == "3GB"


def test_long_values_show_where_they_differ() -> None:
    """What two long values have in common is cut, and nothing of what they have not."""
    before, after = change_texts("run", "commands[0]", "x" * 500 + " a", "x" * 500 + " b")
    assert before != after
    assert before.startswith("…")
    assert before.endswith(" a")
    assert max(len(before), len(after)) <= VALUE_WIDTH
    inserted = "y" * 500
    before, after = change_texts("run", "env.A", "x" * 500, f"{'x' * 250}{inserted}{'x' * 250}")
    assert inserted in after
    assert inserted not in before
    assert after.startswith("…x")
    assert after.endswith("x…")


def test_leaves_of_a_map() -> None:
    """A map has a row for each field in it; ranges and GPUs are read whole."""
    resources = {"cpu": {"min": 2000, "max": None}, "gpu": {"count": {"min": 1, "max": 1}}}
    assert brief_leaves("run", "resources", resources) == [
        ("resources.cpu", "2.."),
        ("resources.gpu", "1"),
    ]
    assert brief_leaves("run", "env", {"min": "x"}) == [("env.min", "x")]
    assert brief_leaves("fleet", "local", {}) == [("local", "{}")]


MOUNTS = [
    ({"name": "data", "path": "/in"}, "data:/in"),
    ({"name": "data", "path": "/in", "read_only": True}, "data:/in (read only)"),
    ({"name": ["data-eu", "data-us"], "path": "/in"}, "[data-eu, data-us]:/in"),
    ({"instance_path": "/host/dir", "path": "/in2"}, "/host/dir:/in2"),
    (
        {"name": "cache", "path": "/c", "instance": True, "optional": True, "read_only": False},
        "cache:/c (each host's own, where there is one)",
    ),
]


def test_hosts_over_ssh_are_a_row_of_names_or_a_row_each() -> None:
    """Names alone fit on one row; of hosts that say more, each has its own."""
    hosts = {"hosts": [{"hostname": "gpu1"}, {"hostname": "gpu2"}], "user": "root"}
    assert brief_leaves("fleet", "ssh_config", hosts) == [
        ("ssh_config.hosts", "gpu1, gpu2"),
        ("ssh_config.user", "root"),
    ]
    hosts = {"hosts": [{"hostname": "gpu1"}, {"hostname": "gpu2", "port": 23, "drain": {}}]}
    assert brief_leaves("fleet", "ssh_config", hosts) == [
        ('ssh_config.hosts["gpu1"]', "gpu1"),
        ('ssh_config.hosts["gpu2:23"]', "{hostname: gpu2, drain: {}, port: 23}"),
    ]


@pytest.mark.parametrize(("mount", "text"), MOUNTS)
def test_a_mount_is_shown_as_it_is_written(mount: dict[str, Any], text: str) -> None:
    """A directory of the host is no volume without a name, and several volumes are a list of YAML."""
    assert brief_leaves("run", "volumes", [mount]) == [("volumes", text)]
    other = {"name": "other", "path": "/o"}
    assert brief_leaves("run", "volumes", [other, mount]) == [("volumes", f"other:/o, {text}")]


@given(st.text())
def test_nothing_is_obeyed_by_a_terminal(text: str) -> None:
    """Whatever a document says, it is shown on one line without control characters."""
    assert printable(text).isprintable()
    assert value_text("run", "env.X", text).isprintable()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=6,
)
PATHS = st.sampled_from(
    ["resources.memory", "resources.gpu", "nodes", "env", "max_duration", "files.mode", "x"]
)


@given(PATHS, JSON)
def test_any_value_can_be_shown(path: str, value: Any) -> None:
    """A ledger may hold a document of another version; showing it never fails."""
    assert value_text("run", path, value).isprintable()
    for name, inner in brief_leaves("run", path, value):
        assert (name + inner).isprintable()


def test_a_freeze_window_reads_as_it_is_written() -> None:
    """Moments and the zone of an expression, and no seconds since 1970."""
    windows = [
        {"reason": "year end", "begin": 1577836800, "end": 3786912000, "duration": 0},
        {"reason": "weekend", "cron": "0 18 * * fri", "duration": 216_000, "only": "destructive"},
    ]
    text = value_text("environment", "rules.freeze", windows)
    assert "year end: 2020-01-01T00:00:00Z to 2090-01-01T00:00:00Z" in text
    assert "1577836800" not in text
    assert value_text("environment", "rules.freeze", windows[1:]) == (
        "[weekend: 0 18 * * fri for 2d12h, only destructive]"
    )


def test_ports_are_shown_in_the_short_form_of_documents():
    """Also where a change shows the whole list before and after."""
    ports = [{"local_port": 8888, "container_port": 8888}, {"container_port": 80}]
    assert brief_leaves("run", "ports", ports) == [("ports", "8888, *:80")]
    before = [{"local_port": 8080, "container_port": 80}]
    assert change_texts("run", "ports", before, ports) == ("[8080:80]", "[8888, *:80]")
