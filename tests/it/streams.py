#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Subscriptions as docs/PROTOCOL.md has them: poll, interval, unsubscribe, several intervals at
once, the ninth refused; sequences, KEY and MORE; GAP and overruns after a stop of 3 s (C2); the
self and table streams; minimal mode."""
import os
import signal
import time

from lib import DATA, DROPPED, GAP, KEY, KEY_PART, MORE, MS, REPLY, S, Moted, Rows, check, monotonic, run, spawn


def by_stream(frames):
    found = {}
    for frame in frames:
        found.setdefault(frame.name, []).append(frame)
    return found


def contiguous(frames):
    """Whether each update of a stream follows the one before; parts of one update share a number.
    A keyframe has the number of the update that it stands for, and updates may come between its parts."""
    last = None
    for frame in frames:
        if frame.flags & KEY or last is None:
            last = frame.sequence
        elif frame.sequence == last + 1 or frame.sequence == last:
            last = frame.sequence
        else:
            return False
    return True


def poll(moted):
    client = moted.client("poll load,memory")
    got = list(client.frames(2.5))
    data = [f for f in got if f.type == DATA]
    check("poll gives one keyframe of each stream and then nothing",
          sorted(f.name for f in data) == ["load", "memory"] and all(f.flags & KEY for f in data), got)
    check("poll is sampled now, not at a tick", all(f.time % (50 * MS) for f in data), data)
    client.send("poll cpu")
    sent = monotonic()
    frame = client.wait(lambda f: f.type == DATA)
    check("its data are taken after it was asked for", frame and frame.time >= sent - MS,
          frame and frame.time - sent)
    client.close()


def intervals(moted):
    client = moted.client()
    replies = [client.ask("subscribe load interval=100ms"), client.ask("subscribe self interval=1s"),
               client.ask("subscribe memory interval=250ms")]
    check("several intervals at once are taken", all(r == (0, "ok") for r in replies), replies)
    got = by_stream(f for f in client.frames(4.2) if f.type == DATA)
    for name, interval in ("load", 100), ("memory", 250), ("self", 1000):
        updates = [f for f in got.get(name, []) if not f.flags & KEY]
        # A late one has the time of its data; here it may be late by half of its interval.
        late = [f.time % (interval * MS) / MS for f in updates]
        ticks = [f.time // (interval * MS) for f in updates]
        check(f"{name} comes every {interval} ms, on the grid, numbered in order",
              len(updates) >= 3 and ticks == list(range(ticks[0], ticks[0] + len(ticks))) and
              max(late) < interval / 2 and sum(t == 0 for t in late) * 2 > len(late) and
              contiguous(got[name]) and {f.interval for f in updates} == {interval}, (late, updates))
    check("interval sets it for all that is subscribed", client.ask("interval 200ms") == (0, "ok"))
    got = by_stream(f for f in client.frames(1.5) if f.type == DATA)
    rest = {n: {f.interval for f in fs} for n, fs in got.items()}
    check("and a keyframe begins it",
          set(rest) == {"load", "self", "memory"} and all(v == {200} for v in rest.values()) and
          all(fs[0].flags & KEY for fs in got.values()), rest)
    check("unsubscribe ends a stream", client.ask("unsubscribe load,self") == (0, "ok"))
    names = {f.name for f in client.frames(1) if f.type == DATA}
    check("and no other", names == {"memory"}, names)
    client.close()


def classes(moted):
    client = moted.client()
    names = "cpu kernel memory vm load pressure disk netdev".split()
    replies = [client.ask(f"subscribe {n} interval={(i + 1) * 100}ms") for i, n in enumerate(names)]
    check("eight intervals are taken", all(r == (0, "ok") for r in replies), replies)
    other = moted.client()
    code, text = other.ask("subscribe self interval=950ms")
    check("the ninth is refused with a reply that says what to do",
          code and "8" in text and "classes" in text, (code, text))
    check("one of the eight is still to be had", other.ask("subscribe self interval=400ms") == (0, "ok"))
    first = other.wait(lambda f: f.type == DATA and not f.flags & KEY, 3)
    check("and comes", first and first.name == "self" and first.interval == 400, first)
    client.close()
    other.close()
    third, reply = moted.client(), None
    for _ in range(50):
        reply = third.ask("subscribe self interval=950ms")
        if reply[0] == 0:
            break
        time.sleep(0.05)
    check("an interval is free again when its subscribers are gone", reply == (0, "ok"), reply)
    third.close()


def many_processes(moted):
    """A keyframe that does not fit one frame."""
    children = [spawn("sleep", "60") for _ in range(150)]
    client = moted.client("subscribe process interval=500ms")
    rows, parts, updates = Rows(client), [], []
    for frame in client.frames(2.5):
        rows.take(frame)
        if frame.type == DATA:
            (parts if frame.flags & KEY_PART else updates).append(frame)
    check("a keyframe of many processes takes several frames, the first with KEY, all but the last with MORE",
          len(parts) > 1 and [bool(f.flags & KEY) for f in parts] == [True] + [False] * (len(parts) - 1) and
          [bool(f.flags & MORE) for f in parts] == [True] * (len(parts) - 1) + [False], parts)
    pids = {key[0] for key in rows.rows["process"]}
    check("all processes are in it", {c.pid for c in children} <= pids, len(pids))
    check("and updates of what changed follow", updates and not updates[-1].flags & KEY and
          sum(len(f.rows) for f in updates[-1:]) < len(pids), updates)
    for child in children:
        child.kill()
        child.wait()
    gone = {c.pid for c in children}
    for frame in client.frames(1.6):
        rows.take(frame)
    pids = {key[0] for key in rows.rows["process"]}
    check("what ended is gone", not gone & pids, gone & pids)
    client.close()


def stopped(moted):
    """SIGSTOP for 3 s: skipped ticks are counted, marked, and do not queue up."""
    client = moted.client("subscribe self,cpu interval=500ms")
    rows = Rows(client)
    for frame in client.frames(1.7):
        rows.take(frame)
    before = rows.row("self")
    os.kill(moted.pid, signal.SIGSTOP)
    time.sleep(3)
    list(client.frames(0))
    os.kill(moted.pid, signal.SIGCONT)
    resumed = monotonic()
    got = []
    for frame in client.frames(3):
        rows.take(frame)
        if frame.name == "cpu":
            got.append(frame)
    gaps = [f for f in got if f.flags & GAP]
    times = [f.time - resumed for f in got]
    # Two: the late one, and the next, as the late one does not lie on the grid.
    check("the first update after the stop is marked as a gap, at most the next one too",
          got and got[0].flags & GAP and all(f in got[:2] for f in gaps), got)
    after = rows.row("self")
    skipped = after["mote_ticks_overrun_total"] - before["mote_ticks_overrun_total"]
    check("the skipped ticks are counted as overruns", 4 <= skipped <= 7, skipped)
    check("and the gap once", after["mote_gaps_total"] - before["mote_gaps_total"] == 1,
          (before["mote_gaps_total"], after["mote_gaps_total"]))
    check("nothing queued up: at most one update carries a time from before the end of the stop",
          sum(t < -50 * MS for t in times) <= 1, times)
    check("the next ticks are on schedule", len(got) >= 5 and
          all(f.time % (500 * MS) < 250 * MS for f in got[-3:]) and
          all(b.time // (500 * MS) - a.time // (500 * MS) == 1 for a, b in zip(got[-4:], got[-3:])), got)
    stale = [(f, f.received - f.time) for f in got if f.received - f.time > 400 * MS]
    check("no header says that data are older than they are", not stale, stale)
    check("sequence numbers go on", contiguous(got), got)
    client.close()


def plausible(moted):
    client = moted.client("subscribe self,table,process,cpu interval=100ms")
    rows, history = Rows(client), []
    for frame in client.frames(3):
        rows.take(frame)
        if frame.name == "self":
            history.append(rows.row("self"))
    first, last = history[0], history[-1]
    stream = client.streams[client.ids["self"]]
    falling = [n for n in stream.fields if stream.kinds[n] == "counter" and
               any(a[n] > b[n] for a, b in zip(history, history[1:]) if b[n] is not None)]
    check("counters of self never fall", not falling, falling)
    check("ticks are counted", 20 <= last["mote_ticks_total"] - first["mote_ticks_total"] <= 31,
          (first["mote_ticks_total"], last["mote_ticks_total"]))
    used = last["process_cpu_time_seconds_total"] - first["process_cpu_time_seconds_total"]
    check("its CPU time is some, and small", 0 <= used < 1.5 and last["process_cpu_time_seconds_total"] > 0, used)
    rss, fds = last["process_memory_usage_bytes"], last["process_open_file_descriptors"]
    check("its memory is the kernel's figure", abs(rss - moted.rss()) <= 256 * 1024, (rss, moted.rss()))
    check("its descriptors are as many as it has", abs(fds - len(moted.fds())) <= 4, (fds, len(moted.fds())))
    sent = last["mote_frame_bytes_sent_total"] - first["mote_frame_bytes_sent_total"]
    check("bytes sent are counted", sent > 10000, sent)
    check("one subscriber", last["mote_subscribers"] == 1, last["mote_subscribers"])
    tables = [client.streams[client.ids["table"]].dict(r) for r in rows.rows["table"].values()]
    bad = [t for t in tables if t["peak"] is not None and not t["fill"] <= t["peak"] <= t["size"]]
    check("tables: fill <= peak <= size", len(tables) >= 8 and not bad, bad or tables)
    sizes = {n: s for n, _, s in client.hello["tables"]}
    there = {t["name"]: t["size"] for t in tables}
    # Texts are kept in blocks: a little less may fit than was configured.
    check("tables: those that the hello names have the size that it says",
          len(sizes) >= 8 and all(0.99 * s <= there.get(n, 0) <= s for n, s in sizes.items()), (sizes, tables))
    filled = {t["name"] for t in tables if t["fill"]}
    check("tables: those of processes and connections are filled",
          any("process" in n for n in filled) and any("connection" in n or "subscriber" in n for n in filled), tables)
    client.close()


def quiet_log():
    """Drops: a counter, and at most one line a minute (E3)."""
    moted = Moted(config={"socket": {"queue": 16384, "arena": 65536, "frame": 4096}})
    good = moted.client("subscribe all interval=50ms")
    slow = moted.client("subscribe all interval=50ms", rcvbuf=4096)
    rows = Rows(good)
    for frame in good.frames(6):
        rows.take(frame)
    lost = rows.row("self")["mote_frames_dropped_total"]
    check("frames are dropped for one that never reads", lost > 10, lost)
    lines = [line for line in moted.log().splitlines() if "slow" in line]
    check("which is one line of the log", len(lines) == 1, moted.log())
    told = [f for f in slow.frames(2) if f.type == DROPPED]
    check("it is told what it lost", told and told[-1].body[0] > 0 and told[-1].body[1] > 0,
          [f.body for f in told])
    check("moted ends with 0", moted.stop() == 0, moted.log())


def minimal():
    moted = Moted("--mode", "minimal")
    client = moted.client("subscribe all interval=200ms")
    why = {s: (f, r) for s, f, r in client.hello["absent"] if f == "*"}
    frames = [f for f in client.frames(1.5) if f.type == DATA]
    names = {f.name for f in frames if f.rows}
    allowed = {"process", "event", "self", "table", "socket", "flow", "process_network", "network"}
    check("minimal mode has processes, events, sockets, self and table only",
          {"process", "self", "table"} <= names <= allowed and client.hello["mode"] == "minimal", names)
    missing = {s.name for s in client.streams.values()} - allowed
    check("and says why the others are absent",
          all(why.get(n) == ("*", "mode = minimal") for n in missing), why)
    check("the others get their keyframe all the same, so that nobody waits for it",
          missing <= {f.name for f in frames if f.flags & KEY and not f.rows}, missing)
    check("an absent stream can be asked for", client.ask("poll cpu") == (0, "ok"))
    check("moted ends with 0", moted.stop() == 0, moted.log())


def main():
    moted = Moted()
    poll(moted)
    intervals(moted)
    classes(moted)
    many_processes(moted)
    stopped(moted)
    plausible(moted)
    check("moted ends with 0", moted.stop() == 0, moted.log())
    quiet_log()
    minimal()


run(main)
