from __future__ import annotations

import pytest
from git import Repo


def git_repository(root):
    """A repository at `root` with all that is there committed."""
    repository = Repo.init(root)
    with repository.config_writer() as settings:
        settings.set_value("user", "name", "Ada").set_value("user", "email", "ada@example.org")
    repository.git.add("--all")
    repository.git.commit("--message", "a tree")
    return repository


@pytest.fixture
def tree(root, monkeypatch):
    """A tree with comments, and the shell in it."""
    monkeypatch.chdir(root)
    (root / "eval.yaml").write_text(
        "# measured weekly\ntype: task\nname: eval\nenv: [LR=0.1, SEED=1]  # as in the paper\n"
        "commands:\n  - python eval.py  # slow\n"
    )
    return root


def test_fields_change_and_comments_stay(typed, tree):
    """Several fields at once, a list of variables by name, and all else byte for byte."""
    code, out, _err = typed("set", "run/eval", "priority=10", "env.LR=0.2", "resources.cpu=2")
    assert code == 0
    assert "+priority: 10" in out
    assert (tree / "eval.yaml").read_text() == (
        "# measured weekly\ntype: task\nname: eval\nenv: [LR=0.2, SEED=1]  # as in the paper\n"
        "commands:\n  - python eval.py  # slow\npriority: 10\nresources:\n  cpu: 2\n"
    )


def test_a_field_is_taken_out(typed, tree):
    """A dash behind the name; in lists of variables too."""
    assert typed("set", "eval", "env.SEED-", "commands.0=true ")[0] == 0
    assert "env: [LR=0.1]  # as" in (tree / "eval.yaml").read_text()


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ("priority=high", "`high` is not a whole number"),
        ("prioritee=3", "priority"),
        ("resources.gpu=A100:two", "A100:two"),
        ("name=other", "identifies the resource"),
        ("uid=0123456789abcdef0123456789abcdef", "identifies the environment"),
        ("priority", "has no value"),
        ("priority=[", "not a value in YAML"),
        ("priority=null", "`priority-` removes the field"),
        ("=3", "names no field"),
    ],
)
def test_what_is_wrong_is_refused_with_its_finding(typed, tree, change, says):
    """Nothing is written, of the right changes neither."""
    before = (tree / "eval.yaml").read_bytes()
    code, _out, err = typed("set", "eval", "max_duration=1h", change)
    assert code == 1
    assert says in err
    assert (tree / "eval.yaml").read_bytes() == before


def test_the_environment_has_an_address_of_its_own(typed, tree):
    """`environment` is its document."""
    assert typed("set", "environment", "rules.delete_count=3")[0] == 0
    assert "rules:\n  delete_count: 3\n" in (tree / "environment.yaml").read_text()


@pytest.mark.parametrize("how", [("--commit",), ("--branch", "lower"), ("--commit", "--json")])
def test_what_git_kept_out_is_not_called_committed(typed, tree, how):
    """Said again after git refused, it stands in the file alone, and that is an error."""
    repository = git_repository(tree)
    refusing = tree / ".git" / f"{repository.head.reference.path}.lock"
    refusing.touch()
    assert typed("set", "eval", "priority=4", "--commit")[0] == 1
    refusing.unlink()
    code, out, err = typed("set", "eval", "priority=4", *how)
    assert (code, out) == (1, "")
    assert "eval.yaml has that value already, and has uncommitted changes" in err
    assert "git commit eval.yaml" in err
    repository.git.commit("--all", "--message", "as it is")
    assert typed("set", "eval", "priority=4", *how)[0] == 0


@pytest.mark.parametrize("how", [("--commit",), ("--branch", "lower")])
def test_a_document_that_is_a_link_is_committed_where_it_lies(typed, tree, how):
    """The file that is written is in the commit; the link stays one."""
    (tree / "eval.yaml").rename(tree / "eval.yaml.in")
    (tree / "eval.yaml").symlink_to("eval.yaml.in")
    repository = git_repository(tree)
    code, _out, err = typed("set", "eval", "priority=4", *how)
    assert code == 0, err
    revision = "lower" if how[0] == "--branch" else "HEAD"
    assert repository.git.diff("--name-only", f"{revision}~1", revision) == "eval.yaml.in"
    assert (tree / "eval.yaml").is_symlink()
    assert not repository.is_dirty()


def test_a_push_that_failed_is_repeated_by_the_same_command(typed, tree, tmp_path):
    """All is committed by then and there is nothing to write, and it is pushed all the same."""
    repository = git_repository(tree)
    there = tmp_path / "origin.git"
    repository.create_remote("origin", str(there))
    code, _out, err = typed("set", "eval", "priority=4", "--push")
    assert code == 1
    assert "the commit was created and not pushed" in err
    assert "`git push -u origin" in err
    origin = Repo.init(there, bare=True)
    code, out, err = typed("set", "eval", "priority=4", "--push")
    assert code == 0
    assert "nothing to write" in out
    assert f"pushed {repository.active_branch.name} to origin" in err
    assert origin.heads[0].commit == repository.head.commit


def test_a_commit_on_no_branch_is_said_to_be_on_none(typed, tree):
    """The next checkout would lose sight of it."""
    repository = git_repository(tree)
    repository.git.checkout("--detach")
    code, _out, err = typed("set", "eval", "priority=4", "--commit")
    assert code == 0
    assert "on no branch" in err
    assert "`git switch -c NAME` keeps it" in err
