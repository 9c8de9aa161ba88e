"""Decides what is missing. One function plans, and Apply calls it again, so that the two cannot drift apart."""

from __future__ import annotations

import difflib
import hmac
import os
from dataclasses import dataclass
from typing import Callable
from urllib.parse import urlsplit

from aptrepository import plugin_pb2 as pb
from aptrepository.document import Repository
from aptrepository.files import Found, Tree


@dataclass
class Change:
    message: pb.Change
    make: Callable[[], None]


@dataclass
class Plan:
    changes: list[Change]
    warnings: list[pb.Warning]
    claims: list[pb.Claim]


@dataclass
class _File:
    path: str
    content: str | None  # None: there must be none
    mode: int = 0o644


def plan(want: Repository, tree: Tree, claim_key: bytes = b"") -> Plan:
    """The changes that are still missing, in the order in which they are made.

    The source comes after what it needs, and what it no longer needs goes after it: apt can read the files at any time.
    """
    key = _File(f"/etc/apt/keyrings/machineadm-{want.name}.asc", want.key)
    credentials = _File(f"/etc/apt/auth.conf.d/machineadm-{want.name}.conf", _credentials(want), 0o600)
    source = _File(f"/etc/apt/sources.list.d/machineadm-{want.name}.sources", _source(want, key.path))
    wanted = [f for f in (key, credentials) if f.content is not None]
    unwanted = [f for f in (key, credentials) if f.content is None]
    changes = [_change(f, tree) for f in (*wanted, source, *unwanted)]
    warnings = []
    if want.key is None:
        warnings.append(pb.Warning(field="spec.signedBy", message="is left out: every key that apt trusts will do"))
    claims = [_claim(f, claim_key) for f in (key, credentials, source)] if claim_key else []
    return Plan([c for c in changes if c is not None], warnings, claims)


def _claim(file: _File, key: bytes) -> pb.Claim:
    """What the document owns, whether it is there or not (SPEC P-32, P-33)."""
    parts = []
    if file.content is not None:
        parts = [file.content.encode(), b"%04o" % file.mode, b""]  # the owner is the user of the run
    digest = hmac.new(key, digestmod="sha256")
    for part in parts:
        digest.update(len(part).to_bytes(8, "big") + part)
    return pb.Claim(id=f"file:{file.path}", digest=digest.digest())


def _source(want: Repository, key: str) -> str:
    lines = [
        f"# machineadm: AptRepository/{want.name}",
        "Types: deb",
        f"URIs: {' '.join(want.uris)}",
        f"Suites: {' '.join(want.suites)}",
    ]
    if want.components:
        lines.append(f"Components: {' '.join(want.components)}")
    if want.key is not None:
        lines.append(f"Signed-By: {key}")
    return "\n".join(lines) + "\n"


def _credentials(want: Repository) -> str | None:
    """apt_auth.conf(5)."""
    if want.login is None:
        return None
    machines = dict.fromkeys(urlsplit(u).netloc + urlsplit(u).path for u in want.uris)
    return "".join(f"machine {m}\nlogin {want.login}\npassword {want.password}\n" for m in machines)


def _change(file: _File, tree: Tree) -> Change | None:
    found = tree.read(file.path)
    if file.content is None:
        if found is None:
            return None
        message = pb.Change(id=f"absent:{file.path}", summary=f"remove {file.path}", reboot=pb.REBOOT_NONE)
        return Change(message, lambda: tree.remove(file.path))
    content = file.content.encode()
    if found == Found(content, file.mode, os.geteuid()):
        return None
    verb = "create" if found is None else "replace" if found.content != content else "set mode and owner of"
    message = pb.Change(
        id=f"file:{file.path}", summary=f"{verb} {file.path}", diff=_diff(file, found), reboot=pb.REBOOT_NONE
    )
    return Change(message, lambda: tree.write(file.path, content, file.mode))


def _diff(file: _File, found: Found | None) -> str:
    """A unified diff, unless a side is not for everyone's eyes (SPEC P-20)."""
    everyones = 0o004
    if not file.mode & everyones or (found is not None and not found.mode & everyones):
        return "content differs"
    try:
        old = "" if found is None else found.content.decode()
    except UnicodeDecodeError:
        return "content differs"
    lines = difflib.unified_diff(
        old.splitlines(keepends=True),
        (file.content or "").splitlines(keepends=True),
        "/dev/null" if found is None else f"a{file.path}",
        f"b{file.path}",
    )
    return "".join(lines)
