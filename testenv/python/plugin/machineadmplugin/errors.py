"""The errors of the contract (SPEC section 10)."""

from __future__ import annotations

import errno
import json
import sys
import traceback
from dataclasses import dataclass, field

from machineadmplugin import plugin_pb2 as pb


@dataclass
class Violation:
    """One thing that is wrong with a document. It never quotes a value (SPEC G-3)."""

    field: str
    message: str
    hint: str = ""


@dataclass
class Refusal(Exception):
    """An answer that is one of the five codes."""

    code: int
    message: str
    hint: str = ""
    violations: list[Violation] = field(default_factory=list)
    detail: str = ""
    final: bool = False  # nothing that runs before this document can cure it

    def message_of(self) -> pb.ErrorDetail:
        out = pb.ErrorDetail(code=self.code, message=self.message, hint=self.hint, detail=self.detail, final=self.final)
        for v in self.violations:
            out.violations.add(field=v.field, message=v.message, hint=v.hint)
        return out


def invalid(violations: list[Violation]) -> Refusal:
    return Refusal(pb.CODE_INVALID_CONFIG, "the document is wrong", violations=violations)


def unsupported(message: str, hint: str = "") -> Refusal:
    return Refusal(pb.CODE_UNSUPPORTED, message, hint)


def precondition(message: str, hint: str, final: bool = False) -> Refusal:
    return Refusal(pb.CODE_PRECONDITION, message, hint, final=final)


# What an operator can fix: the disk, the mount or the permissions. Everything else is a defect.
_OPERATORS = {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM, errno.EIO}


def of(error: Exception) -> Refusal:
    """The refusal that an exception is. The text of a foreign one is not repeated: it can quote a value."""
    if isinstance(error, Refusal):
        return error
    if isinstance(error, OSError) and error.errno in _OPERATORS:
        where = error.filename if isinstance(error.filename, str) else "a file"
        return precondition(f"{where}: {error.strerror}", "make room, or make the directory writable")
    place = traceback.extract_tb(error.__traceback__)[-1]
    where = f"{type(error).__name__} at {place.name}, line {place.lineno}"
    # A line of the log (SPEC G-27).
    print(json.dumps({"@level": "error", "@message": "a defect of the plugin", "where": where}), file=sys.stderr, flush=True)
    return Refusal(pb.CODE_INTERNAL, f"the plugin has a defect: {where}")
