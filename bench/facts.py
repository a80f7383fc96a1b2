# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""What is read from the machine and from moted's own /proc files: memory, maps, the host."""
import datetime
import json
import os
import platform
import re
import shutil
import subprocess

BPF_MAPPINGS = ("anon_inode:bpf-map", "anon_inode:bpf_ringbuf", "anon_inode:[bpf-map]",
                "anon_inode:[bpf_ringbuf]")


def memory(pid):
    """PSS in KiB by what is mapped: BPF's pages, libraries, the program, its own memory."""
    sums = {"bpf": 0, "libraries": 0, "program": 0, "heap": 0, "other": 0}
    kind = "other"
    exe = os.readlink(f"/proc/{pid}/exe")
    with open(f"/proc/{pid}/smaps") as file:
        for line in file:
            head = re.match(r"[0-9a-f]+-[0-9a-f]+ \S+ \S+ \S+ \d+\s*(.*)", line)
            if head:
                kind = kind_of(head.group(1), exe)
            elif line.startswith("Pss:"):
                sums[kind] += int(line.split()[1])
    sums["total"] = sum(sums.values())
    sums["without_bpf"] = sums["total"] - sums["bpf"]
    return sums


def kind_of(name, exe):
    if name in BPF_MAPPINGS or name.startswith("anon_inode:bpf"):
        return "bpf"
    if ".so" in name:
        return "libraries"
    if name == exe:
        return "program"
    return "heap" if name == "[heap]" else "other"


def bpf_maps():
    """All BPF maps of the machine by id: type, entries, bytes charged. moted holds no descriptor of
    its own after start, so what it made is what came while it started."""
    tool = shutil.which("bpftool") or "/usr/sbin/bpftool"
    out = subprocess.run([tool, "-j", "map", "show"], capture_output=True, text=True, check=False)
    return {m["id"]: {"name": m.get("name", ""), "type": m["type"], "entries": m["max_entries"],
                      "bytes": m["bytes_memlock"]} for m in json.loads(out.stdout or "[]")}


def cpu_model():
    with open("/proc/cpuinfo") as file:
        for line in file:
            if line.startswith(("model name", "Model")):
                return line.split(":", 1)[1].strip()
    return platform.machine()


def processes():
    return sum(name.isdigit() for name in os.listdir("/proc"))


def host():
    with open("/proc/meminfo") as file:
        memory_kib = int(file.readline().split()[1])
    with open("/etc/os-release") as file:
        release = re.search(r'PRETTY_NAME="?([^"\n]*)', file.read()).group(1)
    commit = subprocess.run(["git", "describe", "--always", "--dirty"], capture_output=True,
                            text=True, check=False).stdout.strip()
    return {"date": datetime.date.today().isoformat(), "cpu": cpu_model(),
            "cpus": os.cpu_count(), "memory_mib": memory_kib // 1024,
            "virtual": "hypervisor" in open("/proc/cpuinfo").read(),
            "kernel": platform.release(), "system": release, "commit": commit,
            "processes": processes(), "load": os.getloadavg()}
