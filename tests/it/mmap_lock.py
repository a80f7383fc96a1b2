#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""A process whose /proc/PID/cmdline cannot be read for a long time (E8): its mmap lock is held (see
tests/helpers/hold_mmap_lock.c), or, as a stand-in for any other cause, its open hangs (a FIFO is
mounted over it). With both engines and both tiers no tick is late, that process has its row without
argv, and every other has its argv (with io_uring; without it, those that are read together wait, and
those that come behind them, but for what execs tell), SIGTERM ends moted at once; and when the read comes back, every process has
its argv."""
import os
import select
import subprocess
import threading
import time

from lib import BUILD, DATA, KEY, MORE, MS, S, Moted, Rows, check, room, run, skip, spawn, work_dir

TIERS = {"iterator": (), "proc": ("--probes", "none")}
NOT_HERE = 77


def sleeper(name):
    """A process with an argv of its own."""
    return spawn("sh", "-c", "read x", name, stdin=subprocess.PIPE).pid


def argv_of(name):
    return ["sh", "-c", "read x", name]


class Watch:
    """A moted, the times its cpu frames were here, and its processes."""

    def __init__(self, tier, engine, stuck, wrap=()):
        self.name, self.stuck = f"{tier}, {engine}, {'open hangs' if wrap else 'lock held'}", stuck
        self.moted = Moted(*TIERS[tier], "--engine", engine, wrap=wrap, config=room())
        self.client = self.moted.client("subscribe cpu,process interval=1s")
        self.rows, self.times = Rows(self.client), []
        self.stream = next(s for s in self.client.streams.values() if s.name == "process")
        self.engine = self.client.hello["engine"]

    def take(self, frame):
        if frame.type != DATA:
            return
        self.rows.take(frame)
        if frame.name == "cpu" and not frame.flags & (KEY | MORE):
            self.times.append((frame.time, frame.received))

    def row(self, pid):
        return next((self.stream.dict(r) for (p, _), r in self.rows.rows["process"].items() if p == pid), None)

    def argv(self, pid):
        return (self.row(pid) or {}).get("argv")

    def on_time(self, seconds):
        # The first may be that of a tick which came late while moted was starting.
        steps = [b[0] - a[0] for a, b in zip(self.times[1:], self.times[2:])]
        delays = [received - t for t, received in self.times[1:]]
        check(f"{self.name}: while it hangs, {len(self.times)} ticks a second apart, none late",
              len(self.times) >= seconds - 2 and steps and max(abs(s - S) for s in steps) < 400 * MS
              and max(delays) < 400 * MS and sorted(delays)[len(delays) // 2] < 50 * MS,
              f"{[s // MS for s in steps]} {[d // MS for d in delays]}")

    def stuck_row(self):
        row = self.row(self.stuck)
        check(f"{self.name}: the process that hangs has its row, and no argv",
              row and row["argv"] is None and row["comm"] and row["threads"] == 1 and row["rss"] > 0, row)

    def stop(self):
        began = time.monotonic()
        code = self.moted.stop(10)
        took = time.monotonic() - began
        check(f"{self.name}: SIGTERM ends it within 3 s", code == 0 and took < 3, f"{code} after {took:.1f} s")


def pump(watches, seconds):
    until = time.monotonic() + seconds
    by_socket = {w.client.socket: w for w in watches}
    while time.monotonic() < until:
        for sock in select.select(list(by_socket), [], [], 0.1)[0]:
            frame = by_socket[sock].client.frame(0)
            while frame:
                by_socket[sock].take(frame)
                frame = by_socket[sock].client.frame(0)


def hangs(pid):
    """Whether a read of the command line is still under way after a second."""
    thread = threading.Thread(target=lambda: open(f"/proc/{pid}/cmdline", "rb").read(), daemon=True)
    thread.start()
    thread.join(1)
    return thread.is_alive()


class Held:
    """The process whose mmap lock is held."""

    def __init__(self):
        self.helper = spawn(os.path.join(BUILD, "tests/helpers/hold_mmap_lock"), work_dir(),
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        word = self.helper.stdout.readline().split()
        self.pid = int(word[1]) if word else None

    def free(self):
        self.helper.stdin.write(b"\n")
        self.helper.stdin.flush()


class Fifo:
    """The process whose command line's open hangs, for whoever is in the mount namespace of `wrap`."""

    def __init__(self):
        self.path = os.path.join(work_dir(), "fifo")
        os.mkfifo(self.path)
        self.pid = sleeper("stuck by a fifo")

    def wrap(self):
        return ("unshare", "-m", "sh", "-c", f"mount --bind {self.path} /proc/{self.pid}/cmdline && exec \"$@\"", "sh")


def lock(pids):
    held = Held()
    if held.pid is None:
        code = held.helper.wait(10)
        if code == NOT_HERE:
            skip("the mmap lock is held", "FUSE is not to be had here")
        else:
            check("the mmap lock is held", False, f"exit code {code}")
        return None, []
    check("a read of its command line hangs", hangs(held.pid))
    pids.update(behind())
    pairs = [(tier, engine) for tier in TIERS for engine in ("uring", "sync")]
    return held, [Watch(tier, engine, held.pid) for tier, engine in pairs]


def fifo(stuck):
    pairs = ("iterator", "uring"), ("proc", "uring"), ("iterator", "sync")
    return [Watch(tier, engine, stuck.pid, stuck.wrap()) for tier, engine in pairs]


def while_it_hangs(watches, pids, seconds):
    for watch in watches:
        watch.on_time(seconds)
        watch.stuck_row()
        if watch.engine == "uring":
            wrong = [n for n, pid in pids.items() if watch.argv(pid) != argv_of(n)]
            check(f"{watch.name}: {len(pids)} others have theirs", len(pids) > 20 and not wrong, wrong)
        if watch.name.startswith("iterator"):
            check(f"{watch.name}: a process that is new has its argv", watch.argv(pids["new"]) == argv_of("new"),
                  watch.row(pids["new"]))


def when_it_comes_back(watches, pids):
    pump(watches, 4)
    for watch in watches:
        argv, wrong = watch.argv(watch.stuck) or [""], [p for n, p in pids.items() if watch.argv(p) != argv_of(n)]
        check(f"{watch.name}: when the lock is free the process has its argv, as have all",
              argv[0].endswith("hold_mmap_lock") and not wrong, f"{argv} {[watch.row(p) for p in wrong]}")


def hang(watches, pids, seconds):
    """What holds for all of them while a read hangs."""
    pump(watches, 2)
    for watch in watches:
        watch.times.clear()
    pids["new"] = sleeper("new")
    pump(watches, seconds)
    for _ in range(10):  # a machine with thousands of processes takes its time until their turn comes
        if not all(w.argv(pids["behind 24"]) or w.engine == "sync" for w in watches):
            pump(watches, 1)
    while_it_hangs(watches, pids, seconds)


def behind():
    return {f"behind {i}": sleeper(f"behind {i}") for i in range(25)}


def main():
    if os.geteuid() != 0:
        skip("a command line that cannot be read", "needs root")
        return
    pids = {"before": sleeper("before")}
    stuck = Fifo()
    pids.update(behind())
    watches = fifo(stuck)
    hang(watches, pids, 8)
    for watch in watches:
        watch.stop()

    pids = {"before": sleeper("before")}
    held, watches = lock(pids)
    if not held:
        return
    hang(watches, pids, 11)
    for watch in watches[::3]:
        watch.stop()
    held.free()
    when_it_comes_back(watches[1:3], pids)
    for watch in watches[1:3]:
        watch.stop()


run(main)
