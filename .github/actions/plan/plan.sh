#!/usr/bin/env bash
# Shows the findings of INPUT_PATH at their lines of the pull request, plans it with
# INPUT_FLEETFORM, prints the whole plan into the log, appends it to the job's summary, and sets the
# outputs `changes` and `exit-code`. Fails for an error in the tree or in planning; what is held or has failed before is
# shown and is no error of this change.
set -euo pipefail

work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT

# Planning refuses what is wrong here and says why, so this exit code would say nothing more.
"$INPUT_FLEETFORM" validate --format github -- "$INPUT_PATH" 2>/dev/null || true

code=0
"$INPUT_FLEETFORM" plan --detailed-exitcode --format markdown --out "$work/plan" -- "$INPUT_PATH" \
  >"$work/plan.md" 2>"$work/errors" || code=$?

# Findings quote the tree, and the runner obeys whatever line looks like a command. Not on standard
# error: the runner reads it beside this stream, and the order between the two would be lost.
stop="$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')"
printf '::stop-commands::%s\n' "$stop"
cat "$work/errors"
# The summary has what fits into a comment, and says so at its top; the log has the whole plan.
if [ -s "$work/plan" ]; then
  "$INPUT_FLEETFORM" show "$work/plan" 2>&1 || true
fi
printf '::%s::\n' "$stop"

cat "$work/plan.md" >>"$GITHUB_STEP_SUMMARY"
if [ -s "$work/errors" ]; then
  # Four spaces make a code block that no text of the tree can end. A step's summary may have
  # 1 MiB, and GitHub drops the whole of a larger one; the plan has at most 60 000 characters.
  errors_max=500000
  sed 's/^/    /' "$work/errors" >"$work/errors.md"
  if [ "$(wc -c <"$work/errors.md")" -gt "$errors_max" ]; then
    printf '\n**Not all errors are shown here; the log of this step has all of them:**\n' >>"$GITHUB_STEP_SUMMARY"
  fi
  { printf '\n'; head -c "$errors_max" "$work/errors.md"; } >>"$GITHUB_STEP_SUMMARY"
fi

# From the plan and not from the exit code: a plan may have changes and something held as well.
changes=false
if [ -s "$work/plan" ]; then
  changes="$(python3 -I -c '
import json, sys
with open(sys.argv[1], encoding="utf-8") as file:
    print("true" if json.load(file)["changes"] else "false")
' "$work/plan")"
fi
{
  printf 'changes=%s\n' "$changes"
  printf 'exit-code=%s\n' "$code"
} >>"$GITHUB_OUTPUT"

case "$code" in
  0 | 2 | 3 | 4) ;;
  *) exit "$code" ;;
esac
if [ "$changes" = true ] && [ "$INPUT_FAIL_ON_CHANGES" = true ]; then
  exit 2
fi
