#!/bin/sh
# Builds the Pulumi CLI from its Go module into the user's cache, once per version: about ten minutes of processor time.
# Pulumi publishes it on no package registry, and the hashes in go.sum pin all of its sources.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
version=$(sed -n 's|.*github.com/pulumi/pulumi/pkg/v3 v\([^ ]*\).*|\1|p' "$here/go.mod")
folder="${XDG_CACHE_HOME:-$HOME/.cache}/fleetform/tests/pulumi-$version"

if [ -e "$folder/pulumi" ]; then exit 0; fi
# Where the archive of Go is unpacked, which a service's PATH often lacks.
PATH=$PATH:${FLEETFORM_TEST_GO:-/usr/local/go/bin}
if ! command -v go >/dev/null; then
    echo "Go is not installed: install Go 1.26 or newer, then run sh tests/cloud/pulumi_cli/build.sh" >&2
    exit 1
fi

mkdir -p "$folder"
# Tests that start meanwhile wait for the end of this lock, which ends with this process.
exec 9>"$folder/lock"
flock 9
if [ -e "$folder/pulumi" ]; then exit 0; fi
cd "$here"
# Built under another name and moved, so that no test starts half a program.
go build -trimpath -o "$folder/pulumi.new" \
    -ldflags "-s -w -X github.com/pulumi/pulumi/sdk/v3/go/common/version.Version=$version" \
    github.com/pulumi/pulumi/pkg/v3/cmd/pulumi
mv "$folder/pulumi.new" "$folder/pulumi"
