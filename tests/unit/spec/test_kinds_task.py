"""Fields of a task: what is refused, in which words, and where."""

from __future__ import annotations

import pytest

from fleetform.spec.bounds import ELEMENTS_MAX
from fleetform.spec.kinds import KINDS
from fleetform.spec.kinds.task import parse_array
from unit.spec.trees import codes, good, load

TASK = "type: task\nname: train\ncommands: [python train.py]\n"


@pytest.mark.parametrize(
    ("field", "code", "words"),
    [
        ("gpus: 1", "unknown-field", "Did you mean `resources.gpu`?"),
        ("depends: other", "unknown-field", "Did you mean `depends_on`?"),
        ("cmd: x", "unknown-field", "Did you mean `commands`?"),
        ("resource: {}", "unknown-field", "Did you mean `resources`?"),
        ("env: [1A=2]", "bad-variable", "no digit in front"),
        ("env: {A: true}", "wrong-type", "Put it in quotes."),
        ("env: {A: {b: c}}", "wrong-type", "mapping"),
        ("volumes: [data]", "bad-value", "Write `data:/path`."),
        ("shell: fish", "bad-value", "`sh`, `bash` or an absolute path"),
        ("working_dir: ../x", "bad-path", "contains `..`"),
        ('working_dir: "/a\\0b"', "bad-value", "NUL"),
        ('shell: "/bin/s\\0h"', "bad-value", "NUL"),
        ('entrypoint: "a\\0b"', "bad-value", "NUL"),
        ("nodes: 0", "bad-value", "the least is 1"),
        ("nodes: true", "bad-value", "is a boolean;"),
        ("priority: 101", "bad-value", "the most is 100"),
        ("priority: -1", "bad-value", "negative"),
        ("max_duration: 2 hours", "bad-value", "2h"),
        ("retry: {on: []}", "bad-value", "list is empty"),
        ("retry: {on: [eror]}", "bad-value", "Did you mean `error`?"),
        ("retry: {on: [error, error]}", "said-twice", "named twice"),
        ("retry: {attempts: 3}", "unknown-field", "Did you mean `max_attempts`?"),
        ("retry: {max_attempts: 1}", "contradiction", "counts the first attempt too"),
        ("retry: {duration: 0}", "bad-value", "within a duration of 0"),
        ("retry: {duration: 1h, delay: 1h}", "contradiction", "not longer than `delay`"),
        ("retry: {requeue_exit_codes: []}", "bad-value", "list is empty"),
        ("retry: {requeue_exit_codes: [0]}", "bad-value", "the least is 1"),
        ("checkpoint: {signal: KILL, lead: 1m}", "bad-value", "not a signal"),
        ("checkpoint: {signal: USR1}", "missing-field", "`lead` is missing"),
        ("concurrency: 0", "bad-value", "the least is 1"),
        ("state: paused", "bad-value", "`running`, `stopped`"),
        ("array: 10", "bad-array", "Write `array: 1-10`."),
        ("array: 5-1", "bad-array", "Write `1-5`."),
        ("array: 1-9%0", "bad-array", "from 1 behind"),
        ("array: 1,1", "said-twice", "occurs twice"),
        ("array: 1-9:0", "bad-array", "step"),
        ("array: 0-4000000", "too-many-elements", "elements; one document may declare"),
        ("matrix: {}", "wrong-type", "parameters with their values"),
        ("matrix: {lr: []}", "bad-value", "no values"),
        ("matrix: {lr: [[1]]}", "wrong-type", "list"),
        ("matrix: {a-b: [1]}", "bad-name", "cannot be the name of a parameter"),
        ("matrix: {lr: [1, 1]}", "said-twice", "twice"),
        ("array: 1-2\nmatrix: {lr: [1]}", "contradiction", "not both"),
        ("array: 1-9%2\nconcurrency: 3", "contradiction", "Keep one of the two."),
        ("key: lr", "unknown-parameter", "Its parameters: none."),
        ("matrix: {lr: [1, 2], b: [1, 2]}\nkey: lr", "said-twice", "Add to `key`"),
        ("max_duration: 5m\ncheckpoint: {signal: USR1, lead: 5m}", "contradiction", "Shorten"),
        ("resources: {gpu: A100:80}", "bad-value", "80GB"),
        ("description:", "empty-field", "Remove it"),
        ("tags: {a b: c}", "bad-tag", "letters"),
        (r'description: "a\0b"', "bad-value", "NUL"),
        (r'tags: {a: "b\0"}', "bad-value", "NUL"),
        (r'matrix: {lr: ["a\0b"]}', "bad-value", "NUL"),
        (r'image: "a\0b"', "bad-value", "NUL"),
        ("nodes: ${{ matrix.n }}", "unknown-expression", "namespace `matrix` does not exist"),
        ("env: {A: }", "wrong-type", "takes it from"),
        (
            "volumes: [{path: /x}]",
            "missing-field",
            "The mount names neither a volume nor a directory of the host.",
        ),
        ("volumes: [{name: data, instance_path: /y, path: /x}]", "contradiction", "not both"),
        ("volumes: [{name: data, path: /x, optional: true}]", "contradiction", "the run waits"),
        ("volumes: ['sub/dir:/x']", "bad-path", "does not begin with `/`"),
        ("volumes: ['data:/x:rx']", "bad-value", "Write `data:/x`, and add `:ro`"),
        ("volumes: ['data:/x:ro:z']", "bad-value", "no mode of a mount"),
        ("volumes: ['a:b:c']", "bad-value", "no mode of a mount"),
        ("volumes: ['Data-${{ dstack.node_rank }}:/x']", "bad-name", "lower-case"),
        ("image: a b", "bad-value", "has spaces"),
        ("image: a\npython: 3.12", "contradiction", "`image` and `python`"),
        ("docker: true\nnvcc: true", "contradiction", "`nvcc` and `docker`"),
        ("python: 3.8", "bad-value", "`3.12`"),
        ("python: 3.12.1", "bad-value", "Write `3.12`"),
        ("user: 'a:'", "bad-value", "behind its colon"),
        ("registry_auth: {username: a, password: b}\nimage: x", "secret-in-clear", "secrets.NAME"),
        ("repos: [a, b]", "bad-value", "one repository"),
        ("repos: ['a:b:c']", "bad-value", "has too many colons."),
        ("repos: [{}]", "missing-field", "local_path: ."),
        ("ports: [0]", "bad-value", "from 1 to 65535"),
        ("ports: ['80:*']", "bad-value", "`8080:8000`"),
        ("begin: tomorrow", "bad-value", "2026-12-24T18:00Z"),
        ("begin: 2026-12-24T18:00Z\ndeadline: 2026-12-24T18:00Z", "contradiction", "Swap"),
        ("pack: rack\nspread: rack", "contradiction", "within one `rack`"),
        ("schedule: {cron: '@daily'}", "bad-value", "`0 0 * * *`"),
        ("schedule: {cron: '* * * *'}", "bad-value", "has 4 fields"),
        (
            "schedule: {cron: 0 0 31 2 *}",
            "bad-value",
            "the day of the month `31` occurs in none of these months",
        ),
        ("schedule: {cron: 61 * * * *}", "bad-value", "`61` is not a minute, which is 0 to 59"),
        ("utilization_policy: {min_gpu_utilization: 1, time_window: 4m}", "bad-value", "`5m`"),
        ("on_silence: stop", "bad-value", "stop after 10m"),
        ("on_silence: {action: stop}", "contradiction", "requires"),
        ("fleets: [a/b/c]", "bad-name", "PROJECT/NAME"),
        ("instances: [{name: one, hostname: two}]", "contradiction", "one of the three"),
        ("instances: [{fleet: local, instance: null}]", "contradiction", "one of the three"),
        ("files: ['a:b:c']", "bad-value", "has too many colons."),
        (f"tags: {{a: {'x' * 257}}}", "bad-tag", "may have 256"),
        ("max_price: off", "bad-value", "dollars"),
        ("resources: {gpu: {slice: 1g.10gb, memory: 10GB}}", "bad-value", "leave out `memory`"),
        ("restartPolicy: Never", "unknown-field", "Did you mean `retry`?"),
        ("activeDeadlineSeconds: 3", "unknown-field", "Did you mean `max_duration`?"),
        ("partition: gpu", "unknown-field", "Did you mean `queue`?"),
        ("flurble: 1", "unknown-field", "`fleetform explain task`"),
    ],
)
def test_refused(tmp_path, field, code, words):
    """Each mistake has its code, and words that say what to do."""
    loaded = load(tmp_path, f"{TASK}{field}\n")
    # The volume of some of them is declared nowhere, which is a mistake of its own.
    told = [one for one in loaded.findings if one.code != "undeclared-reference"]
    (finding,) = [one for one in told if one.level != "note"]
    assert finding.code == code
    assert words in f"{finding.detail} {finding.advice}"
    assert finding.place.line >= 4


@pytest.mark.parametrize(
    ("field", "words"),
    [
        ("image: x", "Containers are not supported yet"),
        ("python: 3.12", "base images are not supported"),
        ("repos: [.]", "`files:`"),
        ("env: [TOKEN]", "Write `TOKEN=VALUE`."),
        ("volumes: [/host:/x]", "Mounting directories of the host"),
        ("volumes: [{name: data, path: /x, instance: true}]", "that hosts keep for runs"),
        ("volumes: [{name: [data, more], path: /x}]", "Name one of them."),
        (
            "volumes: ['scratch-${{ dstack.node_rank }}:/x']",
            "known only when the job starts",
        ),
        (
            "working_dir: '${{ run.args }}'",
            "in fleetform only `submit` does",
        ),
        (
            "files: ['../x:x']",
            "outside of the configuration",
        ),
        ("runtime: container", "processes of the host"),
        ("stop_duration: off", "without limit"),
        ("on_upstream_change: rerun", "Automatic re-runs"),
        ("fleets: [vision/gpus]", "another project"),
        ("resources: {cpu: arm:2}", "architecture"),
        ("resources: {cpu: {arch: arm, count: 2}}", "architecture"),
        ("resources: {gpu: {count: 1, total_memory: 80GB}}", "GPUs by this"),
        ("resources: {gpu: {slice: 1g.10gb}}", "GPUs by this"),
        ("backends: [aws]", "clouds"),
        ("schedule: {cron: 0 0 * * 7}", "Schedules are not"),
        ("begin: 2026-12-24T18:00Z", "start time"),
        ("pack: rack", "Topology"),
    ],
)
def test_held(tmp_path, field, words):
    """What the run would be something else without is one note at its place, and holds it."""
    volumes = "---\ntype: volume\nname: {}\nfleet: local\npath: {}\n"
    world = "---\ntype: fleet\nname: local\nlocal: true\n" + "".join(
        volumes.format(name, name) for name in ("data", "more")
    )
    loaded = load(tmp_path, f"{TASK}{field}\n{world}")
    assert [(one.code, one.level) for one in loaded.findings] == [("not-supported", "note")]
    (note,) = loaded.findings
    assert words in f"{note.detail} {note.advice}"
    assert note.place.line == 4
    assert loaded.desired is not None
    assert [key.name for key in loaded.desired.beyond] == ["train"]
    assert "train" not in [key.name for key in loaded.desired.resources]


@pytest.mark.parametrize(
    "field",
    [
        "utilization_policy: {min_gpu_utilization: 10, time_window: 1h}",
        "spot_policy: spot",
        "max_price: 2.5",
        "idle_duration: off",
        "home_dir: /root",
        "setup: [x]",
        "single_branch: true",
    ],
)
def test_goes_on_without(tmp_path, field):
    """What the run is the same without is one note, and the run is planned."""
    loaded = load(tmp_path, f"{TASK}{field}\n")
    assert [(one.code, one.level) for one in loaded.findings] == [("no-effect", "note")]
    assert loaded.desired is not None
    assert [key.name for key in loaded.desired.resources] == ["train"]


@pytest.mark.parametrize(
    "field",
    [
        "runtime: process",
        "startup_order: master-first",
        "stop_criteria: master-done",
        "on_silence: wait",
        "on_silence: stop after 10m",
        "on_upstream_change: note",
        "stop_duration: 30s",
        "privileged: false",
        "docker: false",
        "nvcc: false",
        "dstack: false",
        "spot_policy: on-demand",
        "creation_policy: reuse",
        "creation_policy: reuse-or-create",
    ],
)
def test_what_is_so_anyway_says_nothing(tmp_path, field):
    """A field with the value that is carried out is no news."""
    assert codes(load(tmp_path, f"{TASK}{field}\n")) == []


def test_groups_stand_for_commands(tmp_path):
    """Nodes that are not alike have commands of their own, or those of the task's image."""
    head = "type: task\nname: train\n"
    two = "groups: [{name: one, commands: [x]}, {commands: [y], nodes: 2}]\n"
    assert codes(load(tmp_path, head + two)) == ["not-supported"]
    for groups, code in (
        ("groups: [{name: one}]", "missing-field"),
        ("groups: [{commands: [x]}, {name: '0', commands: [y]}]", "said-twice"),
        ("groups: [{name: One, commands: [x]}]", "bad-name"),
        ("commands: [x]\ngroups: [{commands: [x]}]", "contradiction"),
        ("groups: []", "bad-value"),
    ):
        assert code in codes(load(tmp_path, f"{head}{groups}\n"))


def test_a_variable_without_a_value_is_itself(tmp_path):
    """Where an expression names it, it stays until the value is known."""
    text = TASK.replace("python train.py", "'${{ env.TOKEN }}'")
    loaded = load(tmp_path, f"{text}env: [TOKEN, A=1]\n")
    assert loaded.desired is not None
    (held,) = loaded.desired.beyond.values()
    assert held.declared.document["commands"] == ["${{ env.TOKEN }}"]
    assert held.declared.document["env"] == {"TOKEN": None, "A": "1"}


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
    with pytest.raises(ValueError, match="declares 100001"):
        parse_array(f"0-{ELEMENTS_MAX}")


@pytest.mark.parametrize(
    ("rest", "init"),
    [
        ("setup: [one]\ninit: [two]", ["one", "two"]),
        ("setup: one", ["one"]),
        ("init: [two]", ["two"]),
    ],
)
def test_a_dev_environment_is_set_up_first(tmp_path, rest, init):
    """What dstack runs ahead of `init` is a part of it, and not left out."""
    (held,) = load(tmp_path, f"type: dev-environment\nname: dev\n{rest}\n").desired.beyond.values()
    assert held.declared.document["init"] == init
    assert "setup" not in held.declared.document


@pytest.mark.parametrize("said", ['["true", "b\\0c"]', '"b\\x00c"'])
def test_no_command_has_a_nul(tmp_path, said):
    """It is told where it stands, with what to write, and not by the host that would start it."""
    text = f"type: task\nname: train\ncommands: {said}\n"
    (finding,) = load(tmp_path, text).errors
    assert (finding.code, finding.place.line) == ("bad-value", 3)
    assert finding.place.column == text.splitlines()[2].index('"b') + 1
    assert "no argument of a process can have" in finding.detail
    assert "printf" in finding.advice


@pytest.mark.parametrize(
    ("mount", "canonical"),
    [
        ("data:/run:ro", {"name": "data", "path": "/run", "read_only": True}),
        ("data:/run:rw", {"name": "data", "path": "/run", "read_only": False}),
        ("/srv:/run:ro", {"instance_path": "/srv", "path": "/run", "read_only": True}),
    ],
)
def test_the_mode_of_a_mount(mount, canonical):
    """Behind a second colon stands whether the job may only read, as with Docker."""
    document = {"type": "task", "name": "train", "commands": ["true"], "volumes": [mount]}
    model = KINDS["task"].model.model_validate(document)
    assert model.to_canonical()["volumes"] == [canonical]


GROUPED = """\
type: task
name: train
groups:
  - {name: head, commands: [ray start --head]}
  - {nodes: 2, commands: ["ray start --address ${{ ADDRESS }}:6379"]}
"""


def test_addresses_of_groups_are_held(tmp_path):
    """An address of a node is kept in the document as it is written, and nothing fills it in yet."""
    text = GROUPED.replace("ADDRESS", "groups[1].nodes[1].IP_ADDRESS")
    (held,) = good(tmp_path, text).beyond.values()
    assert "groups[1].nodes[1].IP_ADDRESS" in {one.field for one in held.obstacles}
    (command,) = held.declared.document["groups"][1]["commands"]
    assert command == "ray start --address ${{ groups[1].nodes[1].IP_ADDRESS }}:6379"


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("groups[2].nodes[0].IP_ADDRESS", "has 2 groups, counted from 0"),
        ("groups[1].nodes[2].IP_ADDRESS", "has 2 nodes at its start"),
        ("groups[0].replicas[0].IP_ADDRESS", "has `nodes` here"),
        ("groups[0].nodes[0].HOSTNAME", "is not a reference"),
        ("groups[0].IP_ADDRESS", "is not a reference"),
    ],
)
def test_addresses_of_no_node(tmp_path, address, words):
    """A group or a node that the task does not have is an error at its line."""
    (finding,) = load(tmp_path, GROUPED.replace("ADDRESS", address)).errors
    assert finding.code == "unknown-expression"
    assert words in finding.detail
    assert finding.place.line == 5


def test_arguments_of_a_command_line_are_held(tmp_path):
    """`run.args` of dstack is known, kept, and no text in place of it."""
    text = TASK.replace("python train.py", '"python train.py ${{ run.args }}"')
    loaded = load(tmp_path, text)
    assert loaded.errors == ()
    assert loaded.desired is not None
    (held,) = loaded.desired.beyond.values()
    assert {one.field for one in held.obstacles} == {"run.args"}
    assert held.declared.document["commands"][0].endswith("${{ run.args }}")
