#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""1,000 ticks with subscribers, processes and connections coming and going: no heap allocation, no page fault, no
descriptor more or less than before.

Counted: malloc() and its kin, free() and mmap() of every thread, by a preloaded library; page faults
of the thread group as the kernel counts them in /proc/PID/stat, so also those on the stacks of the
filesystem and network threads, and those that io_uring's workers take on our buffers."""
import collections
import mmap
import os
import random
import select
import socket
import struct
import subprocess
import threading
import time

from lib import DATA, MS, TOP, Client, Closed, Moted, Rows, check, run, spawn, work_dir

TICKS, INTERVAL = 1000, 20
random.seed(1)


class Counts:
    """The shared page of tests/preload/count_allocations.c."""

    def __init__(self, work):
        self.path = os.path.join(work, "counts")
        with open(self.path, "wb") as file:
            file.write(bytes(4096))
        self.file = open(self.path, "r+b")
        self.map = mmap.mmap(self.file.fileno(), 4096)

    def count(self, on):
        self.map[:8] = struct.pack("<Q", on)

    def read(self):
        allocations, frees, maps, first = struct.unpack_from("<4Q", self.map, 8)
        return {"allocations": allocations, "frees": frees, "maps": maps}, first


def where(moted, address):
    """The function of an address in moted, for the message."""
    with open(f"/proc/{moted.pid}/maps", encoding="ascii") as file:
        for line in file:
            low, high = (int(x, 16) for x in line.split()[0].split("-"))
            if low <= address < high:
                offset = address - low + int(line.split()[2], 16)
                binary = line.split()[-1]
                shown = subprocess.run(["addr2line", "-fe", binary, hex(offset)], stdout=subprocess.PIPE, check=False)
                return f"{binary} {offset:#x}: {shown.stdout.decode()}"
    return hex(address)


class Churn(threading.Thread):
    """Processes, connections and subscribers that come and go in all ways until told to stop."""

    def __init__(self, path):
        super().__init__(daemon=True)
        self.path, self.over, self.done, self.error = path, False, collections.Counter(), None
        self.server, self.held = socket.create_server(("127.0.0.1", 0)), []

    def run(self):
        clients = []
        try:
            while not self.over:
                self.processes()
                self.sockets()
                self.subscribers(clients)
                time.sleep(0.02)
        except Exception as error:  # pylint: disable=broad-except
            self.error = error
        for client in clients:
            client.close()

    def sockets(self):
        """A connection that lives for a moment, one that stays a while, and datagrams."""
        client = socket.create_connection(self.server.getsockname())
        self.held.append((client, self.server.accept()[0]))
        client.sendall(b"x" * 1000)
        self.held[-1][1].recv(4096)
        with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as udp:
            udp.bind(("::1", 0))
            udp.sendto(b"y" * 100, udp.getsockname())
            udp.recv(4096)
        for _ in range(random.randrange(3) if len(self.held) < 50 else 10):
            for sock in self.held.pop(random.randrange(len(self.held))) if self.held else ():
                sock.close()
        self.done["sockets"] += 3

    def processes(self):
        child = subprocess.Popen(["sh", "-c", "true & exec cat /proc/self/stat"], stdout=subprocess.DEVNULL)
        child.wait()
        self.done["processes"] += 2

    def subscribers(self, clients):
        if len(clients) < 8:
            clients.append(Client(self.path, rcvbuf=random.choice((0, 4096)), hello=False))
            self.done["connections"] += 1
        for client in list(clients):
            if not self.use(client):
                client.close()
                clients.remove(client)

    def use(self, client):
        """Whether it is to be kept."""
        try:
            if random.random() < 0.1:
                client.send(random.choice(("subscribe all interval=20ms", "subscribe process,self interval=200ms",
                                           "poll all", "no such request", "subscribe cpu interval=1s")))
            if random.random() < 0.5 and select.select([client.socket], [], [], 0)[0]:
                return len(client.socket.recv(1 << 16)) > 0 and random.random() > 0.05
        except OSError:  # it was refused, there being too many
            self.done["refused"] += 1
            return False
        return random.random() > 0.1


def ticks_of(client, rows, seconds):
    """Reads for some time; {ticks, self's faults} at its end."""
    for frame in client.frames(seconds):
        rows.take(frame)
    return rows.row("self")


def settled_fds(moted):
    """Descriptors once the churn's connections are gone."""
    fds = {}
    for _ in range(50):
        now = moted.fds()
        if now == fds:
            break
        fds = now
        time.sleep(0.2)
    # Files of cgroups come and go with these, opened and closed by the ring.
    return sorted(name.split(":")[0] for name in fds.values() if not name.startswith("/sys/fs/cgroup/"))


def main():
    work = work_dir()
    library = os.path.join(work, "count.so")
    subprocess.run(["gcc", "-O2", "-Wall", "-shared", "-fPIC", "-o", library,
                    os.path.join(TOP, "tests/preload/count_allocations.c")], check=True)
    counts = Counts(work)
    moted = Moted(env={"LD_PRELOAD": library, "MOTE_COUNT_FILE": counts.path},
                  config={"loop": {"base": f"{INTERVAL}ms"}})
    # No warm-up: what is needed is touched before moted says that it is ready.
    faults, started = moted.faults(), time.monotonic()
    counts.count(1)
    client = moted.client(f"subscribe all interval={INTERVAL}ms")
    rows = Rows(client)
    after = before = ticks_of(client, rows, 0.5)
    fds = settled_fds(moted)
    churn = Churn(moted.path)
    churn.start()
    while after["mote_ticks_total"] - before["mote_ticks_total"] < TICKS and time.monotonic() - started < 80:
        after = ticks_of(client, rows, 0.5)
    counts.count(0)
    faults_after = moted.faults()
    churn.over = True
    churn.join(10)
    calls, first = counts.read()
    print(f"# {after['mote_ticks_total'] - before['mote_ticks_total']} ticks; {dict(churn.done)}; {calls}; "
          f"faults {faults} -> {faults_after}")
    check(f"{TICKS} ticks went by", after["mote_ticks_total"] - before["mote_ticks_total"] >= TICKS, after)
    check("processes, connections and subscribers came and went", churn.error is None and churn.done["processes"] > 200 and
          churn.done["connections"] > 100 and churn.done["sockets"] > 300, (churn.done, churn.error))
    for kind, n in calls.items():
        check(f"no {kind}", n == 0, (n, first and where(moted, first)))
    check("no page faults", faults_after == faults, (faults, faults_after))
    check("self says so too", [after[f] for f in ("process_minor_faults_total", "process_major_faults_total")] ==
          list(faults_after), (after, faults_after))
    ticks_of(client, rows, 0.5)
    check("the descriptors are those of before", settled_fds(moted) == fds, (fds, settled_fds(moted)))
    counts.count(1)
    code = moted.stop()
    check("moted ends with 0", code == 0, (code, moted.log()))
    check("and then frees what it had: the counting works", counts.read()[0]["frees"] > 10, counts.read())


run(main)
