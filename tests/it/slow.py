#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""A subscriber that stops reading until it lost frames ends with the totals of one that lost none:
for every counter, the sum over its live rows and the totals of what ended is equal, while processes
burn CPU, do I/O, open and close connections and die. Both are compared at the same update of each stream."""
import os
import random
import socket
import subprocess
import threading
import time

from lib import DATA, DROPPED, KEY, MORE, Moted, Rows, check, run, work_dir

STREAMS = ["process", "disk", "netdev", "cpu"]
NETWORK = ["socket", "flow", "process_network", "network"]  # where BPF is to be had
INTERVAL = 50


class Churn(threading.Thread):
    """Children that burn CPU, write and read a file, and die; some live for longer than a tick."""

    def __init__(self, folder):
        super().__init__(daemon=True)
        self.folder, self.over, self.born, self.names = folder, False, 0, []

    def run(self):
        living = []
        while not self.over:
            file = os.path.join(self.folder, f"f{self.born % 16}")
            # A path of its own: rows are large, so that queues fill.
            code = (f"i=0; while [ $i -lt {random.randrange(200, 4000)} ]; do i=$((i+1)); done; "
                    f"head -c {random.randrange(1, 200000)} /dev/zero >{file}; cat {file} >/dev/null; "
                    f"sleep 0.{random.randrange(0, 4)}; : {'x' * 200}")
            living.append(subprocess.Popen(["sh", "-c", code], stdout=subprocess.DEVNULL,
                                           stderr=subprocess.DEVNULL))
            self.born += 1
            living = [child for child in living if child.poll() is None]
            while len(living) > 30:
                living.pop(0).wait()
            time.sleep(0.01)
        for child in living:
            child.wait()


class Connections(threading.Thread):
    """Connections that are opened, used and closed; the last of them stay."""

    def __init__(self):
        super().__init__(daemon=True)
        self.over, self.made, self.held = False, 0, []
        self.server = socket.create_server(("127.0.0.1", 0))
        self.udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.udp.bind(("127.0.0.1", 0))

    def run(self):
        while not self.over:
            client = socket.create_connection(self.server.getsockname())
            self.held += [client, self.server.accept()[0]]
            client.sendall(b"x" * random.randrange(1, 5000))
            self.held[-1].recv(100)
            self.udp.sendto(b"y" * random.randrange(1, 500), self.udp.getsockname())
            self.udp.recv(1000)
            self.made += 1
            while len(self.held) > 40 or len(self.held) > 4 and random.random() < 0.5:
                self.held.pop(0).close()
            time.sleep(0.005)


class Subscriber:
    def __init__(self, moted, **more):
        self.client = moted.client(**more)
        self.rows = Rows(self.client)
        self.keyframes, self.dropped, self.missed, self.last = 0, (0, 0), [], {}
        self.history, self.keep = {}, True
        self.client.send(f"subscribe {','.join(STREAMS)} interval={INTERVAL}ms")

    def take(self, frame):
        if frame.type == DROPPED:
            self.dropped = tuple(frame.body)
        if frame.type != DATA:
            return
        last = self.last.get(frame.name)
        if frame.flags & KEY:
            self.keyframes += 1
        elif last is not None and frame.sequence not in (last, last + 1):
            self.missed.append((frame.name, last, frame.sequence))
        self.last[frame.name] = frame.sequence
        self.rows.take(frame)
        if self.keep and not frame.flags & MORE:
            self.history[frame.name, frame.sequence] = self.rows.sums(frame.name)

    def read(self, seconds):
        for frame in self.client.frames(seconds):
            self.take(frame)


def falling(history, name):
    """Counters whose sum fell from one update to the next."""
    sums = [history[key] for key in sorted(k for k in history if k[0] == name)]
    return {c for a, b in zip(sums, sums[1:]) for c in a if b[c] < a[c]}


def compare(whole, torn, name):
    """The last update that both have."""
    common = [s for n, s in whole.history if n == name and (n, s) in torn.history]
    if not check(f"{name}: both got the same update", common, (sorted(whole.history)[-3:], sorted(torn.history)[-3:])):
        return
    last = max(common)
    a, b = whole.history[name, last], torn.history[name, last]
    different = {c: (a[c], b[c]) for c in a if a[c] != b[c]}
    check(f"{name}: {len(a)} counters are equal after update {last}", a and not different, different)
    rows = whole.rows.rows[name], torn.rows.rows[name]
    check(f"{name}: and so are the keys", set(rows[0]) == set(rows[1]) and rows[0],
          set(rows[0]) ^ set(rows[1]))


def throttle(whole, torn):
    """`torn` does not read until frames for it are dropped, as moted's own figures say."""
    watch = {}
    until = time.monotonic() + 30
    before = None
    while time.monotonic() < until:
        for frame in whole.client.frames(0.5):
            whole.take(frame)
            if frame.name == "self":
                watch = whole.client.streams[frame.stream].dict(frame.rows[0])
        lost = watch.get("mote_frames_dropped_total", 0)
        before = lost if before is None else before
        if lost > before + 20:
            return lost
    return 0


def settle(whole, torn):
    """Both read until they have the same last update of every stream."""
    for _ in range(10):
        for one in whole, torn:
            one.read(INTERVAL / 2000)
    whole.client.send("unsubscribe all")
    torn.client.send("unsubscribe all")
    for one in whole, torn:
        one.read(1)


def main():
    moted = Moted(config={"socket": {"queue": 131072, "frame": 4096}})
    if not [why for stream, *why in moted.client().hello["absent"] if stream in NETWORK]:
        STREAMS.extend(NETWORK)
    churn, connections = Churn(work_dir()), Connections()
    churn.start()
    connections.start()
    whole = Subscriber(moted)
    whole.client.send("subscribe self interval=500ms")
    torn = Subscriber(moted, rcvbuf=4096)
    whole.read(2)
    torn.read(0.5)
    whole.history.clear()  # of the first keyframe's parts
    torn.keep = False
    keyframes = torn.keyframes
    for turn in range(2):
        lost = throttle(whole, torn)
        check(f"round {turn + 1}: frames are lost on the one that does not read", lost, lost)
        until = time.monotonic() + 3
        while time.monotonic() < until:
            torn.read(0.05)
            whole.read(0.05)
    churn.over = connections.over = True
    churn.join(20)
    connections.join(20)
    torn.keep = True
    settle(whole, torn)
    print(f"# {churn.born} children; one lost {torn.dropped}, {len(torn.missed)} holes, {torn.keyframes} keyframes")
    check("many children were born and died", churn.born > 200, churn.born)
    check("and many connections made and closed", connections.made > 200, connections.made)
    check("it was told what it lost", torn.dropped[0] > 20 and torn.dropped[1] > 0, torn.dropped)
    check("it got keyframes after it", torn.keyframes > keyframes, (keyframes, torn.keyframes))
    check("the other lost nothing", whole.dropped == (0, 0) and not whole.missed, (whole.dropped, whole.missed))
    for name in STREAMS:
        compare(whole, torn, name)
    totals = whole.rows.totals.get("process")
    check("processes that ended have totals", totals and any(v for v in totals if v), totals)
    # Not for `torn`: while a keyframe comes in parts its sums are not whole.
    fell = {s: falling(whole.history, s) for s in STREAMS}
    check("no sum ever fell for the other", not any(fell.values()), fell)
    check("moted ends with 0", moted.stop() == 0, moted.log())


run(main)
