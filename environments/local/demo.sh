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

say fleetform plan "$tree"
# Where everything has run already this says that there is nothing to do; where a demo was
# interrupted, it follows what is still running.
say fleetform apply "$tree" -y
say fleetform logs evaluate --path "$tree"
say fleetform plan "$tree"
