#!/bin/sh
# Installs the programs that tests use besides Python, where it may: as root on Debian.
# Elsewhere the tests that need one are skipped with the reason.
# `sh tests/services.sh lab` installs only what `make lab` needs, `… machines` what whole machines need;
# `… cloud` builds the Pulumi CLI, and unpacks cloud-init.
set -eu

here=$(cd "$(dirname "$0")" && pwd)

if [ "${1:-}" = cloud ]; then
    sh "$here/cloud/pulumi_cli/build.sh"
    sh "$here/cloud/cloud_init/install.sh"
    exit
fi

missing=
# Debian keeps the programs of servers and networks off the PATH of a plain user.
PATH=$PATH:/usr/sbin:/sbin
command -v sshd >/dev/null || missing="$missing openssh-server"
command -v ssh >/dev/null || missing="$missing openssh-client"
command -v ip >/dev/null || missing="$missing iproute2"
if [ "${1:-}" = machines ]; then
    command -v debootstrap >/dev/null || missing="$missing debootstrap debian-archive-keyring"
    # A kernel of its own where there is a package of it, else a container.
    if ! command -v linux.uml >/dev/null && ! command -v systemd-nspawn >/dev/null; then
        missing="$missing systemd-container"
        if grep -q '^ID=debian' /etc/os-release; then missing="$missing user-mode-linux"; fi
    fi
elif [ "${1:-}" != lab ]; then
    for program in curl git jq node npm rsync sudo; do
        command -v "$program" >/dev/null || missing="$missing $program"
    done
    # Runs on several nodes start it with the launcher that they find.
    command -v mpirun >/dev/null || missing="$missing openmpi-bin"
    # The cluster that Debian makes is not used, and is not made.
    if ! command -v pg_ctl >/dev/null && ! ls /usr/lib/postgresql/*/bin/pg_ctl >/dev/null 2>&1; then
        missing="$missing postgresql"
    fi
fi
if [ -n "$missing" ]; then
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        apt-get update -qq
        case $missing in *postgresql*)
            mkdir -p /etc/postgresql-common
            [ -e /etc/postgresql-common/createcluster.conf ] ||
                echo 'create_main_cluster = false' >/etc/postgresql-common/createcluster.conf ;;
        esac
        # The package starts a server of this machine: a policy forbids it, and it is disabled below.
        policy=/usr/sbin/policy-rc.d
        case $missing in *openssh-server*)
            if [ -e $policy ]; then policy=; else
                printf '#!/bin/sh\nexit 101\n' >$policy
                chmod +x $policy
                trap 'rm -f /usr/sbin/policy-rc.d' EXIT
                trap 'exit 1' INT TERM
            fi ;;
        *) policy= ;; esac
        # shellcheck disable=SC2086 -- several words are several packages
        DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends \
            $(echo "$missing" | sed 's/\bnode\b/nodejs/')
        case $missing in *openssh-server*)
            if command -v systemctl >/dev/null; then
                systemctl --quiet disable ssh.service ssh.socket 2>/dev/null || true
            fi
            if command -v update-rc.d >/dev/null; then update-rc.d ssh disable; fi ;;
        esac
        if [ -n "$policy" ]; then rm -f $policy; fi
    else
        echo "not installed:$missing; the tests that use them are skipped" >&2
    fi
fi

if [ -n "${1:-}" ]; then exit 0; fi

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
