"""Files below a root. Nothing outside of it is read or written, whatever its links say (SPEC P-16, G-15)."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from contextlib import contextmanager
from typing import Iterator, NamedTuple

from machineadmplugin.errors import precondition

_MOST_LINKS = 40
_LABEL = "security.selinux"
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class Found(NamedTuple):
    content: bytes
    mode: int
    owner: int


class _Place(NamedTuple):
    directory: int  # a descriptor
    name: str


class Tree:
    """The files below root; an empty root is the live machine."""

    def __init__(self, root: str) -> None:
        self._root = os.open(root or "/", _DIRECTORY & ~os.O_NOFOLLOW)

    def close(self) -> None:
        os.close(self._root)

    def exists(self, path: str) -> bool:
        with self._place(path, make=False) as place:
            return place is not None and _stat(place) is not None

    def read(self, path: str) -> Found | None:
        """The file, None where there is none. What is no file is refused."""
        with self._place(path, make=False) as place:
            there = place and _stat(place)
            if place is None or there is None:
                return None
            if not stat.S_ISREG(there.st_mode):
                raise _refuse(path, "is no regular file", "move it away")
            fd = os.open(place.name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=place.directory)
            with open(fd, "rb") as file:
                found = os.fstat(fd)
                return Found(file.read(), stat.S_IMODE(found.st_mode), found.st_uid)

    def check(self, path: str) -> None:
        """Refuses a path that a change must not touch, for the plan."""
        with self._place(path, make=False, changes=True):
            pass

    def write(self, path: str, content: bytes, mode: int) -> None:
        """Replaces the file in one step; its directories are made (SPEC G-11, G-12)."""
        with self._place(path, make=True, changes=True) as place:
            directory, name = place
            temporary = f".{name}.machineadm-tmp"
            # The name is the same for everybody, so only one at a time may use it. The kernel lets go of the lock when
            # the process dies.
            fcntl.flock(directory, fcntl.LOCK_EX)
            _remove(directory, temporary)
            fd = os.open(
                temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=directory
            )
            try:
                with open(fd, "wb") as file:
                    file.write(content)
                    file.flush()
                    _keep_label(directory, name, fd)
                    os.fchmod(fd, mode)
                    os.fsync(fd)
                os.rename(temporary, name, src_dir_fd=directory, dst_dir_fd=directory)
            except OSError:
                _remove(directory, temporary)
                raise
            os.fsync(directory)

    def remove(self, path: str) -> None:
        self._remove(path, follow=True)

    def names(self, path: str) -> list[str]:
        """What is in a directory, in order; nothing where there is none."""
        with self._place(path, make=False) as place:
            there = place and _stat(place)
            if place is None or there is None or not stat.S_ISDIR(there.st_mode):
                return []
            fd = os.open(place.name, _DIRECTORY, dir_fd=place.directory)
            try:
                return sorted(os.listdir(fd))
            finally:
                os.close(fd)

    def target(self, path: str) -> str | None:
        """The text of a link, None where there is no link."""
        with self._place(path, make=False, follow=False) as place:
            there = place and _stat(place)
            if place is None or there is None or not stat.S_ISLNK(there.st_mode):
                return None
            return os.readlink(place.name, dir_fd=place.directory)

    def link(self, target: str, path: str) -> None:
        """Makes or replaces a link in one step."""
        with self._place(path, make=True, follow=False, changes=True) as place:
            directory, name = place
            temporary = f".{name}.machineadm-tmplink"
            fcntl.flock(directory, fcntl.LOCK_EX)
            _remove(directory, temporary)
            os.symlink(target, temporary, dir_fd=directory)
            os.rename(temporary, name, src_dir_fd=directory, dst_dir_fd=directory)
            os.fsync(directory)

    def unlink(self, path: str) -> None:
        """Removes a link itself."""
        self._remove(path, follow=False)

    def _remove(self, path: str, follow: bool) -> None:
        with self._place(path, make=False, follow=follow, changes=True) as place:
            if place is not None:
                _remove(place.directory, place.name)
                os.fsync(place.directory)

    @contextmanager
    def _place(self, path: str, make: bool, follow: bool = True, changes: bool = False) -> Iterator[_Place | None]:
        """Where path leads: a directory below the root and a name in it that is no link, unless links are not followed at the end.

        Each name is looked up in the descriptor of the directory before it, so that a link that is exchanged meanwhile
        leads nowhere else. None when a directory is missing; with make, it is made. A change below /usr is refused (SPEC G-14).
        """
        opened: list[int] = []
        try:
            yield self._walk(path, make, follow, changes, opened)
        finally:
            for fd in opened:
                os.close(fd)

    def _walk(self, path: str, make: bool, follow: bool, changes: bool, opened: list[int]) -> _Place | None:
        stack = [self._root]
        at: list[str] = []  # the names of the directories of stack below the root
        todo = _names(path)
        links = 0
        within = len(todo) + 1  # names that are left of the path itself, once a link stands in it
        while todo:
            name = todo.pop()
            if name == "..":
                stack, at = stack[:-1] or stack, at[:-1]
                continue
            place = _Place(stack[-1], name)
            found = _stat(place)
            if found is not None and stat.S_ISLNK(found.st_mode) and (todo or follow):
                links += 1
                if links > _MOST_LINKS:
                    raise _refuse(path, "has too many links on its way", "remove the links that lead in a circle")
                within = min(within, len(todo))
                text = os.readlink(name, dir_fd=place.directory)
                if text.startswith("/"):
                    stack, at = [self._root], []
                todo += _names(text)
                continue
            if found is None and len(todo) >= within:
                raise _refuse(path, "has a link on its way that leads to nothing", "remove the link, or make what it names")
            if changes and [*at, name][0] == "usr":
                message = "is below /usr, by its text or by a link, where no document writes"
                raise _refuse(path, message, "choose another path, or correct the link", final=True)
            if not todo:
                return place
            if found is None and not make:
                return None
            stack.append(self._enter(path, place, make and found is None))
            at.append(name)
            opened.append(stack[-1])
        raise _refuse(path, "is a directory", "move it away")

    @staticmethod
    def _enter(path: str, place: _Place, missing: bool) -> int:
        made = False
        if missing:
            try:
                os.mkdir(place.name, 0o755, dir_fd=place.directory)
                made = True
            except FileExistsError:
                pass  # another process was quicker
        try:
            fd = os.open(place.name, _DIRECTORY, dir_fd=place.directory)
        except OSError as error:
            if error.errno in (errno.ENOTDIR, errno.ELOOP):
                raise _refuse(path, "has something on its way that is no directory", "move it away") from None
            raise
        if made:
            os.fchmod(fd, 0o755)  # whatever the umask is
            os.fsync(place.directory)
        return fd


def _names(path: str) -> list[str]:
    """The names of a path, the first one last."""
    return [n for n in reversed(path.split("/")) if n not in ("", ".")]


def _stat(place: _Place) -> os.stat_result | None:
    try:
        return os.stat(place.name, dir_fd=place.directory, follow_symlinks=False)
    except FileNotFoundError:
        return None


def _remove(directory: int, name: str) -> None:
    try:
        os.unlink(name, dir_fd=directory)
    except FileNotFoundError:
        pass


def _keep_label(directory: int, name: str, fd: int) -> None:
    """Gives the new file the SELinux label of the old one, where there is one."""
    try:
        old = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=directory)
    except FileNotFoundError:
        return
    try:
        os.setxattr(fd, _LABEL, os.getxattr(old, _LABEL))
    except OSError as error:
        if error.errno not in (errno.ENODATA, errno.ENOTSUP):
            raise
    finally:
        os.close(old)


def _refuse(path: str, message: str, hint: str, final: bool = False) -> Exception:
    return precondition(f"{path} {message}", hint, final)
