#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The same processes by the task iterator and by /proc, as two moteds tell of them at the same time:
of those that stand still between two samples every field that both give is equal. Fails if few
processes are compared, or a field that should vary is the same for all."""
import ctypes
import os
import signal
import threading
import time

from lib import DATA, KEY, MORE, MS, Moted, Rows, check, room, run, skip

PROCESSES = 40
TICK = 10 * MS  # of /proc's times
# /proc gives these in ticks, from the same numbers.
IN_TICKS = ("utime", "stime", "cutime", "cstime")
# What must differ between some of the processes, and what is compared at all.
VARY = ("pid", "start", "ppid", "uid", "gid", "session", "nice", "priority", "threads", "utime", "minflt", "vsize",
        "rss", "shared", "comm", "argv", "state", "cutime")
COMPARED = (*VARY, "tty", "stime", "cstime", "majflt")
LIBC = ctypes.CDLL(None)


def be(i, ready):
    """The i-th process: something of its own in every field; writes to `ready` when only to sleep is left."""
    os.setpriority(os.PRIO_PROCESS, 0, i % 20 - (10 if i % 3 else 0))
    if i % 4 == 1:
        os.setsid()
    LIBC.prctl(15, ctypes.c_char_p(b"tier %d (x) " % i), 0, 0, 0)
    memory = bytearray((1 + i) << 16)
    for _ in range(i % 5):
        threading.Thread(target=signal.pause, daemon=True).start()
    if i % 3 == 0:
        until = time.process_time() + 0.02 * (i % 7)
        while time.process_time() < until:
            pass
    if i % 6 == 2:
        child = os.fork()
        if child == 0:
            until = time.process_time() + 0.03
            while time.process_time() < until:
                pass
            os._exit(0)
        os.waitpid(child, 0)
    if i % 5 == 3:
        os.setgid(1000 + i)
        os.setuid(2000 + i)
    os.write(ready, b"r")
    if i % 10 == 7:
        os.kill(os.getpid(), signal.SIGSTOP)
    if i % 10 == 9:
        os._exit(0)  # a zombie
    while True:
        signal.pause()
    del memory


def states(pid):
    """Of all its threads."""
    folder = f"/proc/{pid}/task"
    for tid in os.listdir(folder):
        with open(f"{folder}/{tid}/stat", encoding="utf-8", errors="replace") as file:
            yield file.read().rpartition(")")[2].split()[0]


def start():
    """The processes, when they sleep, are stopped, or are zombies: on a busy host the nicest take long."""
    begun, ready = os.pipe()
    pids = []
    for i in range(PROCESSES):
        pid = os.fork()
        if pid == 0:
            try:
                be(i, ready)
            finally:
                os._exit(1)
        pids.append(pid)
    for _ in pids:
        os.read(begun, 1)
    while any(state not in "STZ" for pid in pids for state in states(pid)):
        time.sleep(0.05)
    return pids


class Side:
    """One moted, and its rows as of two samples."""

    def __init__(self, *args):
        self.moted = Moted("--mode", "minimal", *args, config=room())
        self.client = self.moted.client("subscribe process interval=500ms")
        self.rows = Rows(self.client)
        self.stream = next(s for s in self.client.streams.values() if s.name == "process")
        self.absent = {f for s, f, _ in self.client.hello["absent"] if s == "process"}
        self.samples, self.complete = [], False

    def watch(self, sides, pids, seconds):
        """Until all sides have had ours for three samples: /proc's takes long where there are thousands."""
        for frame in self.client.frames(seconds):
            if frame.type != DATA:
                continue
            self.rows.take(frame)
            if not frame.flags & (KEY | MORE):
                self.samples.append(dict(self.rows.rows["process"]))
                self.complete = len(self.samples) > 6 and pids <= {key[0] for key in self.samples[-3]}
            if all(side.complete for side in sides):
                break

    def still(self):
        """{key: row as a dict} of what no longer changes, kernel threads left out."""
        first, last = self.samples[-3], self.samples[-1]
        return {key: self.stream.dict(row) for key, row in last.items() if first.get(key) == row}


# From 6.16 on /proc sums the per-CPU parts of a process's page counters, which the iterator leaves out:
# three counters, each at most a batch (32, or two for each CPU) away on each CPU, either way.
CPUS = os.cpu_count()
RSS_SLACK = 3 * CPUS * 2 * max(32, 2 * CPUS) * os.sysconf("SC_PAGE_SIZE")


def equal(field, a, b):
    if field in IN_TICKS:
        return a // TICK == b // TICK
    if field in ("rss", "shared"):
        return abs(a - b) < RSS_SLACK
    if field == "comm" and isinstance(a, str) and a.startswith("kworker/"):
        return b.startswith(a[:14])  # /proc adds what it works on
    return a == b


def compare(sides, pids):
    iterator, proc = (s.still() for s in sides)
    both = sorted(iterator.keys() & proc.keys())
    ours = [key for key in both if key[0] in pids]
    check(f"{len(both)} processes that stand still are in both, {len(ours)} of ours among them",
          len(both) >= 60 and len(ours) == PROCESSES, f"{len(iterator)} {len(proc)} {len(both)} {len(ours)}")
    fields = [f for f in sides[0].stream.fields if f not in sides[0].absent | sides[1].absent]
    check("fields that the tiers should have in common are given by both", set(COMPARED) <= set(fields),
          set(COMPARED) - set(fields))
    for field in fields:
        keys = both if field in COMPARED else ours
        pairs = [(key, iterator[key][field], proc[key][field]) for key in keys]
        pairs = [p for p in pairs if p[1] is not None and p[2] is not None]
        wrong = [p for p in pairs if not equal(field, p[1], p[2])]
        least = 60 if field in COMPARED and field not in ("argv", "rss", "shared") else 25 if field in COMPARED else 1
        check(f"{field}: equal in {len(pairs)} processes", len(pairs) >= least and not wrong, wrong[:5])
        if field in VARY:
            values = {str(iterator[key][field]) for key in both}
            check(f"{field}: is not constant", len(values) > 1, values)
    missing = [(k, f, iterator[k][f], proc[k][f]) for k in ours for f in COMPARED
               if (iterator[k][f] is None) != (proc[k][f] is None)]
    check("none of ours has a field by one tier only", not missing, missing[:5])


def main():
    if os.geteuid() != 0:
        skip("tiers", "needs root")
        return
    pids = start()
    try:
        sides = [Side("--probes", "auto"), Side("--probes", "none")]
        check("the two tiers are the two", "exe" in sides[1].absent and "exe" not in sides[0].absent,
              [s.absent for s in sides])
        threads = [threading.Thread(target=side.watch, args=(sides, set(pids), 60)) for side in sides]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        compare(sides, set(pids))
        for side in sides:
            check("ends in order", side.moted.stop() == 0, side.moted.log())
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


run(main)
