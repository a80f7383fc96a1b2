# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""What the integration tests in Python share: TAP lines, a moted of one's own on a private socket,
a client that reads its frames, and the rows that the frames add up to. No test of its own."""
import atexit
import os
import resource
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time

import msgpack

TOP = os.path.abspath(os.environ.get("MOTE_TOP", os.path.join(os.path.dirname(__file__), "../..")))
BUILD = os.path.abspath(os.environ.get("MOTE_BUILD", os.path.join(TOP, "build")))
HEADER = struct.Struct("<4sBBHIIQQ")
HELLO, DATA, DROPPED, REPLY = 1, 2, 3, 4
KEY, MORE, GAP, KEY_PART = 1, 2, 4, 8
MS, S = 10**6, 10**9

_count = _failed = 0
_started = []


def monotonic():
    """CLOCK_MONOTONIC in ns, the clock of the frames' headers."""
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)


def check(text, good, note=""):
    """One TAP line; what `note` says is shown if it is not ok."""
    global _count, _failed
    _count += 1
    _failed += not good
    print(f"{'ok' if good else 'not ok'} {_count} - {text}", flush=True)
    if not good:
        for line in str(note)[:3000].splitlines():
            print("#", line, flush=True)
    return bool(good)


def skip(text, reason):
    global _count
    _count += 1
    print(f"ok {_count} - {text} # SKIP {reason}", flush=True)


def run(main):
    """Runs the test; an exception is a failed test; ends what is still running; exits."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    try:
        main()
    except Exception as error:  # pylint: disable=broad-except
        import traceback
        check("the test runs to its end", False, traceback.format_exc() + repr(error))
    print(f"1..{_count}", flush=True)
    sys.exit(1 if _failed else 0)


def _end(process):
    if process.poll() is None:
        process.kill()
        process.wait()


@atexit.register
def _cleanup():
    for what in reversed(_started):
        if isinstance(what, str):
            shutil.rmtree(what, ignore_errors=True)
        else:
            _end(what)


def work_dir():
    """A new folder that is gone at the end; moted may look into it after it gave up its rights."""
    path = tempfile.mkdtemp(prefix="mote-it.")
    os.chmod(path, 0o755)
    _started.append(path)
    return path


def spawn(*args, **more):
    """A process that is killed at the end if it still runs."""
    process = subprocess.Popen(args, **more)
    _started.append(process)
    return process


def room():
    """Configuration for a machine with thousands of processes that are not the test's; lets moted open
    as many files as that needs, if this may."""
    files = max(1 << 18, resource.getrlimit(resource.RLIMIT_NOFILE)[1])
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
    except ValueError:
        pass
    return {"tables": {"processes": 65536, "threads": 65536, "ended": 65536, "text": "16MiB"},
            "socket": {"queue": "16MiB", "arena": "64MiB"}}


def cgroup_root(*names):
    """Where the first of these is mounted; by default the hierarchy whose directories moted shows, or None."""
    with open("/proc/self/mountinfo", encoding="ascii", errors="replace") as file:
        mounts = [line.split() for line in file]
    found = {}
    for words in mounts:
        rest = words[words.index("-") + 1:]
        if rest[0] == "cgroup2":
            found.setdefault("cgroup2", words[4])
        elif rest[0] == "cgroup":
            for option in rest[2].split(","):
                found.setdefault(option, words[4])
    names = names or ("memory", "cpuacct", "cpu", "cgroup2")
    return next((found[name] for name in names if name in found), None)


class Moted:
    """A moted of our own. `config`: {"section": {"key": value}}; `wrap`: a command in front of it."""

    def __init__(self, *args, config=None, env=None, wrap=(), timeout=20):
        self.work = work_dir()
        self.path = os.path.join(self.work, "mote.sock")
        self.log_path = os.path.join(self.work, "log")
        args = ["--socket", self.path, *args]
        if config:
            conf = os.path.join(self.work, "mote.conf")
            with open(conf, "w", encoding="ascii") as file:
                for section, keys in config.items():
                    print(f"[{section}]", *(f"{k} = {v}" for k, v in keys.items()), sep="\n", file=file)
            args += ["--config", conf]
        with open(self.log_path, "wb") as log:
            self.process = spawn(*wrap, os.path.join(BUILD, "moted"), *args, stdin=subprocess.DEVNULL,
                                 stdout=log, stderr=log, env=dict(os.environ, **(env or {})))
        self.pid = self.process.pid
        self._wait(timeout)

    def _wait(self, timeout):
        until = time.monotonic() + timeout
        while time.monotonic() < until and self.process.poll() is None:
            try:
                Client(self.path, timeout=timeout).close()
                return
            except OSError:
                time.sleep(0.02)
        raise RuntimeError(f"moted does not answer: {self.process.poll()}: {self.log()}")

    def log(self):
        with open(self.log_path, encoding="utf-8", errors="replace") as file:
            return file.read()

    def client(self, request="", **more):
        """A connection; its hello has been read; `request` is sent."""
        client = Client(self.path, **more)
        if request:
            client.send(request)
        return client

    def stat(self):
        """/proc/PID/stat from field 3 on: [9 - 2] minflt and so on as proc(5) counts them, less 3."""
        with open(f"/proc/{self.pid}/stat", encoding="ascii", errors="replace") as file:
            return file.read().rpartition(")")[2].split()

    def faults(self):
        """Minor and major page faults, all threads."""
        stat = self.stat()
        return int(stat[7]), int(stat[9])

    def rss(self):
        """Resident bytes."""
        with open(f"/proc/{self.pid}/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def fds(self):
        """{descriptor: what it is}"""
        folder, found = f"/proc/{self.pid}/fd", {}
        for fd in os.listdir(folder):
            try:
                found[int(fd)] = os.readlink(f"{folder}/{fd}")
            except FileNotFoundError:
                pass
        return found

    def stop(self, timeout=20):
        """Its exit code after SIGTERM."""
        if self.process.poll() is None:
            self.process.terminate()
        try:
            return self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            return "did not end"


class Frame:
    """A frame and when it was here."""

    def __init__(self, header, body, received, size):
        _, _, self.type, self.flags, self.length, self.stream, self.sequence, self.time = header
        self.body, self.received, self.size = body, received, size
        self.name = ""
        if self.type == DATA:
            self.interval, self.rows, self.ended, self.totals = body

    def __repr__(self):
        return f"<{self.type} {self.name} flags {self.flags} #{self.sequence} t {self.time} {self.length} B>"


class Closed(Exception):
    """moted closed the connection."""


class Client:
    """One connection. Frames are kept whole; rcvbuf: bytes of the socket's receive buffer."""

    def __init__(self, path, timeout=20, rcvbuf=0, hello=True):
        self.socket = socket.socket(socket.AF_UNIX)
        if rcvbuf:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, rcvbuf)
        # Not settimeout(): connect() of a socket that does not block fails when many connect.
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", int(timeout), 0))
        self.socket.connect(path)
        self.socket.settimeout(timeout)
        self.timeout, self.buffer, self.received, self.closed = timeout, bytearray(), 0, False
        self.streams, self.ids, self.hello = {}, {}, None
        if hello:
            self.hello = self.frame().body
            self.streams = {s[0]: Stream(s) for s in self.hello["streams"]}
            self.ids = {s.name: i for i, s in self.streams.items()}

    def close(self):
        self.socket.close()

    def send(self, *lines):
        self.socket.sendall("".join(line + "\n" for line in lines).encode())

    def _whole(self):
        """The first frame of the buffer, or None."""
        if len(self.buffer) < HEADER.size:
            return None
        header = HEADER.unpack_from(self.buffer)
        if header[0] != b"mote" or header[1] != 1:
            raise ValueError(f"not a header: {bytes(self.buffer[:32])!r}")
        size = HEADER.size + header[4]
        if len(self.buffer) < size:
            return None
        body = msgpack.unpackb(bytes(self.buffer[HEADER.size:size]), strict_map_key=False)
        del self.buffer[:size]
        frame = Frame(header, body, self.received, size)
        if frame.type == DATA and self.streams:
            frame.name = self.streams[frame.stream].name
        return frame

    def frame(self, timeout=None):
        """The next frame; None if there is none in time; Closed if there will be none."""
        until = time.monotonic() + (self.timeout if timeout is None else timeout)
        while True:
            frame = self._whole()
            if frame:
                return frame
            if not select.select([self.socket], [], [], max(0, until - time.monotonic()))[0]:
                return None
            data = self.socket.recv(1 << 20)
            self.received = monotonic()
            if not data:
                raise Closed("moted closed the connection")
            self.buffer += data

    def frames(self, seconds):
        """The frames of the next seconds."""
        until = time.monotonic() + seconds
        while True:
            frame = self.frame(max(0, until - time.monotonic()))
            if not frame:
                return
            yield frame

    def wait(self, want, timeout=None):
        """The next frame for which `want` is true; None if there is none in time."""
        until = time.monotonic() + (self.timeout if timeout is None else timeout)
        while True:
            frame = self.frame(max(0, until - time.monotonic()))
            if not frame or want(frame):
                return frame

    def ask(self, line, timeout=None):
        """(code, text) of the reply; frames that come before it are passed over."""
        self.send(line)
        frame = self.wait(lambda f: f.type == REPLY, timeout)
        return tuple(frame.body) if frame else None


class Stream:
    """A stream as the hello describes it."""

    def __init__(self, described):
        self.id, self.name, _, self.interval, fields = described
        self.fields = [f[0] for f in fields]
        self.types = {f[0]: f[1] for f in fields}
        self.kinds = {f[0]: f[2] for f in fields}
        self.keys = [i for i, f in enumerate(fields) if f[2] == "key"]
        self.counters = [i for i, f in enumerate(fields) if f[2] == "counter"]

    def key(self, row):
        return tuple(row[i] for i in self.keys)

    def dict(self, row):
        return dict(zip(self.fields, row))


class Rows:
    """The rows of every stream, as docs/PROTOCOL.md says frames add up; `event` is not kept."""

    def __init__(self, client):
        self.streams = client.streams
        self.rows = {s.name: {} for s in self.streams.values()}
        self.totals, self.sequence, self.partial = {}, {}, set()

    def take(self, frame):
        if frame.type != DATA or frame.name in ("event", "cgroup_event"):
            return
        stream = self.streams[frame.stream]
        rows = self.rows[stream.name]
        if frame.flags & KEY:
            rows.clear()
        for row in frame.rows:
            rows[stream.key(row)] = row
        for key in frame.ended:
            rows.pop(tuple(key), None)
        if frame.totals:
            self.totals[stream.name] = frame.totals
        self.sequence[stream.name] = frame.sequence
        (self.partial.add if frame.flags & MORE else self.partial.discard)(stream.name)

    def sums(self, name):
        """{counter: live rows and ended totals, summed}"""
        stream = next(s for s in self.streams.values() if s.name == name)
        records = list(self.rows[name].values()) + ([self.totals[name]] if name in self.totals else [])
        return {stream.fields[i]: sum(r[i] or 0 for r in records) for i in stream.counters}

    def row(self, name, *key):
        """A row as {field: value}, of the stream's only row if no key is given."""
        stream = next(s for s in self.streams.values() if s.name == name)
        row = self.rows[name].get(key)
        return stream.dict(row) if row else None
