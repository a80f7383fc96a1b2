#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# alone: it compares the totals of the machine
"""Sockets and what processes move over them, as the streams show it: exchanges between two processes
are seen exactly by socket, flow, process and protocol; what ended is told with its totals; tables
that are too small lose nothing; minimal mode has it all. Every call there is, is conserve.sh's."""
import os
import socket
import subprocess
import sys
import time

from lib import DATA, Moted, Rows, check, run, skip

STREAMS = "socket,flow,process_network,network,table,self"
PEER = """
import socket, sys
kind = {"tcp": socket.SOCK_STREAM, "udp": socket.SOCK_DGRAM}[sys.argv[1]]
family = {"4": socket.AF_INET, "6": socket.AF_INET6}[sys.argv[2]]
s = socket.socket(family, kind)
s.connect((sys.argv[3], int(sys.argv[4])))
print(s.getsockname()[1], flush=True)
for line in sys.stdin:
    word, n = line.split()
    if word == "send":
        for _ in range(4):
            s.sendall(b"x" * (int(n) // 4))
    else:
        got = 0
        while got < int(n):
            got += len(s.recv(65536))
    print("done", flush=True)
"""


class Watch:
    """A client and what its frames add up to; last rows of what ended."""

    def __init__(self, moted, interval="", streams=STREAMS):
        self.client = moted.client()
        self.rows = Rows(self.client)
        self.last = {}
        self.client.send(f"subscribe {streams}{interval}")

    def read(self, seconds):
        for frame in self.client.frames(seconds):
            self.take(frame)

    def take(self, frame):
        if frame.type == DATA and frame.name:
            stream = self.client.streams[frame.stream]
            for row in frame.rows:
                self.last[frame.name, stream.key(row)] = stream.dict(row)
        self.rows.take(frame)

    def until(self, true, timeout=15):
        """Reads until it is true of the rows; what it last was."""
        end = time.monotonic() + timeout
        while time.monotonic() < end:
            value = true()
            if value:
                return value
            frame = self.client.frame(0.5)
            if frame:
                self.take(frame)
        return true()

    def all(self, stream_name, **want):
        """Rows in use that have these values."""
        stream = next(s for s in self.client.streams.values() if s.name == stream_name)
        found = [stream.dict(row) for row in self.rows.rows[stream_name].values()]
        return [r for r in found if all(r[k] == v for k, v in want.items())]

    def one(self, stream_name, **want):
        found = self.all(stream_name, **want)
        return found[0] if len(found) == 1 else None


def absent(moted):
    client = moted.client()
    why = {s: reason for s, field, reason in client.hello["absent"] if field == "*"}
    client.close()
    return why.get("socket")


class Peer:
    """A process that has one connected socket, and does what it is told."""

    def __init__(self, kind, version, port):
        address = "127.0.0.1" if version == "4" else "::1"
        self.process = subprocess.Popen([sys.executable, "-c", PEER, kind, version, address, str(port)],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.pid = self.process.pid
        self.port = int(self.process.stdout.readline())

    def tell(self, what, n):
        self.process.stdin.write(f"{what} {n}\n".encode())
        self.process.stdin.flush()

    def done(self):
        assert self.process.stdout.readline() == b"done\n"

    def end(self):
        self.process.stdin.close()
        self.process.wait()


def take(sock, n):
    got = 0
    while got < n:
        got += len(sock.recv(65536))


class Exchange:
    """A peer, and our end of it."""

    def __init__(self, kind, version):
        self.kind, self.version = kind, version
        family = socket.AF_INET if version == "4" else socket.AF_INET6
        self.server = socket.socket(family, socket.SOCK_STREAM if kind == "tcp" else socket.SOCK_DGRAM)
        self.server.bind(("127.0.0.1" if version == "4" else "::1", 0))
        self.port = self.server.getsockname()[1]
        if kind == "tcp":
            self.server.listen()
        self.peer = Peer(kind, version, self.port)
        self.ours = self.server.accept()[0] if kind == "tcp" else self.server

    def move(self, there, back):
        self.peer.tell("send", there)
        take(self.ours, there)
        self.peer.done()
        self.peer.tell("take", back)
        for _ in range(8):
            if self.kind == "tcp":
                self.ours.sendall(b"y" * (back // 8))
            else:
                self.ours.sendto(b"y" * (back // 8), (self.server.getsockname()[0], self.peer.port))
        self.peer.done()

    def close(self):
        self.peer.end()
        self.ours.close()
        self.server.close()


def sides(x):
    """The keys of the two sockets: theirs, ours."""
    return (dict(protocol=x.kind, local_port=x.peer.port, remote_port=x.port),
            dict(protocol=x.kind, local_port=x.port, remote_port=x.peer.port if x.kind == "tcp" else None))


def bytes_of(row):
    return row and (row["bytes_sent"], row["bytes_received"])


def exchange(watch, kind, version):
    """(their socket, our socket, their pid) after exact numbers were seen; nothing has ended yet."""
    what = f"{kind} over IPv{version}"
    there, back = 4 * 1500 if kind == "udp" else 4 * 123457, 8 * 1100 if kind == "udp" else 8 * 54321
    x = Exchange(kind, version)
    theirs, ours = sides(x)
    x.move(there, back)
    a = watch.until(lambda: (r := watch.one("socket", **theirs)) and bytes_of(r) == (there, back) and r)
    b = watch.until(lambda: (r := watch.one("socket", **ours)) and bytes_of(r) == (back, there) and r)
    check(f"{what}: both sockets have the bytes", a and b, (watch.all("socket", **theirs), watch.all("socket", **ours)))
    if not a or not b:
        return None
    check(f"{what}: the sockets say whose they are",
          a["pid"] == x.peer.pid and b["pid"] == os.getpid() and a["uid"] == os.getuid() and
          a["family"] == f"ipv{version}" and a["state"] == "ESTABLISHED" and
          a["inode"] == os.stat(f"/proc/{x.peer.pid}/fd/3").st_ino and b["inode"] == os.fstat(x.ours.fileno()).st_ino,
          (a, b))
    watch.read(0.6)
    flows = [bytes_of(watch.one("flow", socket=a["socket"], pid=x.peer.pid)),
             bytes_of(watch.one("flow", socket=b["socket"], pid=os.getpid()))]
    check(f"{what}: and the flows", flows == [(there, back), (back, there)], watch.all("flow"))
    process = watch.one("process_network", pid=x.peer.pid)
    check(f"{what}: and the process that ends next",
          process and (process[f"{kind}_bytes_sent"], process[f"{kind}_bytes_received"]) == (there, back), process)
    calls = watch.one("socket", **theirs)["calls_sent"]
    check(f"{what}: calls are told", calls == 4 if kind == "udp" else calls >= 4, calls)
    x.close()
    return a, b, x.peer.pid, there, back


def ended(watch, kind, version, found):
    """What is left of an exchange when its sockets and its process are gone."""
    a, b, pid, there, back = found
    what = f"{kind} over IPv{version}"

    def gone():
        return not (watch.one("socket", socket=a["socket"]) or watch.one("socket", socket=b["socket"]) or
                    watch.all("flow", socket=a["socket"]) or watch.one("process_network", pid=pid))
    check(f"{what}: sockets, flows and the process end", watch.until(gone, 30),
          (watch.one("socket", socket=a["socket"]), watch.all("flow"), watch.all("process_network", pid=pid)))
    last = watch.last["socket", (a["socket"],)]
    check(f"{what}: the last row of the socket is complete, and says when it closed",
          bytes_of(last) == (there, back) and (last["closed"] or 0) > last["opened"], last)
    for name in "socket", "flow", "process_network":
        check(f"{what}: {name} has totals of what ended", watch.rows.totals.get(name) and
              any(watch.rows.totals[name]), watch.rows.totals)


def protocols(watch, slow):
    """Sums of all streams are those of the protocols, for both clients."""
    for name, one in ("at 250 ms", watch), ("at 1 s", slow):
        one.read(2.5)
        total = {p: one.one("network", protocol=p) for p in ("tcp", "udp")}
        counted = sum(r["bytes_sent"] - r["other_sent"] for r in total.values())
        got = [one.rows.sums("socket")["bytes_sent"], one.rows.sums("flow")["bytes_sent"],
               sum(v for k, v in one.rows.sums("process_network").items() if k.endswith("bytes_sent"))]
        check(f"{name}: sockets, flows and processes add up to the protocols", got == [counted] * 3, (got, total))
        check(f"{name}: no byte is unattributed", total["tcp"]["unattributed_sent"] == 0 and
              total["tcp"]["unattributed_received"] == 0, total)


def exchanges():
    moted = Moted()
    why = absent(moted)
    if why:
        skip("network", why)
        return False
    watch, slow = Watch(moted), Watch(moted, " interval=1s")
    watch.until(lambda: watch.all("network"))
    known = []
    for kind in "tcp", "udp":
        for version in "4", "6":
            found = exchange(watch, kind, version)
            if found:
                known.append((kind, version, found))
    for one in known:
        ended(watch, *one)
    protocols(watch, slow)
    stats = watch.one("self")
    check("slots are free again", stats["mote_slots_waiting"] == 0 and stats["mote_slot_grace_age"] == 0, stats)
    check("hook misses are told", stats["mote_hook_misses_total"] is not None, stats)
    check("moted ends with 0", moted.stop() == 0, moted.log())
    return True


def storm(n):
    """n connections at once, each with 100 bytes there and 10 back; all closed again."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen(n)
        pairs = []
        for _ in range(n):
            client = socket.create_connection(server.getsockname())
            pairs += [(client, server.accept()[0])]
        for client, ours in pairs:
            client.sendall(b"a" * 100)
            take(ours, 100)
            ours.sendall(b"b" * 10)
            take(client, 10)
        for client, ours in pairs:
            client.close()
            ours.close()


def table(watch, name):
    return watch.one("table", name=name)


def full_tables():
    moted = Moted(config={"tables": {"sockets": 64, "flows": 64, "network_processes": 64}})
    watch = Watch(moted)
    watch.until(lambda: watch.all("network") and watch.all("table"))
    watch.read(1)
    before = watch.one("network", protocol="tcp")
    storm(300)
    want = before["bytes_sent"] + 300 * 110
    done = watch.until(lambda: (r := watch.one("network", protocol="tcp")) and r["bytes_sent"] >= want and r, 5)
    watch.read(2)
    after = watch.one("network", protocol="tcp")
    check("tables of 64: 300 connections are counted to the byte", done and after["bytes_sent"] == want and
          after["bytes_received"] == before["bytes_received"] + 300 * 110, (before, after))
    counted = after["bytes_sent"] - after["other_sent"] + sum(
        r["bytes_sent"] - r["other_sent"] for r in watch.all("network", protocol="udp"))
    got = watch.rows.sums("process_network")
    check("what other has not, processes have", got["tcp_bytes_sent"] + got["udp_bytes_sent"] == counted,
          (got, counted, after))
    tables = table(watch, "sockets"), table(watch, "flows")
    check("the table stream says how many found no room", tables[0]["dropped"] > 0 and tables[0]["peak"] == 64, tables)
    # A socket without a slot leaves nothing behind, and its flow ends with its process.
    free = watch.until(lambda: (t := table(watch, "sockets")) and t["fill"] < 32 and t, 20)
    check("slots are given back", free, table(watch, "sockets"))
    x = Exchange("tcp", "4")
    x.move(400, 800)
    row = watch.until(lambda: (r := watch.one("socket", **sides(x)[0])) and bytes_of(r) == (400, 800) and r)
    check("and have their sockets' bytes again", row, watch.all("socket"))
    x.close()
    check("moted ends with 0", moted.stop() == 0, moted.log())


def connect(server):
    """A connection that is closed at once, with 100 bytes there and 10 back."""
    client = socket.create_connection(server.getsockname())
    ours = server.accept()[0]
    client.sendall(b"a" * 100)
    take(ours, 100)
    ours.sendall(b"b" * 10)
    take(client, 10)
    client.close()
    ours.close()


def unwatched():
    """Without a subscriber of these streams slots come back all the same, as soon as they are needed, and
    ticks are no more than others ask for."""
    moted = Moted(config={"tables": {"sockets": 1024, "flows": 1024}, "loop": {"housekeeping": "2s"}})
    watch = Watch(moted, " interval=1s", "cpu,process,self")
    first = watch.until(lambda: watch.one("self"))["mote_ticks_total"]
    watch.read(5)
    ticks = watch.one("self")["mote_ticks_total"] - first
    check("the swap wakes nobody up who did not ask for it", 4 <= ticks <= 7, ticks)
    watch.client.close()
    with socket.create_server(("127.0.0.1", 0)) as server:
        for _ in range(840):
            began = time.monotonic()
            connect(server)
            time.sleep(max(0, 1 / 60 - (time.monotonic() - began)))
    watch = Watch(moted)
    watch.until(lambda: watch.all("network") and watch.all("table"))
    watch.read(1)
    total, full = watch.one("network", protocol="tcp"), watch.one("table", name="sockets")
    check("with no subscriber at all none of 1,680 sockets was turned away by a table of 1,024",
          full["dropped"] == 0 and 0 < full["peak"] < 1024, full)
    check("and each is counted once", total["sockets_opened"] >= 1680 and total["other_sent"] == 0 and
          watch.rows.sums("process_network")["tcp_bytes_sent"] == total["bytes_sent"] >= 840 * 110, total)
    check("moted ends with 0", moted.stop() == 0, moted.log())


def minimal():
    moted = Moted("--mode", "minimal", config={"network": {"reconciliation": "off", "ipv6": "off"}})
    watch = Watch(moted)
    missing = {(s, f) for s, f, _ in watch.client.hello["absent"]}
    fields = {("socket", "unattributed_sent"), ("socket", "unattributed_received"),
              ("network", "unattributed_sent"), ("network", "unattributed_received")}
    check("reconciliation = off is absent by name", fields <= missing, missing)
    four, six = Exchange("udp", "4"), Exchange("udp", "6")
    four.move(4 * 250, 8 * 125)
    six.move(4 * 250, 8 * 125)
    row = watch.until(lambda: watch.one("flow", pid=four.peer.pid))
    check("minimal mode counts", bytes_of(row) == (1000, 1000), row)
    watch.read(0.6)
    check("ipv6 = off: those are not counted", not watch.all("flow", pid=six.peer.pid) and
          not watch.all("socket", family="ipv6"), watch.all("flow"))
    four.close()
    six.close()
    check("moted ends with 0", moted.stop() == 0, moted.log())


def main():
    if exchanges():
        full_tables()
        unwatched()
        minimal()


run(main)
