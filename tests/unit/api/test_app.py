from __future__ import annotations

import asyncio
import io
import json

import httpx
import pytest

import applied
from fleetform.api.app import create_app
from fleetform.app.workspace import Workspace
from fleetform.cli.main import main
from fleetform.model.ports import LedgerUnavailable
from fleetform.model.redaction import fingerprint
from fleetform.model.refusals import LedgerUnusable
from fleetform.spec.desired import Environment


def get(root, path, *, prefix="/api/v1", **params):
    workspace = Workspace.open(str(root))
    app = create_app(
        workspace.reader, workspace.logs, environment=workspace.environment,
        controller=workspace.manager, now_ms=lambda: applied.NOW_MS + 9000,
    )  # fmt: skip

    async def call():
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            return await client.get(f"{prefix}{path}", params=params)

    return asyncio.run(call())


def test_before_the_first_apply_lists_are_empty(root):
    """Nothing applied is a state and not an error."""
    assert get(root, "/environments").json()["items"][0]["status"] == "empty"
    for noun in ("resources", "runs", "events"):
        assert get(root, f"/{noun}").json()["items"] == []
    answer = get(root, "/runs/train")
    assert answer.status_code == 404
    assert "fleetform apply" in answer.json()["advice"]


def test_the_environment_counts_what_it_holds(lab):
    """One row says which environment this is and what is in it."""
    row = get(lab, "/environments/lab").json()
    assert (row["name"], row["status"]) == ("lab", "ready")
    assert row["fingerprint"] == fingerprint(applied.UID)
    assert row["resources"] == {"fleet": 1, "run": 5}
    assert get(lab, f"/environments/{fingerprint(applied.UID)}").json() == row
    assert get(lab, "/environments/other").status_code == 404


def test_runs_are_what_ps_prints(lab, monkeypatch, capsys):
    """CLI and API answer from the same rows, to the letter."""
    monkeypatch.setattr(
        "fleetform.app.clock.SystemClock.now_ms", lambda _clock: applied.NOW_MS + 9000
    )
    assert main(["ps", "-C", str(lab), "--json"]) == 0
    assert get(lab, "/runs").json()["items"] == json.loads(capsys.readouterr().out)


def test_runs_come_in_pages(lab):
    """Following `next` gives every run once, in the order of submission."""
    seen, cursor = [], None
    while True:
        body = get(lab, "/runs", limit=2, **({"cursor": cursor} if cursor else {})).json()
        seen += [row["name"] for row in body["items"]]
        cursor = body["next"]
        if cursor is None:
            break
    assert sorted(seen) == ["bad", "big", "sweep[lr=0.1]", "sweep[lr=0.2]", "train"]
    assert len(seen) == 5


def test_runs_can_be_chosen_by_state_and_sweep(lab):
    """A script asks for the failed ones, or for one sweep's."""
    assert [row["name"] for row in get(lab, "/runs", state="failed").json()["items"]] == ["bad"]
    elements = get(lab, "/runs", parent="sweep").json()["items"]
    assert [row["element"] for row in elements] == ["lr=0.1", "lr=0.2"]
    answer = get(lab, "/runs", state="nonsense")
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid")


def test_a_query_field_that_a_route_does_not_have_is_refused(lab):
    """A misspelt filter would answer with every run; the problem names the fields that there are."""
    answer = get(lab, "/runs", stat="done")
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid")
    assert answer.json()["message"] == "this route has no query field `stat`"
    fields = "`archived`, `cursor`, `limit`, `parent`, `state`"
    assert answer.json()["advice"] == f"its query fields are {fields}"
    assert get(lab, "/runs/train", all=1).json()["advice"] == "it has no query fields"
    assert get(lab, "/runs", state="done", limit=1).status_code == 200


def test_one_run_is_shown_with_its_attempts(lab):
    """An element's name with brackets is a path like any other."""
    detail = get(lab, "/runs/sweep%5Blr=0.1%5D").json()
    assert detail["row"]["state"] == "done"
    assert detail["attempts"][0]["jobs"][0]["exit_code"] == 0
    assert "parent=sweep" in get(lab, "/runs/sweep").json()["advice"]
    answer = get(lab, "/runs/nobody")
    assert (answer.status_code, answer.json()["code"]) == (404, "not-found")


def test_why_gives_every_reason(lab):
    """What a waiting run waits for is the scheduler's own answer."""
    why = get(lab, "/runs/big/why").json()
    assert why["name"] == "big"
    assert why["summary"]


def test_output_is_read_in_pieces(lab):
    """Whoever follows `next` has the whole output, and is told when it is complete."""
    text, offset = "", 0
    while True:
        piece = get(lab, "/runs/train/logs", offset=offset, limit=3).json()
        text += piece["text"]
        if piece["next"] == offset:
            break
        offset = piece["next"]
    assert text == "one\ntwo\n"
    assert piece["complete"] is True
    assert get(lab, "/runs/train/logs", rank=7).status_code == 404
    assert get(lab, "/runs/train/logs", attempt=7).status_code == 404


def test_output_is_counted_while_it_comes(root):
    """A job that runs has printed what has arrived, long before the ledger hears of its end."""
    applied.enter(root)
    applied.place_all(root)
    assert get(root, "/runs/train").json()["attempts"][0]["jobs"][0]["log_bytes"] == 0
    workspace = Workspace.open(str(root))
    uid = get(root, "/runs/train").json()["row"]["uid"]
    workspace.logs().append(uid, 1, 0, 0, b"step 1\nstep 2\n", complete=False)
    assert get(root, "/runs/train").json()["attempts"][0]["jobs"][0]["log_bytes"] == 14


def test_letters_are_not_cut_in_two(root):
    """A letter of several bytes at a piece's end comes whole with the next one."""
    applied.enter(root)
    applied.run_all(root, exit_codes={}, output="aéß€😀z".encode())
    text, offset = io.StringIO(), 0
    while True:
        piece = get(root, "/runs/train/logs", offset=offset, limit=4).json()
        text.write(piece["text"])
        if piece["next"] == offset:
            break
        offset = piece["next"]
    assert text.getvalue() == "aéß€😀z"


def test_secrets_in_env_are_withheld(lab):
    """Whoever may read the state need not be one who may read the tree."""
    answer = get(lab, "/resources/run/train")
    assert answer.json()["document"]["env"] == {"TOKEN": "(withheld)"}
    assert answer.json()["document"]["commands"] == ["echo hi"]
    assert "hunter2" not in answer.text


def test_no_answer_holds_a_secret(lab):
    """Not in lists, events or plans either."""
    digest = get(lab, "/plans").json()["items"][0]["plan"]
    nouns = ("/resources", "/runs", "/events", "/plans", "/history", "/overrides")
    nouns += ("/environments", "/resources/run/train")
    for path in (*nouns, f"/plans/{digest}", "/runs/train"):
        answer = get(lab, path)
        assert answer.status_code == 200
        assert "hunter2" not in answer.text, path
        assert applied.UID not in answer.text, f"{path} has the key of what is sealed"


def test_resources_are_listed_by_kind(lab):
    """Every kind is in one list, in order of address."""
    rows = get(lab, "/resources").json()["items"]
    assert [row["address"] for row in rows] == sorted(row["address"] for row in rows)
    fleets = get(lab, "/resources", kind="fleet").json()["items"]
    assert [row["address"] for row in fleets] == ["fleet/local"]
    assert get(lab, "/resources/fleet/other").status_code == 404


def test_the_plan_that_was_applied_can_be_read(lab):
    """Who applied what is kept with the plan itself."""
    row = get(lab, "/plans").json()["items"][0]
    assert (row["who"], row["state"]) == ("ada@node1", "done")
    assert get(lab, f"/plans/{row['plan']}").json()["environment"] == "lab"
    assert get(lab, "/plans/none").status_code == 404


def test_events_can_be_followed(lab):
    """The last page's cursor asks for what comes later."""
    body = get(lab, "/events", limit=1000).json()
    assert [row["number"] for row in body["items"]] == sorted(
        row["number"] for row in body["items"]
    )
    later = get(lab, "/events", cursor=body["next"]).json()
    assert later == {"items": [], "next": body["next"]}
    assert get(lab, "/events", cursor="rubbish!").status_code == 400


def test_an_unknown_path_has_a_body(lab):
    """A typing error is answered in the shape of every other error."""
    answer = get(lab, "/nonsense")
    assert answer.status_code == 404
    assert answer.json()["code"] == "not-found"


def test_an_environment_needs_no_ledger():
    """The app is made from ports: it asks for nothing until it is asked."""
    environment = Environment("lab", applied.UID)
    assert create_app(
        lambda: None,
        lambda: None,
        environment=environment,
        controller=lambda: None,
        now_ms=lambda: 0,
    )


def test_overrides_are_what_emergency_list_prints(lab, capsys, monkeypatch):
    """The same rows, to the letter; what is over or lifted is told where it is asked for."""
    assert get(lab, "/overrides").json()["items"] == []
    monkeypatch.setattr(
        "fleetform.app.clock.SystemClock.now_ms", lambda _clock: applied.NOW_MS + 9000
    )
    at = ["-C", str(lab), "--reason", "too hot", "--for", "1h"]
    assert main(["emergency", "pause", *at]) == 0
    assert main(["emergency", "drain", "local", *at]) == 0
    assert main(["emergency", "lift", "1", "-C", str(lab)]) == 0
    (row,) = get(lab, "/overrides").json()["items"]
    assert (row["number"], row["kind"], row["target"]) == (2, "drain", "fleet/local")
    assert (row["state"], row["reason"]) == ("in force", "too hot")
    assert row["until_ms"] == applied.NOW_MS + 9000 + 3_600_000
    for params, option in (({}, []), ({"past": True}, ["--all"])):
        capsys.readouterr()
        assert main(["emergency", "list", "-C", str(lab), "--json", *option]) == 0
        assert get(lab, "/overrides", **params).json()["items"] == json.loads(
            capsys.readouterr().out
        )
    past = get(lab, "/overrides", past=True, limit=1).json()["items"]
    assert [one["number"] for one in past] == [2]
    assert get(lab, "/overrides", limit=0).status_code == 400


def test_overrides_before_the_first_apply(root):
    """Nothing is in force where nothing is."""
    assert get(root, "/overrides", past=True).json() == {"items": [], "next": None}


@pytest.mark.parametrize(
    ("problem", "status", "code"),
    [
        (LedgerUnavailable("the server db1:5432 does not answer"), 503, "ledger"),
        (LedgerUnusable("the ledger /secret/ledger.db is damaged", advice="x"), 503, "ledger"),
        (KeyError("/secret"), 500, "fault"),
    ],
)
def test_what_goes_wrong_inside_has_the_shape_of_every_problem(root, problem, status, code):
    """A ledger that is away and a fault of our own are told apart; neither has a traceback or a path."""

    def reader():
        raise problem

    workspace = Workspace.open(str(root))
    app = create_app(
        reader,
        workspace.logs,
        environment=workspace.environment,
        controller=workspace.manager,
        now_ms=lambda: applied.NOW_MS,
    )

    async def call():
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            return await client.get("/api/v1/runs")

    answer = asyncio.run(call())
    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert "Traceback" not in answer.text
    assert "db1" not in answer.text
    assert "/secret" not in answer.text
