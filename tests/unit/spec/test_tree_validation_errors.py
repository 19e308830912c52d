"""Errors of validation in our own words: one mistake is one finding."""

from __future__ import annotations

import pytest

from unit.spec.trees import load

SERVICE = "type: service\nname: chat\ncommands: [serve]\n"
TASK = "type: task\nname: train\n"
DISK = "type: volume\nname: data\nbackend: aws\n"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        # There and wrong is not missing.
        (SERVICE + "port: 80\nreplicas: 0..4\nscaling: {metric: qps, target: 1}", "bad-value"),
        (TASK + "commands: {a: 1}", "wrong-type"),
        (TASK + "image: 5", "wrong-type"),
        (TASK + "groups: 5", "wrong-type"),
        (TASK + "groups: [{name: one}]\nimage: 5", "wrong-type"),
        ("type: secret\nname: token\nvalue: hunter2", "secret-in-clear"),
        ("type: secret\nname: token\nstringData: {a: b}", "secret-in-clear"),
        ("type: secret\nname: token\nfile: token", "bad-path"),
        ("type: volume\nname: data\nfleet: 5\npath: /data", "wrong-type"),
        ("type: volume\nname: data\nfleet: local\npath: 5", "wrong-type"),
        (DISK + "region: 5\nsize: 1TB", "wrong-type"),
        (DISK + "region: eu-west-1\nsize: big", "bad-value"),
        ("type: quota\nname: all\nuser: Ada\ngpus: 8", "bad-name"),
        ("type: quota\nname: all\nuser: ada\ngpus: many", "bad-value"),
        ("type: policy\nname: care\napproval: perhaps", "wrong-type"),
        ("type: fleet\nname: local\nlocal: true\nsharing: blocks\nblocks: 0", "bad-value"),
        # Under another name, it is there as well.
        (TASK + "command: [train]", "unknown-field"),
        (TASK + "script: train", "unknown-field"),
        (SERVICE + "ports: [80]", "unknown-field"),
        ("type: secret\nname: token\nfrom_env: TOKEN", "unknown-field"),
        (DISK + "location: eu-west-1\nsize: 1TB", "unknown-field"),
        (TASK + "commands: [a]\ncheckpoint: {signal: USR1, leads: 5m}", "unknown-field"),
    ],
)
def test_one_mistake_is_one_finding(tmp_path, text, code):
    """A field that is there, and wrong or misspelt, is not told to be missing as well."""
    world = "---\ntype: fleet\nname: other\nlocal: true\n---\ntype: user\nname: ada\n"
    found = [one.code for one in load(tmp_path, f"{text}\n{world}").findings]
    assert [one for one in found if one not in {"unknown-reference", "not-supported"}] == [code]


def test_mistakes_are_told_together(tmp_path):
    """A field that is missing is told along with another that is wrong."""
    found = load(tmp_path, f"{TASK}retry: 5\n").findings
    assert sorted(one.code for one in found) == ["missing-field", "wrong-type"]


def test_a_document_without_a_name_has_all_of_its_mistakes_reported(tmp_path):
    """Between fields, in expressions, and in what it refers to: one look corrects them all."""
    text = """type: task
commands: ["echo ${{ matrix.rate }}"]
matrix: {lr: [1, 2]}
max_duration: 5m
checkpoint: {signal: USR1, lead: 10m}
---
type: task
commands: [a]
fleets: [labb]
---
type: fleet
name: lab
local: true
"""
    found = load(tmp_path, text).findings
    assert [(one.place.line, one.code) for one in found] == [
        (1, "missing-field"),
        (2, "unknown-expression"),
        (5, "contradiction"),
        (7, "missing-field"),
        (9, "unknown-reference"),
    ]


@pytest.mark.parametrize(
    ("command", "advice"),
    [
        ("echo a: b", "Quote the command: `- 'echo a: b'`."),
        ("echo it's: b", "Quote the command: `- 'echo it''s: b'`."),
        ("echo count: 5", "Quote the command: `- 'echo count: 5'`."),
        ("echo a:", "Quote the command: `- 'echo a:'`."),
        ("echo a: [b]", "Quote the command, or put it on a line of its own below `- |`."),
    ],
)
def test_a_command_that_is_read_as_a_mapping_is_to_be_quoted(tmp_path, command, advice):
    """The finding stands at the command and shows its line, and the advice loads as it is written."""
    text = f"{TASK}commands:\n  - echo one\n  - {command}\n"
    (found,) = load(tmp_path, text).errors
    assert (found.place.line, found.place.column) == (5, 5)
    assert found.text == f"  - {command}"
    assert found.advice == advice
    if "`- '" in advice:
        quoted = advice.split("`")[1]
        fixed = load(tmp_path, f"{TASK}commands:\n  - echo one\n  {quoted}\n")
        (run,) = (one for one in fixed.desired.resources.values())
        assert run.document["commands"] == ["echo one", command]


def test_what_is_filled_in_later_is_there(tmp_path):
    """A field whose value depends on the element is not missing before that is known."""
    text = f"{TASK}matrix: {{image: [one, two]}}\nimage: ${{{{ matrix.image }}}}\n"
    assert load(tmp_path, text).errors == ()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("type: job\nname: train", "Did you mean `task`?"),
        ("type: Deployment\nname: chat", "Did you mean `service`?"),
        ("type: node-pool\nname: gpus", "Did you mean `fleet`?"),
        ("apiVersion: batch/v1\nkind: Job\nmetadata: {name: train}", "Write a `type: task`"),
        ("apiVersion: v1\nkind: ConfigMap", "of Kubernetes, which fleetform does not read."),
        (TASK + "commands: [a]\nmax_duration: 1-12:00:00", "write `1d12h`"),
        (TASK + "commands: [a]\nmax_duration: '24:00:00'", "write `1d`"),
        (TASK + "commands: [a]\nenv: [{name: A, value: true}]", "`{name: A, value: true}` is a"),
        (TASK + "commands: [a]\nenv: [{name: A, value: true}]", "Write `NAME=VALUE`"),
        (TASK + "commands: [a]\nresources: {gpu: gpu:a100:4}", "write `a100:4`, without"),
        (TASK + "commands: [a]\nresources: {gpu: H100x8}", "write `H100:8`"),
        (TASK + "commands: [a]\nresources: {gpu: gpu:4}", "write `4`, which is of any model"),
        (TASK + "commands: [a]\ndepends_on: [afterok:7]", "with the name of run `7`"),
        (TASK + "commands: [a]\ndepends_on: afterany:7:8", "`{run: NAME, when: finished}`"),
        (TASK + "commands: [a]\ndepends_on: afternotok:prep", "{run: prep, when: failed}`."),
        (TASK + "commands: [a]\ndepends_on: [afterok:prep]", "Write `prep`."),
        (TASK + "commands: [a]\ndepends_on: [aftercorr:prep]", "{run: prep, each: true}`."),
        (TASK + "commands: [a]\ndepends_on: [after:prep+5]", "{run: prep, when: started}`."),
        (TASK + "commands: {a: [{b: {c: d}}, null]}", "`{a: […, null]}` is a mapping"),
    ],
)
def test_what_was_brought_along_is_known(tmp_path, text, words):
    """Habits of Slurm and Kubernetes are answered with what to write, and in words of YAML."""
    (finding,) = load(tmp_path, f"{text}\n").errors
    assert words in f"{finding.detail} {finding.advice}"


@pytest.mark.parametrize(
    ("resources", "column"),
    [
        ("{gpu: {count: x}}", 26),
        ("{gpu: {count: {min: x}}}", 32),
        ("{gpu: {vendor: x}}", 27),
        ("{cpu: {min: x}}", 24),
        ("{cpu: {count: {max: x}}}", 32),
        ("{memory: {max: x}}", 27),
        ("{disk: {size: x}}", 26),
        ("{gpu: 'x:y'}", 18),
    ],
)
def test_a_wrong_part_of_an_amount_is_at_its_place(tmp_path, resources, column):
    """The caret points at the part of a mapping that is wrong, and not at the amount as a whole."""
    text = f"{TASK}commands: [a]\nresources: {resources}\n"
    (found,) = load(tmp_path, text).findings
    assert (found.place.line, found.place.column) == (4, column)


def test_choices_are_listed_once(tmp_path):
    """A value that is allowed for a run and for its elements is one choice."""
    (found,) = load(tmp_path, f"{TASK}commands: [a]\nstate: paused\n").findings
    assert found.advice == "Did you mean `stopped`? Choose one of `running`, `stopped`."
