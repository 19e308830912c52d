#!/bin/sh
# Unpacks cloud-init and the modules it imports into the user's cache, for the Python of Debian or
# Ubuntu that they are built for. It is never installed: on a real machine cloud-init would act at the
# next boot.
set -eu

if ! command -v apt-get >/dev/null || ! [ -x /usr/bin/python3 ]; then
    echo "not unpacked: cloud-init, whose packages are those of Debian and Ubuntu" >&2
    exit 0
fi
cache=${XDG_CACHE_HOME:-$HOME/.cache}/fleetform/tests
version=$(apt-cache policy cloud-init 2>/dev/null | sed -n 's/^  Candidate: \([^(]*\)$/\1/p')
if [ -z "$version" ] && [ "$(id -u)" = 0 ]; then
    apt-get update -qq
    version=$(apt-cache policy cloud-init | sed -n 's/^  Candidate: \([^(]*\)$/\1/p')
fi
if [ -z "$version" ]; then
    echo "not unpacked: cloud-init, which apt-get does not know; run \`apt-get update\` as root" >&2
    exit 0
fi
folder=$cache/cloud-init-$(echo "$version" | tr -c '[:alnum:].\n' _)
if [ -d "$folder" ]; then exit 0; fi
mkdir -p "$cache"
new=$(mktemp -d "$cache/cloud-init.XXXXXX")
trap 'rm -rf "$new"' EXIT
trap 'exit 1' INT TERM
mkdir "$new/packages" "$new/files"
cd "$new/packages"
modules=$(apt-cache depends --recurse -i cloud-init | grep '^python3-' | sort -u)
# shellcheck disable=SC2086 -- several words are several packages
if ! apt-get download -qq cloud-init $modules 2>/dev/null; then
    echo "not unpacked: cloud-init, which cannot be downloaded; the tests that use it are skipped" >&2
    exit 0
fi
for package in *.deb; do dpkg-deb -x "$package" "$new/files"; done
# Two that unpack at once: the second finds the folder of the first, and has nothing to do.
mv -T "$new/files" "$folder" 2>/dev/null || [ -d "$folder" ]
