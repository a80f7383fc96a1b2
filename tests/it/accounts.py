#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The dead are accounted for once (P1, P2). Live rows and ended totals of the process stream, summed,
never decrease while processes and threads come and go; 100 children that burn 0.3 s each and are dead
before a sample could see them are within 1 %; and processes that read, write and die in each of the
ways there are add what they did to the totals exactly once."""
import ctypes
import mmap
import os
import random
import resource
import signal
import threading
import time

from lib import DATA, KEY, MORE, Moted, Rows, check, room, run, skip

GIB = 1 << 30
NULL = os.open("/dev/null", os.O_RDWR)
ZERO = os.open("/dev/zero", os.O_RDONLY)
LIBC = ctypes.CDLL(None)
COUNTERS_IO = ("rchar", "wchar", "syscr", "syscw")
COUNTERS = (*COUNTERS_IO, "utime", "stime")


def fork(work, *args):
    """A child that does `work` and ends without anything else."""
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        work(*args)
        code = 0
    finally:
        os._exit(code)
    return 0


class Watch:
    """A subscription to process and event, and what it told: rows, totals, and for each process the
    most that a row or a death record said of its counters."""

    def __init__(self, moted, interval):
        self.client = moted.client(f"subscribe process,event interval={interval}")
        self.rows = Rows(self.client)
        self.streams = {s.name: s for s in self.client.streams.values()}
        self.dead, self.seen, self.known = {}, set(), {}

    def _learn(self, key, values):
        known = self.known.setdefault(key, {})
        for field in COUNTERS:
            known[field] = max(known.get(field, 0), values[field] or 0)

    def take(self, frame):
        """True if the process stream is now that of one sample."""
        if frame.type != DATA:
            return False
        self.rows.take(frame)
        for row in map(self.streams[frame.name].dict, frame.rows):
            key = row["pid"], row["start"]
            if frame.name == "process":
                self.seen.add(key)
                self._learn(key, row)
            elif row["type"] in ("exit", "final"):
                self.dead[key] = row
                self._learn(key, row)
        return frame.name == "process" and not frame.flags & (MORE | KEY)

    def updates(self, seconds):
        for frame in self.client.frames(seconds):
            if self.take(frame):
                yield frame

    def next(self, n=1):
        """Waits for the n-th update from now, and the events of its sample."""
        for _ in range(n):
            frame = self.client.wait(self.take)
        time_of = frame.time
        while frame and frame.time == time_of:
            frame = self.client.frame(0.1)
            if frame:
                self.take(frame)
        return {"sums": self.rows.sums("process"), "known": {k: dict(v) for k, v in self.known.items()},
                "totals": self.streams["process"].dict(self.rows.totals["process"])}


def growth(field, before, after, what="sums"):
    return after[what][field] - before[what][field]


def of_others(field, before, after, mine):
    """How much all but the pids of `mine` grew between two snapshots."""
    return sum(after["known"][key][field] - before["known"].get(key, {}).get(field, 0)
               for key in after["known"] if key[0] not in mine)


# -- P2 ----------------------------------------------------------------------------------------

def burn(seconds):
    until = time.process_time() + seconds
    while time.process_time() < until:
        pass


def burn_at_once(seconds):
    """Before others, so that on a busy host, too, it is over between two samples."""
    os.setpriority(os.PRIO_PROCESS, 0, -15)
    burn(seconds)


def burners(n, seconds, at_a_time):
    pids, running = set(), set()
    for _ in range(n):
        if len(running) == at_a_time:
            running.discard(os.wait()[0])
        running.add(fork(burn_at_once, seconds))
        pids |= running
    while running:
        running.discard(os.wait()[0])
    return pids


def between_samples(moted):
    watch = Watch(moted, "5s")
    before = watch.next(2)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    result = []
    thread = threading.Thread(target=lambda: result.append(burners(100, 0.3, 2)))
    thread.start()
    while thread.is_alive():
        after = watch.next()
    after = watch.next()
    now = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = (now.ru_utime + now.ru_stime - used.ru_utime - used.ru_stime) * 1e9
    pids = result[0]
    finals = [e for (pid, _), e in watch.dead.items() if pid in pids]
    told = sum(e["utime"] + e["stime"] for e in finals)
    check("100 children used 30 s of CPU time or more, and each death was told",
          used > 29e9 and len(finals) == 100, f"{used / 1e9} s, {len(finals)}")
    unseen = len(pids - {pid for pid, _ in watch.seen})
    check("most were born and dead between two samples", unseen >= 50, unseen)
    check("their death records say within 1 % what the parent was charged",
          abs(told - used) <= 0.01 * used, f"{told / used}")
    grown = sum(growth(f, before, after) for f in ("utime", "stime"))
    others = sum(of_others(f, before, after, pids) for f in ("utime", "stime"))
    check("rows and totals grew within 1 % by what they used, others' growth taken off",
          abs(grown - others - used) <= 0.01 * used,
          f"grown {grown / 1e9} others {others / 1e9} used {used / 1e9}")
    ended = sum(growth(f, before, after, "totals") for f in ("utime", "stime"))
    check("the ended totals alone have it", ended >= 0.99 * used, f"{ended / used}")
    watch.client.close()


# -- exactly once ------------------------------------------------------------------------------

BUFFER = mmap.mmap(-1, GIB // 2)  # never touched: writing to /dev/null does not look at it
SMALL = bytearray(1 << 20)
READS = 50000


def do_io(digit):
    """Reads GIB bytes; writes GIB * 4^digit; READS reads and 100 * 4^digit writes that move nothing."""
    zero = os.open("/dev/zero", os.O_RDONLY)
    for _ in range(GIB // len(SMALL)):
        os.readv(zero, [SMALL])
    for _ in range(2 * 4 ** digit):
        os.write(NULL, BUFFER)
    for _ in range(READS):
        os.read(NULL, 1)
    for _ in range(100 * 4 ** digit):
        os.write(NULL, b"")


def amounts(digit):
    return {"rchar": GIB, "wchar": GIB * 4 ** digit, "syscr": GIB // len(SMALL) + READS,
            "syscw": 102 * 4 ** digit}


def short_lived(digit):
    do_io(digit)


def lives_on(digit):
    do_io(digit)
    time.sleep(2.5)


def idle_after_io(digit):
    """Is sampled before, at and after the work, and works again before the end."""
    time.sleep(1.2)
    do_io(digit)
    time.sleep(1.2)


def by_threads(digit):
    """The work is done by threads; all of them end at once, with exit_group()."""
    started = threading.Barrier(5)

    def wait():
        started.wait()
        time.sleep(60)

    for _ in range(3):
        threading.Thread(target=wait, daemon=True).start()
    worker = threading.Thread(target=lambda: (do_io(digit), started.wait(), time.sleep(60)), daemon=True)
    worker.start()
    started.wait()


def thread_exits(digit):
    """The thread that did the work ends, and the process lives on for two samples."""
    worker = threading.Thread(target=do_io, args=(digit,))
    worker.start()
    worker.join()
    time.sleep(2.2)


def leader_exits(digit):
    """The first thread is a zombie when another does the work and ends the process."""
    def work():
        time.sleep(1.2)
        do_io(digit)
        LIBC.syscall(231 if os.uname().machine == "x86_64" else 94, 0)  # exit_group

    threading.Thread(target=work, daemon=True).start()
    LIBC.syscall(60 if os.uname().machine == "x86_64" else 93, 0)  # exit, of this thread


def execs(digit):
    """Counts stay over an exec, here by another thread than the first."""
    def work():
        do_io(digit)
        os.execv("/bin/sleep", ["sleep", "1.5"])

    threading.Thread(target=work, daemon=True).start()
    time.sleep(60)


KINDS = {  # how it lives and dies: (work, whether it does nothing else)
    "short-lived": (short_lived, True),
    "sampled alive, then dead": (lives_on, True),
    "sampled before, at and after its work": (idle_after_io, True),
    "a zombie for 2.5 s, then waited for": (short_lived, True),
    "threads that all die at once": (by_threads, True),
    "a thread that ends before its process": (thread_exits, True),
    "the first thread ends first": (leader_exits, True),
    "an exec by another thread": (execs, False),
}


def start_kinds():
    """{kind: pid}, the zombie among them."""
    return {kind: fork(work, digit) for digit, (kind, (work, _)) in enumerate(KINDS.items())}


def nobody_waits():
    """A child of a parent that ignores SIGCHLD: it reaps itself. The parent tells its pid."""
    r, w = os.pipe()

    def parent():
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        pid = fork(short_lived, len(KINDS))
        os.write(w, b"%d\n" % pid)
        try:
            os.waitpid(pid, 0)
        except ChildProcessError:
            pass

    keeper = fork(parent)
    pid = int(os.read(r, 20))
    os.close(r)
    os.close(w)
    return keeper, pid


def exactly_once(moted):
    watch = Watch(moted, "1s")
    before, ended_before = watch.next(2), set(watch.dead)
    pids = start_kinds()
    keeper, alone = nobody_waits()
    left = set(pids.values()) | {keeper}
    zombie, hold = pids["a zombie for 2.5 s, then waited for"], None
    saw_zombie = False
    while left:
        watch.next()
        states = {k[0]: r[watch.streams["process"].fields.index("state")]
                  for k, r in watch.rows.rows["process"].items()}
        saw_zombie |= states.get(zombie) == "Z"
        if states.get(zombie) == "Z" and hold is None:
            hold = time.monotonic() + 2.5
        for pid in list(left):
            if pid == zombie and not (hold and time.monotonic() > hold):
                continue
            if os.waitpid(pid, os.WNOHANG)[0]:
                left.discard(pid)
    after = watch.next(3)
    check("the zombie was seen as one", saw_zombie)
    pids["nobody waits for it"] = alone
    mine = set(pids.values())
    for digit, (kind, pid) in enumerate(pids.items()):
        want = amounts(digit)
        event = next((e for (p, _), e in watch.dead.items() if p == pid), {})
        have = {c: event.get(c) for c in want}
        exact = KINDS.get(kind, (None, True))[1]
        near = have["wchar"] == want["wchar"] and all((have[c] or 0) >= want[c] for c in want)
        check(f"{kind}: its death record has what it read and wrote", have == want if exact else near,
              f"have {have} want {want}, {event.get('type')}")
    expect = {c: sum(amounts(d)[c] for d in range(len(pids))) for c in COUNTERS_IO}
    # Others that end take along all that they ever wrote, which may be more than any digit.
    others = sum(after["known"][key]["wchar"] for key in watch.dead.keys() - ended_before if key[0] not in mine)
    ended = growth("wchar", before, after, "totals") - others + GIB // 2
    digits = [ended // GIB // 4 ** d % 4 for d in range(len(pids))]
    check("each is in the ended totals once: in base 4, every digit is 1", digits == [1] * len(pids),
          f"{digits} of {ended}")
    for counter in COUNTERS_IO:
        grown = growth(counter, before, after)
        others = of_others(counter, before, after, mine)
        check(f"{counter}: rows and totals grew by {expect[counter]}, others' growth taken off",
              abs(grown - others - expect[counter]) <= 0.001 * expect[counter] + 64,
              f"{grown} - {others} - {expect[counter]} = {grown - others - expect[counter]}")
    watch.client.close()


# -- P1 ----------------------------------------------------------------------------------------

def churner(seed):
    """Forks without a pause: children that read, write, burn, start threads, some of which end."""
    rand = random.Random(seed)
    zombies = []

    def child():
        threads = [threading.Thread(target=some_work) for _ in range(rand.randrange(4))]
        for thread in threads:
            thread.start()
        some_work()
        for thread in threads[::2]:
            thread.join()
        time.sleep(rand.random() * 0.25)

    def some_work():
        for _ in range(rand.randrange(1, 50)):
            os.read(ZERO, 1)
            os.write(NULL, b"12345")
        burn(rand.random() * 0.004)

    while True:
        rand.random()
        zombies.append(fork(child))
        if len(zombies) > 12:
            os.waitpid(zombies.pop(0), 0)
        time.sleep(0.004)


# The connector gives births slowly to /proc's tier, so that few of the short-lived are ever seen.
LEAST_ROWS = {"proc": 20, "iterator": 200}


def tap_monotonic(name, watch, seconds):
    """Checks sums, totals and rows of every update."""
    counters = watch.streams["process"].counters
    fields = watch.streams["process"].fields
    sums = totals = None
    rows, fell, n, grown = {}, [], 0, set()
    until = time.monotonic() + seconds
    for frame in watch.updates(10 * seconds):
        n += 1
        now, ended = watch.rows.sums("process"), watch.rows.totals["process"]
        if sums:
            fell += [(frame.sequence, f, sums[f], now[f]) for f in now
                     if now[f] < sums[f]]
            fell += [(frame.sequence, "ended", fields[i], totals[i], ended[i]) for i in counters
                     if (ended[i] or 0) < (totals[i] or 0)]
            grown |= {f for f in now if now[f] > sums[f]}
        for row in frame.rows:
            key = watch.streams["process"].key(row)
            before = rows.get(key)
            fell += [(frame.sequence, key, fields[i], before[i], row[i]) for i in counters
                     if before and None not in (before[i], row[i]) and row[i] < before[i]]
            rows[key] = row
        sums, totals = now, ended
        # Of the thousands that others may have here /proc's tier makes few updates a second.
        if time.monotonic() > until and n >= 30 and len(rows) >= LEAST_ROWS[name]:
            break
    check(f"{name}: over {n} updates with {len(rows)} processes no counter fell: not a row's, not the ended"
          " totals, not their sum", n >= 30 and len(rows) >= LEAST_ROWS[name] and not fell, fell[:10])
    return n, grown


def monotonic(moteds):
    churn = [fork(churner, seed) for seed in range(3)]
    try:
        watches = {name: Watch(moted, "100ms") for name, moted in moteds.items()}
        results = {}

        def follow(name):
            watches[name].next(2)
            results[name] = tap_monotonic(name, watches[name], 6.3)

        threads = [threading.Thread(target=follow, args=(name,)) for name in watches]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        for pid in churn:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
    want = {"iterator": {"utime", "stime", "minflt", "rchar", "wchar", "syscr", "syscw", "run_time"},
            "proc": {"utime", "stime", "minflt"}}
    for name, (_, grown) in results.items():
        check(f"{name}: the counters were not constant", want[name] <= grown, grown)


def main():
    if os.geteuid() != 0:
        skip("accounts", "needs root")
        return
    config = room()
    config["tables"]["events"] = "8MiB"
    moted = Moted("--mode", "minimal", config=config)
    proc = Moted("--mode", "minimal", "--probes", "none", config=config)
    tiers = {t[0]: t[1] for t in moted.client().hello["tiers"]}
    check("this tests the iterator and events by BPF", tiers.get("process_events") == "tracepoint", tiers)
    monotonic({"iterator": moted, "proc": proc})
    exactly_once(moted)
    between_samples(moted)
    for each in moted, proc:
        check("moted ends in order", each.stop() == 0, each.log())


run(main)
