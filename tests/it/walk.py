#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""What a walk that leaves out sleeping processes must not miss: counters of a process that ran, and its
state and name, are right in the very next frame; what others change while it sleeps (nice, parent,
cgroup, memory, oom_score_adj) within as many walks as docs/ARCHITECTURE.md says; births and deaths in
any order; a pid that is given again at once. The task iterator is held to the same, without the delay."""
import ctypes
import mmap
import os
import random
import signal
import struct
import tempfile
import time

from lib import MORE, MS, Moted, Rows, check, monotonic, room, run, skip

INTERVAL = 50 * MS
TURN = 16  # MOTE_WALK_TURN of bpf/abi.h
LIBC = ctypes.CDLL(None, use_errno=True)
MIB = 1 << 20


class Watch:
    """A moted and its process rows, taken up to a sample that began after a moment."""

    def __init__(self, source, choice):
        self.name = choice
        self.moted = Moted("--mode", "minimal", config={**room(), "process": {"source": source}})
        self.client = self.moted.client("subscribe process interval=50ms")
        self.rows = Rows(self.client)
        self.chosen = dict((t[0], t[1]) for t in self.client.hello["tiers"])["task_iterator"]
        self.late = 1 if choice != "list" else TURN + 1
        self.next()

    def next(self, after=None):
        """The rows of the first sample that began after that moment (now): its frame has the time of its end."""
        after = monotonic() if after is None else after
        while True:
            frame = self.client.frame()
            self.rows.take(frame)
            if frame.name == "process" and frame.time > after + INTERVAL // 2 and not frame.flags & MORE:
                return frame

    def row(self, pid):
        found = [key for key in self.rows.rows["process"] if key[0] == pid]
        return self.rows.row("process", *found[0]) if len(found) == 1 else None

    def within(self, pid, samples, good):
        """Whether a row is good in one of the next samples; else the row."""
        after = monotonic()
        for _ in range(samples):
            frame = self.next(after)
            after = frame.time
            row = self.row(pid)
            if row and good(row):
                return True
        return row or False


def sleep_for_ever():
    while True:
        signal.pause()


def child(act=sleep_for_ever):
    pid = os.fork()
    if pid == 0:
        try:
            act()
        finally:
            os._exit(1)
    return pid


def end(pid):
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


def settled(watch, pid):
    """Asleep, and known for so long that no walk has a reason to look at it."""
    for _ in range(2 * TURN):
        watch.next()
    return watch.row(pid)


def run_time(pid):
    with open(f"/proc/{pid}/schedstat", encoding="ascii") as file:
        return int(file.read().split()[0])


def burner():
    """Runs 20 ms, calls itself by the count and sleeps again, at each SIGUSR1."""
    count = 0

    def burn(*_):
        nonlocal count
        until = time.process_time() + 0.02
        while time.process_time() < until:
            pass
        count += 1
        LIBC.prctl(15, b"burnt %d" % count, 0, 0, 0)

    signal.signal(signal.SIGUSR1, burn)
    sleep_for_ever()


def counters(watch):
    pid = child(burner)
    settled(watch, pid)
    wrong = []
    for count in range(1, 9):
        before = run_time(pid)
        os.kill(pid, signal.SIGUSR1)
        while run_time(pid) < before + 15 * MS or b"S (sleeping)" not in open(f"/proc/{pid}/status", "rb").read():
            time.sleep(0.002)
        time.sleep(0.005)  # off its CPU
        truth = run_time(pid)
        watch.next()
        row = watch.row(pid)
        cpu = row["utime"] + row["stime"]
        if row["run_time"] != truth or not truth - 11 * MS < cpu <= truth or row["comm"] != f"burnt {count}":
            wrong.append((count, truth, row))
        for _ in range(random.randrange(4)):
            watch.next()
    check(f"{watch.name}: run time, CPU time and name of a process that ran are right in the next frame",
          not wrong, wrong[:2])
    end(pid)


def threads_run(watch):
    """A thread other than the first runs, while the first sleeps."""
    import threading

    def act():
        go = threading.Event()

        def work():
            while True:
                go.wait()
                go.clear()
                for _ in range(50):
                    os.pread(zero, 1000, 0)

        zero = os.open("/dev/zero", os.O_RDONLY)
        threading.Thread(target=work, daemon=True).start()
        for _ in range(3):
            threading.Thread(target=sleep_for_ever_thread, daemon=True).start()
        signal.signal(signal.SIGUSR1, lambda *_: go.set())
        sleep_for_ever()

    def sleep_for_ever_thread():
        time.sleep(1e6)

    pid = child(act)
    row = settled(watch, pid)
    wrong = [] if row["threads"] == 5 else [row]
    for _ in range(5):
        before = watch.row(pid)["rchar"]
        os.kill(pid, signal.SIGUSR1)
        time.sleep(0.03)
        watch.next()
        row = watch.row(pid)
        with open(f"/proc/{pid}/io", encoding="ascii") as file:
            truth = int(file.read().split()[1])
        if row["rchar"] != truth or truth != before + 50000:
            wrong.append((before, truth, row))
    check(f"{watch.name}: what another thread than the first reads is right in the next frame", not wrong, wrong[:2])
    end(pid)


def threads_come_and_go(watch, note=""):
    """One thread reads, one begins and ends others without a pause, and many sleep, so that some end during
    each walk's look at it: what the living did is there all the same."""
    import threading

    def act():
        zero = os.open("/dev/zero", os.O_RDONLY)

        def read():
            while True:
                os.pread(zero, 1000, 0)
                time.sleep(0.001)

        for _ in range(400):
            threading.Thread(target=time.sleep, args=(1e6,), daemon=True).start()
        threading.Thread(target=read, daemon=True).start()
        while True:
            thread = threading.Thread(target=os.getpid)
            thread.start()
            thread.join()

    threading.stack_size(1 << 16)
    pid = child(act)
    settled(watch, pid)
    behind = []
    for _ in range(40):
        with open(f"/proc/{pid}/io", encoding="ascii") as file:
            truth = int(file.read().split()[1])
        watch.next()
        row = watch.row(pid)
        if row["rchar"] < truth:
            behind.append((truth, row["rchar"], row["threads"]))
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:
        threads = int(file.read().rpartition(")")[2].split()[17])
    check(f"{watch.name}: counters go on while threads begin and end{note}",
          not behind and threads > 400 and truth > 10000, (threads, truth, len(behind), behind[:3]))
    end(pid)


def threads_of_smaller_pids(watch):
    """The same where pids have wrapped after the process began: its threads come before it by pid."""
    with open("/proc/sys/kernel/pid_max", encoding="ascii") as file:
        last = int(file.read()) - 3
    try:
        with open("/proc/sys/kernel/ns_last_pid", "w", encoding="ascii") as file:
            file.write(str(last))
    except OSError as error:
        skip(f"{watch.name}: threads of smaller pids", f"ns_last_pid: {error}")
        return
    threads_come_and_go(watch, ", with pids smaller than the process has")


def nice_and_state(watch):
    pid = child()
    settled(watch, pid)
    for what, act, good, late in (
            ("nice", lambda: os.setpriority(os.PRIO_PROCESS, pid, 7), lambda row: row["nice"] == 7, watch.late),
            ("SIGSTOP", lambda: os.kill(pid, signal.SIGSTOP), lambda row: row["state"] == "T", 1),
            ("nice of a stopped one", lambda: os.setpriority(os.PRIO_PROCESS, pid, 9), lambda row: row["nice"] == 9,
             watch.late),
            ("SIGCONT", lambda: os.kill(pid, signal.SIGCONT), lambda row: row["state"] in "SR", 1)):
        act()
        time.sleep(0.02)
        got = watch.within(pid, late, good)
        check(f"{watch.name}: {what} of a sleeping process, {late} frames later at most", got is True, got)
        for _ in range(3):
            watch.next()
    end(pid)


def parent(watch):
    read, write = os.pipe()

    def father():
        os.write(write, struct.pack("i", child()))
        sleep_for_ever()

    above = child(father)
    pid = struct.unpack("i", os.read(read, 4))[0]
    check(f"{watch.name}: the parent of a sleeping process", settled(watch, pid)["ppid"] == above, watch.row(pid))
    end(above)
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:
        truth = int(file.read().rpartition(")")[2].split()[1])
    got = watch.within(pid, watch.late, lambda row: row["ppid"] == truth)
    check(f"{watch.name}: its new parent when that one ended", got is True and truth != above, got)
    os.kill(pid, signal.SIGKILL)


def adjusted(watch):
    pid = child()
    settled(watch, pid)
    with open(f"/proc/{pid}/oom_score_adj", "w", encoding="ascii") as file:
        file.write("321")
    got = watch.within(pid, watch.late, lambda row: row["oom_score_adj"] == 321)
    check(f"{watch.name}: oom_score_adj, set by another process", got is True, got)
    end(pid)


def memory(watch):
    """Pages of a file that another process cuts are gone from those who map it."""
    with tempfile.TemporaryFile(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as file:
        file.truncate(8 * MIB)
        pages = mmap.mmap(file.fileno(), 8 * MIB)

        def act():
            for at in range(0, 8 * MIB, 4096):
                pages[at] = 1
            sleep_for_ever()

        pid = child(act)
        full = settled(watch, pid)
        file.truncate(0)
        got = watch.within(pid, watch.late, lambda row: row["rss"] < full["rss"] - 6 * MIB)
        check(f"{watch.name}: memory that another process took from a sleeping one", got is True, (full, got))
        end(pid)


def cgroup(watch):
    mounts = [line.split()[1] for line in open("/proc/mounts", encoding="ascii") if " cgroup2 " in line]
    path = os.path.join(mounts[0], f"mote-walk.{os.getpid()}") if mounts else ""
    try:
        os.mkdir(path)
    except OSError as error:
        skip(f"{watch.name}: cgroup", f"no cgroup2 to be had: {error}")
        return
    pid = child()
    try:
        settled(watch, pid)
        with open(path + "/cgroup.procs", "w", encoding="ascii") as file:
            file.write(str(pid))
        want = os.stat(path).st_ino
        got = watch.within(pid, watch.late, lambda row: row["cgroup_id"] == want)
        check(f"{watch.name}: the cgroup that a sleeping process was moved to", got is True, (want, got))
    finally:
        end(pid)
        os.rmdir(path)


def clone_as(pid):
    """A child with that pid: clone3() with set_tid."""
    tid = ctypes.c_int(pid)
    args = (ctypes.c_uint64 * 11)()
    args[4], args[8], args[9] = signal.SIGCHLD, ctypes.addressof(tid), 1
    got = LIBC.syscall(435, ctypes.byref(args), ctypes.sizeof(args))
    if got == 0:
        try:
            sleep_for_ever()
        finally:
            os._exit(1)
    return got


def same_pid(watch):
    pid = child()
    old = settled(watch, pid)
    wrong, asked = [], 0
    for _ in range(6):
        watch.next()
        end(pid)
        if clone_as(pid) != pid:
            skip(f"{watch.name}: a pid that is given again", f"clone3: {os.strerror(ctypes.get_errno())}")
            return
        asked += 1
        watch.next()
        new = watch.row(pid)
        if not new or new["start"] < old["start"] or new["minflt"] > 10000:
            wrong.append((old, new))
        old = new or old
        time.sleep(0.03)  # another start, in ticks
    end(pid)
    watch.next()
    check(f"{watch.name}: a pid that is given again at once is another process, {asked} times",
          not wrong and not watch.row(pid), wrong[:2])


def churn(watch):
    """Some end and some are born between each two samples; those left, and no others, have rows."""
    random.seed(1)
    alive, dead, wrong = set(), set(), []
    for _ in range(40):
        for pid in random.sample(sorted(alive), len(alive) // 4):
            end(pid)
            alive.discard(pid)
            dead.add(pid)
        born = {child() for _ in range(random.randrange(25))}
        alive |= born
        dead -= born
        watch.next()
        seen = {key[0] for key in watch.rows.rows["process"]}
        mine = {pid for pid in alive if (watch.row(pid) or {"ppid": 0})["ppid"] == os.getpid()}
        if mine != alive or seen & dead:
            wrong.append((sorted(alive - mine), sorted(seen & dead)))
    check(f"{watch.name}: births and deaths: {len(alive)} left, {len(dead)} ended", not wrong and len(alive) > 20,
          wrong[:3])
    for pid in alive:
        end(pid)


def once_a_second():
    """The bound holds where walks are about a second apart, by which time and number ask for the same."""
    moted = Moted("--mode", "minimal", config=room())
    client = moted.client("subscribe process interval=1s")
    rows = Rows(client)

    def samples(n):
        while n:
            frame = client.frame()
            rows.take(frame)
            n -= frame.name == "process" and not frame.flags & MORE

    pids = [child() for _ in range(60)]
    samples(4)
    for pid in pids:
        with open(f"/proc/{pid}/oom_score_adj", "w", encoding="ascii") as file:
            file.write("123")
    samples(TURN + 1)
    late = [key for key in rows.rows["process"]
            if key[0] in pids and rows.row("process", *key)["oom_score_adj"] != 123]
    check(f"list: of {len(pids)} processes all were looked at within {TURN} walks of a second",
          not late and len(pids) == 60, late)
    for pid in pids:
        end(pid)
    moted.stop()


TESTS = (counters, threads_run, threads_come_and_go, threads_of_smaller_pids, nice_and_state, parent, adjusted, memory,
         cgroup, same_pid, churn)


def main():
    first = Watch("auto", "list")
    if first.chosen == "none":
        skip("walks", "no BPF here")
        return
    if first.chosen != "list":
        skip("the list walk", f"not to be had here: {first.chosen}")
    else:
        for test in TESTS:
            test(first)
        once_a_second()
    check("list: ends in order", first.moted.stop() == 0, first.moted.log())
    other = Watch("iterator", "iter/task")
    check("source = iterator is the task iterator", other.chosen == "iter/task", other.chosen)
    for test in TESTS:
        test(other)
    check("iter/task: ends in order", other.moted.stop() == 0, other.moted.log())


run(main)
