"""Fields of a task: what is refused, in which words, and where."""

from __future__ import annotations

import pytest

from fleetform.spec.kinds.array import ELEMENTS_MAX, parse_array
from unit.spec.trees import codes, good, load

TASK = "type: task\nname: train\ncommands: [python train.py]\n"


@pytest.mark.parametrize(
    ("field", "code", "words"),
    [
        ("gpus: 1", "unknown-field", "Did you mean `resources.gpu`?"),
        ("depends: other", "unknown-field", "Did you mean `depends_on`?"),
        ("cmd: x", "unknown-field", "Did you mean `commands`?"),
        ("resource: {}", "unknown-field", "Did you mean `resources`?"),
        ("image: x", "not-carried-out", "Containers are not carried out"),
        ("python: 3.12", "not-carried-out", "Containers"),
        ("repos: [.]", "not-carried-out", "files:"),
        ("env: [TOKEN]", "not-carried-out", "Write `TOKEN=VALUE`."),
        ("env: [1A=2]", "bad-variable", "no digit in front"),
        ("env: {A: true}", "wrong-type", "Put it in quotes."),
        ("env: {A: {b: c}}", "wrong-type", "mapping"),
        ("volumes: [data]", "bad-value", "Write `data:/path`."),
        ("volumes: [/host:/x]", "not-carried-out", "Declare a volume"),
        (
            "volumes: [{name: data, path: /x, instance: true}]",
            "not-carried-out",
            "Declare a volume",
        ),
        ("shell: fish", "bad-value", "`sh`, `bash` or an absolute path"),
        ("working_dir: ../x", "bad-path", "contains `..`"),
        ("nodes: 0", "bad-value", "the least is 1"),
        ("nodes: true", "bad-value", "truth value"),
        ("priority: 101", "bad-value", "the most is 100"),
        ("priority: -1", "bad-value", "negative"),
        ("max_duration: 2 hours", "bad-value", "2h"),
        ("retry: {on: []}", "bad-value", "list is empty"),
        ("retry: {on: [eror]}", "bad-value", "Did you mean `error`?"),
        ("retry: {on: [error, error]}", "said-twice", "named twice"),
        ("retry: {attempts: 3}", "unknown-field", "Did you mean `max_attempts`?"),
        ("retry: {requeue_exit_codes: [0]}", "bad-value", "the least is 1"),
        ("checkpoint: {signal: KILL, lead: 1m}", "bad-value", "not a signal"),
        ("checkpoint: {signal: USR1}", "missing-field", "`lead` is missing"),
        ("concurrency: 0", "bad-value", "the least is 1"),
        ("runtime: docker", "not-carried-out", "processes of the host"),
        ("state: paused", "bad-value", "`running`, `stopped`"),
        ("array: 10", "bad-array", "Write `array: 1-10`."),
        ("array: 5-1", "bad-array", "Write `1-5`."),
        ("array: 1-9%0", "bad-array", "from 1 behind"),
        ("array: 1,1", "said-twice", "occurs twice"),
        ("array: 1-9:0", "bad-array", "step"),
        ("array: 0-4000000", "too-many-elements", "one document may make"),
        ("matrix: {}", "wrong-type", "parameters with their values"),
        ("matrix: {lr: []}", "bad-value", "no values"),
        ("matrix: {lr: [[1]]}", "wrong-type", "list"),
        ("matrix: {a-b: [1]}", "bad-name", "cannot be the name of a parameter"),
        ("matrix: {lr: [1, 1]}", "said-twice", "twice"),
        ("array: 1-2\nmatrix: {lr: [1]}", "contradiction", "not both"),
        ("array: 1-9%2\nconcurrency: 3", "contradiction", "Say it once."),
        ("key: lr", "unknown-parameter", "Its parameters: none."),
        ("matrix: {lr: [1, 2], b: [1, 2]}\nkey: lr", "said-twice", "Add to `key`"),
        ("max_duration: 5m\ncheckpoint: {signal: USR1, lead: 5m}", "contradiction", "Shorten"),
        ("resources: {cpu: arm:2}", "not-carried-out", "architecture"),
        ("resources: {gpu: {count: 1, total_memory: 80GB}}", "not-carried-out", "memory of one"),
        ("resources: {gpu: A100:80}", "bad-value", "80GB"),
        ("description:", "empty-field", "Remove it"),
        ("tags: {a b: c}", "bad-tag", "letters"),
        ("nodes: ${{ matrix.n }}", "unknown-expression", "nothing called `matrix`"),
    ],
)
def test_refused(tmp_path, field, code, words):
    """Each mistake has its code, and words that say what to do."""
    loaded = load(tmp_path, f"{TASK}{field}\n")
    assert codes(loaded) == [code]
    (finding,) = loaded.findings
    assert words in f"{finding.detail} {finding.advice}"
    assert finding.place.line >= 4


@pytest.mark.parametrize(
    ("field", "name", "canonical"),
    [
        ("retry: true", "retry", {"on": ["error", "interruption", "no-capacity", "node-failure", "preemption"]}),
        ("retry: {requeue_exit_codes: [75]}", "retry", {"on": ["interruption", "no-capacity", "node-failure", "preemption"], "requeue_exit_codes": [75]}),
        ("retry: false", "retry", None),
        ("max_duration: off", "max_duration", None),
        ("priority: '50'", "priority", 50),
        ("volumes: []", "volumes", []),
        ("commands: [true]", "commands", ["true"]),
        ("depends_on: {run: other, each: false}", "depends_on", {"runs": [{"run": "other", "each": False}]}),
        ("resources: {memory: 8}", "resources", {"memory": {"min": 8 << 30, "max": 8 << 30}}),
    ],
)  # fmt: skip
def test_canonical(tmp_path, field, name, canonical):
    """One meaning has one spelling, and what is not set is not there."""
    text = TASK if name != "commands" else TASK.replace("commands: [python train.py]\n", "")
    desired = good(tmp_path, f"{text}{field}\n---\ntype: task\nname: other\ncommands: [x]\n")
    assert codes(load(tmp_path)) == []
    train = next(one for key, one in desired.resources.items() if key.name == "train")
    assert train.document.get(name) == canonical


def test_parameters_before_reading(tmp_path):
    """A parameter may stand where a number is read; each element is judged by its own."""
    desired = good(
        tmp_path,
        TASK
        + "matrix: {n: [1, 2]}\nnodes: ${{ matrix.n }}\nresources: {memory: '${{ matrix.n }}GB'}\n",
    )
    assert [
        (one.document["nodes"], one.document["resources"]["memory"]["min"])
        for one in desired.resources.values()
    ] == [
        (1, 1 << 30),
        (2, 2 << 30),
    ]
    loaded = load(tmp_path, TASK + "matrix: {n: [1, 0, -1]}\nnodes: ${{ matrix.n }}\n")
    assert codes(loaded) == ["bad-value"]
    assert "in the element `n=0`" in loaded.findings[0].detail


def test_array_bounds():
    """The largest array is as large as the cap, and one more is refused."""
    assert len(parse_array(f"1-{ELEMENTS_MAX}").indices) == ELEMENTS_MAX
    assert parse_array("1-100:2%10").indices[:3] == (1, 3, 5)
    with pytest.raises(ValueError, match="makes 100001"):
        parse_array(f"0-{ELEMENTS_MAX}")
