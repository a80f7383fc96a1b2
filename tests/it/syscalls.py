#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""One system call a tick: strace of the loop's thread over 60 ticks at 1 s with one subscriber shows
60 io_uring_enter and nothing else; and the delay from sample to receipt.

Five moteds run side by side to save time. `all` has a subscriber of everything but cgroups: it makes one more
call where a process without a command line appears, which then is read; so on a machine where other
processes are born, it may have as many more calls as there were births. `host` has no such stream
and must be exact whatever else the machine does; so must `network`, which has the network streams. `cgroup` has
that stream, whose files are read in rounds after the tick's chain, a call each: those that are open, with the opens
of those whose turn it is; their reads; the closes; of lists one more, to their end. `fast` is not traced, and out of
step with the others; the delay is measured on it."""
import os
import re
import select
import statistics
import subprocess
import time

from lib import DATA, KEY, MS, S, Moted, check, monotonic, run, skip, spawn

TICKS = 60
ROUNDS = 5  # of cgroups, at most, after the chain


def clocksource():
    with open("/sys/devices/system/clocksource/clocksource0/current_clocksource", encoding="ascii") as file:
        return file.read().strip()


class Traced:
    """A moted whose loop is traced, with one subscriber."""

    def __init__(self, name, request, rounds=0):
        self.name, self.rounds = name, rounds
        self.moted = Moted(config={"loop": {"housekeeping": "60s"}})
        self.client = self.moted.client(request)
        self.births, self.ticks, self.overruns = [], [], []
        self.strace = None

    def trace(self):
        self.log = os.path.join(self.moted.work, "strace")
        self.strace = spawn("strace", "-q", "-ttt", "-s0", "-o", self.log, "-p", str(self.moted.pid),
                            stderr=subprocess.PIPE)

    def take(self, frame):
        if frame.type != DATA:
            return
        if frame.name == "event":
            stream = self.client.streams[frame.stream]
            self.births += [frame.time for row in frame.rows if stream.dict(row)["type"] in ("fork", "exec")]
        if frame.name == "self" and not frame.flags & KEY:
            self.ticks.append(frame.time)

    def calls(self):
        """[(monotonic ns, name)]"""
        self.strace.terminate()
        self.strace.wait()
        offset = time.clock_gettime_ns(time.CLOCK_REALTIME) - monotonic()
        found = []
        with open(self.log, encoding="utf-8", errors="replace") as file:
            for line in file:
                match = re.match(r"(\d+)\.(\d+) (\w+)\(", line)
                if match:
                    at = int(match[1]) * S + int(match[2].ljust(9, "0")) - offset
                    found.append((at, match[3]))
        return found

    def judge(self, start):
        """Of the 60 ticks after `start`, which lies between two."""
        end = start + TICKS * S
        calls = [name for at, name in self.calls() if start <= at < end]
        others = {name for name in calls if name != "io_uring_enter"}
        # Where the clock is no vDSO's, clock_gettime() is a system call.
        forced = {"clock_gettime"} if clocksource() not in ("tsc", "kvm-clock", "arch_sys_counter",
                                                            "hyperv_clocksource_tsc_page") else set()
        births = [t for t in self.births if start <= t < end]
        # A storm of births fills sockets: a SIGIO when there is room again, and a line in the log.
        forced |= {"rt_sigreturn", "write"} if births else set()
        enters = calls.count("io_uring_enter")
        ticks = [t for t in self.ticks if start <= t < end]
        print(f"# {self.name}: {enters} enters in {len(ticks)} ticks, {len(births)} births; others: {others or 'none'}")
        check(f"{self.name}: {TICKS} ticks came", len(ticks) == TICKS, len(ticks))
        check(f"{self.name}: no system call but io_uring_enter", not others - forced,
              {name: calls.count(name) for name in others})
        more = len(births) + TICKS * self.rounds
        check(f"{self.name}: {TICKS} to {TICKS + 1} of them{f', and at most {more}' if more else ''}",
              TICKS <= enters <= TICKS + 1 + more, (enters, more))


def watch(traced, fast, until):
    """Reads all clients; (header time, delay) of fast's frames, one a tick."""
    clients, delays = {t.client.socket: t for t in traced}, []
    clients[fast.socket] = None
    while monotonic() < until:
        for ready in select.select(list(clients), [], [], 0.2)[0]:
            who = clients[ready]
            client = who.client if who else fast
            frame = client.frame(0)
            while frame:
                if who:
                    who.take(frame)
                elif frame.type == DATA and not frame.flags & KEY and (not delays or delays[-1][0] != frame.time):
                    delays.append((frame.time, frame.received - frame.time))
                frame = client.frame(0)
    return delays


def main():
    try:
        os.setpriority(os.PRIO_PROCESS, 0, -10)  # inherited: other work is not what is measured
    except PermissionError:
        pass
    host = Traced("host", "subscribe cpu,kernel,memory,vm,load,pressure,disk,netdev,filesystem,self,table interval=1s")
    whole = Traced("all", "subscribe cpu,kernel,memory,vm,load,pressure,disk,netdev,filesystem,process,event,socket,flow,"
                   "process_network,network,self,table interval=1s")
    network = Traced("network", "subscribe socket,flow,process_network,network,self interval=1s")
    cgroup = Traced("cgroup", "subscribe cgroup,cgroup_event,self interval=1s", ROUNDS)
    all_of_them = host, whole, network, cgroup
    engine = host.client.hello["engine"]
    if engine != "uring":
        skip("one system call a tick", f"the engine is {engine}, io_uring is refused")
        return
    fast = Moted()
    client = fast.client("subscribe all interval=650ms")
    watch(all_of_them, client, monotonic() + 5 * S)
    for traced in all_of_them:
        traced.trace()
    start = (monotonic() // S + 3) * S - S // 2
    delays = watch(all_of_them, client, start + TICKS * S + S // 4)
    for traced in all_of_them:
        traced.judge(start)
    # A machine that is busy with other work delays both ends: the quietest third is what mote does.
    third = len(delays) // 3
    medians = [statistics.median(d for _, d in delays[i * third:(i + 1) * third]) for i in range(3)]
    print(f"# delay from sample to receipt: medians of three times {third} ticks:",
          ", ".join(f"{m / MS:.2f} ms" for m in medians))
    check("the median delay from sample to receipt is under 2 ms", third >= 20 and 0 < min(medians) < 2 * MS, medians)
    for moted in *(traced.moted for traced in all_of_them), fast:
        code = moted.stop()
        check("moted ends with 0", code == 0, moted.log())


run(main)
