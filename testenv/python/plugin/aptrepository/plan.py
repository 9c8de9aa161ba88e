"""Decides what is missing. One function plans, and Apply calls it again, so that the two cannot drift apart."""

from __future__ import annotations

from urllib.parse import urlsplit

from aptrepository.document import Repository
from machineadmplugin import plugin_pb2 as pb
from machineadmplugin.changes import File, Plan
from machineadmplugin.files import Tree


def plan(want: Repository, tree: Tree, claim_key: bytes = b"") -> Plan:
    """The changes that are still missing, in the order in which they are made.

    The source comes after what it needs, and what it no longer needs goes after it: apt can read the files at any time.
    """
    key = File(f"/etc/apt/keyrings/machineadm-{want.name}.asc", want.key)
    credentials = File(f"/etc/apt/auth.conf.d/machineadm-{want.name}.conf", _credentials(want), 0o600)
    source = File(f"/etc/apt/sources.list.d/machineadm-{want.name}.sources", _source(want, key.path))
    wanted = [f for f in (key, credentials) if f.content is not None]
    unwanted = [f for f in (key, credentials) if f.content is None]
    changes = [f.change(tree) for f in (*wanted, source, *unwanted)]
    warnings = []
    if want.key is None:
        warnings.append(pb.Warning(field="spec.signedBy", message="is left out: every key that apt trusts will do"))
    claims = [f.claim(claim_key) for f in (key, credentials, source)] if claim_key else []
    return Plan([c for c in changes if c is not None], warnings, claims)


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
