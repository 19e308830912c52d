"""Elements of sweeps and arrays, as a tree declares them."""

from __future__ import annotations

from fleetform.spec.desired import ResourceKey
from fleetform.spec.tree import load_tree
from fleetform.spec.tree.cache import ReadingCache
from unit.spec.trees import ENVIRONMENT, good, load

TASK = "type: task\nname: train\ncommands: [python train.py]\n"


def run(name: str) -> ResourceKey:
    return ResourceKey("run", name)


def test_ten_thousand_elements(tmp_path):
    """An array of ten thousand costs a fraction of ten thousand documents."""
    desired = good(tmp_path, f"{TASK}array: 1-10000\n")
    assert len(desired.resources) == 10_000
    one, other = desired.resources[run("train[1]")], desired.resources[run("train[2]")]
    assert one.document["commands"] is other.document["commands"]
    assert one.digest != other.digest


def test_another_value_adds_elements_only(tmp_path):
    """A value more in a sweep makes elements more, and changes none of the others."""
    text = f"{TASK}matrix: {{lr: [0.1, 0.01], batch: [1, 2]}}\n"
    before = good(tmp_path, text).resources
    after = good(tmp_path, text.replace("0.01", "0.01, 0.5")).resources
    assert len(after) == 6
    assert all(after[key] == one for key, one in before.items())


def test_quotes_around_a_value_change_no_element(tmp_path):
    """Its name, its commands and its variables are the same, and so is what decides a rerun."""
    text = f"{TASK}matrix: {{lr: [0.1, 1], keep: true}}\n"
    plain = good(tmp_path, text).resources
    quoted = text.replace("[0.1, 1]", '["0.1", "1"]').replace("true", "'true'")
    assert good(tmp_path, quoted).resources == plain
    (element, *_) = plain.values()
    assert element.document["matrix"] == {"lr": 0.1, "keep": True}
    others = good(tmp_path, text.replace("[0.1, 1]", '["0.10", " 1"]')).resources
    assert [one.document["matrix"]["lr"] for one in others.values()] == [" 1", "0.10"]


def test_a_point_makes_another_value(tmp_path):
    """Spellings of one number are one element; a whole number and a fraction are two."""
    text = f"{TASK}matrix: {{n: [1, 1.0, 0.10]}}\n"
    names = [key.name for key in good(tmp_path, text).resources]
    assert sorted(names) == ["train[n=0.1]", "train[n=1.0]", "train[n=1]"]
    respelled = text.replace("0.10", "1e-1").replace("1.0,", "1.00,")
    assert good(tmp_path, respelled).resources == good(tmp_path, text).resources


def test_a_field_that_is_read_is_given_what_was_written(tmp_path):
    """What stands for a parameter elsewhere decides nothing there: a folder may be called `1`."""
    text = f'{TASK}matrix: {{where: ["/1", "/2"], count: [1]}}\nnodes: ${{{{ matrix.count }}}}\n'
    folders = f"{text}working_dir: ${{{{ matrix.where }}}}\n"
    assert [one.document["working_dir"] for one in good(tmp_path, folders).resources.values()] == [
        "/1",
        "/2",
    ]


def test_single_elements_are_stopped(tmp_path):
    """By what stands in their brackets; the last entry that names an element counts."""
    text = f"{TASK}array: 1-5\nstate: {{2-4: stopped, 3: running}}\n"
    found = {
        key.name: one.document.get("state") for key, one in good(tmp_path, text).resources.items()
    }
    assert found == {
        "train[1]": None, "train[2]": "stopped", "train[3]": "running",
        "train[4]": "stopped", "train[5]": None,
    }  # fmt: skip
    plain = good(tmp_path, f"{TASK}array: 1-5\n").resources
    stopped = good(tmp_path, text).resources
    assert {key: one.execution_digest for key, one in plain.items()} == {
        key: one.execution_digest for key, one in stopped.items()
    }


def test_a_wrong_state_of_an_element_is_told_once(tmp_path):
    """A wrong choice as that of a choice, and an entry that names no element with an example."""
    (choice,) = load(tmp_path, f"{TASK}array: 1-5\nstate: {{2: paused}}\n").errors
    assert choice.detail == "`paused` is not a valid choice."
    assert choice.advice.startswith("Did you mean `stopped`?")
    (element,) = load(tmp_path, f"{TASK}array: 1-5\nstate: {{7: stopped}}\n").errors
    assert element.detail == "`7` names no element of `train`."
    (single,) = load(tmp_path, f"{TASK}state: {{2: stopped}}\n").errors
    assert single.detail == "`2` names no element of `train`."


def test_key_names_elements(tmp_path):
    """With `key`, a parameter outside of it may change its value, and the element stays."""
    text = f"{TASK}matrix: {{lr: [0.1, 0.2], epochs: 5}}\nkey: lr\n"
    before = good(tmp_path, text).resources
    after = good(tmp_path, text.replace("5", "6")).resources
    assert list(before) == list(after) == [run("train[lr=0.1]"), run("train[lr=0.2]")]
    assert before != after


SECRET = f"{TASK}matrix: {{api_token: [abc123, 4567], lr: [0.1, 0.2]}}\n"


def test_a_secret_is_sealed_in_the_names_of_its_elements(tmp_path):
    """The job is given the value, and no name has it; a value that is one number is sealed as well."""
    desired = good(tmp_path, f"{SECRET}env: {{NAME: '${{{{ run.name }}}}'}}\n")
    names = [key.name for key in desired.resources]
    assert len(names) == 4
    assert not any("abc123" in name or "4567" in name for name in names)
    assert all("api_token=sealed-" in name and "lr=0." in name for name in names)
    for key, one in desired.resources.items():
        assert one.document["matrix"]["api_token"] in {"abc123", 4567}
        assert one.document["env"]["NAME"] == key.name


OTHER = ENVIRONMENT.replace("uid: 0b", "uid: 1c")


def test_a_sealed_name_is_the_environments_own(tmp_path):
    """The same in each load; in another environment the same value has another name."""
    names = set(good(tmp_path / "one", SECRET).resources)
    assert set(good(tmp_path / "one", SECRET).resources) == names
    assert not names & set(good(tmp_path / "two", SECRET, environment=OTHER).resources)


def test_readings_of_another_uid_are_read_again(tmp_path):
    """A kept reading holds only where the key of its names is the same."""
    cache = ReadingCache()
    before = set(good(tmp_path, SECRET).resources)
    for _ in range(2):
        assert set(load_tree(tmp_path, cache=cache).desired.resources) == before
    (tmp_path / "environment.yaml").write_text(OTHER)
    assert not before & set(load_tree(tmp_path, cache=cache).desired.resources)
