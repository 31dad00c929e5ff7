# ruff: noqa: E501  (a pattern stands on one line, to be held against the line it reads)
"""Rendezvous and transports: TCPStore, c10d sockets, Gloo, UCX, NVSHMEM, Mooncake, MPI connections. In: an intake; out:
COMMUNICATION events. fields["what"] says which: store, socket, gloo, ucx, nvshmem, barrier, rendezvous, mooncake, deepep. Samples:

    [W1129 20:15:45.1 socket.cpp:204] [c10d] The client socket has timed out after 60000ms while trying to connect to (node7, 29500).
    -> COMMUNICATION fields {"what": "socket", "peer": "node7, 29500", "timeout": "60000ms"}

    RuntimeError: [/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.0.0.4]:51234
    -> COMMUNICATION message "Connection closed by peer [10.0.0.4]:51234", fields {"what": "gloo", "peer": "[10.0.0.4]:51234"}

    [1764447345.123456] [node7:4021 :0]  ib_mlx5_log.c:179  UCX  ERROR Transport retry count exceeded on mlx5_0:1/IB
    -> COMMUNICATION level "ERROR", fields {"what": "ucx", …}

They are often consequences of another process's death: which they are is the verdict's to say.
"""

from __future__ import annotations

from forensics.ingest.anchors import Anchor
from forensics.ingest.intake import Intake
from forensics.model.event import Event, EventKind
from forensics.parse.rows import Row, Table

_C = EventKind.COMMUNICATION


def _row(what: str, literal: str, pattern: str = "", level: str | None = None) -> Row:
    return Row(literal, _C, pattern, level=level, fields={"what": what})


_TABLE = Table(
    "stores",
    (
        _row("gloo", "Connection closed by peer", r"(?P<message>Connection closed by peer (?P<peer>\S{1,100}).*)$"),
        _row("gloo", "Connection reset by peer [", r"(?P<message>Connection reset by peer (?P<peer>\[\S{1,100}).*)$"),
        _row("gloo", "Gloo connectFullMesh failed", r"(?P<message>Gloo connectFullMesh failed with (?P<reason>.*))$"),
        _row(
            "gloo",
            "Timed out waiting ",
            r"(?P<message>Timed out waiting (?P<timeout>\d+)ms for (?P<operation>recv|send|connect)\w* operation to complete)",
        ),
        _row("gloo", "gloo/transport/tcp/pair.cc", r"(?P<message>\[\S{0,300}gloo/transport/tcp/pair\.cc:\d+\] .*)$"),
        _row(
            "socket",
            "The client socket has timed out",
            r"(?P<message>The client socket has timed out after (?P<timeout>\S{1,20}) while trying to connect to \((?P<peer>[^)]{1,120})\).*)$",
        ),
        _row(
            "socket",
            "The client socket has failed to connect",
            r"(?P<message>The client socket has failed to connect to (?:any network address of )?(?P<peer>[^\s]{1,200}) ?.*)$",
        ),
        _row(
            "socket",
            "The server socket has failed to",
            r"(?P<message>The server socket has failed to (?:bind|listen).*)$",
        ),
        _row("socket", "The server socket on ", r"(?P<message>The server socket on \S{1,120} has timed out.*)$"),
        _row("store", "recvValue failed", r"(?P<message>\S{0,40}recvValue failed.*)$"),
        _row("store", "recvVector failed", r"(?P<message>\S{0,40}recvVector failed.*)$"),
        _row("store", "recvValueWithTimeout failed", r"(?P<message>\S{0,40}recvValueWithTimeout failed.*)$"),
        _row("store", "sendBytes failed", r"(?P<message>\S{0,40}sendBytes failed.*)$"),
        _row("store", "sendVector failed", r"(?P<message>\S{0,40}sendVector failed.*)$"),
        _row("store", "waitForInput: poll for socket", r"(?P<message>waitForInput: poll for socket.*)$"),
        _row(
            "store",
            "waitForInput: socket ",
            r"(?P<message>waitForInput: socket .{1,300}? timed out after (?P<timeout>\d+ms).*)$",
        ),
        _row("store", "Failed to recv, got 0 bytes", r"(?P<message>Failed to recv, got 0 bytes.*)$"),
        _row("store", "nonce == returnedNonce", r"(?P<message>nonce == returnedNonce.*)$"),
        _row("store", "Ping failed, invalid", r"(?P<message>Ping failed, invalid.*)$"),
        _row(
            "store",
            'failed to check the "should dump" flag on TCPStore',
            r"(?P<message>[Ff]ailed to check the \"should dump\" flag on TCPStore.*)$",
        ),
        _row("store", "(maybe TCPStore server has shut down too early)"),
        _row(
            "store", "wait timeout after ", r"(?P<message>wait timeout after (?P<timeout>\d+ms), keys: (?P<keys>.*))$"
        ),
        _row("store", "Socket Timeout", r"(?P<message>Socket Timeout.*)$"),
        _row(
            "store",
            "Timed out after ",
            r"(?P<message>Timed out after (?P<seconds>\d+) seconds waiting for clients\. (?P<joined>\d+)/(?P<wanted>\d+) clients joined)",
        ),
        _row(
            "barrier",
            "store based barrier on rank",
            r"(?P<message>Timed out initializing process group in store based barrier on rank:? (?P<rank>\d+), for key: (?P<key>\S{1,120}) \(world_size=(?P<world_size>\d+), (?:worker_count|num_workers_joined)=(?P<joined>\d+).*)$",
        ),
        _row("rendezvous", " due to an error of type Rendezvous", r"(?P<message>The node '[^']{1,200}' has failed to .*)$"),
        _row("rendezvous", "RendezvousConnectionError", r"(?P<message>RendezvousConnectionError.*)$"),
        _row("rendezvous", "RendezvousTimeoutError", r"(?P<message>RendezvousTimeoutError.*)$"),
        _row("rendezvous", "RendezvousClosedError", r"(?P<message>RendezvousClosedError.*)$"),
        _row(
            "rendezvous",
            "connection to the C10d store has failed",
            r"(?P<message>The connection to the C10d store has failed.*)$",
        ),
        _row("ucx", "UCX  ERROR", r"UCX  ERROR (?P<message>.*)$", "ERROR"),
        _row("ucx", "UCX  FATAL", r"UCX  FATAL (?P<message>.*)$", "FATAL"),
        _row("wrong_data", "# Out of bounds values : ", r"(?P<message># Out of bounds values : [1-9]\d{0,11} FAILED)", "ERROR"),
        _row("nvshmem", "NVSHMEM ERROR", r"(?P<message>NVSHMEM ERROR.*)$", "ERROR"),
        _row(
            "nvshmem",
            "non-zero status: ",
            r"(?P<file>\S{1,200}nvshmem\S{0,200}):(?P<line>\d+): (?P<message>non-zero status: (?P<status>\d+).*)$",
            "ERROR",
        ),
        _row(
            "nvshmem",
            ": NULL value ",
            r"(?P<file>\S{1,200}nvshmem\S{0,200}):(?P<line>\d+): (?P<message>NULL value .*)$",
            "ERROR",
        ),
        _row(
            "nvshmem",
            ": init failed for transport",  # it goes on with another one
            r"(?P<file>\S{1,300}nvshmem\S{1,200}?):(?P<message>nvshmemi_\w{1,80}:\d+: init failed for transport.*)$",
            "WARNING",
        ),
        _row(
            "nvshmem",
            ":bootstrap_",
            r"(?P<file>\S{1,300}nvshmem\S{1,200}?):(?P<message>bootstrap_\w{1,80}:\d+: .*)$",
            "ERROR",
        ),
        _row(
            "nvshmem",
            ":nvshmemi_",
            r"(?P<file>\S{1,300}nvshmem\S{1,200}?):(?P<message>nvshmemi_\w{1,80}:\d+: .*)$",
            "ERROR",
        ),
        _row("nvshmem", "NVSHMEM API called before", "", "ERROR"),
        _row(
            "ib",
            "got completion with error",
            r"(?P<message>mlx\d: (?P<node>\S{1,120}): got completion with error.*)$",
            "ERROR",
        ),
        _row("ib", "ibv_modify_qp failed", "", "ERROR"),
        _row("nvshmem", "nvshmem initialization failed", "", "ERROR"),
        _row("nvshmem", "nvshmem setup connections failed", "", "ERROR"),
        _row("nvshmem", "WARN: IBGDA", ""),
        _row(
            "deepep",
            "timeout, channel",
            r"(?P<message>(?:DeepEP )?(?P<operation>[\w ()/-]{1,60}?) ?timeout, channel.*)$",
        ),
        _row(
            "deepep",
            "DeepEP timeout",
            r"(?P<message>DeepEP timeout(?: for (?P<operation>\w{1,20}))?(?:[^\n]{0,80}?\brank[ :=]{1,3}(?P<waits>\d{1,6}))?(?:[^\n]{0,200}?\bsrc_rank[ :=]{1,3}(?P<awaited>\d{1,6}))?.*)$",
        ),
        _row("deepep", "DeepEP error", r"(?P<message>DeepEP error.*)$"),
        _row("bootstrap", "Error fetching prefill parallel info from bootstrap", "", "ERROR"),
        _row("mooncake", "Failed to open segment", "", "ERROR"),
        _row("mooncake", "Process failed for slice", "", "ERROR"),
        _row("mooncake", "Failed to retrieve segment descriptor", "", "ERROR"),
        _row("mooncake", "Failed to get segment descriptor", "", "ERROR"),
        _row("mooncake", "Unexpected code in http response, ", "", "ERROR"),
        _row("mooncake", "Put operation failed with error: ", r"(?P<message>Put operation failed with error: [A-Z_]{4,40}.*)$", "ERROR"),
        _row("rpc", "RPC call to ", r"(?P<message>RPC call to (?P<operation>\w{1,80}) timed out\.?)"),
        _row(
            "tensorpipe",
            "tensorpipe",
            r"(?P<message>(?:eof|connection reset by peer|async error|ECONNREFUSED)[^\n]{0,200}tensorpipe.*)$",
        ),
        _row("mpi", "PSM2 was unable to open an endpoint", "", "ERROR"),
        _row("mpi", "An MPI communication peer process has unexpectedly disconnected", "", "ERROR"),
        _row(
            "libfabric",
            "libfabric:",
            r"(?P<message>libfabric:\S{0,200}(?:<error>|<warn>)?.{0,40}(?:[Ee]rror|failed).*)$",
        ),
    ),
)

ANCHORS: tuple[Anchor, ...] = _TABLE.anchors()


def parse(intake: Intake) -> list[Event]:
    """Events of stores and transports, alike ones folded."""
    return _TABLE.read(intake)
