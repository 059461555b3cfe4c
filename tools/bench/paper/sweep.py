# SPDX-License-Identifier: LGPL-2.1-or-later
"""Send messages from a writer to a sink with many settings, beside ib_write_bw, UD SEND, UDP sockets and ZeroMQ.

Results are medians of rounds in which all settings of a group take turns. Prints rows, and writes them and each setting
with the values of all rounds ("trials") to a file of JSON. Exit status: 0 success, 1 nothing was measured.

Experiments: "peers" sizes, uc and rc, one destination and 10^5; A: rc beside UDP; B: pages of the sink's memory (those of
2M and 1G have to be reserved before); C: linked writes with one solicited event each chain, and without; D, E: queue pairs
with a thread each, and with one thread; G, H: four writers, one sink with one thread or 16; J: one writer, four sinks."""
import argparse
import json
import math
import statistics
import subprocess
import sys
import tempfile
import time

MARGIN = 120    # seconds to connect thousands of queue pairs
# key, of the writer's result for a sink, name of a row (None: no row), unit, better
METRICS = (("goodput_bytes_per_second", "goodput_bytes_per_second", "goodput", "GB/s", "higher"),
           ("sink_cpu_s_per_gb", "cpu_s_per_gb", "sink's processor time", "CPU s/GB", "lower"),
           ("machine_cpu_s_per_gb", "machine_cpu_s_per_gb", "machine's processor time", "CPU s/GB", "lower"),
           ("events_per_gb", "events_per_gb", "events", "1/GB", "lower"),
           ("polls_per_gb", "polls_per_gb", None, None, None),
           ("missing_percent", None, None, None, None))
DEFAULTS = {"peer": None, "transport": "write", "service": "uc", "pairs": 1, "linked": 1, "solicited": False, "destinations": 1,
            "threads": 1, "writers": 1, "sinks": 1, "pages": "thp", "wait": "event", "receives": 0, "depth": 0, "rate": 0}


def trial(name, size, **settings):
    return {**DEFAULTS, "name": name, "size": size, **settings}


def experiments():
    """Groups: a name, and trials of which the first is compared with the others."""
    # all poll, as perftest does
    for name, size, settings in [("uc", 4096, {}), ("rc", 4096, {"service": "rc"}), ("uc, 8 pairs, linked", 4096, {"linked": 64, "pairs": 8})] + [
            (service, size, {"service": service}) for size in (16384, 65536, 1 << 20) for service in ("uc", "rc")]:
        yield "peers", [trial(name, size, wait="poll", **settings),
                        trial("ib_write_bw " + name, size, peer="ib_write_bw", wait="poll", **settings)]
    for size in 2048, 4096:
        yield "peers", [trial("uc, poll", size, wait="poll"), trial("UD send", size, peer="ib_send_bw", wait="poll")]
    # transports that detectors use without RDMA
    for places, suffix in (1, ""), (100000, ", 10^5"):
        for size in 2048, 4096, 8246:
            yield "peers", [trial("uc" + suffix, size, depth=256, linked=64, solicited=True, destinations=places),
                            trial("UDP sockets", size, transport="udp", destinations=places),
                            trial("ZeroMQ push/pull", size, transport="zmq", destinations=places)]
    for size in 9000, 32768, 65507:
        yield "A", [trial("rc", size, service="rc"), trial("UDP sockets", size, transport="udp")]
    for size in 4096, 65536, 1 << 20:
        yield "B", [trial(pages, size, pages=pages, linked=10, destinations=10) for pages in ("thp", "2M", "1G")]
    # at a low rate the sink is idle between messages, and the goodput is the same
    for size, chain, rate in [(s, c, 0) for s in (4096, 16384) for c in (5, 25, 100)] + [
            (s, c, 4000000) for s, c in ((4096, 25), (4096, 100), (16384, 25))]:
        yield "C", [trial(f"{how}, {chain}{', 4 MB/s' if rate else ''}", size, rate=rate, depth=256, receives=2000, linked=chain,
                          solicited=how == "solicited") for how in ("solicited", "unsolicited")]
    for size in 4096, 16384:
        for pairs in 1, 8, 32:
            same = {"depth": 100, "pairs": pairs, "linked": 50, "solicited": True}
            yield "D, E", [trial(f"one thread, {pairs}", size, receives=2000, **same),
                           trial(f"a thread each, {pairs}", size, threads=pairs, receives=200, **same)]
    many = {"receives": 20000, "depth": 20, "linked": 10, "solicited": True}
    for size in 4096, 16384:
        for pairs in 100, 750:
            yield "E", [trial(f"one thread, {pairs}", size, pairs=pairs, **many)]
    # Rates are limited: thousands of queues would start with more data than a card or a line can buffer.
    for pairs in 1, 10, 100, 500:
        yield "G, H", [trial(f"4 to 1, {name}, 4 x {pairs}", 8192, writers=4, rate=5000000, threads=threads, pairs=pairs, **many)
                       for name, threads in (("one thread", 1), ("16 threads", 16))]
    for pairs in 1, 100, 500:
        yield "J", [trial(f"1 to 4, 4 x {pairs}", 8192, sinks=4, rate=20000000, pairs=pairs, **many)]


def end(process, seconds):
    """Its exit status, and what it wrote; it is ended after the time."""
    try:
        out = process.communicate(timeout=seconds)[0]
    except subprocess.TimeoutExpired:
        process.kill()
        out = process.communicate()[0]
    return process.returncode, out


def start(at, words, **more):
    return subprocess.Popen(at.split() + [str(w) for w in words], stdin=subprocess.DEVNULL, text=True,
                            **{"stdout": subprocess.DEVNULL, **more})


def device(name):
    return [f"--device={name}"] if name else []


def ours(o, t, machine):
    """Goodput and the others of METRICS, from the report of the first writer."""
    both = [f"--wait={t['wait']}", f"--threads={t['threads']}"]
    memory = t["size"] * t["destinations"] * t["writers"] + 4096 * 16
    sinks = [start(o.sink_at, ["rashpa-bench", "network", "sink", f"--listen={o.address}:{o.port + i}", f"--memory={memory}",
                               f"--writers={t['writers']}", f"--pages={t['pages']}", *both, *device(o.sink_device)]
                   + ([f"--receives={t['receives']}"] if t["receives"] else [])) for i in range(t["sinks"])]
    words = ["rashpa-bench", "network", "write", *(f"--to={o.address}:{o.port + i}" for i in range(t["sinks"])),
             *(f"--{key}={t[key]}" for key in ("transport", "service", "size", "pairs", "linked", "destinations")),
             f"--time={o.time}", f"--warm-up={o.warm_up}", "--repeat=1", "--json", *both, *device(o.writer_device),
             *(f"--{key}={t[key]}" for key in ("depth", "rate") if t[key]), *(["--solicited"] if t["solicited"] else [])]
    writers = [start(o.writer_at, words, **({} if i else {"stdout": subprocess.PIPE})) for i in range(t["writers"])]
    o.port += t["sinks"]
    out, bad = "", 0
    # writers first: they notice the end of a sink, but a sink may wait for ever
    for i, process in enumerate(writers + sinks):
        if bad:
            process.terminate()
        status, said = end(process, o.time + o.warm_up + MARGIN)
        bad |= status
        out = out if i else said
    if bad:
        raise ChildProcessError("a program failed: see above")
    report = json.loads(out)
    machine.update(report)
    results = report["repeats"][0]["sinks"]
    sums = {key: sum(r[theirs] or 0 for r in results) / len(results) for key, theirs, *_ in METRICS if theirs}
    # each sink relates the load of the whole machine to its part of the bytes
    sums["machine_cpu_s_per_gb"] /= len(results)
    sums["goodput_bytes_per_second"] *= len(results)
    sent = sum(r["sent_messages"] for r in results)
    sums["missing_percent"] = 100 * sum(r["missing_messages"] for r in results) / sent if sent else math.nan
    return sums


def perftest(o, t):
    margin = max(1, math.ceil(o.warm_up))
    seconds = math.ceil(o.time) + 2 * margin

    def words(name, out):
        way = ["--connection=UD"] if t["peer"] == "ib_send_bw" else ["--write_with_imm", f"--connection={t['service'].upper()}"]
        return [t["peer"], *([f"--ib-dev={name}"] if name else []), *way, f"--size={t['size']}", f"--qp={t['pairs']}",
                *([f"--post_list={t['linked']}"] if t["linked"] > 1 else []), f"--tx-depth={t['depth'] or 128}",
                f"--duration={seconds}", f"--margin={margin}", "--CPU-freq", "--report_gbits", f"--port={o.port}", "--out_json",
                f"--out_json_file={out}"]
    with tempfile.NamedTemporaryFile() as file:
        server = start(o.sink_at, words(o.sink_device, file.name))
        # a client does not wait for its server
        for attempt in range(20):
            time.sleep(0.2)
            client = start(o.writer_at, words(o.writer_device, "/dev/null") + [o.address],
                           **({"stderr": subprocess.DEVNULL} if attempt < 19 else {}))
            if end(client, seconds + MARGIN)[0] == 0:
                break
        else:
            server.terminate()
        status = end(server, MARGIN)[0]
        o.port += 1
        if status:
            raise ChildProcessError("perftest failed: see above")
        results = json.load(file).get("results", {})
    # The message rate has more digits than the bandwidth; servers of UD report only the number of messages.
    rate = results.get("MsgRate", 0) * 1e6 or results.get("n_iterations", 0) / (seconds - 2 * margin)
    if not rate > 0:
        raise ChildProcessError("no message arrived: perftest ends if it loses a packet of a longer message")
    return {"goodput_bytes_per_second": rate * t["size"]}


def rows_of(group, rounds):
    for t, theirs in list(zip(group, rounds))[1:]:
        for key, _, name, unit, better in METRICS:
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
         **{k: t[k] for k in ("service", "pairs", "linked", "solicited", "destinations", "threads", "writers", "sinks", "pages", "wait")}}
    for key, *_ in METRICS:
        values = sorted(r[key] for r in rounds if r.get(key, math.nan) >= 0)
        o[key] = statistics.median(values) if values else None
        o[key + "_rounds"] = values
    return o


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--address", required=True, help="address of the sink, as the writer reaches it")
    parser.add_argument("--port", type=int, default=18600, help="first one of those that are used")
    for side in "sink", "writer":
        parser.add_argument(f"--{side}-at", default="", metavar="COMMAND",
                            help="starts programs there, as \"ip netns exec a\" or \"ssh host\"")
        parser.add_argument(f"--{side}-device", metavar="NAME", help="RDMA device; default: the first one")
    parser.add_argument("--time", type=float, default=2, help="seconds of a trial; perftest counts in full seconds")
    parser.add_argument("--warm-up", type=float, default=1, help="seconds before")
    parser.add_argument("--repeat", type=int, default=3, help="rounds")
    parser.add_argument("--only", metavar="NAME,...", help="experiments; default: all")
    parser.add_argument("--json", metavar="FILE", nargs="?", const="/dev/stdout", help="file for the results; default: instead of the rows")
    o = parser.parse_args()
    report, rows, trials, left_out = {}, [], [], []
    for experiment, group in experiments():
        if o.only and not any(word in experiment for word in o.only.split(",")):
            continue
        rounds = [[] for _ in group]
        for number in range(o.repeat):
            # the order alternates, as the first one finds another machine
            for i in range(len(group))[::-1 if number % 2 else 1]:
                t = group[i]
                print(f"{experiment}: {t['name']}, {t['size']} bytes, round {number + 1}", file=sys.stderr, flush=True)
                try:
                    rounds[i].append(perftest(o, t) if t["peer"] else ours(o, t, report))
                except (OSError, ValueError, KeyError) as error:
                    rounds[i].append({})
                    left_out.append({"name": f"{t['name']}, {t['size']} bytes, a round", "reason": str(error)})
        rows += rows_of(group, rounds)
        trials += [trial_of(experiment, t, values) for t, values in zip(group, rounds)]
    shown = o.json != "/dev/stdout"
    for row in rows if shown else ():
        print(f"{row['name']:26} {row['size_bytes']:8}  {row['backend']:26} {row['peer']:26} {row['ours']:10.4g} "
              f"{row['theirs']:10.4g} {row['ratio'] or math.nan:7.2f}")
    for one in left_out if shown else ():
        print(f"not measured: {one['name']}: {one['reason']}")
    if o.json:
        with open(o.json, "w", encoding="utf-8") as file:
            json.dump({"bench": "network", **{k: report.get(k) for k in ("version", "machine")}, "repetitions": o.repeat,
                       "rows": rows, "trials": trials, "left_out": left_out}, file, indent=1)
    sys.exit(not report)


if __name__ == "__main__":
    main()
