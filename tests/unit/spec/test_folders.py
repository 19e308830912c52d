"""Directories in each other, by the paths that documents have."""

from __future__ import annotations

import pytest

from fleetform.spec.folders import Places, folders_of


@pytest.mark.parametrize(
    ("path", "folders"),
    [
        ("/a/b", ["/a", "/"]),
        ("/", []),
        ("a/b", ["a", "."]),
        ("a", ["."]),
        (".", []),
    ],
)
def test_a_path_leads_through_folders(path: str, folders: list[str]) -> None:
    """From within outwards; a relative one through the folder of the environment's volumes."""
    assert list(folders_of(path)) == folders


def test_what_lies_in_and_around_a_place() -> None:
    """`/data2` only begins like `/data`, and a relative path is under no absolute one."""
    places = Places((one, one) for one in ("/data", "/data/sets/a", "/data2", "data", "/data"))
    assert places.at("/data") == ["/data", "/data"]
    assert list(places.around("/data/sets/a/b")) == ["/data/sets/a", "/data", "/data"]
    assert places.within("/data") == ["/data/sets/a"]
    assert sorted(places.within("/")) == ["/data", "/data", "/data/sets/a", "/data2"]
    assert places.within(".") == ["data"]


@pytest.mark.parametrize(
    ("path", "meets"),
    [("/data", True), ("/", True), ("/data/sets", True), ("/data2", False), ("data", False)],
)
def test_directories_that_would_share_data_meet(path: str, meets: bool) -> None:
    """The same, one around it or one within."""
    assert Places([("/data", "it")]).meets(path) is meets
    assert not Places[str](()).meets(path)
