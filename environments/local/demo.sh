#!/bin/sh
# The main job, end to end: a plan, everything it says, and a plan that has nothing left to say.
# `make demo` calls this with BIN, the folder of the environment's programs.
set -eu

tree=$(dirname "$0")
bin=$(cd "${BIN:?folder of the fleetform program}" && pwd)
# The tree's own commands say `python`; they mean the one that has scikit-learn.
PATH=$bin:$PATH
export PATH

bold= plain=
if [ -t 1 ]; then bold=$(printf '\033[1m') plain=$(printf '\033[0m'); fi

say() { printf '\n%s$ %s%s\n' "$bold" "$*" "$plain"; "$@"; }

status=0
say fleetform plan "$tree" --detailed-exitcode || status=$?
case $status in
    0) echo; echo "There is nothing to do: everything has run."; ;;
    2) say fleetform apply "$tree" -y ;;
    *) exit "$status" ;;
esac
say fleetform logs evaluate --path "$tree"
say fleetform plan "$tree"
