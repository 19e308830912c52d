"""What git's own files say, without git."""

from __future__ import annotations

from fleetform.source.tree import working_tree


def test_the_nearest_repository_is_the_trees(tmp_path):
    """A repository within another is the one that its files are committed to."""
    inner = tmp_path / "outer" / "inner"
    folder = inner / "environments" / "lab"
    folder.mkdir(parents=True)
    assert working_tree(folder) is None
    (tmp_path / "outer" / ".git").mkdir()
    assert working_tree(folder) == tmp_path / "outer"
    # A submodule and a linked working tree have a file in place of the folder.
    (inner / ".git").write_text("gitdir: ../.git/modules/inner\n", encoding="utf-8")
    assert working_tree(folder) == inner
    assert working_tree(inner) == inner
