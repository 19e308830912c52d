from __future__ import annotations

import contextlib
import json

import pytest

import applied
from fleetform.app.clock import SystemClock
from fleetform.app.ledger import open_for_writing
from fleetform.app.workspace import Workspace
from fleetform.model.offers import Refusal
from unit.spec.overlay.environments import write

ENVIRONMENT = "type: environment\nname: lab\nuid: b4444444444444448444444444444444\n"
SWEEP = """\
type: task
name: sweep
matrix: {gpus: [1, 8]}
commands: [train]
resources: {gpu: "A100:${{ matrix.gpus }}"}
"""
ARRAY = "type: task\nname: digits\narray: 0-9\ncommands: [a]\nresources: {gpu: H100:1}\n"
FLEET = """\
type: fleet
name: gpus
nodes: 0..4
backends: [ours]
resources: {gpu: {name: A100, total_memory: 600GB..}}
---
type: aws
name: ours
regions: [us-east-1]
"""


@pytest.fixture
def lab(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return write(tmp_path, environment=ENVIRONMENT, sweep=SWEEP, digits=ARRAY)


def types(out):
    return [one["instance_type"] for one in json.loads(out)]


def test_elements_that_ask_for_the_same_are_one_question(typed, lab):
    code, out, err = typed("offer", "digits", "--format", "json")
    assert (code, err) == (0, "")
    assert types(out) == ["p5.4xlarge"]


def test_elements_that_ask_for_different_offers_are_named_one_by_one(typed, lab):
    code, out, err = typed("offer", "sweep")
    assert (code, out) == (1, "")
    assert "ask for different offers" in err
    assert "`fleetform offer 'sweep[gpus=1]'`" in err
    assert types(typed("offer", "sweep[gpus=8]", "--json")[1]) == ["p4d.24xlarge", "p4de.24xlarge"]


def test_a_fleet_that_cannot_be_made_yet_has_offers(typed, lab):
    """What a backend is called counts, and the memory of all GPUs together."""
    write(lab, cloud=FLEET)
    assert types(typed("offer", "gpus", "--json")[1]) == ["p4de.24xlarge"]


def test_a_name_that_is_none_is_told_what_was_meant(typed, lab):
    code, out, err = typed("offer", "digit")
    assert (code, out) == (1, "")
    assert "there is no run or fleet `digit`" in err
    assert "did you mean `digits`?" in err


def test_what_no_catalogue_says_is_refused(typed, lab):
    """It would otherwise be taken as satisfied."""
    text = "type: task\nname: new\ncommands: [a]\nresources: {gpu: {compute_capability: 8.0}}\n"
    write(lab, new=text)
    code, out, err = typed("offer", "new")
    assert (code, out) == (1, "")
    assert "do not say the `compute_capability` of a GPU" in err
    code, out, err = typed("offer", "--backend", "gcp")
    assert (code, out) == (1, "")
    assert "there is no catalogue of offers for `gcp`" in err


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--gpu", "A100:B200"], "--gpu: "),
        (["--cpus", "many"], "--cpus: "),
        (["--memory", "8 parsecs"], "--memory: "),
        (["--max-price", "-2"], "--max-price: "),
    ],
)
def test_an_amount_that_cannot_be_read_is_named(typed, lab, options, problem):
    code, out, err = typed("offer", *options)
    assert (code, out) == (1, "")
    assert problem in err


def test_a_limit_says_how_many_more_there_are(typed, lab):
    """A list that was cut never looks like the whole."""
    code, out, _err = typed("offer", "--gpu", "1..", "--limit", "2")
    assert code == 0
    assert len(out.splitlines()) == 5
    assert "more offers; --limit shows them" in out


@pytest.mark.parametrize(
    ("options", "problem", "advice"),
    [
        (["--gpu", "Z900"], "has the GPU `Z900`", "there is A100, A10G, B200 and "),
        (["--gpu", "A1000"], "has the GPU `A1000`", "did you mean `A100`"),
        (
            ["--region", "mars"],
            "has the region `mars`",
            "run `fleetform offer --refresh --region mars`",
        ),
        (["--type", "p5.48xlarg"], "has the instance type", "did you mean `p5.48xlarge`"),
    ],
)
def test_a_name_that_no_catalogue_has_is_told(typed, lab, options, problem, advice):
    """A list of offers without it would say nothing of the mistake."""
    code, out, err = typed("offer", *options)
    assert (code, out) == (1, "")
    assert problem in err
    assert advice in err


def test_a_run_on_several_hosts_is_told_what_a_price_is_of(typed, lab):
    write(lab, gang="type: task\nname: gang\nnodes: 2\ncommands: [a]\nresources: {gpu: H100:8}\n")
    code, out, _err = typed("offer", "gang")
    assert code == 0
    assert out.endswith("gang needs 2 hosts; prices are of one host\n")


def test_what_has_no_offers_is_refused(typed, lab):
    """A fleet with hosts of its own, and a document that cannot be read."""
    write(lab, own="type: fleet\nname: own\nlocal: true\nnodes: 1\n")
    assert "fleet own has hosts of its own" in typed("offer", "own")[2]
    write(lab, bad="type: task\nname: bad\ncommands: [a]\nnode: 2\n")
    code, out, err = typed("offer", "bad")
    assert (code, out) == (1, "")
    assert "the document of run bad is invalid" in err


def test_json_without_an_offer_is_an_empty_list(typed, lab):
    code, out, err = typed("offer", "--gpu", "H100:3", "--json")
    assert (code, json.loads(out)) == (1, [])
    assert "`gpu: H100:3` excludes all " in err
    assert "p5.4xlarge has H100:80GB:1" in err
    assert "help: change `resources.gpu`" in err


AWS_FLEET = """\
type: fleet
name: cards
nodes: 1
regions: [us-east-1]
instance_types: [g5.xlarge, g5.2xlarge]
aws: {account: "123456789012", ssh_from: [203.0.113.7/32]}
"""


@pytest.fixture
def refused(root, monkeypatch):
    """A fleet on AWS whose first offer was refused, as an apply leaves it."""
    (root / "cards.yaml").write_text(AWS_FLEET)
    applied.enter(root)
    with contextlib.closing(open_for_writing(Workspace.open(str(root)))) as ledger:
        fence, now_ms = ledger.take_fence(who="tests", now_ms=1), SystemClock().now_ms()
        uids = [one.uid for one in ledger.read_live().instances if one.fleet == "cards"]
        (endpoint,) = ledger.take_offers(uids, fence=fence, now_ms=now_ms).values()
        refusal = Refusal(uids[0], endpoint, "no capacity")
        ledger.refuse_offers([refusal], fence=fence, now_ms=now_ms)
    monkeypatch.chdir(root)
    # It would ask AWS.
    monkeypatch.setattr("fleetform.cli.background.leave", lambda _workspace: None)
    return root


def test_a_fleet_says_what_was_refused_lately(typed, refused):
    """Until `fleet retry`: then the offer may be asked for, and the event names who did it."""
    listed = typed("offer", "cards")[1]
    assert "refused lately: g5.xlarge in us-east-1, " in listed
    assert "not asked for before" in listed
    first, second = json.loads(typed("offer", "cards", "--json")[1])
    assert [one["problem"] for one in first["refused"]] == ["no capacity"]
    assert second["refused"] == []

    code, out, err = typed("fleet", "retry", "cards")
    assert "no controller is running; `fleetform apply` asks for them" in err
    assert (code, out) == (
        0,
        "fleet cards: g5.xlarge in us-east-1 may be asked for again, for 1 host\n",
    )
    status = typed("status")[1]
    assert "! cards-0 is not created: asked for by the next `fleetform apply`" in status
    assert "Needs attention: host cards-0 is not created" in status
    assert "refused lately" not in typed("offer", "cards")[1]
    assert "no offer was refused in the last 10m00s" in typed("fleet", "retry", "cards")[1]
    assert (
        "has g5.xlarge in us-east-1 asked for again" in typed("blame", "fleet/cards", "--events")[1]
    )


def test_only_an_applied_fleet_is_retried(typed, refused):
    """The error for an unknown name suggests the nearest one."""
    code, _, err = typed("fleet", "retry", "card")
    assert code == 1
    assert "did you mean `cards`?" in err
