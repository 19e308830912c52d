"""The workflow and the action that pull requests use: linted, and really run."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

HOUSE = Path(__file__).parents[2]
ACTION = HOUSE / ".github" / "actions" / "plan" / "action.yml"
WORKFLOWS = sorted((HOUSE / ".github" / "workflows").glob("*.yml"))
ACTIONLINT = "v1.7.7"

# Whatever a finding quotes is a line of the log: here one that would be obeyed.
COMMAND = "::add-mask::e"
FLEETFORM = f"""\
#!/bin/sh
if [ "$1" = validate ]; then
  printf '%s\\n' "$@" >"$RECORD.validate"
  printf '::error file=a.yaml::wrong\\n'
  exit 1
fi
if [ "$1" = show ]; then
  printf 'the whole plan\\n{COMMAND}-of-plan\\n'
  exit 0
fi
printf '%s\\n' "$@" >"$RECORD"
[ -n "$LONG" ] && seq 100000 >&2
[ -z "$PLAN" ] || printf '%s' "$PLAN" >"$6"
printf '## Plan\\n'
printf 'warning: hm\\n{COMMAND}\\n' >&2
exit "$CODE"
"""


@pytest.fixture(scope="session")
def actionlint(need):
    """actionlint of a fixed version: on PATH, in the user's cache, or installed there by Go."""
    found = shutil.which("actionlint")
    if found:
        return found
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = cache / "fleetform" / f"actionlint-{ACTIONLINT}"
    program = folder / "actionlint"
    reason = "" if program.exists() else install_actionlint(folder)
    need("actionlint", not reason, reason)
    return str(program)


def install_actionlint(folder):
    """Install it; returns why that failed, or nothing."""
    if not shutil.which("go"):
        return "Go is not on PATH"
    # Made beside and moved, so that two test processes never run half a program.
    making = folder.with_name(f"{folder.name}.{os.getpid()}")
    try:
        subprocess.run(
            ["go", "install", f"github.com/rhysd/actionlint/cmd/actionlint@{ACTIONLINT}"],
            env={**os.environ, "GOBIN": str(making), "GOFLAGS": "-mod=mod"},
            check=True, capture_output=True, text=True, timeout=240,
        )  # fmt: skip
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
        return f"go install failed: {(error.stderr or '')[-300:]}"
    folder.mkdir(parents=True, exist_ok=True)
    (making / "actionlint").replace(folder / "actionlint")
    making.rmdir()
    return ""


def test_workflows_are_valid(actionlint):
    """A wrong key or expression is found here and not after a push."""
    finished = subprocess.run(
        [actionlint, "-no-color", *map(str, WORKFLOWS)], capture_output=True, text=True, check=False
    )
    assert finished.stdout == ""
    assert finished.returncode == 0


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.name)
def test_workflows_may_only_read(workflow):
    """A pull request's code runs with a token that cannot write, and is not left on the disk."""
    document = yaml.safe_load(workflow.read_text(encoding="utf-8"))
    assert document["permissions"] == {"contents": "read"}
    # YAML 1.1 reads the key `on` as true.
    assert "pull_request_target" not in document[True]
    for job in document["jobs"].values():
        assert "timeout-minutes" in job
        checkouts = [
            step for step in job["steps"] if step.get("uses", "").startswith("actions/checkout")
        ]
        assert all(step["with"]["persist-credentials"] is False for step in checkouts)


def test_no_input_becomes_code():
    """An expression within a script is pasted into it before a shell reads it."""
    for step in action()["runs"]["steps"]:
        assert "${{" not in step["run"]


def test_every_output_comes_from_the_step():
    """A caller may branch on the outputs that the description names."""
    outputs = action()["outputs"]
    assert {name: output["value"] for name, output in outputs.items()} == {
        "changes": "${{ steps.plan.outputs.changes }}",
        "exit-code": "${{ steps.plan.outputs.exit-code }}",
    }


def action():
    return yaml.safe_load(ACTION.read_text(encoding="utf-8"))


@pytest.fixture
def act(tmp_path):
    """Runs the action's steps as GitHub's runner does; `fleetform` is a program that we watch."""
    program = tmp_path / "bin" / "fleetform"
    program.parent.mkdir()
    program.write_text(FLEETFORM, encoding="utf-8")
    program.chmod(0o755)

    def run(*, code, plan="", is_long=False, **inputs):
        files = {name: tmp_path / name for name in ("summary", "output")}
        for file in files.values():
            file.write_text("", encoding="utf-8")
        values = {name: given["default"] for name, given in action()["inputs"].items()} | {
            name.replace("_", "-"): value for name, value in inputs.items()
        }
        expressions = {f"inputs.{name}": value for name, value in values.items()}
        expressions["github.action_path"] = str(ACTION.parent)
        last = None
        for step in action()["runs"]["steps"]:
            assert step["shell"] == "bash"
            env = {
                name: expressions[text.removeprefix("${{ ").removesuffix(" }}")]
                for name, text in step["env"].items()
            }
            last = subprocess.run(
                ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
                env={
                    "PATH": f"{program.parent}:/usr/bin:/bin", "CODE": str(code), "PLAN": plan,
                    "LONG": "yes" if is_long else "",
                    "RECORD": str(tmp_path / "record"), "GITHUB_STEP_SUMMARY": str(files["summary"]),
                    "GITHUB_OUTPUT": str(files["output"]), **env,
                },
                capture_output=True, text=True, check=False,
            )  # fmt: skip
        outputs = dict(line.split("=", 1) for line in files["output"].read_text().splitlines())
        asked = (tmp_path / "record").read_text().splitlines()
        return last, outputs, files["summary"].read_text(), asked

    return run


EMPTY, FULL = '{"changes": []}', '{"changes": [{}]}'


@pytest.mark.parametrize(
    ("code", "plan", "changes", "status"),
    [
        (0, EMPTY, "false", 0),
        (2, FULL, "true", 0),
        (3, FULL, "true", 0),
        (4, EMPTY, "false", 0),
        (1, "", "false", 1),
        (7, "", "false", 7),
    ],
)
def test_the_plan_is_put_into_the_summary(act, code, plan, changes, status):
    """Changes and what is held are news, errors fail the step; there is always a summary."""
    finished, outputs, summary, asked = act(code=code, plan=plan)
    assert finished.returncode == status, finished.stderr
    assert outputs == {"changes": changes, "exit-code": str(code)}
    assert summary == f"## Plan\n\n    warning: hm\n    {COMMAND}\n"
    assert asked[:5] == ["plan", "--detailed-exitcode", "--format", "markdown", "--out"]
    assert asked[6:] == ["--", "."]
    assert "warning: hm" in finished.stdout


def test_findings_are_shown_at_their_lines(act, tmp_path):
    """They are commands for the runner, and fail nothing that planning does not fail."""
    finished, _outputs, _summary, _asked = act(code=0, plan=EMPTY, path="lab")
    assert finished.returncode == 0
    assert finished.stdout.startswith("::error file=a.yaml::wrong\n")
    asked = (tmp_path / "record.validate").read_text().splitlines()
    assert asked == ["validate", "--format", "github", "--", "lab"]


def test_what_findings_quote_is_no_command(act):
    """The runner is told to obey nothing until it reads a word that no tree can know."""
    tokens = set()
    for _ in range(2):
        lines = act(code=1)[0].stdout.splitlines()
        (begin,) = (line for line in lines if line.startswith("::stop-commands::"))
        token = begin.removeprefix("::stop-commands::")
        assert lines.index(begin) < lines.index(COMMAND) < lines.index(f"::{token}::")
        assert len(token) == 32
        tokens.add(token)
    assert len(tokens) == 2


def test_the_log_has_the_whole_plan(act):
    """A summary has what fits into a comment; nothing that a plan quotes is obeyed in the log."""
    lines = act(code=0, plan=FULL)[0].stdout.splitlines()
    (begin,) = (line for line in lines if line.startswith("::stop-commands::"))
    token = begin.removeprefix("::stop-commands::")
    places = [begin, "the whole plan", f"{COMMAND}-of-plan", f"::{token}::"]
    assert [lines.index(one) for one in places] == sorted(lines.index(one) for one in places)
    assert "the whole plan" not in act(code=1)[0].stdout


def test_errors_that_do_not_fit_are_not_cut_in_silence(act):
    """A summary that is too large would be dropped; what it leaves out, it says first."""
    finished, _outputs, summary, _asked = act(code=1, is_long=True)
    assert len(summary.encode()) < 1 << 20
    before, _, errors = summary.partition("\n**Not all errors are shown here; the log")
    assert before == "## Plan\n"
    assert "    1\n" in errors
    assert "100000" not in errors
    assert "100000" in finished.stdout


def test_changes_may_be_forbidden(act):
    """A branch that must equal what is there can say so."""
    finished, outputs, _summary, _asked = act(code=0, plan=FULL, fail_on_changes="true")
    assert finished.returncode == 2
    assert outputs["changes"] == "true"


def test_a_path_is_never_carried_out(act, tmp_path):
    """An input with shell code in it is a path that does not exist, and nothing else."""
    bait = tmp_path / "taken"
    path = f'"; touch {bait}; $(touch {bait}) `touch {bait}`'
    _finished, _outputs, _summary, asked = act(code=0, path=path)
    assert asked[-1] == path
    assert not bait.exists()
