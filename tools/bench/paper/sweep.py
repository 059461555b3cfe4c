# SPDX-License-Identifier: LGPL-2.1-or-later
"""Send messages from writers to sinks with the settings of a file, compared with perftest, UDP sockets and ZeroMQ.

Results are medians of rounds in which all trials of a group take turns. Prints rows, and writes them and each trial with the
values of all rounds ("trials") as JSON. FILE: groups of trials and the nodes of a site in TOML; network.toml, the default,
explains the form, and 002.toml has the grids of a document. Exit status: 0 success, 1 nothing was measured, 2 wrong usage."""
import argparse
import itertools
import json
import math
import os
import statistics
import subprocess
import sys
import time
import tomllib
from pathlib import Path

HERE = Path(__file__).resolve().parent
MARGIN = 120    # seconds to connect thousands of queue pairs
SEARCH = 6      # halvings of the interval in which the largest rate without loss lies
# key, name of a row (None: no row), unit, better
METRICS = (("goodput_bytes_per_second", "goodput", "GB/s", "higher"),
           ("sink_cpu_s_per_gb", "sink's processor time", "CPU s/GB", "lower"),
           ("machine_cpu_s_per_gb", "machine's processor time", "CPU s/GB", "lower"),
           ("events_per_gb", "events", "1/GB", "lower"),
           ("writer_bytes_per_second", None, None, None),
           ("writer_cpu_s_per_gb", "writer's processor time", "CPU s/GB", "lower"),
           ("polls_per_gb", None, None, None),
           ("goodput_p10_bytes_per_second", None, None, None),
           ("cpu_p10_percent", None, None, None),
           ("latency_us", "latency", "us", "lower"),
           ("missing_percent", None, None, None),
           ("idle_watt", None, None, None), ("allocated_watt", None, None, None),
           ("power_p50_watt", None, None, None), ("power_max_watt", None, None, None))
# Settings of a trial. peer: a program of perftest. threads 0: one for each pair. regions: places of each pair, each as large
# as a chain, instead of destinations. gpu: one of the sink's node, as of network sink. private: pairs do not share receives.
# lossless: find the largest rate. Any other 0 stands for the default of rashpa-bench network.
DEFAULTS = {"peer": "", "transport": "write", "service": "uc", "size": 4096, "pairs": 1, "linked": 1, "solicited": False,
            "destinations": 1, "regions": 0, "threads": 1, "writers": 1, "sinks": 1, "pages": "thp", "wait": "event", "receives": 0,
            "private": False, "gpu": "", "depth": 0, "rate": 0, "lossless": False, "series": False}


def trial(settings, memory):
    """A trial with all its settings."""
    unknown = settings.keys() - DEFAULTS.keys() - {"name"}
    if unknown:
        raise ValueError(f"no setting \"{unknown.pop()}\"; there are name, {', '.join(DEFAULTS)}")
    t = {**DEFAULTS, **settings}
    t["name"] = t["name"].format(**t)
    t["threads"] = t["threads"] or t["pairs"]
    if t["regions"]:
        most = max(t["pairs"], memory // t["size"] // t["writers"])
        t["destinations"] = min(t["pairs"] * t["regions"] * t["linked"], most)
    return t


def groups(file, memory):
    """Groups: a name, and trials of which the first is compared with the others."""
    for group in file["group"]:
        vary = group.get("vary", {})
        for values in itertools.product(*vary.values()):
            settings = {**group.get("with", {}), **dict(zip(vary, values))}
            yield group["experiment"], [trial({**settings, **one}, memory) for one in group["trials"]]


class Failed(Exception):
    """A program ended with an error: the last line that it wrote."""


class Program:
    """A program on a node."""
    def __init__(self, node, words):
        self.name = words[0] if words[0] != "rashpa-bench" else " ".join(words[1:3])
        self.process = subprocess.Popen(node.get("at", "").split() + [str(w) for w in words], stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def end(self, seconds):
        """The output; after the time the program is killed."""
        try:
            out, errors = self.process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.communicate()
            raise Failed(f"{self.name}: no end after {seconds:.0f} s") from None
        if self.process.returncode:
            said = [line for line in errors.splitlines() if line.startswith("rashpa-bench")] or errors.splitlines()
            raise Failed(f"{self.name}: " + (said or [f"exit status {self.process.returncode}"])[-1])
        return out

    def stop(self):
        if self.process.poll() is None:
            self.process.terminate()
            self.process.communicate()


def device(node):
    return [f"--device={node['device']}"] if node.get("device") else []


class Sweep:
    def __init__(self, options, file):
        self.o = options
        self.writers, self.sinks = file.get("writer", [{}]), file.get("sink", [{}])
        self.port = options.port
        self.head = {}
        self.kept = {}
        if options.keep:
            options.keep.mkdir(parents=True, exist_ok=True)
            self.results = options.keep / "results.jsonl"
            for line in self.results.read_text(encoding="utf-8").splitlines() if self.results.exists() else ():
                one = json.loads(line)
                if "values" in one:
                    self.kept[one["key"]] = one
                    self.head = self.head or one["head"]

    def run(self, experiment, t, number):
        """Values of a round: kept ones of an earlier run, or new ones."""
        key = json.dumps([experiment, number, self.o.time, t])
        if key in self.kept:
            return self.kept[key]["values"]
        print(f"{experiment}: {t['name']}, {t['size']} bytes, round {number + 1}", file=sys.stderr, flush=True)
        one = {"key": key, "experiment": experiment, "round": number, "settings": t}
        try:
            one["values"], one["sides"] = self.search(t) if t["lossless"] else self.once(t)
            one["head"] = self.head
            return one["values"]
        except (Failed, OSError, ValueError, KeyError) as error:
            one["failed"] = str(error)
            raise Failed(one["failed"]) from None
        finally:
            if self.o.keep:
                with open(self.results, "a", encoding="utf-8") as file:
                    file.write(json.dumps(one) + "\n")

    def once(self, t, rate=0):
        return self.perftest(t) if t["peer"] else self.ours({**t, "rate": rate or t["rate"]})

    def search(self, t):
        """The largest rate at which nothing is missing, by halves."""
        best = values, _ = self.once(t)
        low, high = 0, values["goodput_bytes_per_second"]
        if not values["missing_percent"]:
            return best
        best = None
        for _ in range(SEARCH):
            rate = max(1, int((low + high) / 2))
            tried = self.once(t, rate)
            if tried[0]["missing_percent"]:
                high = rate
            else:
                low, best = rate, tried
        if not best:
            raise Failed(f"messages are missing even at {rate} bytes/s")
        return best

    def ours(self, t):
        """Values of METRICS, and the reports of all sides."""
        both = [f"--wait={t['wait']}", f"--threads={t['threads']}"]
        memory = (t["size"] * t["destinations"] + 4096) * t["writers"]
        where = [self.sinks[i % len(self.sinks)] for i in range(t["sinks"])]
        to = [f"{node['address']}:{self.port + i}" for i, node in enumerate(where)]
        self.port += t["sinks"]
        sinks = [Program(node, ["rashpa-bench", "network", "sink", f"--listen={at}", f"--memory={memory}", f"--writers={t['writers']}",
                                f"--pages={t['pages']}", "--json", *both, *device(node),
                                *([f"--gpu={t['gpu']}"] if t["gpu"] else []),
                                *(["--series"] if t["series"] else []), *(["--private-receives"] if t["private"] else []),
                                *([f"--receives={t['receives']}"] if t["receives"] else [])]) for node, at in zip(where, to)]
        words = ["rashpa-bench", "network", "write", *(f"--to={at}" for at in to),
                 *(f"--{key}={t[key]}" for key in ("transport", "service", "size", "pairs", "linked", "destinations")),
                 f"--time={self.o.time}", f"--warm-up={self.o.warm_up}", "--repeat=1", "--json", *both,
                 *(f"--{key}={t[key]}" for key in ("depth", "rate") if t[key]), *(["--solicited"] if t["solicited"] else [])]
        nodes = [self.writers[i % len(self.writers)] for i in range(t["writers"])]
        writers = [Program(node, words + device(node)) for node in nodes]
        try:
            # writers first: they notice the end of a sink, but a sink may wait for ever
            sides = [json.loads(p.end(self.o.time + self.o.warm_up + MARGIN)) for p in writers + sinks]
        except Failed:
            for program in sinks:
                if program.process.poll():      # the writer's reason is only that it is not there
                    program.end(1)
            raise
        finally:
            for program in writers + sinks:
                program.stop()
        self.head = {key: sides[0].get(key) for key in ("version", "machine")}
        mine, results = sides[0]["repeats"][0]["write"], [side["repeats"][0] for side in sides[len(writers):]]

        def mean(key):
            return sum(r.get(key) or 0 for r in results) / len(results)
        sent = sum(r["sent_messages"] for r in results)
        values = {"goodput_bytes_per_second": mean("goodput_bytes_per_second") * len(results),
                  "goodput_p10_bytes_per_second": mean("goodput_p10_bytes_per_second") * len(results),
                  "sink_cpu_s_per_gb": mean("cpu_s_per_gb"), "cpu_p10_percent": mean("cpu_p10_percent"),
                  # each sink relates the load of the whole machine to its part of the bytes
                  "machine_cpu_s_per_gb": mean("machine_cpu_s_per_gb") / len(results),
                  "events_per_gb": mean("events_per_gb"), "polls_per_gb": mean("polls_per_gb"),
                  "writer_bytes_per_second": mine["posted_bytes_per_second"], "writer_cpu_s_per_gb": mine.get("cpu_s_per_gb", math.nan),
                  "missing_percent": 100 * sum(r["missing_messages"] for r in results) / sent if sent else math.nan}
        for one in (sides[-1].get("gpu", {}), results[-1]):
            values |= {key: one[key] for key in ("idle_watt", "allocated_watt", "power_p50_watt", "power_max_watt") if key in one}
        if t["series"]:
            values["series"] = results[0]["series"]
        return values, sides

    def perftest(self, t):
        margin = max(1, math.ceil(self.o.warm_up))
        seconds = math.ceil(self.o.time) + 2 * margin
        sink, writer = self.sinks[0], self.writers[0]
        latency = t["peer"] == "ib_write_lat"
        way = {"ib_send_bw": ["--connection=UD"], "ib_write_lat": [f"--connection={t['service'].upper()}"]}.get(
            t["peer"], ["--write_with_imm", f"--connection={t['service'].upper()}"])

        def words(node):
            many = [] if latency else [f"--qp={t['pairs']}", f"--tx-depth={t['depth'] or 128}", f"--margin={margin}", "--report_gbits",
                                       *([f"--post_list={t['linked']}"] if t["linked"] > 1 else [])]
            return [t["peer"], *([f"--ib-dev={node['device']}"] if node.get("device") else []), *way, f"--size={t['size']}", *many,
                    *(["--iters=1000"] if latency else [f"--duration={seconds}"]), "--CPU-freq", f"--port={self.port}",
                    "--out_json", "--out_json_file=/dev/stdout"]
        server = Program(sink, words(sink))
        try:
            # a client does not wait for its server
            for attempt in range(20):
                time.sleep(0.2)
                try:
                    client = Program(writer, words(writer) + [sink["address"]]).end(seconds + MARGIN)
                    break
                except Failed:
                    if attempt == 19:
                        raise
            text = server.end(MARGIN)
        finally:
            server.stop()
            self.port += 1
        text = client if latency else text
        results = json.loads(text[text.find("\n{"):text.rfind("}") + 1] or "{}").get("results", {})
        if latency:
            return {"latency_us": results["t_typical"]}, [results]
        # The message rate has more digits than the bandwidth; servers of UD report only the number of messages.
        rate = results.get("MsgRate", 0) * 1e6 or results.get("n_iterations", 0) / (seconds - 2 * margin)
        if not rate > 0:
            raise Failed("no message arrived: perftest ends if it loses a packet of a longer message")
        return {"goodput_bytes_per_second": rate * t["size"]}, [results]


def rows_of(group, rounds):
    for t, theirs in list(zip(group, rounds))[1:]:
        for key, name, unit, better in METRICS:
            mine, others = ([r[key] for r in values if r.get(key, -1) >= 0] for values in (rounds[0], theirs))
            ratios = [a[key] / b[key] for a, b in zip(rounds[0], theirs) if key in a and b.get(key)]
            if not name or not mine or not others or not max(others):
                continue
            scale = 1e9 if unit == "GB/s" else 1
            yield {"name": name, "backend": group[0]["name"], "peer": t["name"], "size_bytes": t["size"],
                   "ours": statistics.median(mine) / scale, "theirs": statistics.median(others) / scale,
                   "ratio": statistics.median(ratios) if ratios else None, "unit": unit, "better": better}


def trial_of(experiment, t, rounds):
    o = {"experiment": experiment, "name": t["name"], "transport": "perftest" if t["peer"] else t["transport"], "size_bytes": t["size"],
         **{k: t[k] for k in ("service", "pairs", "linked", "solicited", "destinations", "threads", "writers", "sinks", "pages", "wait", "rate")}}
    for key, *_ in METRICS:
        values = sorted(r[key] for r in rounds if r.get(key, math.nan) >= 0)
        o[key] = statistics.median(values) if values else None
        o[key + "_rounds"] = values
    series = [r["series"] for r in rounds if "series" in r]
    return {**o, "series": series} if series else o


def parse():
    parser = argparse.ArgumentParser(prog="rashpa-bench network sweep", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", nargs="?", metavar="FILE", type=Path, default=HERE / "network.toml",
                        help="groups and nodes; a name without a slash may be one of the files here, as 002.toml")
    parser.add_argument("--address", help="address of the sink, as the writer reaches it")
    parser.add_argument("--port", type=int, default=18600, help="first one of those that are used")
    for side in "sink", "writer":
        parser.add_argument(f"--{side}-at", metavar="COMMAND", help="starts programs there, as \"ip netns exec a\" or \"ssh host\"")
        parser.add_argument(f"--{side}-device", metavar="NAME", help="RDMA device; default: the first one")
    parser.add_argument("--time", type=float, help="seconds of a trial (default: 2); perftest counts in full seconds")
    parser.add_argument("--warm-up", type=float, help="seconds before (default: 1)")
    parser.add_argument("--repeat", type=int, help="rounds (default: 3)")
    parser.add_argument("--memory", type=int, help="most bytes of a sink for regions (default: 256 MiB)")
    parser.add_argument("--only", metavar="NAME,...", help="experiments; default: all")
    parser.add_argument("--keep", metavar="FOLDER", type=Path, help="append each round to FOLDER/results.jsonl, and skip those it has")
    parser.add_argument("--json", metavar="FILE", nargs="?", const="/dev/stdout", help="file for the results; default: instead of the rows")
    o = parser.parse_args()
    at = o.file if o.file.exists() or os.sep in str(o.file) else HERE / o.file
    try:
        with open(at, "rb") as stream:
            file = tomllib.load(stream)
        for key, value in {"time": 2, "warm_up": 1, "repeat": 3, "memory": 256 << 20, **file.get("run", {})}.items():
            if getattr(o, key) is None:
                setattr(o, key, value)
        all_groups = list(groups(file, o.memory))
    except (OSError, ValueError, KeyError, AttributeError) as error:
        parser.error(f"{at}: {error}")
    if o.address or o.sink_at:
        file["sink"] = [{"at": o.sink_at or "", "address": o.address, "device": o.sink_device}]
    if o.writer_at or o.writer_device:
        file["writer"] = [{"at": o.writer_at or "", "device": o.writer_device}]
    if not all(node.get("address") for node in file.get("sink", [{}])):
        parser.error("an address of a sink is missing: set --address, or address of [[sink]] in the file")
    return o, file, all_groups


def main():
    o, file, all_groups = parse()
    sweep, rows, trials, left_out = Sweep(o, file), [], [], []
    for experiment, group in all_groups:
        if o.only and not any(word in experiment for word in o.only.split(",")):
            continue
        rounds = [[] for _ in group]
        for number in range(o.repeat):
            # the order alternates, as the first one finds another machine
            for i in range(len(group))[::-1 if number % 2 else 1]:
                try:
                    rounds[i].append(sweep.run(experiment, group[i], number))
                except Failed as error:
                    rounds[i].append({})
                    left_out.append({"name": f"{group[i]['name']}, {group[i]['size']} bytes, round {number + 1}", "reason": str(error)})
        rows += rows_of(group, rounds)
        trials += [trial_of(experiment, t, values) for t, values in zip(group, rounds)]
    if o.json != "/dev/stdout":
        for row in rows:
            print(f"{row['name']:26} {row['size_bytes']:8}  {row['backend']:26} {row['peer']:26} {row['ours']:10.4g} "
                  f"{row['theirs']:10.4g} {row['ratio'] or math.nan:7.2f}")
        for one in left_out:
            print(f"not measured: {one['name']}: {one['reason']}")
    if o.json:
        with open(o.json, "w", encoding="utf-8") as out:
            json.dump({"bench": "network", **sweep.head, "repetitions": o.repeat, "rows": rows, "trials": trials, "left_out": left_out},
                      out, indent=1)
    sys.exit(not any(t[key + "_rounds"] for t in trials for key, *_ in METRICS))


if __name__ == "__main__":
    main()
