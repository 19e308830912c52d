"""
An SFTP server of version 3 on standard input and output: `sftp`, `scp` and editors copy files with it.

It runs inside a job, as a command of the channel `exec`: paths are the job's, relative ones begin in
its working directory, and rights are those of its account. The agent hands this file's text to its own
Python, because a job's account may not be allowed to read the agent's files, and many hosts have no
`sftp-server`. So it imports nothing but the standard library, Python 3.9.

Packets: draft-ietf-secsh-filexfer-02; extensions: PROTOCOL of OpenSSH, section 4.
"""

from __future__ import annotations

import errno
import os
import stat
import struct
import sys
import time
from collections.abc import Callable, Iterator
from typing import BinaryIO, Union

_VERSION = 3

(_INIT, _VERSION_REPLY, _OPEN, _CLOSE, _READ, _WRITE, _LSTAT, _FSTAT, _SETSTAT, _FSETSTAT, _OPENDIR,
 _READDIR, _REMOVE, _MKDIR, _RMDIR, _REALPATH, _STAT, _RENAME, _READLINK, _SYMLINK) = range(1, 21)  # fmt: skip
_STATUS, _HANDLE, _DATA, _NAME, _ATTRS = range(101, 106)
_EXTENDED, _EXTENDED_REPLY = 200, 201

_OK, _EOF, _NO_SUCH_FILE, _PERMISSION_DENIED, _FAILURE, _BAD_MESSAGE = range(6)
_UNSUPPORTED = 8

_FLAG_READ, _FLAG_WRITE, _FLAG_APPEND, _FLAG_CREATE, _FLAG_TRUNCATE, _FLAG_EXCLUSIVE = (
    1 << bit for bit in range(6)
)
_ATTR_SIZE, _ATTR_OWNER, _ATTR_MODE, _ATTR_TIMES = 1, 2, 4, 8
_ATTR_EXTENDED = 1 << 31

_PACKET_BYTES_MAX = 256 << 10
"""As in OpenSSH: a longer packet is noise."""

_READ_BYTES_MAX = 255 << 10
"""As OpenSSH's server: a packet with its head."""

_NAMES_A_PACKET = 100
_HANDLES_MAX = 1000
"""Below the limit of open files that most accounts have."""

_RECENT_SECONDS = 180 * 86400
"""`ls -l` shows the time of files that are younger, and the year of older ones."""

_EXTENSIONS = (
    (b"posix-rename@openssh.com", b"1"),
    (b"statvfs@openssh.com", b"2"),
    (b"hardlink@openssh.com", b"1"),
    (b"fsync@openssh.com", b"1"),
    (b"lsetstat@openssh.com", b"1"),
    (b"limits@openssh.com", b"1"),
    (b"expand-path@openssh.com", b"1"),
)


class _Malformed(Exception):
    """A packet is shorter than it says."""


class _Unsupported(Exception):
    """A request that this server does not have."""


class _Packet:
    """Reads the fields of a packet in their order."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def _take(self, size: int) -> bytes:
        end = self._at + size
        if end > len(self._data):
            raise _Malformed
        part = self._data[self._at : end]
        self._at = end
        return part

    def byte(self) -> int:
        return self._take(1)[0]

    def number(self) -> int:
        return int.from_bytes(self._take(4), "big")

    def long(self) -> int:
        return int.from_bytes(self._take(8), "big")

    def text(self) -> bytes:
        return self._take(self.number())

    @property
    def is_over(self) -> bool:
        return self._at == len(self._data)

    def attributes(self) -> dict[str, int]:
        """Read what is to be set; fields that are absent stay as they are."""
        flags = self.number()
        found: dict[str, int] = {}
        if flags & _ATTR_SIZE:
            found["size"] = self.long()
        if flags & _ATTR_OWNER:
            found["uid"], found["gid"] = self.number(), self.number()
        if flags & _ATTR_MODE:
            found["mode"] = self.number()
        if flags & _ATTR_TIMES:
            found["atime"], found["mtime"] = self.number(), self.number()
        if flags & _ATTR_EXTENDED:
            for _ in range(self.number()):
                self.text()
                self.text()
        return found


def _number(value: int) -> bytes:
    return struct.pack(">I", value & 0xFFFFFFFF)


def _text(value: bytes) -> bytes:
    return _number(len(value)) + value


def _attributes(seen: os.stat_result) -> bytes:
    flags = _ATTR_SIZE | _ATTR_OWNER | _ATTR_MODE | _ATTR_TIMES
    numbers = (seen.st_uid, seen.st_gid, seen.st_mode, int(seen.st_atime), int(seen.st_mtime))
    head = _number(flags) + struct.pack(">Q", seen.st_size)
    return head + b"".join(map(_number, numbers))


_NO_ATTRIBUTES = _number(0)

_Open = Union[int, Iterator["os.DirEntry[bytes]"]]


class Server:
    """Answers packets one after another, as clients expect of version 3."""

    def __init__(self, source: BinaryIO, target: BinaryIO) -> None:
        self._source = source
        self._target = target
        self._handles: dict[bytes, _Open] = {}
        self._last_handle = 0
        self._answers: dict[int, Callable[[_Packet], bytes]] = {
            _OPEN: self._open,
            _CLOSE: self._close,
            _READ: self._read,
            _WRITE: self._write,
            _LSTAT: lambda packet: _attrs(os.lstat(_path(packet))),
            _FSTAT: lambda packet: _attrs(os.fstat(self._file(packet))),
            _SETSTAT: lambda packet: _set(_path(packet), packet.attributes()),
            _FSETSTAT: lambda packet: _set(self._file(packet), packet.attributes()),
            _OPENDIR: self._open_directory,
            _READDIR: self._read_directory,
            _REMOVE: lambda packet: _do(os.unlink, _path(packet)),
            _MKDIR: _make_directory,
            _RMDIR: lambda packet: _do(os.rmdir, _path(packet)),
            _REALPATH: lambda packet: _name(os.path.realpath(_path(packet))),
            _STAT: lambda packet: _attrs(os.stat(_path(packet))),
            _RENAME: _rename,
            _READLINK: lambda packet: _name(os.readlink(_path(packet))),
            _SYMLINK: _link,
            _EXTENDED: self._extended,
        }

    def serve(self) -> int:
        """Answer until the input ends, and close what is still open; returns the exit code."""
        try:
            self._serve()
        finally:
            for opened in self._handles.values():
                _release(opened)
            self._handles.clear()
        return 0

    def _serve(self) -> None:
        while (packet := self._next()) is not None:
            kind = packet.byte()
            if kind == _INIT:
                packet.number()
                offered = b"".join(_text(name) + _text(data) for name, data in _EXTENSIONS)
                self._send(bytes([_VERSION_REPLY]) + _number(_VERSION) + offered)
                continue
            request = packet.number()
            answer = self._answer(kind, packet)
            self._send(answer[:1] + _number(request) + answer[1:])

    def _next(self) -> _Packet | None:
        size = int.from_bytes(self._source.read(4), "big")
        if size == 0:
            return None
        if size > _PACKET_BYTES_MAX:
            raise SystemExit("sftp: a packet is too long")
        data = self._source.read(size)
        return _Packet(data) if len(data) == size else None

    def _send(self, content: bytes) -> None:
        self._target.write(_number(len(content)) + content)
        self._target.flush()

    def _answer(self, kind: int, packet: _Packet) -> bytes:
        try:
            return self._answers.get(kind, _refuse)(packet)
        except _Unsupported:
            return _status(_UNSUPPORTED, "not supported")
        except EOFError:
            return _status(_EOF, "end of file")
        except OSError as error:
            return _status(_code(error), error.strerror or str(error))
        except (_Malformed, ValueError, OverflowError) as error:
            return _status(_BAD_MESSAGE, str(error) or "the packet is malformed")

    # -- files ------------------------------------------------------------------------------------

    def _open(self, packet: _Packet) -> bytes:
        path, flags, attributes = _path(packet), packet.number(), packet.attributes()
        modes = {0: os.O_RDONLY, _FLAG_READ: os.O_RDONLY, _FLAG_WRITE: os.O_WRONLY}
        mode = modes.get(flags & (_FLAG_READ | _FLAG_WRITE), os.O_RDWR)
        for asked, bit in (
            (_FLAG_APPEND, os.O_APPEND),
            (_FLAG_CREATE, os.O_CREAT),
            (_FLAG_TRUNCATE, os.O_TRUNC),
            (_FLAG_EXCLUSIVE, os.O_EXCL),
        ):
            mode |= bit if flags & asked else 0
        opened = os.open(path, mode | os.O_CLOEXEC, attributes.get("mode", 0o666) & 0o7777)
        return self._handle(opened)

    def _read(self, packet: _Packet) -> bytes:
        file, offset, size = self._file(packet), packet.long(), packet.number()
        data = os.pread(file, min(size, _READ_BYTES_MAX), offset)
        if not data:
            raise EOFError
        return bytes([_DATA]) + _text(data)

    def _write(self, packet: _Packet) -> bytes:
        file, offset, data = self._file(packet), packet.long(), packet.text()
        while data:
            written = os.pwrite(file, data, offset)
            data, offset = data[written:], offset + written
        return _status(_OK)

    def _open_directory(self, packet: _Packet) -> bytes:
        return self._handle(iter(os.scandir(_path(packet))))

    def _read_directory(self, packet: _Packet) -> bytes:
        entries = self._handles.get(packet.text())
        if entries is None or isinstance(entries, int):
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        names: list[bytes] = []
        for entry in entries:
            try:
                seen = entry.stat(follow_symlinks=False)
            except OSError:
                continue  # Removed meanwhile.
            line = _long_name(entry.name, seen)
            names.append(_text(entry.name) + _text(line) + _attributes(seen))
            if len(names) == _NAMES_A_PACKET:
                break
        if not names:
            raise EOFError
        return bytes([_NAME]) + _number(len(names)) + b"".join(names)

    def _handle(self, opened: _Open) -> bytes:
        if len(self._handles) >= _HANDLES_MAX:
            _release(opened)
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        self._last_handle += 1
        name = b"%d" % self._last_handle
        self._handles[name] = opened
        return bytes([_HANDLE]) + _text(name)

    def _file(self, packet: _Packet) -> int:
        opened = self._handles.get(packet.text())
        if not isinstance(opened, int):
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        return opened

    def _close(self, packet: _Packet) -> bytes:
        opened = self._handles.pop(packet.text(), None)
        if opened is None:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        _release(opened)
        return _status(_OK)

    def _extended(self, packet: _Packet) -> bytes:
        name = packet.text()
        if name == b"posix-rename@openssh.com":
            return _do(os.replace, _path(packet), _path(packet))
        if name == b"hardlink@openssh.com":
            return _do(_hard_link, _path(packet), _path(packet))
        if name == b"fsync@openssh.com":
            return _do(os.fsync, self._file(packet))
        if name == b"lsetstat@openssh.com":
            return _set(_path(packet), packet.attributes(), follow=False)
        if name == b"statvfs@openssh.com":
            return _space(os.statvfs(_path(packet)))
        if name == b"limits@openssh.com":
            limits = (_PACKET_BYTES_MAX, _READ_BYTES_MAX, _READ_BYTES_MAX, _HANDLES_MAX)
            return bytes([_EXTENDED_REPLY]) + struct.pack(">QQQQ", *limits)
        if name == b"expand-path@openssh.com":
            return _name(os.path.realpath(os.path.expanduser(_path(packet))))
        raise _Unsupported


def _refuse(_: _Packet) -> bytes:
    raise _Unsupported


def _release(opened: _Open) -> None:
    if isinstance(opened, int):
        os.close(opened)
    else:
        close = getattr(opened, "close", None)
        if close is not None:
            close()


# -- requests by path -----------------------------------------------------------------------------


def _path(packet: _Packet) -> bytes:
    # An empty path is the directory that the session begins in.
    path = packet.text() or b"."
    if b"\0" in path:
        raise ValueError("a path contains a NUL character")
    return path


def _make_directory(packet: _Packet) -> bytes:
    path, attributes = _path(packet), packet.attributes()
    return _do(os.mkdir, path, attributes.get("mode", 0o777) & 0o7777)


def _hard_link(old: bytes, new: bytes) -> None:
    os.link(old, new, follow_symlinks=False)


def _rename(packet: _Packet) -> bytes:
    old, new = _path(packet), _path(packet)
    # Version 3 replaces nothing; `posix-rename` does.
    if os.path.lexists(new):
        raise OSError(errno.EEXIST, os.strerror(errno.EEXIST))
    return _do(os.rename, old, new)


def _link(packet: _Packet) -> bytes:
    # OpenSSH sends the target first, against the draft, and all follow it.
    target, link = _path(packet), _path(packet)
    return _do(os.symlink, target, link)


def _set(place: int | bytes, wanted: dict[str, int], *, follow: bool = True) -> bytes:
    # An open file has no links to follow, and Python refuses to be asked not to.
    follow = follow or isinstance(place, int)
    if "size" in wanted and follow:
        os.truncate(place, wanted["size"])
    if "uid" in wanted:
        os.chown(place, wanted["uid"], wanted["gid"], follow_symlinks=follow)
    if "mode" in wanted and follow:
        os.chmod(place, wanted["mode"] & 0o7777)
    if "mtime" in wanted:
        os.utime(place, (wanted["atime"], wanted["mtime"]), follow_symlinks=follow)
    return _status(_OK)


# -- answers --------------------------------------------------------------------------------------


def _do(call: Callable[..., object], *arguments: object) -> bytes:
    call(*arguments)
    return _status(_OK)


def _status(code: int, message: str = "") -> bytes:
    words = message.encode("utf-8", "replace")
    return bytes([_STATUS]) + _number(code) + _text(words) + _text(b"")


def _code(error: OSError) -> int:
    if error.errno in {errno.ENOENT, errno.ENOTDIR, errno.ELOOP}:
        return _NO_SUCH_FILE
    return _PERMISSION_DENIED if error.errno in {errno.EACCES, errno.EPERM} else _FAILURE


def _attrs(seen: os.stat_result) -> bytes:
    return bytes([_ATTRS]) + _attributes(seen)


def _name(path: bytes) -> bytes:
    return bytes([_NAME]) + _number(1) + _text(path) * 2 + _NO_ATTRIBUTES


def _space(seen: os.statvfs_result) -> bytes:
    numbers = (
        seen.f_bsize, seen.f_frsize, seen.f_blocks, seen.f_bfree, seen.f_bavail, seen.f_files,
        seen.f_ffree, seen.f_favail, seen.f_fsid,
        (1 if seen.f_flag & os.ST_RDONLY else 0) | (2 if seen.f_flag & os.ST_NOSUID else 0),
        seen.f_namemax,
    )  # fmt: skip
    return bytes([_EXTENDED_REPLY]) + struct.pack(">11Q", *numbers)


def _long_name(name: bytes, seen: os.stat_result) -> bytes:
    """Return the line of `ls -l`, which clients show as it is."""
    then = time.localtime(seen.st_mtime)
    is_recent = 0 <= time.time() - seen.st_mtime < _RECENT_SECONDS
    when = time.strftime("%b %d %H:%M" if is_recent else "%b %d  %Y", then)
    head = (
        f"{stat.filemode(seen.st_mode)} {seen.st_nlink:4} {seen.st_uid:<8} {seen.st_gid:<8}"
        f" {seen.st_size:8} {when} "
    )
    return head.encode() + name


def main() -> int:
    return Server(sys.stdin.buffer, sys.stdout.buffer).serve()


if __name__ == "__main__":
    raise SystemExit(main())
