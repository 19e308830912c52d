"""The `fleetform` of the tests, see `forkserver`. It runs for each command, and imports next to nothing."""

import _signal
import _socket
import marshal
import os
import resource
import sys

_NAMESPACES = ("ipc", "mnt", "net", "pid", "user", "uts")
_NO_LOCALE = ("", "C", "C.UTF-8", "POSIX")
_KEPT = (_signal.SIGKILL, _signal.SIGSTOP, _signal.SIGCHLD, _signal.SIGPIPE)


def launch(address, program, surroundings_of_server):
    """Have the command run by the server at `address`, or be `program`; never returns."""
    files = _open_files()
    if (
        files[:3] == [0, 1, 2]
        and not any(map(os.isatty, files))
        and surroundings() == surroundings_of_server
    ):
        os._exit(_ask(address, program, files))
    os.execv(program, [program, *sys.argv[1:]])


def surroundings():
    """Return what a process is given by its parent, and a fork of the server would not have."""
    with open("/proc/self/cgroup") as groups:
        return (
            os.getresuid(),
            os.getresgid(),
            os.getgroups(),
            os.getpriority(os.PRIO_PROCESS, 0),
            [resource.getrlimit(number) for number in range(16)],
            [os.readlink("/proc/self/ns/" + name) for name in _NAMESPACES],
            groups.read(),
            # Python reads these as it starts, and takes UTF-8 where there is no locale.
            sorted(
                (name, value)
                for name, value in os.environ.items()
                if name.startswith(("LC_", "LANG", "PYTHON")) and value not in _NO_LOCALE
            ),
        )


def _ask(address, program, files):
    signals = [number for number in range(1, 32) if number not in _KEPT]
    ignored = [number for number in signals if _signal.getsignal(number) == _signal.SIG_IGN]
    mask = os.umask(0o77)
    request = marshal.dumps(
        ([program, *sys.argv[1:]], os.getcwd(), dict(os.environb), mask, files, ignored)
    )
    connection = _socket.socket(_socket.AF_UNIX)
    connection.connect(address)
    for number in signals:
        if number not in ignored:
            _signal.signal(number, lambda number, _: connection.send(bytes([number])))
    numbers = b"".join(number.to_bytes(4, sys.byteorder) for number in files)
    rights = [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, numbers)]
    connection.sendmsg([len(request).to_bytes(4, "little")], rights)
    connection.sendall(request)
    code = marshal.loads(connection.recv(64))
    if code < 0:
        if -code != _signal.SIGKILL:
            _signal.signal(-code, _signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    return code


def _open_files():
    return [number for number in sorted(map(int, os.listdir("/proc/self/fd"))) if _is_open(number)]


def _is_open(number):
    """Tell whether a file is still open: that of the listing is in the list."""
    try:
        os.fstat(number)
    except OSError:
        return False
    return True
