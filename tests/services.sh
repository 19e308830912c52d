#!/bin/sh
# Installs the programs that tests use besides Python, where it may: as root on Debian.
# Elsewhere the tests that need one are skipped with the reason.
set -eu

here=$(cd "$(dirname "$0")" && pwd)

missing=
for program in curl git jq node npm; do
    command -v "$program" >/dev/null || missing="$missing $program"
done
# Debian keeps a server's programs off PATH; its cluster is not used, and is not made.
if ! command -v pg_ctl >/dev/null && ! ls /usr/lib/postgresql/*/bin/pg_ctl >/dev/null 2>&1; then
    missing="$missing postgresql"
fi
if [ -n "$missing" ]; then
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        apt-get update -qq
        case $missing in *postgresql*)
            mkdir -p /etc/postgresql-common
            [ -e /etc/postgresql-common/createcluster.conf ] ||
                echo 'create_main_cluster = false' >/etc/postgresql-common/createcluster.conf ;;
        esac
        # shellcheck disable=SC2086 -- several words are several packages
        DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends \
            $(echo "$missing" | sed 's/\bnode\b/nodejs/')
    else
        echo "not installed:$missing; the tests that use them are skipped" >&2
    fi
fi

# The editor's server that tests/integration/yaml_language_server talks to, by version and hash.
lock="$here/integration/yaml_language_server"
version=$(sed -n 's/.*"yaml-language-server": "\(.*\)".*/\1/p' "$lock/package.json")
server="${XDG_CACHE_HOME:-$HOME/.cache}/fleetform/tests/yaml-language-server-$version"
if command -v npm >/dev/null && [ ! -e "$server/node_modules" ]; then
    mkdir -p "$server.new"
    cp "$lock/package.json" "$lock/package-lock.json" "$server.new"
    if npm ci --prefix "$server.new" --ignore-scripts --no-audit --no-fund --loglevel=error; then
        rm -rf "$server"
        mv "$server.new" "$server"
    else
        echo "not installed: yaml-language-server; the tests that use it are skipped" >&2
    fi
fi
