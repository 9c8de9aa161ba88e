"""The services of OpenRC: what starts at boot, what runs, and how to start it so that it stays."""

from __future__ import annotations

import os
import subprocess
import time

from machineadmplugin.errors import precondition
from machineadmplugin.files import Tree

_GROUPS = "/sys/fs/cgroup"
_START_TIMEOUT = 30  # s
# The daemon stays below rc-service: in a control group of its own, because the runtime ends what an Apply leaves in the
# plugin's (SPEC G-20).
_IN_OWN_GROUP = 'mkdir -p "$1" && echo $$ >"$1/cgroup.procs" && exec rc-service "$2" "$3"'


class OpenRC:
    """The services of a machine; in an image root nothing runs, and no command is run for it (SPEC G-15)."""

    def __init__(self, tree: Tree, root: str) -> None:
        self._tree = tree
        self.live = root == ""

    def exists(self, service: str) -> bool:
        return self._tree.exists(f"/etc/init.d/{service}")

    def enabled(self, service: str) -> list[str]:
        """The links in the runlevels by which the service starts."""
        levels = self._tree.names("/etc/runlevels")
        links = [f"/etc/runlevels/{level}/{service}" for level in levels]
        return [link for link in links if self._tree.target(link) is not None]

    def running(self, service: str) -> bool:
        status = subprocess.run(["rc-service", service, "status"], stdin=subprocess.DEVNULL, capture_output=True)
        return status.returncode == 0

    def startable(self) -> None:
        """Refuses a machine on which a service would end with the command that starts it."""
        if self.live and not os.path.exists(f"{_GROUPS}/cgroup.procs"):
            raise precondition(
                "there are no control groups, in which a service outlives the command that starts it",
                f"mount them: mount -t cgroup2 none {_GROUPS}",
            )

    def do(self, service: str, action: str) -> None:
        group = f"{_GROUPS}/openrc.{service}"
        self.run("sh", "-c", _IN_OWN_GROUP, "sh", group, service, action, hint=f"rc-service {service} {action}")

    def start(self, service: str) -> None:
        """Starts it anew, and waits until it shows as running: some scripts return before their daemon does."""
        self.do(service, "restart")
        end = time.monotonic() + _START_TIMEOUT
        while not self.running(service):
            if time.monotonic() > end:
                raise precondition(f"{service} does not run after its start", f"rc-service {service} status")
            time.sleep(0.1)

    def run(self, *command: str, hint: str = "") -> None:
        """Runs a program to its end. Its output is for root alone (SPEC G-24)."""
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if done.returncode != 0:
            refusal = precondition(f"{hint or command[0]} fails", hint or "see details.json")
            refusal.detail = done.stdout + done.stderr
            raise refusal
