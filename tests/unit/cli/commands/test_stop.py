from __future__ import annotations


def test_what_waits_is_to_stop_and_what_is_over_is_not(typed, lab):
    """The document of the one says so, that of the other stays, and both are told."""
    code, out, err = typed("stop", "next", "train")
    assert code == 0
    assert "+state: stopped" in out
    assert "train is over already: done" in err
    text = (lab / "tree.yaml").read_text()
    assert text.count("state: stopped") == 1
    assert "resources: {cpu: 400}\nstate: stopped\n" in text


def test_an_element_is_refused_with_what_ends_it(typed, lab):
    """`state` speaks of all elements, so the cure is the command that acts beside the tree."""
    code, _out, err = typed("stop", "sweep[lr=0.1]")
    assert code == 1
    assert "fleetform emergency stop 'sweep[lr=0.1]' --reason" in err
    assert "state" not in (lab / "tree.yaml").read_text()


def test_one_unknown_name_and_nothing_is_written(typed, lab):
    """Names are found before any of them is edited."""
    before = (lab / "tree.yaml").read_bytes()
    code, _out, err = typed("stop", "next", "nobody")
    assert code == 1
    assert "no run `nobody`" in err
    assert (lab / "tree.yaml").read_bytes() == before


def test_a_run_whose_document_is_gone_says_so(typed, lab):
    """What only the ledger knows is ended by `apply`, or at once."""
    tree = lab / "tree.yaml"
    text = tree.read_text()
    tree.write_text(
        text.replace(
            text[
                text.index("---\ntype: task\nname: next") : text.index(
                    "---\ntype: task\nname: sweep"
                )
            ],
            "",
        )
    )
    code, _out, err = typed("stop", "next")
    assert code == 1
    assert "the document of `next` is gone from the tree" in err
    assert "fleetform emergency stop next" in err


def test_nothing_to_stop_applies_nothing(typed, lab):
    """`--apply` without a target would mean everything; it means nothing."""
    (lab / "tree.yaml").write_text(
        (lab / "tree.yaml").read_text() + "---\ntype: task\nname: other\ncommands: [echo]\n"
    )
    code, out, _err = typed("stop", "train", "--apply", "-y")
    assert code == 0
    assert "other" not in out


def test_a_stop_that_is_applied_needs_no_other_permission(typed, lab, monkeypatch):
    """Who names the run to end has allowed it to end; nothing else is planned."""
    asked = {}

    def take(_workspace, scope, **options):
        asked.update(options, targets=scope.targets)
        return 0

    monkeypatch.setattr("fleetform.cli.scoped.apply_scoped", take)
    assert typed("stop", "next", "--apply", "-y")[0] == 0
    assert asked["targets"] == ("run/next",)
    assert asked["ends_work"]
    assert asked["yes"]
