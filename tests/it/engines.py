#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The two engines side by side: --engine uring and --engine sync give the same hello, streams,
fields, types and keys, and values that are equal, or lie between what the other engine gave just
before and just after. Events are the same. A value counts as wrong if that of one row is so in
three rounds. What an ended thread waited for a CPU is known only to a moted that sampled it, so
`run_delay` is compared of processes that never had a second one."""
import collections
import socket
import subprocess
import time

from lib import DATA, Moted, Rows, check, run, skip, spawn

ROUNDS = 3
# Split by each moted for itself, never falling, from when it first saw the process: compared as a sum.
SPLIT = {"utime": "stime", "stime": "utime"}
# Numbered and counted by each moted from its own start on: same_bytes() compares those.
OWN = {"event", "cgroup_event", "socket", "flow", "process_network", "network", "file", "file_total", "edge"}
# Found out some time after the sample in which a process first appears, so many at a tick.
NAMES = ("argv", "exe")


def poll(client):
    """{stream: {key: row}} of now."""
    rows, wanted = Rows(client), set(client.ids) - {"event", "cgroup_event"}
    client.send(f"poll {','.join(wanted)}")
    partial = set(wanted)
    while partial:
        frame = client.wait(lambda f: f.type == DATA, 10)
        rows.take(frame)
        if frame.name not in rows.partial:
            partial.discard(frame.name)
    return rows.rows


def same_hello(a, b):
    for key in sorted(set(a) | set(b)):
        x, y = a.get(key), b.get(key)
        if key == "engine":
            check("hello: each names its engine", (x, y) == ("sync", "uring"), (x, y))
        elif key == "tiers":
            x, y = ([t for t in tiers if t[0] != "engine"] for tiers in (x, y))
            check("hello: tiers are equal but for the engine's", x == y and x, (x, y))
        elif key == "realtime_offset":
            check("hello: the wall clock is the same within 50 ms", abs(x - y) < 50e6, (x, y))
        else:
            check(f"hello: {key} is equal", x == y, (x, y))


class Comparison:
    def __init__(self, streams, pids):
        self.pids = pids
        self.streams = {s.name: s for s in streams.values()}
        self.wrong = collections.Counter()
        self.example = {}
        self.compared = collections.Counter()
        self.between = collections.Counter()

    def fault(self, what, note):
        self.wrong[what] += 1
        self.example[what] = note

    def take(self, before, other, after):
        for name, stream in self.streams.items():
            if name in OWN:
                continue
            both = set(before[name]) & set(after[name])
            for key in both - set(other[name]):
                self.fault((name, key, "missing"), key)
            if name != "process":
                for key in set(other[name]) - set(before[name]) - set(after[name]):
                    self.fault((name, key, "unknown"), key)
            seen = set()
            for key in both & set(other[name]):
                self.row(stream, *(side[name][key] for side in (before, other, after)), seen)
            for what, note in seen:
                self.fault(what, note)

    def row(self, stream, a, b, c, seen):
        for i, field in enumerate(stream.fields):
            x, y, z = a[i], b[i], c[i]
            what = stream.name, field, stream.key(b)
            if field in SPLIT and stream.name == "process":
                j = stream.fields.index(SPLIT[field])
                x, y, z = (None if r[i] is None else r[i] + r[j] for r in (a, b, c))
            if field in NAMES and None in (x, y, z) or field == "run_delay" and stream.key(b)[0] not in self.pids:
                continue
            if (x is None) == (z is None) != (y is None):
                seen.add(((*what, "nil"), f"{x} {y} {z}"))
            elif None in (x, y, z):
                continue
            elif isinstance(x, (int, float)) != isinstance(y, (int, float)):
                seen.add(((*what, "type"), f"{x} {y} {z}"))
            elif stream.name not in ("self", "table"):
                self.value(what, stream.kinds[field], x, y, z, seen)

    def value(self, what, kind, x, y, z, seen):
        """self and table are each moted's own; the rest is of one machine."""
        self.compared[what[0]] += 1
        if kind == "counter":
            self.between[what[0]] += x < z
            if not x <= y <= z:
                seen.add(((*what, "counter"), f"{x} {y} {z}"))
        elif x == z != y and kind in ("info", "key"):
            seen.add(((*what, kind), f"{x} {y} {z}"))
        elif x == z != y and isinstance(x, (int, float)) and (abs(y - x) > 0.5 * max(abs(x), abs(y), 100)):
            # A gauge may move and come back, but not far.
            seen.add(((*what, kind), f"{x} {y} {z}"))


def named(client, pids):
    """{pid: argv} of these, once all have one and a path of their executable."""
    for _ in range(100):
        stream, rows = client.streams[client.ids["process"]], poll(client)["process"].values()
        rows = [stream.dict(row) for row in rows if row[0] in pids]
        found = {row["pid"]: tuple(row["argv"]) for row in rows if row["argv"] and row["exe"]}
        if set(found) == pids:
            return found
        time.sleep(0.1)
    return found


def events(client, pids, seconds):
    """What is told of these processes: {(type, pid, start, exit code)}, except `final`."""
    found = set()
    for frame in client.frames(seconds):
        if frame.name == "event":
            for row in frame.rows:
                event = client.streams[frame.stream].dict(row)
                if event["pid"] in pids and event["type"] != "final":
                    found.add((event["type"], event["pid"], event["start"], event["exit_code"]))
    return found


def same_events(sides):
    clients = [side.client("subscribe event interval=100ms") for side in sides]
    for client in clients:
        client.wait(lambda f: f.type == DATA)
    pids = set()
    for i in range(40):
        child = subprocess.Popen(["sh", "-c", f"exit {i}"])
        child.wait()
        pids.add(child.pid)
    a, b = (events(client, pids, 1) for client in clients)
    check("events of 40 processes are equal", a == b and len(a) >= 80, (sorted(a - b, key=str), sorted(b - a, key=str), len(a)))


def sockets_of(client, ports):
    """{local port: what is the same for both moteds of the sockets with these ports}, once all bytes are there."""
    own = ("socket", "opened", "srtt", "cookie")
    rows, found = Rows(client), {}
    client.send("subscribe socket interval=100ms")
    for frame in client.frames(3):
        rows.take(frame)
        all_of_them = [client.streams[client.ids["socket"]].dict(r) for r in rows.rows["socket"].values()]
        found = {r["local_port"]: {k: v for k, v in r.items() if k not in own} for r in all_of_them
                 if r["local_port"] in ports and r["remote_port"] in ports}
        if sum(r["bytes_received"] for r in found.values()) == 12345:
            break
    return found


def same_bytes(sides):
    clients = [side.client() for side in sides]
    if [1 for stream, *_ in clients[0].hello["absent"] if stream == "socket"]:
        return
    with socket.create_server(("127.0.0.1", 0)) as server, \
            socket.create_connection(server.getsockname()) as there, server.accept()[0] as here:
        there.sendall(b"x" * 12345)
        got = 0
        while got < 12345:
            got += len(here.recv(65536))
        a, b = (sockets_of(client, {there.getsockname()[1], server.getsockname()[1]}) for client in clients)
    check("both ends of a connection are equal", a == b and len(a) == 2, (a, b))


def main():
    now = {"cgroup": {"freshness": "0ms"}}
    sync = Moted("--engine", "sync", config=now)
    try:
        ring = Moted("--engine", "uring", config=now)
    except RuntimeError as error:
        if "io_uring is refused" not in str(error):
            raise
        skip("two engines", "io_uring is refused here")
        return
    a, b = sync.client(), ring.client()
    same_hello(a.hello, b.hello)
    idle = [spawn("sleep", "100") for _ in range(20)]
    busy = spawn("sh", "-c", "while :; do cat /proc/self/stat >/dev/null; done")
    known = [named(client, {child.pid for child in idle}) for client in (a, b)]
    check("both find out what 20 processes are called",
          known[0] == known[1] and set(known[0].values()) == {("sleep", "100")}, known)
    comparison = Comparison(a.streams, {child.pid for child in (*idle, busy)})
    for _ in range(ROUNDS):
        comparison.take(poll(a), poll(b), poll(a))
        time.sleep(0.3)
    busy.kill()
    always = {what: comparison.example[what] for what, n in comparison.wrong.items() if n >= ROUNDS}
    now_and_then = collections.Counter((*what[:2], what[-1]) for what, n in comparison.wrong.items() if n < ROUNDS)
    print(f"# values compared: {dict(comparison.compared)}; counters that moved: {dict(comparison.between)}")
    print(f"# wrong in one round only: {dict(now_and_then)}" if now_and_then else "# none wrong in one round")
    check("values agree", not always, always)
    few = {s: comparison.compared[s] for s in a.ids if s not in OWN | {"self", "table"} and comparison.compared[s] < 3}
    check("every stream of the machine was compared", not few, few)
    check("1,000 values of processes were compared", comparison.compared["process"] >= 1000, comparison.compared)
    check("counters moved meanwhile", sum(comparison.between.values()) >= 20, comparison.between)
    same_events((sync, ring))
    same_bytes((sync, ring))
    for child in idle:
        child.kill()
    for moted in sync, ring:
        check("moted ends with 0", moted.stop() == 0, moted.log())


run(main)
