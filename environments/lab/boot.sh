#!/bin/sh
# Process 1 of a host of the lab, in namespaces of its own: mounts what is private to the host, and
# becomes sshd. `lab.py` calls it with the folder of the host, its name, the path of sshd, and of
# each hierarchy of control groups the type, the options and the mount point.
set -eu
umask 022
# Before other mounts hide the folder of the lab, wherever it is.
mount --bind "$1" /mnt
mount -t tmpfs -o mode=755 tmpfs /run
mkdir -p /run/disk /run/sshd
mkdir -m 1777 /run/lock
mount --move /mnt /run/disk
for path in /*; do
    if [ -L "$path" ] || [ ! -d "$path" ]; then continue; fi
    case ${path#/} in
    bin|boot|dev|lib*|opt|proc|run|sbin|sys|usr) ;;
    tmp) mount -t tmpfs -o mode=1777 tmpfs /tmp ;;
    *)
        if [ -d "/run/disk/root$path" ]; then mount --bind "/run/disk/root$path" "$path"
        # No host sees the other folders of this machine.
        else mount -t tmpfs -o mode=755,ro tmpfs "$path"; fi ;;
    esac
done
mount --bind /run/disk/boot_id /proc/sys/kernel/random/boot_id
umount /run/disk
rmdir /run/disk
mount -t tmpfs -o mode=1777,nosuid,nodev tmpfs /dev/shm
mount -t devpts -o newinstance,ptmxmode=0666,mode=620,gid=5 devpts /dev/pts
mount -o remount,bind,ro /
echo "$2" >/proc/sys/kernel/hostname
sshd=$3
shift 3
if [ $# -gt 0 ]; then
    # With the links and the control groups of this host, not those of the machine.
    umount -l /sys
    mount -t sysfs sysfs /sys
    if [ "$3" != /sys/fs/cgroup ]; then mount -t tmpfs -o mode=755 tmpfs /sys/fs/cgroup; fi
    while [ $# -gt 0 ]; do
        mkdir -p "$3"
        mount -t "$1" -o "$2" "$1" "$3"
        shift 3
    done
fi
# The lab writes this line once it has written down the ids of these processes.
read -r _
cd /
# What a test lets a host do before its SSH server starts.
if [ -x /etc/rc.local ]; then /etc/rc.local </dev/null || echo "rc.local ended with $?"; fi
exec "$sshd" -D -e -f /etc/ssh/sshd_config </dev/null
