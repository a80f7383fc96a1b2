#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# What a running moted sends, recorded once with `mote dump --raw`: libmote (mote dump --json) and
# python3-msgpack give the same objects, example.py passes through all of it, and rows have the
# shape and the types that the hello promises.
import json, math, os, struct, subprocess, sys, tempfile, time
import msgpack

top = os.path.abspath(os.environ.get("MOTE_TOP", os.path.join(os.path.dirname(__file__), "../..")))
build = os.environ.get("MOTE_BUILD", os.path.join(top, "build"))
TYPES = {"u64": (int,), "i64": (int,), "f64": (float, int), "str": (str, bytes), "list": (list,)}
count = failed = 0


def check(text, good, note=""):
    global count, failed
    count += 1
    failed += not good
    print(f"{'ok' if good else 'not ok'} {count} - {text}" + (f"\n# {str(note)[:1000]}" if not good else ""))


def plain(value):
    """A value as JSON has it."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, list):
        return [plain(v) for v in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


class Decoder:
    def __init__(self, recording):
        self.streams, self.objects, self.wrong, self.types = {}, [], [], set()
        position = 0
        while position < len(recording):
            header = struct.unpack_from("<4sBBHIIQQ", recording, position)
            position += 32 + header[4]
            self.take(header, msgpack.unpackb(recording[position - header[4]:position]))

    def take(self, header, body):
        magic, version, kind, flags, length, stream, sequence, at = header
        assert magic == b"mote" and version == 1
        self.types.add(kind)
        if kind == 1:
            self.streams = {s[0]: s for s in body["streams"]}
        elif kind == 2:
            self.take_data(self.streams[stream][1], self.streams[stream][4], body, at)

    def take_data(self, name, fields, body, at):
        interval, rows, ended, totals = body
        names = [f[0] for f in fields]
        for row in rows:
            self.look_at(name, fields, row)
            head = {"stream": name} if "time" in names else {"stream": name, "time": at}
            self.objects.append({**head, **dict(zip(names, map(plain, row)))})
        keys = [f for f in fields if f[2] == "key"]
        for key in ended:
            self.look_at(name, keys, key)
            self.objects.append({"stream": name, "time": at, "ended": {f[0]: plain(v) for f, v in zip(keys, key)}})
        if totals:
            self.look_at(name, fields, totals)
            self.objects.append({"stream": name, "time": at, "totals": {f[0]: v for f, v in zip(fields, totals) if f[2] == "counter"}})

    def look_at(self, name, fields, row):
        if len(row) != len(fields):
            self.wrong.append((name, "length", len(row)))
        for field, value in zip(fields, row):
            if value is not None and not isinstance(value, TYPES[field[1]]):
                self.wrong.append((name, field[0], value))
            if field[1] == "u64" and isinstance(value, int) and value < 0:
                self.wrong.append((name, field[0], value))


def record(work):
    """A moted of our own, and three updates of it; processes come and go meanwhile."""
    path = os.path.join(work, "mote.sock")
    log = open(os.path.join(work, "log"), "wb")
    moted = subprocess.Popen([f"{build}/moted", "--socket", path], stdout=log, stderr=log)
    try:
        for _ in range(100):
            if os.path.exists(path):
                break
            time.sleep(0.1)
        dump = subprocess.Popen([f"{build}/mote", "dump", "--raw", "--frames", "3", "--socket", path], stdout=subprocess.PIPE)
        churn = subprocess.Popen(["sh", "-c", "while sleep 0.1; do :; done"])
        recording = dump.communicate(timeout=60)[0]
        churn.kill()
        churn.wait()
        example = subprocess.Popen([f"{top}/clients/example.py", path, "poll cpu,load"], stdout=subprocess.PIPE)
        lines = []
        while not any(line.startswith(b"load: load1: ") for line in lines):
            lines.append(example.stdout.readline())
            if not lines[-1]:
                break
        example.kill()
        example.communicate()
    finally:
        moted.terminate()
        code = moted.wait(timeout=20)
    return recording, lines, code


def main():
    with tempfile.TemporaryDirectory() as work:
        os.chmod(work, 0o755)  # moted gives up its rights
        recording, lines, code = record(work)
        check("mote dump --raw recorded something", len(recording) > 10000, len(recording))
        path = os.path.join(work, "recording")
        with open(path, "wb") as f:
            f.write(recording)
        decoder = Decoder(recording)
        out = subprocess.run([f"{build}/mote", "dump", "--json", "--input", path], stdout=subprocess.PIPE, check=True).stdout
        shown = [json.loads(line) for line in out.decode("utf-8").splitlines()]
        got = [o for o in shown if "stream" in o]
        different = [(g, w) for g, w in zip(got, decoder.objects) if g != w]
        check("libmote and python3-msgpack agree on every object", got == decoder.objects,
              (len(got), len(decoder.objects), different[:1]))
        seen = {o["stream"] for o in got}
        check("at least 100 objects of 8 streams were compared", len(got) >= 100 and len(seen) >= 8, (len(got), seen))
        check("hello, data and reply came", decoder.types >= {1, 2, 4}, decoder.types)
        check("rows are as the hello says", not decoder.wrong, decoder.wrong[:5])
        lost = [o for o in shown if "stream" not in o and ("missed" in o or "dropped" in o)]
        check("nothing was missed", not lost, lost)
        whole = subprocess.run([f"{top}/clients/example.py", path], stdout=subprocess.PIPE, check=True)
        check("example.py reads all of the recording", whole.stdout.count(b"\n") >= len(got), whole.stdout[-200:])
        check("example.py reads from the socket", lines[0].startswith(b"hello: ") and lines[-1].startswith(b"load: "), lines)
        check("moted ends with 0", code == 0, code)
    print(f"1..{count}")
    sys.exit(failed != 0)


main()
