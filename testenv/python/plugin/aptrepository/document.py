"""Reads an AptRepository document, strictly: every violation at once, each with its field path (SPEC G-2)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Callable
from urllib.parse import urlsplit

from aptrepository import API_VERSION, KIND
from machineadmplugin.reading import Reader, decoded

_WORD = re.compile(r"[!-~]+")  # printable ASCII without a space: what ends no line and no word of apt's files
_SUITE = re.compile(r"[A-Za-z0-9.+~/-]+")
_COMPONENT = re.compile(r"[A-Za-z0-9./-]+")
_KEY = re.compile(
    r"-----BEGIN PGP PUBLIC KEY BLOCK-----\n[A-Za-z0-9+/=:., \n-]*\n-----END PGP PUBLIC KEY BLOCK-----\n?"
)
_LONGEST_NAME = 200  # with what is put around it, also for a temporary file, a file's name stays below 255 bytes


@dataclass(frozen=True)
class Repository:
    """What the document wants."""

    name: str
    uris: list[str]
    suites: list[str]
    components: list[str]
    key: str | None
    login: str | None
    password: str | None


def read(data: bytes) -> Repository:
    """Raises the refusal that names everything that is wrong."""
    document = decoded(data, API_VERSION, KIND)
    r = Reader()
    name = document["metadata"]["name"]
    if len(name) > _LONGEST_NAME:
        r.complain(("metadata", "name"), f"must have at most {_LONGEST_NAME} characters: files are called by it")
    spec = r.mapping(
        document.get("spec"), ("spec",), {"provider", "uris", "suites", "components", "signedBy", "credentials"}
    )
    uris = r.texts(spec, ("spec", "uris"), _wrong_uri)
    suites = r.texts(spec, ("spec", "suites"), _wrong(_SUITE, "a name such as bookworm"))
    components = r.texts(spec, ("spec", "components"), _wrong(_COMPONENT, "a name such as main"))
    for field, hint in (("uris", "name where the repository is"), ("suites", "name a suite, or a path that ends in /")):
        if not spec.get(field):
            r.complain(("spec", field), "is required", hint)
    if suites and all(s.endswith("/") for s in suites) == bool(components):
        r.complain(("spec", "components"), "belong to suites that are names, and not to those that are paths")
    key = r.text(spec, ("spec", "signedBy"), _KEY, "an ASCII-armoured public key")
    login, password = _credentials(r, spec, uris)
    if wrong := r.refusal():
        raise wrong
    return Repository(name, uris, suites, components, key, login, password)


def _credentials(r: Reader, spec: dict[str, Any], uris: list[str]) -> tuple[str | None, str | None]:
    if "credentials" not in spec:
        return None, None
    at = ("spec", "credentials")
    given = r.mapping(spec["credentials"], at, {"login", "password"})
    login = r.text(given, (*at, "login"), _WORD, "a word")
    password = None
    if "password" in given:
        # SPEC F-12: a secret is a mapping with this one key.
        secret = r.mapping(given["password"], (*at, "password"), {"value"})
        password = r.text(secret, (*at, "password", "value"), _WORD, "a text without spaces: apt's file has no quotes")
        if not secret and isinstance(given["password"], dict):
            r.complain((*at, "password", "value"), "is required")
    for field in ("login", "password"):
        if field not in given:
            r.complain((*at, field), "is required")
    for i, uri in enumerate(spec["uris"] if uris else []):
        if uri in uris and not uri.startswith("https:"):
            r.complain(("spec", "uris", i), "must be https: apt sends a password by https only")
    return login, password


def _wrong(form: re.Pattern[str], says: str) -> Callable[[str], str]:
    return lambda value: "" if form.fullmatch(value) else f"must be {says}"


def _wrong_uri(value: str) -> str:
    try:
        parts = urlsplit(value) if _WORD.fullmatch(value) else None
        host = parts and parts.hostname
    except ValueError:
        parts = None
    if parts is None or parts.scheme not in ("https", "http", "file") or (parts.scheme != "file" and not host):
        return "must be a URI that begins with https, http or file"
    if parts.username is not None or parts.password is not None:
        return "must not hold a user: that belongs into spec.credentials"
    return ""
