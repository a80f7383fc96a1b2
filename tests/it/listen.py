#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""moted's socket as a service manager and a second moted meet it: readiness, a live socket refused,
a stale one replaced after kill -9 (E7), what is not a socket left alone, socket activation, modes."""
import os
import select
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile

top = os.environ.get("MOTE_TOP", os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
moted = os.path.join(os.environ.get("MOTE_BUILD", os.path.join(top, "build")), "moted")
work = tempfile.mkdtemp(prefix="mote-listen.")
path = os.path.join(work, "mote.sock")
notify_name = f"mote-listen-{os.getpid()}"
manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
manager.bind("\0" + notify_name)
running = []
n = failed = 0


def result(ok, text, note=""):
    global n, failed
    n += 1
    if not ok:
        failed += 1
        for line in str(note).splitlines():
            print("#", line)
    print(f"{'ok' if ok else 'not ok'} {n} - {text}", flush=True)


def start(*args, env=None, **more):
    env = dict(os.environ, NOTIFY_SOCKET="@" + notify_name, **(env or {}))
    process = subprocess.Popen([moted, "--probes", "none", *args], env=env, text=True,
                               stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, **more)
    running.append(process)
    return process


def told(word, timeout=10):
    """Whether the manager is told this within the time."""
    while select.select([manager], [], [], timeout)[0]:
        if word in manager.recv(4096).decode().splitlines():
            return True
    return False


def answers(where=path):
    """Whether a hello frame comes from there."""
    client = socket.socket(socket.AF_UNIX)
    client.settimeout(10)
    try:
        client.connect(where)
        return client.recv(4) == b"mote"
    except OSError:
        return False
    finally:
        client.close()


def stop(process, sig=signal.SIGTERM):
    process.send_signal(sig)
    try:
        process.wait(15)
    except subprocess.TimeoutExpired:
        process.kill()
    return process.returncode, process.stderr.read()


def refused(text, says, *args):
    process = start(*args)
    try:
        code = process.wait(15)
    except subprocess.TimeoutExpired:
        process.kill()
        code = "still running"
    err = process.stderr.read()
    result(code not in (0, "still running") and err.count(says) == 1, text, f"{code}: {err}")


def main():
    first = start("--socket", path)
    result(told("READY=1"), "the service manager is told when it is ready")
    result(answers(), "and then it answers")
    mode = stat.S_IMODE(os.stat(path).st_mode)
    result(mode == 0o660, "the socket has the default mode", oct(mode))

    refused("a second moted is refused", f"{path}: another process answers there", "--socket", path)
    result(answers(), "and the first still answers")

    stop(first, signal.SIGKILL)
    result(os.path.exists(path) and not answers(), "kill -9 leaves a stale socket behind")
    second = start("--socket", path)
    result(told("READY=1") and answers(), "which the next start replaces")

    code, err = stop(second)
    result(code == 0 and told("STOPPING=1", 1), "SIGTERM ends it with 0, told as STOPPING=1",
           f"{code}: {err}")
    result(not os.path.exists(path), "and its socket is gone")

    with open(path, "w", encoding="ascii") as file:
        file.write("precious")
    refused("what is not a socket is refused", f"{path}: exists and is not a socket", "--socket",
            path)
    result(open(path, encoding="ascii").read() == "precious", "and left alone")
    os.unlink(path)
    refused("a missing directory is named", f"its directory {work}/none cannot be opened",
            "--socket", f"{work}/none/mote.sock")

    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen()

    # $LISTEN_PID is the child's own, which only a shell between can put into its environment.
    process = subprocess.Popen(
        ["/bin/sh", "-c", 'export LISTEN_PID=$$ LISTEN_FDS=1; exec "$0" "$@"', moted, "--probes",
         "none", "--socket", f"{work}/other.sock"],
        env=dict(os.environ, NOTIFY_SOCKET="@" + notify_name), text=True,
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, pass_fds=[3],
        preexec_fn=lambda: os.dup2(listener.fileno(), 3))
    running.append(process)
    result(told("READY=1") and answers(), "an inherited socket is taken over")
    result(not os.path.exists(f"{work}/other.sock"), "and none of its own is made")
    code, err = stop(process)
    result(code == 0 and os.path.exists(path), "and it is left to systemd at the end",
           f"{code}: {err}")
    os.unlink(path)

    conf = os.path.join(work, "mote.conf")
    with open(conf, "w", encoding="ascii") as file:
        file.write(f"[socket]\npath = {path}\nmode = 0606\ngroup = {os.getegid()}\n")
    process = start("--config", conf)
    told("READY=1")
    st = os.stat(path)
    result(stat.S_IMODE(st.st_mode) == 0o606 and st.st_gid == os.getegid(),
           "mode and group come from the configuration", oct(st.st_mode))
    stop(process)


try:
    main()
except Exception as error:  # pylint: disable=broad-except
    result(False, "the test runs to its end", repr(error))
finally:
    for child in running:
        if child.poll() is None:
            child.kill()
    shutil.rmtree(work, ignore_errors=True)
print(f"1..{n}")
sys.exit(1 if failed else 0)
