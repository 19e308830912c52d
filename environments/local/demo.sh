#!/bin/sh
# The main job, end to end: a plan, everything it says, and a plan that has nothing left to say.
# `make demo` calls this with BIN, the folder of the environment's programs.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
bin=$(cd "${BIN:?folder of the fleetform program}" && pwd)
PATH=$bin:$PATH
export PATH

bold= plain=
if [ -t 1 ]; then bold=$(printf '\033[1m') plain=$(printf '\033[0m'); fi

say() { printf '\n%s$ %s%s\n' "$bold" "$*" "$plain"; "$@"; }

# An environment on top of this folder, which says where this machine has a Python with scikit-learn:
# jobs do not get it from the PATH above. Git ignores it, since the path is another one elsewhere.
cd "$here/../.."
tree=environments/demo
mkdir -p "$tree"
cat > "$tree/environment.yaml" <<EOF
type: environment
name: demo
uid: 0d3a5c1f7b9e4826a1c4d7f02b6e8953
extends: ../local
values:
  python: "'$bin/python'"
EOF

say cat "$tree/environment.yaml"
say fleetform plan "$tree"
# Where everything has run already this says that there is nothing to do; where a demo was
# interrupted, it follows what is still running.
say fleetform apply "$tree" -y
say fleetform logs evaluate --path "$tree"
say fleetform plan "$tree"
