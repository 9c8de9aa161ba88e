"""The provider: what the plugin says of itself, and its plan of a document."""

from __future__ import annotations

from contextlib import contextmanager
from typing import Iterator

from aptrepository import API_VERSION, KIND, document
from aptrepository.plan import plan
from machineadmplugin import errors
from machineadmplugin import plugin_pb2 as pb
from machineadmplugin import serve
from machineadmplugin.changes import Plan
from machineadmplugin.files import Tree


class Deb822(serve.Provider):
    name = "deb822"
    version = "1.0.0"
    kinds = [
        pb.Kind(
            api_version=API_VERSION, kind=KIND, phase=pb.PHASE_PREPARATION, secret_fields=["spec.credentials.password"]
        )
    ]
    distributions = ["debian", "ubuntu"]

    def fitness(self, request: pb.DescribeRequest) -> tuple[int, str]:
        if request.target.os != "linux":
            return pb.FITNESS_UNSUPPORTED, "apt runs on Linux"
        tree = Tree(request.root)
        try:
            # apt reads these files wherever it is, so that it is in use when it is installed.
            if tree.exists("/usr/bin/apt-get"):
                return pb.FITNESS_ACTIVE, "apt is installed"
            return pb.FITNESS_ABSENT, "apt is not installed"
        finally:
            tree.close()

    @contextmanager
    def planned(self, request: pb.PlanRequest | pb.ApplyRequest, claim_key: bytes) -> Iterator[Plan]:
        if request.target.os != "linux":
            raise errors.unsupported(f"apt runs on Linux, not on {request.target.os or 'an unknown system'}")
        want = document.read(request.document)
        tree = Tree(request.root)
        try:
            yield plan(want, tree, claim_key)
        finally:
            tree.close()
