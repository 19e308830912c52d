#!/bin/sh
# Mounts what a whole machine needs in a mount namespace of its own, and becomes the command that boots
# it. `lab.py` calls it with the kind of the machine, its folder, the root folder of all machines, and
# the command.
set -eu
umask 022
kind=$1 disk=$2
if [ "$kind" = nspawn ]; then
    mkdir -p "$disk/work" "$disk/merged"
    # A container locks its folder by a file beside it, so both are in a file system of this machine
    # alone. It is moved before other mounts hide the folder of the lab, wherever that is.
    mount -t tmpfs -o mode=755 tmpfs "$disk/merged"
    mkdir "$disk/merged/root"
    mount -t overlay -o "lowerdir=$3,upperdir=$disk/root,workdir=$disk/work" overlay "$disk/merged/root"
    mount --move "$disk/merged" /mnt
    mount -t tmpfs -o mode=1777 tmpfs /tmp
else
    # The memory of a kernel in user mode is a file there, and goes with the machine.
    mount -t tmpfs -o mode=1777 tmpfs /dev/shm
    export TMPDIR=/dev/shm
fi
export HOME=/root
shift 3
# The lab writes this line once it has written down the ids of these processes.
read -r _
cd /
exec "$@" </dev/null
