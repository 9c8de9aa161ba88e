"""The process and its calls (SPEC sections 6 and 7)."""

from __future__ import annotations

import os
import resource
import signal
import sys
import threading
import weakref
from concurrent import futures
from contextlib import AbstractContextManager
from functools import partial
from typing import Any, Callable, Iterator

import grpc
from google.protobuf import any_pb2

from machineadmplugin import controller_pb2, errors, health_pb2, status_pb2
from machineadmplugin import plugin_pb2 as pb
from machineadmplugin.changes import Plan

_COOKIE = ("MACHINEADM_PLUGIN_COOKIE", "4d0f3d0c6f6a4c8db1a1c7a2b9e5f3d871f1be1b6e0a4b0c")
_PROTOCOL = 1
_SOCKET = "python-plugin0.s"  # as long as SPEC H-7 leaves room for, so that the tests see it
_LARGEST_MESSAGE = 64 << 20
_WAIT = 0.1  # s, between looks at whether a caller who waits is still there

# The gRPC status of each code (SPEC section 10).
_STATUS = {
    pb.CODE_INVALID_CONFIG: grpc.StatusCode.INVALID_ARGUMENT,
    pb.CODE_UNSUPPORTED: grpc.StatusCode.UNIMPLEMENTED,
    pb.CODE_PRECONDITION: grpc.StatusCode.FAILED_PRECONDITION,
    pb.CODE_RETRY: grpc.StatusCode.UNAVAILABLE,
    pb.CODE_INTERNAL: grpc.StatusCode.INTERNAL,
}


def _abort(context: grpc.ServicerContext, refusal: errors.Refusal) -> None:
    """Ends a call with the refusal as the detail of its status (SPEC E-1, E-2)."""
    code = _STATUS[refusal.code]
    packed = any_pb2.Any()
    packed.Pack(refusal.message_of())
    status = status_pb2.Status(code=code.value[0], message=refusal.message, details=[packed])
    context.set_trailing_metadata((("grpc-status-details-bin", status.SerializeToString()),))
    context.abort(code, refusal.message)


class Provider:
    """What a plugin says and does. A subclass has it all."""

    name: str
    version: str
    kinds: list[pb.Kind]
    distributions: list[str]

    def fitness(self, request: pb.DescribeRequest) -> tuple[int, str]:
        """How the provider fits the machine, and why."""
        raise NotImplementedError

    def planned(self, request: pb.PlanRequest | pb.ApplyRequest, claim_key: bytes) -> AbstractContextManager[Plan]:
        """The plan of a document. Apply makes its changes before the context ends."""
        raise NotImplementedError


class Configurator:
    """Describe, Plan, Apply and Stop."""

    def __init__(self, provider: Provider) -> None:
        self._provider = provider
        self._one = threading.Lock()  # held by the Apply at work (SPEC G-17)
        self._guard = threading.Lock()
        # Of every Apply that has arrived and not ended; its handler alone holds it.
        self._stops: weakref.WeakSet[threading.Event] = weakref.WeakSet()

    def describe(self, request: pb.DescribeRequest, _: grpc.ServicerContext) -> pb.DescribeResponse:
        try:
            fitness, reason = self._provider.fitness(request)
        except errors.Refusal as refusal:
            fitness, reason = pb.FITNESS_ABSENT, refusal.message
        p = self._provider
        return pb.DescribeResponse(
            name=p.name,
            version=p.version,
            kinds=p.kinds,
            distributions=p.distributions,
            fitness=fitness,
            fitness_reason=reason,
        )

    def plan(self, request: pb.PlanRequest, context: grpc.ServicerContext) -> pb.PlanResponse:
        try:
            with self._provider.planned(request, request.claim_key) as made:
                return pb.PlanResponse(
                    changes=[c.message for c in made.changes], warnings=made.warnings, claims=made.claims
                )
        except Exception as error:  # noqa: BLE001  whatever it is, the answer is one of the contract
            refusal = errors.of(error)
        _abort(context, refusal)
        raise AssertionError("abort raises")

    def arrived(self) -> threading.Event:
        """The event by which Stop ends an Apply that has arrived, to be called when its headers arrive."""
        stop = threading.Event()
        with self._guard:
            self._stops.add(stop)
        return stop

    def apply(
        self, stop: threading.Event, request: pb.ApplyRequest, context: grpc.ServicerContext
    ) -> Iterator[pb.ApplyEvent]:
        if self._wait(context):
            try:
                yield from self._apply(request, context, stop)
            finally:
                self._one.release()

    def _wait(self, context: grpc.ServicerContext) -> bool:
        """Waits for its turn, unless the caller goes away first."""
        while context.is_active():
            if self._one.acquire(timeout=_WAIT):
                return True
        return False

    def _apply(
        self, request: pb.ApplyRequest, context: grpc.ServicerContext, stop: threading.Event
    ) -> Iterator[pb.ApplyEvent]:
        finished = pb.Finished()
        try:
            with self._provider.planned(request, b"") as made:
                for n, change in enumerate(made.changes):
                    if stop.is_set() or (request.limit and n >= request.limit):
                        finished.stopped = True
                        break
                    yield pb.ApplyEvent(started=pb.Started(change=change.message))
                    if not context.is_active():  # started was not sent, so the change is not begun (SPEC G-16)
                        return
                    change.make()
                    yield pb.ApplyEvent(changed=pb.Changed(id=change.message.id))
        except Exception as error:  # noqa: BLE001  likewise
            finished.error.CopyFrom(errors.of(error).message_of())
        yield pb.ApplyEvent(finished=finished)

    def stop(self, _: pb.StopRequest, __: grpc.ServicerContext) -> pb.StopResponse:
        with self._guard:
            for stop in self._stops:
                stop.set()
        return pb.StopResponse()


def _unary(behavior: Callable[[Any, Any], Any], request: Any) -> grpc.RpcMethodHandler:
    return grpc.unary_unary_rpc_method_handler(behavior, request.FromString, lambda answer: answer.SerializeToString())


def _handlers(m: Configurator, ended: threading.Event) -> tuple[grpc.GenericRpcHandler, ...]:
    """Every call that the table of SPEC section 7 marks "always"."""

    def shutdown(_: Any, __: grpc.ServicerContext) -> controller_pb2.Empty:
        ended.set()
        return controller_pb2.Empty()

    def check(request: health_pb2.HealthCheckRequest, context: grpc.ServicerContext) -> health_pb2.HealthCheckResponse:
        if request.service != "plugin":
            context.abort(grpc.StatusCode.NOT_FOUND, "there is no such service")
        return health_pb2.HealthCheckResponse(status=health_pb2.HealthCheckResponse.SERVING)

    services = {
        "machineadm.plugin.v1.Plugin": {"Describe": _unary(m.describe, pb.DescribeRequest)},
        "machineadm.plugin.v1.Configurator": {
            "Plan": _unary(m.plan, pb.PlanRequest),
            "Stop": _unary(m.stop, pb.StopRequest),
        },
        "plugin.GRPCController": {"Shutdown": _unary(shutdown, controller_pb2.Empty)},
        "grpc.health.v1.Health": {"Check": _unary(check, health_pb2.HealthCheckRequest)},
    }
    unary = (grpc.method_handlers_generic_handler(name, calls) for name, calls in services.items())
    return (_Apply(m), *unary)


class _Apply(grpc.GenericRpcHandler):
    """Serves Apply.

    gRPC calls service when the headers of a call arrive, one call after the other and in the order in which they were
    sent. It calls the handler that service returns once the message has arrived too, in any thread. So a Stop that
    overtakes the message of an Apply finds its event (SPEC P-28).
    """

    def __init__(self, m: Configurator) -> None:
        self._m = m

    def service(self, details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler | None:
        if details.method != "/machineadm.plugin.v1.Configurator/Apply":
            return None
        return grpc.unary_stream_rpc_method_handler(
            partial(self._m.apply, self._m.arrived()), pb.ApplyRequest.FromString, pb.ApplyEvent.SerializeToString
        )


def main(provider: Provider) -> None:
    if os.environ.get(_COOKIE[0]) != _COOKIE[1]:
        sys.exit("This is a plugin of machineadm, which starts it by itself (machineadm apply).")
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a dump would hold the password
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        # Only the runtime ends a run early (SPEC H-6). SIG_IGN would stay in the programs that this one starts.
        signal.signal(number, lambda *_: None)
    ended = threading.Event()
    # Threads enough that Stop and Shutdown are served while others work and wait (SPEC P-5).
    server = grpc.server(
        futures.ThreadPoolExecutor(max_workers=16),
        options=[
            ("grpc.max_receive_message_length", _LARGEST_MESSAGE),
            ("grpc.max_send_message_length", _LARGEST_MESSAGE),
        ],
    )
    server.add_generic_rpc_handlers(_handlers(Configurator(provider), ended))
    socket = os.path.join(os.environ["PLUGIN_UNIX_SOCKET_DIR"], _SOCKET)
    server.add_insecure_port(f"unix:{socket}")
    server.start()
    # The only version that the plugin supports (SPEC H-12).
    print(f"1|{_PROTOCOL}|unix|{socket}|grpc|", flush=True)
    ended.wait()
    server.stop(grace=1).wait()
    os._exit(0)  # not by the end of the threads: one can be in the middle of a change
