#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# The command `mote` and clients/example.py against a server of our own: JSON, options, replay, the
# ends that must be quiet. The supervisor has no part in it.
import json, os, signal, socket, struct, subprocess, sys, tempfile, threading, time, traceback
import msgpack

top = os.path.abspath(os.environ.get("MOTE_TOP", os.path.join(os.path.dirname(__file__), "../..")))
mote = os.path.join(os.environ.get("MOTE_BUILD", os.path.join(top, "build")), "mote")
HELLO, DATA, DROPPED, REPLY = 1, 2, 3, 4
KEY, MORE, GAP = 1, 2, 4
count = failed = 0


def check(text, got, want):
    global count, failed
    count += 1
    failed += got != want
    print(f"{'ok' if got == want else 'not ok'} {count} - {text}")
    if got != want:
        print(f"# got  {got!r}\n# want {want!r}")


def frame(kind, body, flags=0, stream=0, sequence=0, at=0):
    packed = msgpack.packb(body)
    return struct.pack("<4sBBHIIQQ", b"mote", 1, kind, flags, len(packed), stream, sequence, at) + packed


def field(name, kind="gauge", type_="u64", unit=""):
    return [name, type_, kind, unit, ""]


STREAMS = [
    [0, "thing", "", 1000, [field("name", "key", "str"), field("n", "counter"), field("i", type_="i64"),
                            field("f", type_="f64"), field("argv", "info", "list")]],
    [1, "event", "", 1000, [field("type", "info", "str"), field("time", "info")]],
    [2, "self", "", 1000, [field("cpu_seconds", "counter", "f64", "s"), field("rss", unit="By")]],
    [3, "table", "", 1000, [field("name", "key", "str"), field("unit", "info", "str"), field("size"),
                            field("fill"), field("peak"), field("dropped", "counter")]],
]
HOST = {"hostname": "h", "kernel": "6.1", "machine": "m", "boot_id": "b", "cpus": 2}
hello = frame(HELLO, {"mote": "1", "protocol": 1, "host": HOST, "streams": STREAMS, "mode": "standard",
                      "engine": "sync", "tiers": [["t", "c", "why"]], "absent": [["thing", "f", "no f"]],
                      "tables": [["things", "row", 5]], "realtime_offset": -5})


def thing(at, sequence, rows, ended=(), totals=None, flags=0):
    return frame(DATA, [1000, rows, list(ended), totals], flags, 0, sequence, at)


def ends(process):
    try:
        return process.wait(timeout=10)
    except subprocess.TimeoutExpired:
        process.kill()
        return "does not end"


class Server:
    """Serves `answer(connection, request line)` at a socket, one connection after the other."""

    def __init__(self, answer, greeting=hello):
        self.path = os.path.join(work, "s.sock")
        self.requests = []
        self.answer, self.greeting = answer, greeting
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(self.path)
        self.listener.listen()
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            with connection:
                try:
                    connection.sendall(self.greeting)
                    line = connection.recv(512)
                    self.requests.append(line)
                    if line:
                        self.answer(connection)
                        connection.recv(1)  # until the client has closed
                except OSError:
                    pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        os.unlink(self.path)


def run(*arguments, stdin=subprocess.DEVNULL):
    r = subprocess.run([mote, *arguments], stdin=stdin, capture_output=True, timeout=20)
    return r.returncode, r.stdout, r.stderr.decode()


def record(*frames):
    path = os.path.join(work, "recording")
    with open(path, "wb") as f:
        f.write(b"".join(frames))
    return path


def lines(output):
    return [json.loads(line) for line in output.decode("utf-8").splitlines()]


def json_rules():
    text = [("plain", "plain"), ("\"\\/\b\f\n\r\t\x01\x1b\x7f", None), ("é€😀\u0085", None),
            (b"a\xffb\xc0\xaf\xed\xa0\x80", "a\ufffdb\ufffd\ufffd\ufffd\ufffd\ufffd"), (b"\xf4\x90\x80\x80\xe2\x82", "\ufffd" * 6),
            ("", "")]
    rows = [[t, 2**64 - 1, -2**63, 0.1, [t, "x y"]] for t, _ in text]
    rows += [["nan", None, 5, float("nan"), None], ["inf", 2**53 + 1, 0, float("-inf"), []],
             ["digits", 0, 0, 1 / 3, []], ["int", 0, 1, 3, []], ["short"], ["long", 1, 2, 3.5, [], 99]]
    path = record(hello, thing(7, 1, rows, [["k1"], ["k2"]], [None, 55, None, None, None], KEY | GAP),
                  thing(8, 4, []), frame(DATA, [1000, [["exec", 77]], [], None], 0, 1, 1, 9),
                  frame(99, "later"), frame(DATA, [1, [[1]], [], None], 0, 42, 1, 9),
                  frame(DROPPED, [3, 99]), frame(REPLY, [22, "no\nsuch"]))
    code, out, err = run("dump", "--json", "--input", path)
    check("replay ends with 0 and says nothing", (code, err), (0, ""))
    check("no control character and no bad UTF-8 in the output",
          [c for c in out.decode("utf-8") if (ord(c) < 32 and c != "\n") or 0x7f <= ord(c) < 0xa0], [])
    got = lines(out)
    check("hello", {k: got[0]["hello"][k] for k in ("mote", "realtime_offset", "streams", "absent", "tables")},
          {"mote": "1", "realtime_offset": -5, "streams": [s[1] for s in STREAMS],
           "absent": [{"stream": "thing", "field": "f", "reason": "no f"}],
           "tables": [{"name": "things", "unit": "row", "size": 5}]})
    head = {"stream": "thing", "time": 7}
    check("gap and keyframe", got[1:3], [{n: {**head, "interval_ms": 1000}} for n in ("gap", "keyframe")])
    want = [{**head, "name": w if w is not None else t, "n": 2**64 - 1, "i": -2**63, "f": 0.1,
             "argv": [w if w is not None else t, "x y"]} for t, w in text]
    check("text, 64-bit integers, lists", got[3:3 + len(text)], want)
    names = ("name", "n", "i", "f", "argv")
    rest = [("nan", None, 5, None, None), ("inf", 2**53 + 1, 0, None, []), ("digits", 0, 0, 1 / 3, []),
            ("int", 0, 1, 3, []), ("short", None, None, None, None), ("long", 1, 2, 3.5, [])]
    check("nil, NaN, digits, rows of another length", got[9:15], [{**head, **dict(zip(names, r))} for r in rest])
    check("ended and totals", got[15:18],
          [{**head, "ended": {"name": "k1"}}, {**head, "ended": {"name": "k2"}}, {**head, "totals": {"n": 55}}])
    check("missed updates, a stream's own time, unknown frames and streams passed over", got[18:], [
        {"missed": {"stream": "thing", "time": 8, "interval_ms": 1000, "updates": 2}},
        {"stream": "event", "type": "exec", "time": 77},
        {"dropped": {"frames": 3, "bytes": 99}}, {"reply": {"code": 22, "text": "no\nsuch"}}])


def replay():
    frames = [hello, thing(1, 1, [["a", 1]]), frame(99, "later"), frame(REPLY, [0, "ok"]),
              frame(DATA, [1000, [[1.5, 4096]], [], None], 0, 2, 1, 1)]
    path = record(*frames)
    with open(path, "rb") as f:
        check("a recording on standard input is replayed", len(lines(run("dump", "--json", stdin=f)[1])), 4)
    with open(path, "rb") as f:
        check("--raw copies every byte", run("dump", "--raw", stdin=f)[1], b"".join(frames))
    out = subprocess.run([mote, "dump", "--json", "--input", "-"], input=b"".join(frames), capture_output=True).stdout
    check("a recording through a pipe", len(lines(out)), 4)
    got = lines(run("dump", "--json", "--input", path, "--streams", "self,event")[1])
    check("--streams of a recording", [o["stream"] for o in got if "stream" in o], ["self"])
    code, out, err = run("dump", "--input", record(*frames)[:] , "--streams", "self")
    check("text for a person", out.decode().splitlines()[-1].split(" ", 1)[1], "self cpu_seconds=1.500s rss=4.0KiB")
    code, out, err = run("dump", "--json", "--input", record(hello, frames[1][:-1]))
    check("a recording that is cut", (code, "it ends after" in err, err.count("\n")), (1, True, 1))
    bad = frame(DATA, 5)
    code, out, err = run("dump", "--json", "--input", record(hello, bad, *frames[1:2]))
    check("a bad frame is passed over with one line", (code, len(lines(out)), err.count("\n")), (0, 2, 1))
    code, out, err = run("dump", "--input", record(b"GET / HTTP/1.1\r\n\r\n"))
    check("what is not mote's", (code, "no frame begins here" in err), (1, True))


def frames_option():
    # The keyframe of time 1 goes on behind the first update of time 2: both must be whole.
    path = record(hello, thing(1, 1, [["a"]], flags=KEY | MORE), thing(2, 2, [["u"]], flags=MORE),
                  thing(1, 1, [["b"]]), thing(2, 2, [["v"]]), thing(3, 3, [["c"]]), thing(4, 4, [["d"]]))
    for n, want in (1, "ab"), (2, "aubv"), (3, "aubvc"), (9, "aubvcd"):
        got = lines(run("dump", "--json", "--frames", str(n), "--input", path)[1])
        check(f"--frames {n}", "".join(o["name"] for o in got if "stream" in o), want)
    # Its rest may be of a later sample than the last one wanted.
    path = record(hello, thing(1, 1, [["a"]], flags=KEY | MORE), thing(2, 2, [["u"]]), thing(3, 1, [["b"]]), thing(4, 3, [["c"]]))
    got = lines(run("dump", "--json", "--frames", "1", "--input", path)[1])
    check("--frames 1: a keyframe to its end", "".join(o["name"] for o in got if "stream" in o), "ab")


def live():
    def ticks(connection):
        connection.sendall(frame(REPLY, [0, "subscribed"]))
        for n in range(1, 200):
            connection.sendall(thing(n * 10**9, n, [["x" * 100, n]] * 20))
            time.sleep(0.02)

    with Server(ticks) as server:
        code, out, err = run("--socket", server.path, "dump", "--json", "--streams=thing", "--interval", "250ms", "--frames", "3")
        check("live: ends after three updates", (code, len({o["time"] for o in lines(out) if "stream" in o}), err), (0, 3, ""))
        check("live: the request", server.requests[-1], b"subscribe thing interval=250ms\n")
        for number in signal.SIGINT, signal.SIGTERM:
            with subprocess.Popen([mote, "dump", "--json", "--socket", server.path], stdout=subprocess.PIPE) as p:
                time.sleep(0.3)
                p.send_signal(number)
                out, _ = p.communicate(timeout=10)
            check(f"live: {number.name} ends with 0 and whole lines", (p.returncode, len(lines(out)) > 20), (0, True))
        with subprocess.Popen([mote, "dump", "--json", "--socket", server.path], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as p:
            p.stdout.readline()
            p.stdout.close()
            err = p.stderr.read()
        check("live: nobody reads the output", (ends(p), err), (0, b""))
        with subprocess.Popen([mote, "dump", "--json", "--socket", server.path], stdout=subprocess.PIPE) as p:
            time.sleep(1.5)  # the pipe is full: mote waits in write()
            p.send_signal(signal.SIGINT)
            check("live: a signal while the reader stalls", ends(p), 0)
        check("live: an unknown stream", (run("dump", "--socket", server.path, "--streams", "thing,no")[0::2]),
              (2, "mote dump: --streams: no stream 'no'; there are: thing event self table\n"))
    with Server(lambda c: c.sendall(frame(REPLY, [22, "interval 3: not a time"]))) as server:
        check("live: a request that is refused", run("dump", "--socket", server.path, "--interval", "3")[0::2],
              (1, "mote dump: the supervisor refused: interval 3: not a time\n"))
    with Server(lambda c: c.shutdown(socket.SHUT_RDWR)) as server:
        check("live: the supervisor goes away", run("dump", "--socket", server.path)[0::2],
              (1, "mote dump: the supervisor closed the connection\n"))


def idle_reader_gone():
    with Server(lambda c: c.sendall(thing(1, 1, [["a"]]))) as server:
        with subprocess.Popen([mote, "dump", "--json", "--socket", server.path], stdout=subprocess.PIPE) as p:
            p.stdout.readline()
            p.stdout.close()  # no frame follows that would tell by EPIPE
            check("live: the reader leaves while nothing comes", ends(p), 0)


def stats_and_schema():
    def two_samples(connection):
        rows = [["things", "row", 5, 1, 4, 2], ["queue", "By", 262144, 0, 131072, 0]]
        connection.sendall(frame(DATA, [1000, [[1.0, 2 << 20]], [], None], KEY, 2, 1, 10**9))
        connection.sendall(frame(DATA, [1000, rows, [], None], KEY, 3, 1, 10**9))
        connection.sendall(frame(DATA, [1000, [[1.5, 3 << 20]], [], None], 0, 2, 2, 3 * 10**9))
        connection.sendall(frame(DATA, [1000, [["things", "row", 5, 3, 5, 2]], [], None], 0, 3, 2, 3 * 10**9))

    with Server(two_samples) as server:
        code, out, err = run("stats", "--json", "--socket", server.path)
        got = json.loads(out)
        check("stats: values and rates", (code, got["self"], got["rates"]),
              (0, {"cpu_seconds": 1.5, "rss": 3 << 20}, {"cpu_seconds": 0.25}))
        check("stats: tables", got["tables"][0], {"name": "things", "unit": "row", "size": 5, "fill": 3, "peak": 5, "dropped": 2})
        out = run("stats", "--socket", server.path)[1].decode()
        for word in "25.000%", "3.0MiB", "100.0%", "50.0%", "thing: f (no f)", "why":
            check(f"stats: text has {word}", word in out, True)
        got = json.loads(run("schema", "--json", "--socket", server.path)[1])
        check("schema", (got["streams"][0]["fields"][3]), {"name": "f", "type": "f64", "kind": "gauge", "unit": "", "help": "", "absent": "no f"})
        check("schema: text", "absent here: no f" in run("schema", "--socket", server.path)[1].decode(), True)


def command_line():
    missing = os.path.join(work, "none.sock")
    for arguments, code, text in (
            (["dump", "--jsn"], 2, "mote dump: unknown option '--jsn'; see mote dump --help\n"),
            (["-x"], 2, "mote: unknown option '-x'; see mote --help\n"),
            ([], 2, "mote: no command; see mote --help\n"),
            (["fump"], 2, "mote: unknown command 'fump'; see mote --help\n"),
            (["dump", "--frames", "0"], 2, "mote dump: --frames 0: a number from 1 is needed\n"),
            (["dump", "--frames", "-1"], 2, "mote dump: --frames -1: a number from 1 is needed\n"),
            (["dump", "--json=1"], 2, "mote dump: --json takes no value\n"),
            (["dump", "--streams"], 2, "mote dump: --streams needs a value: A,B\n"),
            (["dump", "more"], 2, "mote dump: 'more' is one word too many; see mote dump --help\n"),
            (["dump", "--json", "--raw"], 2, "mote dump: --json and --raw: choose one\n"),
            (["stats", "--socket", missing], 1, f"mote stats: no supervisor answers at {missing} (No such file or directory): "
             "start moted, or name its socket with --socket\n")):
        check("mote " + " ".join(arguments[:3]), run(*arguments), (code, b"", text))
    for arguments, text in ((["--help"], b"dump"), (["dump", "--help"], b"--frames"), (["dump", "-h"], b"--raw"), (["--version"], b"mote ")):
        code, out, err = run(*arguments)
        check("mote " + " ".join(arguments), (code, text in out, err), (0, True, ""))
    with open("/dev/full", "wb") as full:
        r = subprocess.run([mote, "--help"], stdout=full, stderr=subprocess.PIPE)
    check("a full disk is an error", (r.returncode, b"cannot write the output" in r.stderr), (1, True))


def example():
    path = record(hello, thing(1, 1, [[b"\xff", 1, None, 0.5, ["a"]]], [["k"]], [None, 5, None, None, None]),
                  frame(77, 0), frame(DROPPED, [3, 99]), frame(REPLY, [0, "ok"]))
    out = subprocess.run(["/usr/bin/python3", f"{top}/clients/example.py", path], capture_output=True, check=True)
    check("example.py decodes every type", out.stdout.decode().splitlines()[1:],
          ["thing: name: b'\\xff', n: 1, f: 0.5, argv: ['a']", "thing ended: name: k", "thing totals: n: 5",
           "dropped: frames: 3, bytes: 99", "reply: code: 0, text: ok"])
    source = open(f"{top}/clients/example.py").read()
    check("example.py is under 40 lines", source.count("\n") < 40, True)


with tempfile.TemporaryDirectory() as work:
    for part in json_rules, replay, frames_option, live, idle_reader_gone, stats_and_schema, command_line, example:
        try:
            part()
        except Exception:
            check(f"{part.__name__} runs to its end", traceback.format_exc().splitlines()[-4:], None)
print(f"1..{count}")
sys.exit(failed != 0)
