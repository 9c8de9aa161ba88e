"""What every provider of Timesync refuses (SPEC F-20), also in fields that this one does not support.

Its rules are those that the schema of Timesync and the cases of contract/v1alpha1/cases/Timesync state.
"""

from __future__ import annotations

import ipaddress
import re
from typing import Any

from machineadmplugin.reading import Reader

Path = tuple[str | int, ...]

_HOST = re.compile(r"(?!-)[A-Za-z0-9-]{1,63}(?<!-)(\.(?!-)[A-Za-z0-9-]{1,63}(?<!-))*")
_DEVICE = re.compile(r"(/(?!\.{1,2}(/|$))[A-Za-z0-9._:+-]+)+")
_DURATION = re.compile(r"[-+]?(0|(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+)")
_DIGITS = re.compile(r"([0-9A-Fa-f]{2})*")
_KEY_BYTES = {"AES128": 16, "AES256": 32}
_KEY_TYPES = {"MD5", "SHA1", "SHA256", "SHA384", "SHA512", *_KEY_BYTES}
_PROFILES = {"aws", "gcp", "azure", "vmware"}
# The public servers that spread leap seconds over a day, and those that are known not to.
_SMEARED = re.compile(r"metadata\.google\.internal|time[1-4]?\.google\.com|([0-9a-z.]+\.)?time\.aws\.com|time[1-5]?\.facebook\.com|169\.254\.169\.(123|254)|216\.239\.35\.(0|4|8|12)")
_EXACT = re.compile(r"(.+\.)?pool\.ntp\.org|.+\.nist\.gov|time\.cloudflare\.com|162\.159\.200\.(1|123)")


def check(spec: dict[str, Any], r: Reader) -> None:
    """Complains of every value that no provider accepts. The fields that are named here may have any type."""
    _Rules(r).check(spec)


class _Rules:
    def __init__(self, r: Reader) -> None:
        self._r = r
        self._sources: set[str] = set()
        self._keys: dict[int, tuple[Any, Any]] = {}

    def check(self, spec: dict[str, Any]) -> None:
        if (profile := spec.get("profile")) and profile not in _PROFILES:
            self._r.complain(("spec", "profile"), "is not a profile", "use one of " + ", ".join(sorted(_PROFILES)))
        for field in ("servers", "pools", "fallback", "refClocks"):
            if not isinstance(spec.get(field, []), list):
                self._r.complain(("spec", field), "must be a list")
        for field in ("servers", "pools"):
            for i, source in enumerate(self._items(spec, field)):
                self._source(source, ("spec", field, i))
        for i, address in enumerate(self._items(spec, "fallback", str)):
            self._address(address, ("spec", "fallback", i))
        for i, clock in enumerate(self._items(spec, "refClocks")):
            self._clock(clock, ("spec", "refClocks", i))
        for field, durations in (("makeStep", ("threshold",)), ("waitForSync", ("timeout", "maxOffset"))):
            if isinstance(given := spec.get(field), dict):
                for name in durations:
                    if name in given or name == "threshold":
                        self._duration(given.get(name), ("spec", field, name), positive=True)
        if isinstance(step := spec.get("makeStep"), dict):
            self._number(step.get("limit", -2), ("spec", "makeStep", "limit"), -1, None)
        if not spec.get("mixedLeapSeconds"):
            self._leap_seconds(spec)

    @staticmethod
    def _items(of: dict[str, Any], field: str, kind: type = dict) -> list[Any]:
        """The items of a list. One of another type is empty, so that the others keep their places."""
        values = of.get(field)
        return [value if isinstance(value, kind) else kind() for value in values] if isinstance(values, list) else []

    def _source(self, source: dict[str, Any], at: Path) -> None:
        address = source.get("address")
        self._address(address, (*at, "address"))
        if at[1] == "pools" and _ip(address):
            self._r.complain((*at, "address"), "a pool is a DNS name that resolves to several servers", "list an IP address in servers")
        least, most = (self._number(source.get(f), (*at, f), -6, 24) for f in ("minPoll", "maxPoll"))
        if least is not None and most is not None and least > most:
            self._r.complain((*at, "maxPoll"), "is less than minPoll")
        self._number(source.get("maxSources"), (*at, "maxSources"), 1, 16)
        if isinstance(key := source.get("key"), dict):
            if source.get("nts"):
                self._r.complain((*at, "key"), "a source is authenticated by nts or by a key, not by both", "remove nts or key")
            self._key(key, (*at, "key"))

    def _address(self, text: Any, at: Path) -> None:
        ip = _ip(text)
        if ip and (ip.is_multicast or ip.is_unspecified):
            self._r.complain(at, "is not the address of a server")
        elif ip or isinstance(text, str) and len(text) <= 253 and _HOST.fullmatch(text) and text.strip("0123456789."):
            self._once(str(ip or text).lower(), at)
        else:
            self._r.complain(at, "must be an IP address or a DNS name", "write the address alone, without port, scheme or zone")

    def _once(self, source: str, at: Path) -> None:
        if source in self._sources:
            self._r.complain(at, "is there already", "remove one of the two")
        self._sources.add(source)

    def _key(self, key: dict[str, Any], at: Path) -> None:
        kind, number = key.get("type"), self._number(key.get("id", 0), (*at, "id"), 1, 65535)
        if kind not in _KEY_TYPES:
            self._r.complain((*at, "type"), "is not a type of key", "use one of " + ", ".join(sorted(_KEY_TYPES)))
        value = key.get("value", {}).get("value") if isinstance(key.get("value"), dict) else None
        if (size := _key_size(value)) is None or not 1 <= size <= 1000 or size != _KEY_BYTES.get(kind, size):
            self._r.complain((*at, "value"), "is not a key of this type", "write HEX: and digits, or printable characters without blanks")
        if number is not None and self._keys.setdefault(number, (kind, value)) != (kind, value):
            self._r.complain((*at, "id"), "is the id of another key", "give each key an id of its own")
            self._keys[number] = (kind, value)

    def _clock(self, clock: dict[str, Any], at: Path) -> None:
        if clock.get("driver") not in ("phc", "pps", "sock"):
            self._r.complain((*at, "driver"), "is not a driver", "use phc, pps or sock")
        device = clock.get("device")
        if isinstance(device, str) and _DEVICE.fullmatch(device):
            self._once(device, (*at, "device"))
        else:
            self._r.complain((*at, "device"), "must be an absolute path without blanks")
        self._number(clock.get("poll"), (*at, "poll"), -6, 24)
        if clock.get("offset"):
            self._duration(clock["offset"], (*at, "offset"), positive=False)

    def _duration(self, text: Any, at: Path, positive: bool) -> None:
        if not isinstance(text, str) or not _DURATION.fullmatch(text) or positive and (text[0] == "-" or not re.search("[1-9]", text)):
            self._r.complain(at, "must be a duration", "write it like 500us, 100ms, 1s or 3m")

    def _number(self, value: Any, at: Path, least: int, most: int | None) -> int | None:
        if value is None:
            return None
        if not isinstance(value, int) or isinstance(value, bool) or value < least or most is not None and value > most:
            self._r.complain(at, f"must be a number of at least {least}" + (f" and at most {most}" if most is not None else ""))
            return None
        return value

    def _leap_seconds(self, spec: dict[str, Any]) -> None:
        """Around a leap second, the times of the two sorts of servers differ by up to half a second."""
        sources = [(("spec", f, i), str(s.get("address")).lower()) for f in ("servers", "pools") for i, s in enumerate(self._items(spec, f))]
        if not any(_SMEARED.fullmatch(address) for _, address in sources):
            return
        clocks = [("spec", "refClocks", i) for i, _ in enumerate(self._items(spec, "refClocks"))]
        for at in [at for at, address in sources if _EXACT.fullmatch(address)] + clocks:
            self._r.complain(at, "inserts leap seconds, and another source spreads them over a day", "use sources of one kind")


def _ip(text: Any) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(text) if isinstance(text, str) and "%" not in text else None
    except ValueError:
        return None


def _key_size(text: Any) -> int | None:
    """The number of bytes of a key; None for what is no key."""
    if not isinstance(text, str) or text.startswith("ASCII:"):
        return None
    if text.startswith("HEX:"):
        return (len(text) - 4) // 2 if _DIGITS.fullmatch(text[4:]) else None
    return len(text) if all("!" <= c <= "~" for c in text) else None
