"""The provider: what the plugin says of itself, what it refuses, and its plan."""

from __future__ import annotations

import base64
import json
import os
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Callable, Iterator

from openntpd import timesync
from openntpd.openrc import OpenRC
from machineadmplugin import errors
from machineadmplugin import plugin_pb2 as pb
from machineadmplugin import serve
from machineadmplugin.changes import Change, File, Plan, claim
from machineadmplugin.files import Tree
from machineadmplugin.reading import Reader, decoded, path

API_VERSION = "machineadm.cluster.x-k8s.io/v1alpha1"
KIND = "Timesync"
SERVICE = "openntpd"
# The services of other time daemons, which set the clock as well.
OTHERS = ("chrony", "chronyd", "ntp", "ntpd", "ntpsec", "busybox-ntpd")
# A file of this name in the state directory says that a restart is due, and has what the daemon read before (SPEC G-22): its
# file is replaced before the restart, and a plugin can be killed in between.
_INTENT = "restart"

_FLAGS = ("disableOthers", "mixedLeapSeconds")
_SOURCE = {"address", "iburst", "prefer", "minPoll", "maxPoll", "nts", "key"}
# The fields of the kind that ntpd.conf(5) has nothing for, and what is permitted in them all the same.
_UNSUPPORTED: dict[str, Any] = {
    "profile": "", "fallback": [], "refClocks": [], "makeStep": None, "rtcSync": None, "waitForSync": None,
    "keepDistributionSources": False,
}  # fmt: skip
_UNSUPPORTED_OF_SOURCE: dict[str, Any] = {
    "iburst": True, "prefer": False, "minPoll": None, "maxPoll": None, "nts": False, "key": None, "maxSources": None,
}  # fmt: skip


class OpenNTPD(serve.Provider):
    name = "openntpd"
    version = "1.0.0"
    kinds = [
        pb.Kind(
            api_version=API_VERSION,
            kind=KIND,
            phase=pb.PHASE_PREPARATION,
            secret_fields=["spec.servers[].key.value", "spec.pools[].key.value"],
        )
    ]
    distributions = ["alpine", "gentoo"]

    def fitness(self, request: pb.DescribeRequest) -> tuple[int, str]:
        if request.target.os != "linux" or request.target.init != "openrc":
            return pb.FITNESS_UNSUPPORTED, "OpenRC does not start the services of this machine"
        tree = Tree(request.root)
        try:
            rc = OpenRC(tree, request.root)
            if not rc.exists(SERVICE):
                return pb.FITNESS_ABSENT, "OpenNTPD is not installed"
            if rc.running(SERVICE) if rc.live else rc.enabled(SERVICE):
                return pb.FITNESS_ACTIVE, "OpenNTPD is the time daemon of this machine"
            return pb.FITNESS_INSTALLED, "OpenNTPD is installed"
        finally:
            tree.close()

    @contextmanager
    def planned(self, request: pb.PlanRequest | pb.ApplyRequest, claim_key: bytes) -> Iterator[Plan]:
        if request.target.os != "linux":
            raise errors.unsupported("OpenRC runs on Linux")
        want = read(request.document)
        hint = "use another provider of Timesync, or install OpenRC"
        if request.target.init == "none":  # also of an empty image, into which OpenRC may come (SPEC G-8)
            raise errors.precondition("OpenRC does not start the services of this machine", hint)
        if request.target.init != "openrc":
            raise errors.unsupported("OpenRC does not start the services of this machine", hint)
        tree = Tree(request.root)
        try:
            rc = OpenRC(tree, request.root)
            if not rc.exists(SERVICE):
                raise errors.precondition("the service openntpd is not installed", "install it, or use another provider of Timesync")
            rc.startable()
            yield _Planning(request, tree, rc, claim_key).plan(want)
        finally:
            tree.close()


@dataclass(frozen=True)
class Want:
    """What the document wants."""

    servers: list[str]
    pools: list[str]
    disable_others: bool


def read(data: bytes) -> Want:
    """Raises the refusal that names everything that is wrong, or else everything that OpenNTPD does not support."""
    document = decoded(data, API_VERSION, KIND)
    r = Reader()
    spec = r.mapping(document.get("spec"), ("spec",), {"provider", "servers", "pools", *_FLAGS, "providerConfig", *_UNSUPPORTED})
    r.mapping(spec.get("providerConfig", {}), ("spec", "providerConfig"), set())
    refused: list[tuple[str | int, ...]] = [("spec", f) for f, harmless in _UNSUPPORTED.items() if spec.get(f, harmless) != harmless]
    for flag in _FLAGS:
        if not isinstance(spec.get(flag, True), bool):
            r.complain(("spec", flag), "must be true or false")
    found: dict[str, list[str]] = {}
    for field, known in (("servers", _SOURCE), ("pools", _SOURCE | {"maxSources"})):
        items = spec.get(field, [])
        found[field] = []
        for i, item in enumerate(items if isinstance(items, list) else []):
            given = r.mapping(item, ("spec", field, i), known)
            found[field].append(str(given.get("address")))
            refused += [("spec", field, i, f) for f, harmless in _UNSUPPORTED_OF_SOURCE.items() if given.get(f, harmless) != harmless]
    timesync.check(spec, r)
    if wrong := r.refusal():
        raise wrong
    if refused:
        refusal = errors.unsupported("OpenNTPD does not support every field of the document", "remove them, or use another provider")
        refusal.violations = [errors.Violation(path(*at), "OpenNTPD does not support it") for at in refused]
        raise refusal
    return Want(found["servers"], found["pools"], spec.get("disableOthers", True))


class _Planning:
    """Collects the changes that are still missing, in the order in which they are made."""

    def __init__(self, request: pb.PlanRequest | pb.ApplyRequest, tree: Tree, rc: OpenRC, claim_key: bytes) -> None:
        self._tree, self._rc, self._key = tree, rc, claim_key
        self._debian = "debian" in (request.target.distribution, *request.target.like)
        self._intent = os.path.join(request.state_dir, _INTENT) if request.state_dir else ""
        self._plan = Plan()

    def plan(self, want: Want) -> Plan:
        for other in OTHERS if want.disable_others else ():
            if self._rc.exists(other):
                self._switch_off(other)
        changed = self._configure(want)
        self._claim("enabled", SERVICE, True)
        self._claim("running", SERVICE, True)
        if not self._rc.enabled(SERVICE):
            link = f"/etc/runlevels/default/{SERVICE}"
            self._add(f"enable:{SERVICE}", f"start {SERVICE} at boot", lambda: self._tree.link(f"/etc/init.d/{SERVICE}", link))
        due = changed or self._intent != "" and os.path.exists(self._intent)
        if self._rc.live and (due or not self._rc.running(SERVICE)):  # an image starts it at its first boot
            self._add(f"restart:{SERVICE}", f"restart {SERVICE}", self._restart)
        return self._plan

    def _add(self, id: str, summary: str, make: Callable[[], object]) -> None:
        self._plan.changes.append(Change(pb.Change(id=id, summary=summary, reboot=pb.REBOOT_NONE), make))

    def _claim(self, state: str, service: str, value: bool) -> None:
        if self._key:
            self._plan.claims.append(claim(f"openrc:{service}#{state}", self._key, "true" if value else "false"))

    def _switch_off(self, service: str) -> None:
        self._claim("enabled", service, False)
        self._claim("running", service, False)
        links = self._rc.enabled(service)
        if links:
            self._add(f"disable:{service}", f"keep {service} from starting at boot", lambda: [self._tree.unlink(n) for n in links])
        if self._rc.live and self._rc.running(service):
            self._add(f"stop:{service}", f"stop {service}", lambda: self._rc.do(service, "stop"))

    def _configure(self, want: Want) -> bool:
        """Without a source the configuration of the distribution stays."""
        lines = [f"server {a}\n" for a in want.servers] + [f"servers {a}\n" for a in want.pools]
        if not lines:
            return False
        file = File("/etc/openntpd/ntpd.conf" if self._debian else "/etc/ntpd.conf", "".join(lines))
        if self._key:
            self._plan.claims.append(file.claim(self._key))
        change = file.change(self._tree)
        if change is None:
            return False
        self._plan.changes.append(Change(change.message, lambda: self._replace(file, change)))
        return True

    def _replace(self, file: File, change: Change) -> None:
        if self._rc.live:
            self._check(file)
        self._intend(file.path)
        change.make()

    def _check(self, file: File) -> None:
        """Has the daemon read the configuration before it is in place (SPEC G-13)."""
        directory, name = os.path.split(file.path)
        candidate = f"{directory}/.{name}.machineadm-candidate"
        self._tree.write(candidate, (file.content or "").encode(), file.mode)
        try:
            self._rc.run("ntpd", "-n", "-f", candidate)
        finally:
            self._tree.remove(candidate)

    def _intend(self, path: str) -> None:
        """Keeps what the daemon has read. An older intent stays: what replaced its file was never read."""
        if not self._rc.live or not self._intent or os.path.exists(self._intent):  # in an image nothing is restarted
            return
        found = self._tree.read(path)
        old = {"path": path, "content": found and base64.b64encode(found.content).decode(), "mode": found and found.mode}
        new = f"{self._intent}.{os.getpid()}"
        with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            json.dump(old, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(new, self._intent)

    def _restart(self) -> None:
        try:
            self._rc.start(SERVICE)
        except errors.Refusal:
            self._roll_back()
            raise
        self._done()

    def _done(self) -> None:
        if self._intent and os.path.exists(self._intent):
            os.unlink(self._intent)

    def _roll_back(self) -> None:
        """The daemon runs with its old configuration again (SPEC G-13), also when it was an earlier Apply that replaced it."""
        if not self._intent or not os.path.exists(self._intent):
            return
        with open(self._intent) as file:
            old = json.load(file)
        if old["content"] is None:
            self._tree.remove(old["path"])
        else:
            self._tree.write(old["path"], base64.b64decode(old["content"]), old["mode"])
        self._rc.start(SERVICE)
        self._done()
