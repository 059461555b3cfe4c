# SPDX-License-Identifier: LGPL-2.1-or-later
"""Runs commands that measure, each once, and finds their rows."""
import glob
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile

MPI_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


class Needs(Exception):
    """Something is missing here to repeat a measurement."""


def last_line(text):
    return (text.strip().splitlines() or ["no reason was given"])[-1]


class Benches:
    def __init__(self, options, program):
        self.options, self.program = options, program
        self.results = {}
        self.timelines = {}

    def run(self, *command, env=()):
        """The JSON of a command. Of one that fails, too: its reason, each time."""
        key = command, tuple(env)
        if key not in self.results:
            if sys.stderr.isatty():
                print(f"{shlex.join(command)} ...", file=sys.stderr)
            try:
                run = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, env={**os.environ, **dict(env)})
                text = run.stdout[max(run.stdout.find("{"), 0):]
                self.results[key] = json.loads(text)
            except OSError as error:
                self.results[key] = Needs(f"{command[0]}: {error.strerror}")
            except ValueError:
                self.results[key] = Needs(last_line(run.stderr))
        if isinstance(self.results[key], Needs):
            raise self.results[key]
        return self.results[key]

    def bench(self, *words):
        o = self.options
        return self.run(self.program, *words, *([f"--repeat={o.repeat}"] if o.repeat and words[0] != "loop" else []), "--json")

    # --- boards and GPUs

    def board(self):
        found = self.options.fpga or next(iter(sorted(map(os.path.basename, glob.glob("/dev/rashpa/fpga[0-9]*")))), None)
        if not found:
            raise Needs("a board that is bound: --fpga fpgaN")
        return found

    def board_remark(self):
        """A software FPGA is a process: its PCI identity says so (1234 is QEMU's)."""
        vendor = next((d["vendor"] for d in self.run("rashpactl", "--json", "list")["devices"] if d["node"] == self.board()), None)
        return "software FPGA, no card" if vendor == "0x1234" else ""

    def board_rows(self, command, *options):
        result = self.bench(command, f"--fpga={self.board()}", *options)
        if not result["rows"]:
            raise Needs("; ".join(dict.fromkeys(left["reason"] for left in result["left_out"])) or "a board that answers")
        return result["rows"]

    def roundtrip(self, *options):
        return self.board_rows("roundtrip", *options)

    def roundtrip_gpu(self, flush, *options):
        """(rows, remark) with the payload in memory of a GPU that the board reaches."""
        self.board()
        _, name = self.gpu("--sizes=4K", "--copies=16M")
        try:
            rows = self.roundtrip(f"--memory={self.options.gpu or 'vulkan'}", f"--flush={flush}", *options)
            return rows, ", ".join(filter(None, (name, self.board_remark())))
        except Needs as reason:
            raise Needs(f"a GPU whose memory the board reaches: {reason}") from None

    def loop(self, *options):
        """(rows by way, remark) of answers to a board, with a ring in memory of the GPU."""
        rows = self.bench("loop", f"--fpga={self.board()}", f"--gpu={self.options.gpu or 'vulkan'}", "--memory=gpu", *options)["rows"]
        wrong = [row["wrong"] for row in rows if row["wrong"]]
        if wrong:
            raise Needs("a GPU that drives the board: " + "; ".join(wrong))
        self.need_gpu(rows[-1]["drive"])
        return {row["way"]: row for row in rows}, ", ".join(filter(None, (rows[-1]["drive"], self.board_remark())))

    def need_gpu(self, name):
        # also behind a virtual one
        if ("no GPU" in name or "llvmpipe" in name) and not self.options.gpu:
            raise Needs(f"a GPU: here is {name} (--gpu runs it all the same)")

    def gpu(self, *options):
        """(rows of the GPU by name and size, remark). A program on processors is no GPU, unless it is asked for."""
        result = self.bench("gpu", f"--gpu={self.options.gpu or 'vulkan'}", *options)
        if not result["rows"]:
            raise Needs("a GPU: " + "; ".join(left["reason"] for left in result["left_out"]))
        name = result["rows"][0]["backend"]
        self.need_gpu(name)
        return {(row["name"], row["size_bytes"]): row for row in result["rows"]}, name

    def timeline(self, figure):
        """(work of streams of the GPU, remark); the figure shows it."""
        with tempfile.NamedTemporaryFile(suffix=".json") as file:
            _, name = self.gpu("--sizes=512K", "--copies=1K", f"--trace={file.name}")
            text = file.read()
        if not text:
            raise Needs(f"a GPU that reads memory of the host: {name} does not")
        events = self.timelines[figure] = [e for e in json.loads(text) if e["ph"] == "X"]
        return events, name

    # --- networks

    def network(self, experiment):
        """Trials of "network sweep"."""
        o = self.options
        if not o.address and not o.file:
            raise Needs("two ends of a network with RDMA: --address, --sink-at, or --file")
        ends = [f"--{name.replace('_', '-')}={getattr(o, name)}" for name in
                ("address", "sink_at", "writer_at", "sink_device", "writer_device", "time") if getattr(o, name)]
        return self.bench("network", "sweep", *([o.file] if o.file else []), f"--only={experiment}", *ends)["trials"]

    def network_remark(self):
        devices = glob.glob("/sys/class/infiniband/*")
        soft = [d for d in devices if "/virtual/" in os.path.realpath(d)]
        return "soft-RoCE: processors at both ends" if devices and len(soft) == len(devices) else ""

    # --- MPI

    def builder(self, *words, launch=(), env=()):
        program = shutil.which("rashpa-builder", path=os.path.dirname(self.program)) or "rashpa-builder"
        return self.run(*launch, program, *words, "--json", env=env)

    def burst(self, way, env=()):
        """Rows of messages between two processes, by size."""
        launch = shlex.split(self.options.mpirun)
        if not shutil.which(launch[0]):
            raise Needs(f"MPI: {launch[0]} is not here")
        rounds = [f"--rounds={self.options.repeat}"] if self.options.repeat else []
        result = self.builder("burst", f"--way={way}", *rounds, launch=launch, env=tuple({**MPI_ROOT, **dict(env)}.items()))
        return {row["size_bytes"]: row for row in result["rows"]}
