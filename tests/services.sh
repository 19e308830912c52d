#!/bin/sh
# Installs the programs that tests use besides Python, where it may: as root on Debian.
# Elsewhere the tests that need one are skipped with the reason.
set -eu

missing=
for program in curl git jq; do
    command -v "$program" >/dev/null || missing="$missing $program"
done
[ -n "$missing" ] || exit 0

if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    apt-get update -qq
    # shellcheck disable=SC2086 -- several words are several packages
    DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends $missing
else
    echo "not installed:$missing; the tests that use them are skipped" >&2
fi
