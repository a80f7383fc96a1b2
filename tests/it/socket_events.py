#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# alone: it makes thousands of sockets, and counts what no event was told of
"""Records of sockets in the event stream: what a storm of connections opened, closed and did not reach is told
exactly, or counted as dropped; with ports, states and owners; and nothing is written while nobody listens."""
import os
import socket
import time

from lib import DROPPED, Moted, check, run, skip

STORM = 2000
# What the storm comes to while a busy machine does not let us read.
ROOM = {"socket": {"queue": "4MiB", "arena": "16MiB"}, "tables": {"events": "4MiB"}}


class Events:
    """Rows of the event stream that are of sockets, by type; others than those of `port` are left out."""

    def __init__(self, moted, port):
        self.port, self.rows = port, []
        self.client = moted.client("subscribe event,self interval=100ms")
        self.names = {s.name: s for s in self.client.streams.values()}
        self.dropped = self.misses = self.lost = 0
        self.read(1)

    def take(self, frame):
        self.lost += frame.type == DROPPED
        if frame.name == "event":
            for row in map(self.names["event"].dict, frame.rows):
                if row["protocol"] and self.port in (row["local_port"], row["remote_port"]):
                    self.rows.append(row)
        elif frame.name == "self" and frame.rows:
            row = self.names["self"].dict(frame.rows[-1])
            self.dropped = row["mote_socket_events_dropped_total"]
            self.misses = row["mote_hook_misses_total"] or 0

    def read(self, seconds):
        for frame in self.client.frames(seconds):
            self.take(frame)

    def until(self, n, timeout=10):
        """Reads until there are so many, dropped ones included."""
        end = time.monotonic() + timeout
        while time.monotonic() < end and len(self.rows) + self.dropped < n:
            self.read(0.2)
        self.read(0.5)

    def count(self, kind):
        return sum(row["type"] == kind for row in self.rows)

    def __str__(self):
        kinds = {kind: self.count(kind) for kind in {row["type"] for row in self.rows}}
        return f"{kinds}, {self.dropped} dropped, {self.lost} notes of lost frames, {self.misses} runs left out\n{self.rows[:6]}"


def listener(family=socket.AF_INET, address="127.0.0.1"):
    s = socket.socket(family, socket.SOCK_STREAM)
    s.bind((address, 0))
    return s


def connect(to, n):
    """Connections that are opened and closed, one after the other."""
    to.settimeout(20)
    for _ in range(n):
        client = socket.create_connection(to.getsockname()[:2])
        server, _ = to.accept()
        client.close()
        server.close()


def child(function, *args):
    """Runs it in a process of its own, while we read; its pid."""
    pid = os.fork()
    if not pid:
        function(*args)
        os._exit(0)
    return pid


def storm(server):
    server.listen(16)
    connect(server, STORM)
    server.close()


def knock(port):
    for _ in range(STORM):
        s = socket.socket(socket.AF_INET6, socket.SOCK_STREAM)
        s.connect_ex(("::1", port))
        s.close()


def each_is_told(moted):
    server = listener()
    port = server.getsockname()[1]
    events = Events(moted, port)
    pid = child(storm, server)
    server.close()
    events.until(4 * STORM + 2)
    os.waitpid(pid, 0)
    check("every socket is told to be opened and closed", events.count("socket_opened") == 2 * STORM + 1 and
          events.count("socket_closed") == 2 * STORM + 1 and not events.dropped, events)
    states = {row["state"] for row in events.rows if row["type"] == "socket_opened"}
    check("a listening one and connected ones", states == {"LISTEN", "ESTABLISHED"}, states)
    mine = [row for row in events.rows if row["remote_port"] == port and row["type"] == "socket_opened"]
    check("with both ends, number and owner", mine and all(
        row["local_address"] == row["remote_address"] == "127.0.0.1" and row["local_port"] and row["socket"] and
        row["pid"] == pid and row["uid"] == os.getuid() and row["family"] == "ipv4" for row in mine), mine[:3])
    times = [row["time"] for row in events.rows]
    check("in order", times == sorted(times), events)
    events.client.close()


def refused(moted):
    server = listener(socket.AF_INET6, "::1")
    port = server.getsockname()[1]
    events = Events(moted, port)
    pid = child(knock, port)
    events.until(STORM)
    os.waitpid(pid, 0)
    check("every refused connect is told", len(events.rows) == events.count("connect_failed") == STORM, events)
    row = events.rows[0]
    check("with what it tried", row["remote_address"] == "::1" and row["local_port"] and row["state"] == "SYN_SENT" and
          row["pid"] == pid, row)
    events.client.close()


def datagrams(moted):
    receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    receiver.bind(("127.0.0.1", 0))
    events = Events(moted, receiver.getsockname()[1])
    sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sender.connect(receiver.getsockname())
    sender.send(b"x")
    sender.close()
    events.until(2, 5)
    check("a UDP socket is told at its first datagram", events.count("socket_opened") == 1 and
          events.rows[0]["protocol"] == "udp" and events.rows[0]["pid"] == os.getpid(), events)
    events.client.close()


def dropped(config):
    moted = Moted(config=dict(config, tables={"events": "64KiB"}))
    server = listener()
    port = server.getsockname()[1]
    events = Events(moted, port)
    before = events.dropped
    pid = child(storm, server)
    server.close()
    events.until(4 * STORM + 2)
    os.waitpid(pid, 0)
    lost = 4 * STORM + 2 - len(events.rows)
    others = STORM // 20  # of the rest of the machine, which may find no room either
    check("what finds no room is counted", 0 < lost <= events.dropped - before <= lost + others and
          not events.lost, events)


def nobody_listens(config):
    """A storm that would fill the buffer many times, and was written to nobody."""
    moted = Moted(config=dict(config, tables={"events": "64KiB"}))
    server = listener()
    pid = child(storm, server)
    os.waitpid(pid, 0)
    events = Events(moted, server.getsockname()[1])
    check("nothing is written while nobody listens", not events.dropped and not events.rows, events)


def switched_off(config):
    moted = Moted(config=dict(config, network={"self_check": "off", "events": "off"}))
    client = moted.client()
    why = {(s, f): r for s, f, r in client.hello["absent"]}
    check("[network] events = off: they are absent", why.get(("event", "socket")) == "[network] events = off", why)


def main():
    config = dict(ROOM, network={"self_check": "off"})
    moted = Moted(config=config)
    for stream, field, reason in moted.client().hello["absent"]:
        if (stream, field) in (("event", "*"), ("event", "socket")):
            skip("records of sockets", reason)
            return
    each_is_told(moted)
    refused(moted)
    datagrams(moted)
    dropped(config)
    nobody_listens(config)
    switched_off(config)


run(main)
