"""Drift in words and as rows."""

from __future__ import annotations

from fleetform.model.drift import TABLE, Drift
from fleetform.spec.desired import ResourceKey
from fleetform.views.drift import asked_text, drift_rows, render
from unit.views.rows import instance, live, resource

AT_MS = 1_700_000_000_000


def _drift(kind: str, field: str, **more: object) -> Drift:
    row = TABLE[kind, field]
    key = ResourceKey(kind, "data")
    return Drift(key, field, row.drift_class, row.remedy, "as it was", "other", **more)


def _text(*drifts: Drift) -> str:
    return "\n".join(line.text for line in render(drifts, observed_at_ms=AT_MS))


def test_each_row_of_the_table_reads_as_a_block() -> None:
    """What, from what to what, since when, by whom and then; no placeholder is left."""
    for kind, field in TABLE:
        text = _text(_drift(kind, field, right_at_ms=AT_MS, by="ada"))
        assert "as it was (expected) → other (seen)" in text
        assert "last seen as applied at 2023-11-14T22:13:20Z" in text
        assert "by: ada" in text
        assert TABLE[kind, field].done in text
        assert "NAME" not in text


def test_the_end_names_the_next_command() -> None:
    """Only those that would do something."""
    assert "--refresh`" in _text(_drift("volume", "mark"))
    assert "--refresh-only" not in _text(_drift("volume", "mark"))
    assert "--refresh-only" in _text(_drift("volume", "mode"))
    assert "1 field has drifted" in _text(_drift("volume", "directory"))
    assert _text() == "Nothing has drifted (looked at 2023-11-14T22:13:20Z)"


def test_nothing_is_fine_where_a_cloud_was_not_asked() -> None:
    """It is said that no drift was found, not that there is none."""
    (said,) = render((), observed_at_ms=AT_MS, is_complete=False)
    assert said.text.startswith("No drift was found, but not all clouds were asked")


def test_what_nobody_had_looked_at_before_says_so() -> None:
    """No time is made up."""
    assert "this is the first check" in _text(_drift("fleet", "host", part="local-0"))


def test_names_from_the_world_move_no_cursor() -> None:
    """A mark that somebody wrote is shown, and not obeyed."""
    drift = Drift(
        **{**_fields(_drift("volume", "claim")), "seen": "volume \x1b[2J", "by": "\x1b]0;"}
    )
    assert "\x1b" not in _text(drift)


def _fields(drift: Drift) -> dict[str, object]:
    return {name: getattr(drift, name) for name in drift.__slots__}


def test_rows_say_the_same_as_json() -> None:
    """Class, remedy and both times, by their names."""
    (row,) = drift_rows([_drift("fleet", "agent", part="local-0", right_at_ms=5)])
    assert (row.resource, row.path) == ("fleet/data", "hosts[local-0].agent")
    assert (row.drift_class, row.remedy) == ("enforced", "apply")
    assert (row.right_at_ms, row.changed_at_ms, row.by) == (5, None, "")


def test_what_is_asked_elsewhere() -> None:
    """This machine answers at once, so nothing is said of it."""
    volume = resource(
        "volume", "data", {}, outputs='{"disk": {"id": "v", "zone": "z", "size_gb": 1}}'
    )
    assert asked_text(live(instances=(instance(0),))) == ""
    far = [instance(number, provider="aws") for number in (1, 2)]
    assert (
        asked_text(live(volume, instances=tuple(far)))
        == "reading the actual state of 2 hosts and 1 disk"
    )
