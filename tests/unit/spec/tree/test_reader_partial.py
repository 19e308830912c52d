"""All independent mistakes of a document are reported in one pass, and no mistake twice."""

from __future__ import annotations

import pytest

from unit.spec.trees import load

LOCAL = "type: fleet\nname: local\nlocal: {cpu: 4, memory: 4GB}\n---\n"
TASK = "type: task\nname: train\n"


def lines(loaded) -> list[tuple[int, str]]:
    """Line and code of each finding."""
    return [(one.place.line, one.code) for one in loaded.findings if one.level != "note"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "commands: ['echo ${{ matrix.lr }}']\nvolumes: [data:/data]\nfleets: [locl]",
            [(7, "unknown-expression"), (8, "undeclared-reference"), (9, "unknown-reference")],
        ),
        (
            "commands: ['echo ${{ matrix.lr }}']\nresources: {cpu: 64}",
            [(7, "unknown-expression"), (8, "never-placed")],
        ),
        (
            "commands: [a]\nfleets: [locl, LOCAL]\nretry: 5",
            [(8, "unknown-reference"), (8, "bad-name"), (9, "wrong-type")],
        ),
        (
            "commands: [a]\ndepends_on: [nix, {run: '!'}]\nvolumes: [data:/data, 5]",
            [
                (8, "unknown-reference"),
                (8, "bad-name"),
                (9, "undeclared-reference"),
                (9, "wrong-type"),
            ],
        ),
        (
            "commands: ['${{ nope.a }}']\nmatrix: {n: [1, x]}\nnodes: ${{ matrix.n }}",
            [(7, "unknown-expression"), (9, "bad-value")],
        ),
        (
            "commands: [a]\narray: ${{ values.n }}\nfleets: [locl]",
            [(8, "unknown-expression"), (9, "unknown-reference")],
        ),
    ],
)
def test_one_pass_reports_all_mistakes(tmp_path, text, expected):
    """A wrong expression, entry or field leaves the others of its document to be checked."""
    assert lines(load(tmp_path, f"{LOCAL}{TASK}{text}\n")) == expected


def test_a_wrong_expression_of_a_fleet_hides_no_other_mistake(tmp_path):
    """Documents other than runs are read without the field whose expression is wrong."""
    text = "type: volume\nname: data\npath: /data\nsize: ${{ values.size }}\nfleet: locl\n"
    codes = [code for _, code in lines(load(tmp_path, LOCAL + text))]
    assert {"unknown-expression", "unknown-reference"} <= set(codes)


def test_wrong_names_lead_to_a_cycle(tmp_path):
    """Runs whose names are wrong wait for each other all the same, which correct names do not cure."""
    text = "---\n".join(
        f"type: task\nname: {name}\ncommands: [a]\ndepends_on: [{other}]\n"
        for name, other in ("ab", "bc", "ca")
    )
    found = load(tmp_path, text).findings
    assert [one.code for one in found].count("bad-name") == 6
    assert [one.detail for one in found if one.code == "dependency-cycle"] == [
        "None of them can ever start: a → b → c → a.",
        "None of them can ever start: b → c → a → b.",
        "None of them can ever start: c → a → b → c.",
    ]


@pytest.mark.parametrize(
    "text",
    [
        # What is compared is not known.
        "commands: [a]\nresources: {cpu: 64, memory: x}",
        "commands: [a]\nresources: {cpu: 64}\nfleets: 5",
        # An expression names no fleet, and a path of a host no volume.
        "commands: [a]\nretry: 5\nmatrix: {f: [local]}\nfleets: ['${{ matrix.f }}']",
        "commands: [a]\nvolumes: [/mnt:/mnt, 5]",
        # Elements are unknown while what they are made from is.
        "commands: ['${{ matrix.n }}']\nmatrix: ${{ values.n }}",
        "commands: [a]\nname: Train",
    ],
)
def test_one_mistake_causes_no_other(tmp_path, text):
    """What cannot be known because of one mistake is not reported as another."""
    task = TASK.replace("name: train\n", "") if "name:" in text else TASK
    assert len(lines(load(tmp_path, f"{LOCAL}{task}{text}\n"))) == 1


def test_a_run_without_a_usable_name_hides_no_mistake_of_fleets(tmp_path):
    """A misspelt GPU is reported while the name of some run is wrong: that run is no fleet."""
    named = "type: task\nname: B\ncommands: [a]\n---\n"
    text = f"{TASK}commands: [a]\nresources: {{gpu: HH100}}\n"
    assert [code for _, code in lines(load(tmp_path, LOCAL + named + text))] == [
        "bad-name",
        "unknown-gpu",
    ]
