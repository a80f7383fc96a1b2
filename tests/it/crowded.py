#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# alone: it makes hundreds of processes that use sockets
"""Short-lived processes fill the network's table of processes, and nobody has subscribed to processes: the dead
make room all the same, and who comes then has its row."""
import os
import socket
import time

from lib import Moted, Rows, check, run, skip

TABLE, MANY = 64, 300


def datagram(to):
    """A process that sends one, and ends."""
    pid = os.fork()
    if not pid:
        s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        s.sendto(b"x" * 10, to)
        os._exit(0)
    os.waitpid(pid, 0)


def main():
    moted = Moted(config={"tables": {"network_processes": TABLE}, "network": {"self_check": "off"}})
    client = moted.client("subscribe process_network interval=250ms")
    for stream, field, reason in client.hello["absent"]:
        if (stream, field) == ("process_network", "*"):
            skip("a crowded table of network processes", reason)
            return
    rows = Rows(client)
    receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    receiver.bind(("127.0.0.1", 0))
    for i in range(MANY):
        datagram(receiver.getsockname())
        if i % 10 == 0:
            for frame in client.frames(0.05):
                rows.take(frame)
    peak = 0
    end = time.monotonic() + 3
    late = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    while time.monotonic() < end:
        late.sendto(b"y" * 100, receiver.getsockname())
        for frame in client.frames(0.3):
            rows.take(frame)
        peak = max(peak, len(rows.rows["process_network"]))
    stream = next(s for s in client.streams.values() if s.name == "process_network")
    pids = [stream.dict(row)["pid"] for row in rows.rows["process_network"].values()]
    check("who comes after many that are dead has its row", os.getpid() in pids, f"{len(pids)} rows, peak {peak}")
    # They are looked for when three quarters are taken.
    check("the dead made room", len(pids) < TABLE * 3 / 4, f"{len(pids)} rows, peak {peak}")


run(main)
