"""Reads documents strictly: every violation at once, each with its field path (SPEC G-2)."""

from __future__ import annotations

import json
import re
from typing import Any, Callable

from machineadmplugin.errors import Refusal, Violation, invalid, unsupported

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
# What a terminal does not show as it is (SPEC F-14).
_HIDDEN = re.compile("[\\x00-\\x1f\\x7f-\\x9f\\u200b-\\u200f\\u2028-\\u202e\\u2060-\\u2069\\ufeff\\ufffe\\uffff]")


def decoded(data: bytes, api_version: str, kind: str) -> dict[str, Any]:
    """The document, if it is of the kind that the plugin serves."""
    document = json.loads(data)
    served = (document["apiVersion"], document["kind"])
    if served != (api_version, kind):
        raise unsupported(f"{served[1]} of {served[0]} is not served, but {kind} of {api_version}")
    return document


def path(*steps: str | int) -> str:
    """The path of a field (SPEC F-14)."""
    out = ""
    for step in steps:
        if isinstance(step, int):
            out += f"[{step}]"
        elif _PLAIN.fullmatch(step):
            out += f".{step}" if out else step
        else:
            escaped = step.replace("\\", "\\\\").replace('"', '\\"')
            escaped = _HIDDEN.sub(lambda c: f"\\u{ord(c[0]):04x}", escaped)
            out += f'["{escaped}"]'
    return out


class Reader:
    """Takes values out of a document and collects what is wrong with them."""

    def __init__(self) -> None:
        self.violations: list[Violation] = []

    def complain(self, at: tuple[str | int, ...], message: str, hint: str = "") -> None:
        self.violations.append(Violation(path(*at), message, hint))

    def mapping(self, value: Any, at: tuple[str | int, ...], known: set[str]) -> dict[str, Any]:
        """A mapping without unknown keys and without those that are null, which count as absent (SPEC F-6)."""
        if not isinstance(value, dict):
            self.complain(at, "must be a mapping")
            return {}
        for key in value:
            if key not in known:
                self.complain((*at, key), "is not known", "known are " + ", ".join(sorted(known)) if known else "remove it")
        return {k: v for k, v in value.items() if k in known and v is not None}

    def text(self, of: dict[str, Any], at: tuple[str | int, ...], form: re.Pattern[str], says: str) -> str | None:
        value = of.get(str(at[-1]))
        if value is None:
            return None
        if not isinstance(value, str) or not form.fullmatch(value):
            self.complain(at, f"must be {says}")
            return None
        return value

    def texts(self, of: dict[str, Any], at: tuple[str | int, ...], check: Callable[[str], str]) -> list[str]:
        values = of.get(str(at[-1]))
        if values is None:
            return []
        if not isinstance(values, list):
            self.complain(at, "must be a list")
            return []
        out = []
        for i, value in enumerate(values):
            wrong = check(value) if isinstance(value, str) else "must be a text"
            if wrong:
                self.complain((*at, i), wrong)
            else:
                out.append(value)
        return out

    def refusal(self) -> Refusal | None:
        """What is wrong with the document; None if nothing is."""
        return invalid(self.violations) if self.violations else None
