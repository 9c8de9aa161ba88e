"""Changes of files and links, and the claims of them."""

from __future__ import annotations

import difflib
import hmac
import os
from dataclasses import dataclass, field
from typing import Callable

from machineadmplugin import plugin_pb2 as pb
from machineadmplugin.files import Found, Tree


@dataclass
class Change:
    message: pb.Change
    make: Callable[[], None]


@dataclass
class Plan:
    changes: list[Change] = field(default_factory=list)
    warnings: list[pb.Warning] = field(default_factory=list)
    claims: list[pb.Claim] = field(default_factory=list)


@dataclass
class File:
    """What a document wants of a file."""

    path: str
    content: str | None  # None: there must be none
    mode: int = 0o644

    def claim(self, key: bytes) -> pb.Claim:
        parts = []
        if self.content is not None:
            parts = [self.content, "%04o" % self.mode, ""]  # the owner is the user of the run
        return claim(f"file:{self.path}", key, *parts)

    def change(self, tree: Tree) -> Change | None:
        tree.check(self.path)
        found = tree.read(self.path)
        if self.content is None:
            if found is None:
                return None
            message = pb.Change(id=f"absent:{self.path}", summary=f"remove {self.path}", reboot=pb.REBOOT_NONE)
            return Change(message, lambda: tree.remove(self.path))
        content = self.content.encode()
        if found == Found(content, self.mode, os.geteuid()):
            return None
        verb = "create" if found is None else "replace" if found.content != content else "set mode and owner of"
        message = pb.Change(
            id=f"file:{self.path}", summary=f"{verb} {self.path}", diff=self._diff(found), reboot=pb.REBOOT_NONE
        )
        return Change(message, lambda: tree.write(self.path, content, self.mode))

    def _diff(self, found: Found | None) -> str:
        """A unified diff, unless a side is not for everyone's eyes (SPEC P-20)."""
        everyones = 0o004
        if not self.mode & everyones or (found is not None and not found.mode & everyones):
            return "content differs"
        try:
            old = "" if found is None else found.content.decode()
        except UnicodeDecodeError:
            return "content differs"
        lines = difflib.unified_diff(
            old.splitlines(keepends=True),
            (self.content or "").splitlines(keepends=True),
            "/dev/null" if found is None else f"a{self.path}",
            f"b{self.path}",
        )
        return "".join(lines)


def claim(id: str, key: bytes, *parts: str) -> pb.Claim:
    """What the document owns, whether it is there or not (SPEC P-32, P-33)."""
    digest = hmac.new(key, digestmod="sha256")
    for part in parts:
        data = part.encode()
        digest.update(len(data).to_bytes(8, "big") + data)
    return pb.Claim(id=id, digest=digest.digest())
