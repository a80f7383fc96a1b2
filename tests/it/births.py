#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Births and deaths (P3): 10,000 runs of true(1) give 10,000 exec, exit and final records from each
source of events, or the shortfall is what mote_events_dropped_total says, exactly. One burst is seen
by five moteds at once: a reference with a ring buffer that holds all of it, one with defaults, one on
tp_btf, one whose ring buffer is far too small, and one on the proc connector. Other processes come
and go meanwhile; what was lost of theirs is known from the reference."""
import collections
import os
import select
import shutil
import subprocess
import time

from lib import BUILD, DATA, DROPPED, Moted, check, run, skip

RUNS = 10000
# Final records come from an RCU callback on top of whatever task that interrupted; some kernels keep
# programs from running on top of some tasks (see tests/helpers/lifecycle.c). No exit is without its record.
FINALS = RUNS * 4 // 5
TRUE = shutil.which("true")
SETUPS = {
    "reference": ("100ms", {"process": {"events": "tracepoint"}, "tables": {"events": "8MiB"}}),
    "defaults": ("100ms", {}),
    "tp_btf": ("100ms", {"process": {"events": "tp_btf"}}),
    "small ring": ("1s", {"process": {"events": "tracepoint"}, "tables": {"events": "64KiB"}}),
    "connector": ("1s", {"process": {"events": "connector"}}),
}
ROOM = {"socket": {"queue": "16MiB", "arena": "64MiB"}}


class Watched:
    """A moted, and all the events that it told."""

    def __init__(self, name):
        self.name = name
        interval, config = SETUPS[name]
        self.moted = Moted("--mode", "minimal", config={**ROOM, **config})
        self.client = self.moted.client(f"subscribe event interval={interval}")
        self.stream = next(s for s in self.client.streams.values() if s.name == "event")
        self.events, self.lost, self.dropped = [], 0, []

    def tier(self):
        return next((t for t in self.client.hello["tiers"] if t[0] == "process_events"), None)

    def take(self, frame):
        if frame.type == DROPPED:
            self.lost = frame.body[0]
        elif frame.type == DATA and frame.name == "event":
            self.events += (e for e in map(self.stream.dict, frame.rows) if not e["protocol"])  # no sockets

    def count_dropped(self):
        """(since when, until when it was counted, mote_events_dropped_total) by a connection of its own."""
        client = self.moted.client("poll self")
        frame = client.wait(lambda f: f.type == DATA)
        client.close()
        stream = next(s for s in client.streams.values() if s.name == "self")
        self.dropped.append((frame.time, frame.received, stream.dict(frame.rows[0])["mote_events_dropped_total"]))

    def within(self):
        """Those between the two counts."""
        begin, end = self.dropped[0][0], self.dropped[1][0]
        return [e for e in self.events if begin < e["time"] <= end]

    def growth(self):
        return self.dropped[1][2] - self.dropped[0][2]


def pump(watched, until):
    """Takes frames of all until `until` (of time.monotonic()) or, if callable, until it is true."""
    by_socket = {w.client.socket: w for w in watched}
    while not (until() if callable(until) else time.monotonic() >= until):
        for sock in select.select(list(by_socket), [], [], 0.1)[0]:
            w = by_socket[sock]
            frame = w.client.frame(0)
            while frame:
                w.take(frame)
                frame = w.client.frame(0)


def key(event):
    return event["type"], event["pid"]


def missing(reference, watched):
    """What the reference has between the two counts of `watched` and this one has not; and how many of these
    came, or others would come besides, if a count was not of the moment of its frame but of its reception."""
    (begin, begun, _), (end, ended, _) = watched.dropped
    have = collections.Counter(map(key, watched.events))
    lost, early, late = [], 0, 0
    for event in reference.events:
        if have[key(event)]:
            have[key(event)] -= 1
        elif begin < event["time"] <= end:
            lost.append(event)
            early += event["time"] <= begun
        else:
            late += end < event["time"] <= ended
    return lost, early, late


def of_runs(events, pids, helper):
    """Not those of others that had one of these pids before or after."""
    return [e for e in events if e["pid"] in pids
            and (e["ppid"] == helper if e["type"] == "fork" else e["comm"] == "true")]


def ours(events, pids, helper):
    return collections.Counter(e["type"] for e in of_runs(events, pids, helper))


def complete(watched, helper):
    """The reference has every run, with what a record must have."""
    events = watched.within()
    born = [e for e in events if e["type"] == "fork" and e["ppid"] == helper]
    pids = {e["pid"] for e in born}
    events = of_runs(events, pids, helper)
    count = collections.Counter(e["type"] for e in events)
    finals = count.pop("final", 0)
    check(f"{watched.name}: {RUNS} runs are {RUNS} fork, exec and exit records each, none lost",
          count == {t: RUNS for t in ("fork", "exec", "exit")} and watched.growth() == 0,
          f"{dict(count)}, {len(born)} forks, dropped {watched.growth()}, {watched.lost} frames lost")
    check(f"{watched.name}: {finals} final records", FINALS <= finals <= RUNS)
    execs = [e for e in events if e["type"] == "exec"]
    exits = [e for e in events if e["type"] == "exit"]
    finals = {(e["pid"], e["start"]): e for e in events if e["type"] == "final"}
    wrong = [e for e in execs if (e["comm"], e["argv"], e["ppid"], e["uid"]) != ("true", [TRUE], helper, 0)]
    check("each exec tells comm, argv, parent and user", execs and not wrong, wrong[:3])
    wrong = [e for e in exits if e["exit_code"] != 0 or e["comm"] != "true" or e["ppid"] != helper]
    check("each exit tells comm, parent and wait status", exits and not wrong, wrong[:3])
    both = [(e, finals[k]) for e in exits for k in [(e["pid"], e["start"])] if k in finals]
    wrong = [(e, f) for e, f in both if f["time"] < e["time"] or f["exit_code"] != 0
             or any(f[c] < e[c] or not f[c] for c in ("run_time", "minflt", "rchar", "syscr"))]
    check("a final record has its exit's key, comes later, and its totals are not less",
          len(both) >= FINALS and not wrong, f"{len(both)} {wrong[:2]}")
    return pids


def in_order(events, helper):
    """The first that is out of order: of one run come fork, exec, exit, final."""
    rank = {"fork": 0, "exec": 1, "exit": 2, "final": 3}
    last = {}
    for event in events:
        pid = event["pid"]
        if event["type"] == "fork" and event["ppid"] != helper:
            last.pop(pid, None)
        elif event["type"] == "fork" or pid in last:
            if event["type"] != "fork" and rank[event["type"]] != last[pid] + 1:
                return event
            last[pid] = rank[event["type"]]
    return None


def accounted(reference, watched, pids, helper):
    lost, early, late = missing(reference, watched)
    count = ours(watched.within(), pids, helper)
    short = ours(lost, pids, helper)
    check(f"{watched.name}: {dict(count)} of {RUNS} each, and mote_events_dropped_total grew by the"
          f" {len(lost)} that are missing of all processes",
          len(lost) - early <= watched.growth() <= len(lost) + late and not watched.lost,
          f"missing {len(lost)} -{early} +{late}, dropped {watched.dropped}, {watched.lost} frames lost")
    check(f"{watched.name}: what came and what is missing are {RUNS} exec and {RUNS} exit records",
          all(count[t] + short[t] == RUNS for t in ("exec", "exit")), f"{count} {short}")
    return lost


def connector(watched, helper):
    """It cannot say how many it lost, only that it did."""
    tier = watched.tier()
    if not tier or tier[1] != "connector":
        skip("connector", "no proc connector here")
        return
    count = collections.Counter()
    born = set()
    for event in watched.events:
        if event["type"] == "fork" and event["ppid"] == helper:
            born.add(event["pid"])
        if event["pid"] in born:
            count[event["type"]] += 1
    check(f"connector: {dict(count)} of {RUNS} each, or losses are told (told: {watched.growth()})",
          all(count[t] == RUNS for t in ("fork", "exec", "exit")) or (watched.growth() or 0) > 0, count)
    check("connector: what it tells of a run is never told twice",
          all(0 < count[t] <= RUNS for t in ("fork", "exec", "exit")), count)


def burst(watched):
    pump(watched, time.monotonic() + 1.5)  # the first update of each
    for w in watched:
        w.count_dropped()
    with subprocess.Popen([os.path.join(BUILD, "tests/helpers/runs"), str(RUNS), TRUE],
                          stdout=subprocess.DEVNULL) as helper:
        pump(watched, lambda: helper.poll() is not None)
    pump(watched, time.monotonic() + 0.5)  # the last final records
    for w in watched:
        w.count_dropped()
    pump(watched, time.monotonic() + 2.5)
    return helper


def main():
    if os.geteuid() != 0:
        skip("process events", "needs root")
        return
    watched = [Watched(name) for name in SETUPS]
    by_name = {w.name: w for w in watched}
    for name, choice in ("reference", "tracepoint"), ("defaults", "tracepoint"), ("tp_btf", "tp_btf"), \
            ("small ring", "tracepoint"):
        tier = by_name[name].tier()
        check(f"{name}: events come by {choice}", tier and tier[1] == choice, tier)
    helper = burst(watched)
    check(f"{RUNS} runs of true succeeded", helper.returncode == 0, helper.returncode)
    reference = by_name["reference"]
    pids = complete(reference, helper.pid)
    check("records of a process are in order", in_order(reference.events, helper.pid) is None,
          in_order(reference.events, helper.pid))
    accounted(reference, by_name["defaults"], pids, helper.pid)
    accounted(reference, by_name["tp_btf"], pids, helper.pid)
    lost = accounted(reference, by_name["small ring"], pids, helper.pid)
    check("small ring: it was small enough to lose some", len(lost) > RUNS, len(lost))
    connector(by_name["connector"], helper.pid)
    for w in watched:
        check(f"{w.name}: ends in order", w.moted.stop() == 0, w.moted.log())


run(main)
