#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# alone: it sets the next process id back, so that other tests would have two children of one
"""Who a process is, by the task iterator and by /proc: (pid, start) is constant over its life (P4) and
tells apart two that had the same pid; names with blanks, parentheses, newlines and bytes that are not
UTF-8 arrive as they are; argv of processes from before the start, of exec and of fork, with empty, odd
and huge arguments; exe of files with odd names, deleted, or never linked."""
import ctypes
import os
import shutil
import signal
import sys
import time

from lib import DATA, KEY, MORE, Moted, Rows, check, monotonic, room, run, skip, work_dir

LIBC = ctypes.CDLL(None)
ARGV_BYTES = 256
PR_SET_NAME = 15
NAMES = [b"a b", b" ", b"a) S 1 (b", b")", b"((", b"x\ny", b"\\n", b"\\", b"tab\there", b"\xff\xfe\x80", b"\xc3\xa9t\xc3\xa9",
         b"123456789012345", b"cut at 15 bytes, this one"]
LAST_PID = "/proc/sys/kernel/ns_last_pid"


def execv(path, argv):
    """os.execv() refuses an empty argv[0]; the kernel does not."""
    LIBC.execv(ctypes.c_char_p(os.fsencode(path)), (ctypes.c_char_p * (len(argv) + 1))(*argv, None))


class Children:
    """Processes of ours by what they are for; all are killed at the end."""

    def __init__(self):
        self.pids, self.want = {}, {}
        self.stdin, self.held = os.pipe()

    def _start(self, name, act, want):
        pid = os.fork()
        if pid == 0:
            try:
                os.dup2(self.stdin, 0)
                os.close(self.held)
                act()
            finally:
                os._exit(1)
        self.pids[name], self.want[name] = pid, want
        return pid

    def named(self, name, comm):
        """Forks, takes a name, and sleeps: argv and exe are the parent's."""
        def act():
            LIBC.prctl(PR_SET_NAME, ctypes.c_char_p(comm), 0, 0, 0)
            time.sleep(100)
        return self._start(name, act, {"comm": comm[:15]})

    def run(self, name, path, argv, **want):
        """Runs a file that reads its standard input, which stays open and silent."""
        want = {"comm": os.path.basename(os.fsencode(path))[:15], "argv": argv, **want}
        return self._start(name, lambda: execv(path, argv), want)

    def kill(self, name):
        pid = self.pids.pop(name)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)

    def kill_all(self):
        for name in list(self.pids):
            self.kill(name)


def shell(*arguments):
    return [b"/bin/sh", b"-c", b"read x", *arguments]


def cut(argv):
    """What is kept of a command line: ARGV_BYTES bytes, each argument with its NUL."""
    kept = b"".join(a + b"\0" for a in argv)[:ARGV_BYTES]
    return kept[:-1].split(b"\0") if kept.endswith(b"\0") else kept.split(b"\0")


def start_all(children, work, when):
    """Every kind of process, before moted starts or after."""
    odd = os.path.join(os.fsencode(work), when.encode() + b" )(\n\xff\\x")
    shutil.copy("/bin/sh", odd)
    for i, comm in enumerate(NAMES):
        children.named(f"{when}: name {comm!r}", comm)
    children.run(f"{when}: odd arguments", b"/bin/sh", shell(b"", b"b c", b"", b"\xff\xfe", b"\n", b""))
    children.run(f"{when}: no name", b"/bin/sh", [b"", *shell()[1:]])
    children.run(f"{when}: one huge argument", b"/bin/sh", shell(b"y" * 100000))
    children.run(f"{when}: many arguments", b"/bin/sh", shell(*[b"z%d" % i for i in range(20000)]))
    children.run(f"{when}: as long as is kept", b"/bin/sh", shell(b"w" * (ARGV_BYTES - len(b"\0".join(shell())) - 2)))
    children.run(f"{when}: a file with an odd name", odd, [b"odd", *shell()[1:]])
    gone = os.path.join(work, f"{when}-gone")
    shutil.copy("/bin/sh", gone)
    children.run(f"{when}: a deleted file", os.fsencode(gone), [b"gone", *shell()[1:]])
    written = os.memfd_create("inmemory")
    with open("/bin/sh", "rb") as file:
        os.write(written, file.read())
    memfd = os.open(f"/proc/self/fd/{written}", os.O_RDONLY)
    os.close(written)  # what is open for writing cannot be run
    children.run(f"{when}: a file without a name", b"/proc/self/fd/%d" % memfd, [b"memfd", *shell()[1:]])
    long = os.path.join(work, *["d" * 60] * 3, f"{when}-longpath")
    os.makedirs(os.path.dirname(long), exist_ok=True)
    shutil.copy("/bin/sh", long)
    children.run(f"{when}: a long path", os.fsencode(long), [b"long", *shell()[1:]])
    until = time.monotonic() + 10
    while time.monotonic() < until and not all(running(children, n) for n in children.pids):
        time.sleep(0.02)
    os.unlink(gone)
    os.close(memfd)
    wrong = [n for n in children.pids if not running(children, n)]
    check(f"{when}: {len(children.pids)} odd processes run", not wrong, wrong)


def running(children, name):
    """Whether it is what it is to be, as its comm says."""
    try:
        with open(f"/proc/{children.pids[name]}/comm", "rb") as file:
            comm = file.read()[:-1]
    except OSError:
        return False
    return comm == children.want[name]["comm"] or "without a name" in name


def as_bytes(value):
    if isinstance(value, list):
        return [as_bytes(v) for v in value]
    return os.fsencode(value) if isinstance(value, str) else value


def start_of(pid):
    with open(f"/proc/{pid}/stat", "rb") as file:
        return int(file.read().rpartition(b")")[2].split()[19])


class Watch:
    """A moted of one tier; every row, and the keys that ended."""

    def __init__(self, name, *args):
        self.name = name
        self.moted = Moted("--mode", "minimal", *args, config=room())
        self.client = self.moted.client("subscribe process interval=500ms")
        self.rows = Rows(self.client)
        self.stream = next(s for s in self.client.streams.values() if s.name == "process")
        self.ended, self.keys, self.back = set(), {}, []
        self.absent = {f: why for s, f, why in self.client.hello["absent"] if s == "process"}

    def take(self, frame):
        if frame.type != DATA:
            return False
        self.rows.take(frame)
        for row in frame.rows:
            key = self.stream.key(row)
            if key in self.ended:
                self.back.append(key)
            self.keys.setdefault(key[0], set()).add(key[1])
        self.ended |= {tuple(k) for k in frame.ended}
        return not frame.flags & (MORE | KEY)

    def next(self, n=1):
        """Waits for the n-th sample from now, whatever waits to be read."""
        now = monotonic()
        while n:
            n -= bool(self.client.wait(self.take).time > now)

    def by_pid(self, pid):
        return [self.stream.dict(r) for (p, _), r in self.rows.rows["process"].items() if p == pid]

    def row(self, pid):
        found = self.by_pid(pid)
        return found[0] if len(found) == 1 else None

    def settle(self, children, until=20):
        """Until every argv and exe that can be had is there."""
        until = time.monotonic() + until
        while time.monotonic() < until:
            self.next()
            rows = [self.row(pid) for pid in children.pids.values()]
            if all(r and r["argv"] and (r["exe"] or "exe" in self.absent) for r in rows):
                break


def check_names(watch, children):
    bad = {k: [] for k in ("comm", "argv", "exe", "start")}
    for name, pid in children.pids.items():
        row, want = watch.row(pid), children.want[name]
        if not row:
            bad["start"].append((name, "no row"))
            continue
        if as_bytes(row["comm"]) != want["comm"] and "without a name" not in name:
            bad["comm"].append((name, row["comm"]))
        argv = cut(want["argv"] if "argv" in want else OWN_ARGV)
        if as_bytes(row["argv"]) != argv:
            bad["argv"].append((name, row["argv"], argv))
        exe = os.readlink(os.fsencode(f"/proc/{pid}/exe"))
        if name == "new: a deleted file":  # it is told as it was at the exec, and deleted since
            exe = exe.removesuffix(b" (deleted)")
        if "exe" not in watch.absent and as_bytes(row["exe"]) != exe and not long_path(row, exe):
            bad["exe"].append((name, row["exe"], exe))
        if row["start"] != start_of(pid):
            bad["start"].append((name, row["start"], start_of(pid)))
    n = len(children.pids)
    for field, text in ("comm", "name as it is"), ("argv", "command line"), \
            ("start", "start time as /proc/PID/stat has it"):
        check(f"{watch.name}: {n} odd processes have their {text}", n > 30 and not bad[field],
              "\n".join(map(str, bad[field])))
    if "exe" in watch.absent:
        check(f"{watch.name}: exe is nil and hello says why: {watch.absent['exe']}",
              all(watch.row(p)["exe"] is None for p in children.pids.values()) and watch.absent["exe"])
    else:
        check(f"{watch.name}: they have their executable, as /proc/PID/exe has it", not bad["exe"],
              "\n".join(map(str, bad["exe"])))


def long_path(row, exe):
    """A path that is not kept whole ends as it should, and says that it is cut."""
    have = as_bytes(row["exe"]) or b""
    return len(exe) > 200 and have.startswith(b"...") and exe.endswith(have[3:])


def own_argv():
    with open("/proc/self/cmdline", "rb") as file:
        return file.read()[:-1].split(b"\0")


OWN_ARGV = own_argv()

# It overwrites the memory of its arguments, as setproctitle() does, and then waits.
TITLE = """
import ctypes, sys
with open("/proc/self/stat") as f: field = f.read().rpartition(")")[2].split()
start, end = int(field[45]), int(field[46])
ctypes.memset(start, ord("T"), end - start - 1)
open(sys.argv[1], "w").close()
sys.stdin.read()
"""

# A thread other than the first one runs another program.
EXEC_BY_THREAD = """
import os, sys, threading, time
sys.stdin.readline()
threading.Thread(target=lambda: os.execv("/bin/sh", ["by thread", "-c", "read x"])).start()
time.sleep(100)
"""


def retitled(watches, children, work):
    marker = os.path.join(work, "retitled")
    argv = [b"python3", b"-c", TITLE.encode(), marker.encode()]
    pid = children.run("title", sys.executable, argv)
    while not os.path.exists(marker):
        time.sleep(0.02)
    with open(f"/proc/{pid}/cmdline", "rb") as file:
        check("a process wrote over its arguments", file.read(10) == b"TTTTTTTTTT")
    watches[0].next(3)
    row = watches[0].row(pid)
    check(f"{watches[0].name}: argv is that of the exec, as is written in docs/METRICS.md",
          row and as_bytes(row["argv"]) == cut(argv), row)
    children.kill("title")


def exec_by_thread(watches, children):
    stdin, go = os.pipe()
    held, children.stdin = children.stdin, stdin
    pid = children.run("thread", sys.executable, [b"python3", b"-c", EXEC_BY_THREAD.encode()])
    children.stdin = held
    for watch in watches:
        watch.next(2)
    before = start_of(pid)
    os.write(go, b"\n")
    time.sleep(0.5)
    for watch in watches:
        watch.next(3)
        row = watch.row(pid)
        check(f"{watch.name}: an exec by another thread leaves (pid, start) and brings comm and argv",
              row and row["start"] == before == start_of(pid) and row["comm"] == "sh"
              and row["argv"] == ["by thread", "-c", "read x"] and watch.keys[pid] == {before}
              and (pid, before) not in watch.ended, f"{row} {watch.keys.get(pid)}")
    children.kill("thread")
    os.close(go)


def fork_with_pid(children, name, comm, pid):
    """A child that has this pid; others may take it before us, so this may take a few attempts."""
    for _ in range(200):
        with open(LAST_PID, "w", encoding="ascii") as file:
            file.write(str(pid - 1))
        if children.named(name, comm) == pid:
            return True
        children.kill(name)
        if os.path.exists(f"/proc/{pid}"):
            return False
    return False


def pid_used_again(watches, children):
    """The second one is there before the next sample."""
    if not os.path.exists(LAST_PID):
        skip("a pid that is used again", "no ns_last_pid here")
        return
    for _ in range(10):
        pid = children.named("first", b"the first")
        first = start_of(pid)
        for watch in watches:
            watch.next(2)
        children.kill("first")
        time.sleep(0.03)
        if fork_with_pid(children, "second", b"the second", pid):
            break
    second = start_of(pid) if "second" in children.pids else first
    check("a second process has the pid of the first, a few ticks later", second > first, (pid, first, second))
    for watch in watches:
        watch.next(3)
        row = watch.row(pid)
        check(f"{watch.name}: a pid that is used again shows two processes",
              row and row["start"] == second and row["comm"] == "the second"
              and {first, second} <= watch.keys[pid] and (pid, first) in watch.ended
              and (pid, second) not in watch.ended, f"{row} {watch.keys.get(pid)}")
    children.kill("second")


# The program with the next number, and so on for ever.
EXEC_NEXT = 'i=$(( ($0 + 1) % 8 )); exec "$WORK/prog$i" -c "$SCRIPT" $i'


def execs_all_the_time(watch, children, work):
    """Names that are told belong to one image, however soon the next one follows."""
    for i in range(8):
        shutil.copy("/bin/sh", os.path.join(work, f"prog{i}"))
    os.environ.update(WORK=work, SCRIPT=EXEC_NEXT)
    pids = {children.run(f"execs {i}", os.path.join(work, f"prog{i}").encode(),
                         [b"prog%d" % i, b"-c", EXEC_NEXT.encode(), b"%d" % i]) for i in range(4)}
    client = watch.moted.client("subscribe process interval=50ms")
    rows = [watch.stream.dict(r) for f in client.frames(4) if f.type == DATA for r in f.rows]
    client.close()
    rows = [r for r in rows if r["pid"] in pids and r["comm"].startswith("prog")]
    wrong = [r for r in rows if r["exe"] and os.path.basename(r["exe"]) != r["comm"]
             or r["argv"] and "prog" + r["argv"][-1] != r["comm"]]
    both = [r for r in rows if r["exe"] and r["argv"]]
    check(f"{watch.name}: exe and argv are those of comm, in processes that do nothing but exec",
          len(both) >= 20 and not wrong, f"{len(rows)} rows, {len(both)} with both, wrong {len(wrong)}: {wrong[:2]}")
    for i in range(4):
        children.kill(f"execs {i}")


def kernel_threads(watch):
    rows = [watch.stream.dict(r) for r in watch.rows.rows["process"].values()]
    rows = [r for r in rows if r["pid"] == 2 or r["ppid"] == 2]
    check(f"{watch.name}: kernel threads have a name, and no argv and no exe",
          len(rows) > 5 and all(r["comm"] and r["argv"] is None and r["exe"] is None for r in rows), rows[:3])


def main():
    if os.geteuid() != 0:
        skip("identity", "needs root")
        return
    work, children = work_dir(), Children()
    try:
        start_all(children, work, "old")
        watches = [Watch("iterator"), Watch("proc", "--probes", "none")]
        check("the tiers are the two",
              ["exe" in w.absent for w in watches] == [False, True], [w.absent for w in watches])
        for watch in watches:
            watch.next()
        start_all(children, work, "new")
        for watch in watches:
            watch.settle(children)
            check_names(watch, children)
            kernel_threads(watch)
        retitled(watches, children, work)
        exec_by_thread(watches, children)
        execs_all_the_time(watches[0], children, work)
        pid_used_again(watches, children)
        for watch in watches:
            watch.next(2)
            several = [p for p in children.pids.values() if len(watch.keys[p]) != 1]
            check(f"{watch.name}: (pid, start) was constant over all samples, and nothing came back from the dead",
                  not several and not watch.back, f"{several} {watch.back}")
            check(f"{watch.name}: ends in order", watch.moted.stop() == 0, watch.moted.log())
    finally:
        children.kill_all()


run(main)
