"""Profiles are merged under runs, and are no resources."""

from __future__ import annotations

from unit.spec.overlay.environments import FLEET, environment, extending, good, load, places, run

TRAIN = "type: task\nname: train\ncommands: [a]\n"
OWN = {"staging__fleet": FLEET, "staging__environment": environment()}


def profile(more, name="short"):
    return f"type: profile\nname: {name}\n{more}"


def test_a_run_gets_what_its_profile_says_and_wins_over_it(tmp_path):
    """Field by field, mappings merged, variables by name; null is without."""
    desired = good(
        tmp_path, **OWN,
        staging__profiles=profile(
            "max_duration: 1h\npriority: 10\nstop_duration: 5s\nenv: {A: '1', B: '1'}\n"
            "retry: {on: [error], max_attempts: 2}\n"
        ),
        staging__train=TRAIN + "profile: short\npriority: 20\nstop_duration: null\nenv: [B=2]\n"
        "retry: {max_attempts: 5}\n",
    )  # fmt: skip
    document = run(desired).document
    assert document["max_duration"] == 3600
    assert document["priority"] == 20
    assert "stop_duration" not in document
    assert document["env"] == {"A": "1", "B": "2"}
    assert document["retry"] == {"on": ["error"], "max_attempts": 5}
    assert "profile" not in document
    assert {key.kind for key in desired.resources} == {"fleet", "run"}
    assert desired.beyond == {}


def test_the_default_profile_is_for_runs_that_name_none(tmp_path):
    """Naming another one is the way out of it, be it empty."""
    desired = good(
        tmp_path, **OWN,
        staging__profiles=profile("default: true\npriority: 10\n") + "---\n" + profile("", "bare"),
        staging__train=TRAIN + "---\n" + TRAIN.replace("train", "other") + "profile: bare\n",
    )  # fmt: skip
    assert run(desired).document["priority"] == 10
    assert "priority" not in run(desired, "other").document


def test_a_profile_of_the_base_can_be_patched(tmp_path):
    """Patches come first, and what they say of a run wins over any profile."""
    desired = good(
        tmp_path, base__fleet=FLEET, base__train=TRAIN + "profile: short\n",
        base__other=TRAIN.replace("train", "other") + "profile: short\n",
        base__profiles=profile("priority: 10\nmax_duration: 1h\n"),
        staging__environment=extending(
            "patches:\n  - {target: profile/short, merge: {max_duration: 2h}}\n"
            "  - {target: run/train, merge: {priority: 1}}\n"
        ),
    )  # fmt: skip
    assert run(desired).document["max_duration"] == 7200
    assert run(desired).document["priority"] == 1
    assert run(desired, "other").document["priority"] == 10


def test_a_profile_that_does_not_exist_is_told(tmp_path):
    """With the one that was meant, and the run is held back."""
    loaded = load(
        tmp_path, **OWN, staging__profiles=profile(""), staging__train=TRAIN + "profile: shrot\n"
    )
    assert places(loaded.errors) == [("unknown-reference", "train.yaml:4:10")]
    assert loaded.errors[0].advice.startswith("Did you mean `short`?")
    assert loaded.desired is not None
    assert [str(key) for key in loaded.desired.broken] == ["run/train"]


def test_two_defaults_contradict_each_other(tmp_path):
    """Nobody can tell which one holds."""
    loaded = load(
        tmp_path, **OWN, staging__train=TRAIN,
        staging__profiles=profile("default: true\n") + "---\n" + profile("default: true\n", "long"),
    )  # fmt: skip
    assert places(loaded.errors) == [("contradiction", "profiles.yaml:7:10")]


def test_a_wrong_value_is_told_in_the_profile(tmp_path):
    """And not at the run that cannot help it."""
    loaded = load(
        tmp_path, **OWN, staging__profiles=profile("max_duration: soon\n"),
        staging__train=TRAIN + "profile: short\n",
    )  # fmt: skip
    assert {place for _, place in places(loaded.errors)} == {"profiles.yaml:3:15"}


def test_dstacks_list_of_profiles_is_read_as_such(tmp_path):
    """`profiles:` of its profiles.yml."""
    desired = good(
        tmp_path, **OWN, staging__train=TRAIN,
        **{"staging__profiles.yml": "profiles:\n  - {name: short, max_duration: 1h, default: true}\n"},
    )  # fmt: skip
    assert run(desired).document["max_duration"] == 3600


def test_what_profiles_come_to_has_an_end(tmp_path):
    """As for patches: one profile reaches every run."""
    runs = "---\n".join(TRAIN.replace("train", f"train-{number}") for number in range(600))
    tags = "".join(f"  t{number}: x\n" for number in range(2000))
    loaded = load(
        tmp_path, **OWN, staging__runs=runs,
        staging__profiles=profile(f"default: true\ntags:\n{tags}"),
    )  # fmt: skip
    assert ("patch-failed", "profiles.yaml:2:7") in places(loaded.errors)
    assert loaded.desired is None
