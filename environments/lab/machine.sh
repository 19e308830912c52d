#!/bin/sh
# Mounts the files of a whole machine in a mount namespace of its own, and becomes the command that
# boots it. `lab.py` calls it with the folder of the machine, the root folder of all machines, and the
# command.
set -eu
umask 022
disk=$1
mkdir -p "$disk/work" "$disk/merged"
# A container locks its folder by a file beside it, so both are in a file system of this machine alone.
# It is moved before other mounts hide the folder of the lab, wherever that is.
mount -t tmpfs -o mode=755 tmpfs "$disk/merged"
mkdir "$disk/merged/root"
mount -t overlay -o "lowerdir=$2,upperdir=$disk/root,workdir=$disk/work" overlay "$disk/merged/root"
mount --move "$disk/merged" /mnt
# The memory of a kernel in user mode is a file there, and goes with the machine.
mount -t tmpfs -o mode=1777 tmpfs /tmp
mount -t tmpfs -o mode=1777 tmpfs /dev/shm
export TMPDIR=/tmp HOME=/root
shift 2
# The lab writes this line once it has written down the ids of these processes.
read -r _
cd /
exec "$@" </dev/null
