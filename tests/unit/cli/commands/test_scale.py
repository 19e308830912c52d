from __future__ import annotations

import pytest


@pytest.mark.parametrize(
    ("said", "count", "says"),
    [
        ("1", 3, "nodes: 3"),
        ("0..2", 0, "nodes: 0..2"),
        ("1..2", 0, "nodes: 0..2"),
        ("0..2", 1, "nodes:\n  min: 0\n  target: 1\n  max: 2"),
        ("{min: 0, target: 1, max: 2}", 4, "nodes: {min: 0, target: 4, max: 4}"),
        ("2", 2, "nodes: 2"),
    ],
)
def test_a_fleet_wants_as_many_hosts(typed, root, monkeypatch, said, count, says):
    """The count is wanted within the range as it is written; bounds move only where they must."""
    monkeypatch.chdir(root)
    tree = root / "tree.yaml"
    tree.write_text(tree.read_text().replace("nodes: 1", f"nodes: {said}", 1))
    assert typed("scale", "local", str(count))[0] == 0
    assert f"{says}\n" in tree.read_text()


def test_a_task_runs_once(typed, root, monkeypatch):
    """Its nodes are part of what is executed, and are set by who means that."""
    monkeypatch.chdir(root)
    code, _out, err = typed("scale", "train", "2")
    assert code == 1
    assert "fleetform set run/train nodes=2" in err


def test_a_service_has_replicas(typed, root, monkeypatch):
    """What is held back is edited all the same; with a range the count is its least."""
    monkeypatch.chdir(root)
    (root / "chat.yaml").write_text(
        "type: service\nname: chat\nport: 80\ncommands: [serve]\nreplicas: 0..4\n"
        "scaling: {metric: rps, target: 10}\n"
    )
    assert typed("scale", "chat", "2")[0] == 0
    assert "replicas: 2..4\n" in (root / "chat.yaml").read_text()
