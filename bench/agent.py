# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""What bench/run starts and ends: moted, sleeping processes, the floor, subscribers. Each is a
context manager that ends exactly what it started."""
import contextlib
import json
import os
import subprocess
import tempfile
import time

import facts

HOST = "cpu,kernel,memory,vm,load,pressure,disk,netdev,filesystem"
PROCESSES = HOST + ",process,event"
ALL = PROCESSES + ",self,table"
NETWORK = "socket,flow,process_network,network"
# More processes than the default table of 4096 takes.
LARGE = "[tables]\nprocesses = 16384\ntext = 2MiB\n"


class Failure(Exception):
    """What kept the benchmark from measuring, in one line."""


def end(process, timeout=20):
    """Asks a child to end; a child that does not is killed."""
    if process.poll() is None:
        process.terminate()
    try:
        process.wait(timeout)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


class Moted:
    """A moted on a private socket. `count_alloc`: a library that counts allocations."""

    def __init__(self, build, config="", count_alloc=None):
        self.build = build
        self.dir = tempfile.TemporaryDirectory(prefix="mote-bench.")
        self.socket = self.dir.name + "/sock"
        self.counter = self.dir.name + "/allocations"
        self.log = open(self.dir.name + "/log", "w+")
        with open(self.dir.name + "/conf", "w") as file:
            file.write(config)
        env = dict(os.environ)
        if count_alloc:
            with open(self.counter, "wb") as file:
                file.truncate(4096)
            env.update(LD_PRELOAD=count_alloc, MOTE_COUNT_ALLOC=self.counter)
        self.maps = facts.bpf_maps()
        self.process = subprocess.Popen(
            [build + "/moted", "--config", self.dir.name + "/conf", "--socket", self.socket],
            stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log, env=env)
        self.pid = self.process.pid

    def __enter__(self):
        for _ in range(100):
            if os.path.exists(self.socket):
                self.maps = {key: value for key, value in facts.bpf_maps().items()
                             if key not in self.maps}
                return self
            if self.process.poll() is not None:
                break
            time.sleep(0.1)
        said = self.said()
        self.__exit__()
        raise Failure("moted did not start: " + said)

    def __exit__(self, *_):
        end(self.process)
        self.log.close()
        self.dir.cleanup()

    def said(self):
        self.log.seek(0)
        return self.log.read().strip()

    def allocations(self):
        with open(self.counter, "rb") as file:
            return int.from_bytes(file.read(8), "little")

    def subscribe(self, interval_ms, warm, ticks, streams):
        """A subscriber that is running; result() waits for it."""
        return Subscriber(self, interval_ms, warm, ticks, streams)

    def settle(self, processes):
        """Until moted knows the names of all processes: some are read each tick."""
        ticks = 30 + processes // 30
        with self.subscribe(100, 0, ticks, "process,event") as subscriber:
            subscriber.result()


class Subscriber:
    def __init__(self, moted, interval_ms, warm, ticks, streams):
        self.moted = moted
        self.limit = (warm + ticks + 3) * interval_ms / 1000 + 60
        self.process = subprocess.Popen(
            [moted.build + "/bench/subscribe", moted.socket, str(moted.pid), str(interval_ms),
             str(warm), str(ticks), streams],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        end(self.process)
        self.process.stdout.close()
        self.process.stderr.close()

    def wait_warm(self):
        if self.process.stdout.readline() != "warm\n":
            raise Failure("subscribe: " + self.process.stderr.read())

    def result(self):
        out, err = self.process.communicate(timeout=self.limit)
        lines = [line for line in out.splitlines() if line.startswith("{")]
        if self.process.returncode or not lines:
            raise Failure(f"subscribe: {err or out}; moted said: {self.moted.said()}")
        return json.loads(lines[-1])


@contextlib.contextmanager
def sleepers(build, n, forks=0, awake_ms=0):
    """`n` processes that sleep, or wake every `awake_ms`; `forks` more a second that end at once."""
    process = subprocess.Popen([build + "/bench/sleepers", str(n), str(forks), str(awake_ms)],
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        if process.stdout.readline() != "ready\n":
            raise Failure(f"{n} processes could not be made")
        yield
    finally:
        process.stdin.close()
        process.wait(60)
        process.stdout.close()


class Floor:
    """The floor program in one mode, one pass a second."""

    def __init__(self, build, mode, passes, phase_ms):
        self.process = subprocess.Popen([build + "/bench/floor", mode, str(passes), str(phase_ms)],
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def __enter__(self):
        if self.process.stdout.readline() != "ready\n":
            raise Failure("floor: " + self.process.stderr.read())
        return self

    def __exit__(self, *_):
        end(self.process)
        self.process.stdout.close()
        self.process.stderr.close()

    def result(self):
        out, err = self.process.communicate(timeout=120)
        if self.process.returncode:
            raise Failure("floor: " + err)
        return [int(line) for line in out.split()]
