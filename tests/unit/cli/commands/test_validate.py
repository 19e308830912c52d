from __future__ import annotations

import applied


def test_a_sound_tree_is_counted(typed, asked, root):
    """People see how much was read."""
    applied.write_tree(root, applied.FLEET)
    code, out, err = typed("validate", str(root))
    assert (code, err) == (0, "")
    assert out.endswith(": 0 errors, 0 warnings\n")
    value = asked("validate", str(root))
    assert (value["valid"], value["findings"]) == (True, [])


def test_what_is_wrong_is_shown_with_its_place(typed, root):
    """Findings go to standard error, and the exit code says so."""
    (root / "broken.yaml").write_text("type: task\nname: x\ncomands: [a]\n", encoding="utf-8")
    code, out, err = typed("validate", str(root))
    assert code == 1
    assert "broken.yaml:3:1" in err
    assert "error" in out


def test_a_broken_environment_file_is_a_finding_too(typed, root):
    """The one file that everything needs is explained like any other."""
    (root / "environment.yaml").write_text("type: environment\nnaem: lab\n", encoding="utf-8")
    code, _out, err = typed("validate", str(root))
    assert code == 1
    assert "environment.yaml:" in err
