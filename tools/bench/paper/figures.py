# SPDX-License-Identifier: LGPL-2.1-or-later
"""How each figure is measured here. The docstring says how this differs from the document's measurement; a row has the
names of the document's rows, so that equal ones are printed in one line. Other quantities are not yielded; a
row may have "needs" instead of a value."""
import math
import re
import statistics

from benches import Needs

HOW = {}


def figure(source, *ids):
    def add(function):
        for one in ids:
            HOW[source, one] = function
        return function
    return add


def missing(what, reason, **at):
    return {"what": what, "needs": reason, **at}


# --- 000

@figure("000", "2.4")
def memory_copies(b):
    """One thread, copies within one block; blocks of the driver (contig, cma) are pinned and contiguous, of others pages
    of the kernel. No copies below 1 MiB."""
    rows = [r for r in b.bench("memory", "--sizes=2M,16M,128M")["rows"] if r["name"] == "copy, in sequence"]
    if not rows:
        raise Needs("the driver, and memory: see rashpa-bench memory")
    seen = set()
    for r in rows:
        for name, value in ((r["backend"], r["ours"]), (r["peer"], r["theirs"])):
            if name and value and (name, r["size_bytes"]) not in seen:
                seen.add((name, r["size_bytes"]))
                yield {"what": name, "size_bytes": r["size_bytes"] // 2, "throughput_gbyte_per_s": value}


SOCKETS = {"UDP, regular socket": "UDP sockets, without loss", "ZeroMQ, push/pull": "ZeroMQ push/pull"}


def find(trials, name, size, places=None):
    return next((t for t in trials if (t["name"], t["size_bytes"]) == (name, size) and places in (None, t["destinations"])), None)


def of_trial(b, trial, what, remark="", **at):
    """Goodput, and percent of a core that the sink takes, if they are known."""
    if not trial or not trial["goodput_bytes_per_second"]:
        yield missing(what, "a trial of rashpa-bench network sweep that succeeds", **at)
        return
    rate = trial["goodput_bytes_per_second"]
    at = {"what": what, "remark": ", ".join(filter(None, (remark, b.network_remark()))), **at}
    yield {**at, "goodput_gbit_per_s": rate * 8e-9}
    if trial.get("sink_cpu_s_per_gb") is not None:
        yield {**at, "cpu_percent": trial["sink_cpu_s_per_gb"] * rate * 1e-7}


def throughput_of(b, trial, what, **at):
    """The same without the processor time, by the name of the thesis about RASHPA."""
    for row in of_trial(b, trial, what, **at):
        if "cpu_percent" not in row:
            yield {{"goodput_gbit_per_s": "throughput_gbit_per_s"}.get(k, k): v for k, v in row.items()}


@figure("000", "T3.1")
def sockets(b):
    """Both ends as given. UDP: the largest rate without loss, found by halves; ZeroMQ loses nothing."""
    trials = b.network("peers")
    for what, name in SOCKETS.items():
        for size in 2048, 4096, 8246:
            for places in 1, 100000:
                yield from throughput_of(b, find(trials, name, size, places), what, size_bytes=size, destinations=places)
    for what in "UDP, kernel tuning", "UDP, VMA", "ZeroMQ, rep/req":
        yield missing(what, "a transport that rashpa-bench network has not")


@figure("000", "T3.2")
def verbs(b):
    """SEND: perftest, unreliable datagrams. WRITE: with immediate, which the document's has only at the end of images;
    one destination, both ends poll."""
    trials = b.network("peers")
    for what, name in ("SEND", "UD send"), ("WRITE", "uc, poll"):
        for size in 2048, 4096:
            yield from throughput_of(b, find(trials, name, size), what, size_bytes=size)
    yield missing("RAW", "raw queue pairs, which no command uses")


def rates(rows):
    """Bytes a second of transfers without a wait, by size."""
    return {r["size_bytes"]: r["size_bytes"] / r["dma_ns"] for r in rows}


@figure("000", "S3.4.2")
def largest_rate(b):
    """The board writes to memory of the host without a wait; the best size of 1 KiB to 4 MiB."""
    size, rate = max(rates(b.roundtrip()).items(), key=lambda one: one[1])
    yield {"what": "largest rate of the DMA engine", "throughput_gbyte_per_s": rate,
           "remark": ", ".join(filter(None, (f"{size} bytes", b.board_remark())))}


@figure("000", "4.5")
def launches(b):
    """From the call of the host until it sees the first store of the kernel: one way over the bus more than the
    profiler has. With Vulkan it waits for a semaphore, with CUDA for a word."""
    rows, name = b.gpu("--sizes=4K", "--copies=16M")
    for what, of in ("the host launches", "a launch"), ("enqueued ahead, waits for a word", "a launch ahead, flush off"):
        row = rows.get((of, 4))
        yield ({"what": what, "launch_us": row["ours"], "remark": name} if row else
               missing(what, f"a GPU that can do it: {name} cannot"))


def copies(rows, name):
    """(size, row), the largest last"""
    found = sorted((size, row) for (of, size), row in rows.items() if of == name)
    if not found:
        raise Needs(f"a GPU with a measurement of \"{name}\"")
    return found


@figure("000", "4.9")
def paths(b):
    """The copy of pinned memory of the host, the largest of up to 16 MiB."""
    rows, name = b.gpu("--sizes=4K", "--copies=16M")
    best = max(row["ours"] for _, row in copies(rows, "a copy to it, of pinned memory"))
    yield {"what": "main memory to the GPU (step 2.2)", "throughput_gbit_per_s": 8 * best, "remark": name}
    for what in "network card to the GPU (step 2)", "network card to main memory (step 2.1)":
        yield missing(what, "a network card of RDMA: T3.2 has its rate into main memory")


@figure("000", "4.10")
def overlap(b):
    """24 images in memory of the host, enqueued ahead; every other one is accepted. The most streams that work at a time, as
    the host sees it, within about 20 us."""
    events, name = b.timeline(("000", "4.10"))
    # times are rounded to nanoseconds
    most = max(sum(e["ts"] <= one["ts"] < e["ts"] + e["dur"] - 0.002 for e in events) for one in events)
    yield {"what": "copy in, kernel, copy out", "in_flight": most, "remark": name}


@figure("000", "T4.1")
def kernels(b):
    """Images of a counting detector in memory of the GPU, enqueued ahead, eight at a time, all vetoed: from the first kernel to the
    end of the last one, an eighth of it. The waits between kernels are in it."""
    rows, name = b.gpu("--sizes=512K,4M", "--copies=16M")
    for image, pixels in ("500K", 512 << 10), ("4M", 4 << 20):
        row = rows.get(("an image in the GPU, driven by launches ahead", 2 * pixels))
        if row:
            yield {"what": "pre-processing and simple count of peaks", "image": image, "kernel_us": row["ours"],
                   "remark": f"{pixels} pixels; {name}"}
    yield missing("pre-processing and simple count of peaks", "images of another size than a power of two", image="2070x2167")
    for what in "pre-processing", "pre-processing and CSR":
        yield missing(what, "kernel times of single stages: rashpa-bench gpu times the host's calls")
    yield missing("peak finder of pyFAI", "a peak finder on the GPU: processors find peaks")


@figure("000", "4.11")
def into_gpu(b):
    """Copies until the host knows of their end. Virtual memory: a processor copies it into pinned memory first."""
    rows, name = b.gpu("--sizes=4K", "--copies=16M")
    for size, row in copies(rows, "a copy to it, of pinned memory"):
        yield {"what": "pinned memory", "size_bytes": size, "throughput_gbit_per_s": 8 * row["ours"], "remark": name}
        if row["theirs"]:
            yield {"what": "virtual memory", "size_bytes": size, "throughput_gbit_per_s": 8 * row["theirs"], "remark": name}
    yield missing("network card to the GPU", "a network card that writes into a GPU")
    for what in "ZeroMQ", "ZeroMQ, request/reply":
        yield missing(what, "messages of ZeroMQ into a GPU, which no command sends")


@figure("000", "4.12")
def from_board(b):
    """Transfers without a wait, by the counter of the board."""
    for size, rate in rates(b.roundtrip()).items():
        yield {"what": "to memory of the host", "size_bytes": size, "throughput_gbyte_per_s": rate, "remark": b.board_remark()}
    rows, remark = b.roundtrip_gpu("off")
    for size, rate in rates(rows).items():
        yield {"what": "to memory of the GPU", "size_bytes": size, "throughput_gbyte_per_s": rate, "remark": remark}


@figure("000", "4.13")
def reads(b):
    """The difference of a transfer of 8 bytes with a flush and without: a read of one byte by the board, mean of 200."""
    def host(flush):
        return b.roundtrip("--sizes=8", f"--flush={flush}"), b.board_remark()

    for what, run in ("memory of the host", host), ("memory of the GPU", lambda flush: b.roundtrip_gpu(flush, "--sizes=8")):
        yield missing(what, "a board that times each read: the interface has no counter of it")
        (yes, remark), (no, _) = run("on"), run("off")
        yield {"what": f"{what}, mean of one byte", "read_us": (yes[0]["dma_ns"] - no[0]["dma_ns"]) / 1e3, "remark": remark}


@figure("000", "S4.3.2")
def on_processors(b):
    """Images of a JUNGFRAU with three gains and a pedestal that stays; no dark images between them."""
    most = 0
    for r in b.bench("process", "--sizes=4M")["rows"]:
        if r["name"] == "pretreat, raw bytes":
            most = int(r["backend"].split()[1])
            yield {"what": "pre-processing", "processors": most, "throughput_gbyte_per_s": r["ours"], "remark": "4 Mpixel"}
    yield missing("pre-processing", f"12 processors: here are {most}", processors=12)


# --- 001

@figure("001", "S2.2")
def inside(b):
    """Copies from one buffer to another of the same size."""
    rows, name = b.gpu("--sizes=4K", "--copies=16M")
    found = copies(rows, "a copy in it")
    for size, row in found:
        yield {"what": "copies", "size_bytes": size, "throughput_gbyte_per_s": row["ours"], "remark": name}
    size, row = found[-1]
    yield {"what": "largest rate, copies above 5 MB", "throughput_gbyte_per_s": row["ours"], "remark": f"{size} bytes; {name}"}


@figure("001", "S2.1")
def to_board(b):
    """From memory of the GPU into the window of on-board memory, until the host has read the last word back."""
    rows, name = b.gpu("--sizes=4K", "--copies=16M", f"--fpga={b.board()}")
    for size, row in copies(rows, "a copy of it, to the board"):
        yield {"what": "copies to the board", "size_bytes": size, "throughput_gbyte_per_s": row["ours"],
               "remark": ", ".join(filter(None, (name, b.board_remark())))}


def trips(rows):
    """Round trips of a program that looks at the lock record all the time: as the documents' hosts do."""
    return [r for r in rows if r["path"] == "lock, spinning"]


@figure("001", "4")
def throughput(b):
    """Size by the time of a round trip, so that the handshake is in it; 1 KiB to 4 MiB."""
    rows = [(r["size_bytes"], r["size_bytes"] / r["p50_ns"]) for r in trips(b.roundtrip())]
    for size, rate in rows:
        yield {"what": "to memory of the host", "size_bytes": size, "throughput_gbyte_per_s": rate, "remark": b.board_remark()}
    yield {"what": "to memory of the host, largest rate", "throughput_gbyte_per_s": max(rate for _, rate in rows), "remark": b.board_remark()}
    yield missing("to memory of the host, PCIe gen1 x4 (setup 2)", "a slot of PCIe gen1 x4")
    rows, remark = b.roundtrip_gpu("off")
    for r in trips(rows):
        yield {"what": "to memory of the GPU", "size_bytes": r["size_bytes"], "throughput_gbyte_per_s": r["size_bytes"] / r["p50_ns"],
               "remark": remark}


@figure("001", "5a")
def round_trip(b):
    """From one notification to the next, which has the same four steps; 1 KiB is 1024 bytes."""
    for r in trips(b.roundtrip()):
        yield {"what": "lowest", "size_bytes": r["size_bytes"], "round_trip_us": r["min_ns"] / 1e3, "remark": b.board_remark()}
        yield {"what": "median", "size_bytes": r["size_bytes"], "round_trip_us": r["p50_ns"] / 1e3, "remark": b.board_remark()}


@figure("001", "5b")
def round_trip_gpu(b):
    """As 5a; without a flush the notification may be earlier than the data at all sizes. The path from board to GPU is that of
    this machine: rashpactl doctor names it."""
    for flush in "off", "on":
        rows, remark = b.roundtrip_gpu(flush)
        for r in trips(rows):
            yield {"what": f"median, flush {flush}", "size_bytes": r["size_bytes"], "round_trip_us": r["p50_ns"] / 1e3, "remark": remark}


# --- 002

def named(trials, pattern):
    """(trial, number in its name) of those whose name is the pattern with a number"""
    for t in trials:
        found = re.fullmatch(pattern.replace("#", r"(\d+)"), t["name"])
        if found:
            yield t, int(found.group(1))


def of_writer(b, trial, what, **at):
    """Of the first writer: bytes that it posted a second, and percent of a core."""
    seen = trial and {**trial, "goodput_bytes_per_second": trial["writer_bytes_per_second"], "sink_cpu_s_per_gb": trial["writer_cpu_s_per_gb"]}
    return of_trial(b, seen, what, **at)


def over_time(b, trial, what, **at):
    """Of the samples of 10 ms of each round: the lowest, and the median."""
    for number, series in enumerate(trial.get("series", []) if trial else [], 1):
        rates = series["goodput_bytes_per_second"]
        for name, of in ("lowest", min), ("median", statistics.median):
            if rates:
                yield {"what": f"{what}, {name} of {len(rates)} samples, round {number}", "goodput_gbit_per_s": of(rates) * 8e-9,
                       "remark": b.network_remark(), **at}


@figure("002", "E3.1")
def pairs_of_node(_):
    """The equation; of another site: stations by subbands by compute nodes, rounded up."""
    yield {"what": "LOFAR", "subbands": 488, "stations": 80, "nodes": 24, "queue_pairs": math.ceil(488 * 80 / 24)}


@figure("002", "T5.1")
def udp_roce(b):
    """Largest datagram 65507 bytes; RoCE in 64 kB likewise; goodput and processor time of the sink. UDP: the largest rate without
    loss; the document does not say whether its rate has any."""
    trials = b.network("A")
    for what, name in ("UDP", "UDP sockets, without loss"), ("RoCE", "rc"):
        for size, here in (9000, 9000), (32000, 32768), (64000, 65507):
            yield from of_trial(b, find(trials, name, here), what, "" if here == size else f"{here} bytes", size_bytes=size)
    yield missing("UDP", "a datagram of 1 MB: 65507 bytes are the most", size_bytes=1000000)
    yield from of_trial(b, find(trials, "rc", 1 << 20), "RoCE", "1048576 bytes", size_bytes=1000000)


PAGES = {"thp": "thp", "2M": "pages of 2 MiB", "1G": "pages of 1 GiB"}


@figure("002", "5.1")
def pages_writer(b):
    """Linked by ten, ten places of ten messages; the sizes of network.toml, or of 002.toml (--file)."""
    for t in b.network("B"):
        yield from of_writer(b, t, PAGES[t["name"]], size_bytes=t["size_bytes"])


@figure("002", "5.2")
def pages(b):
    """As 5.1. The lowest and the median of samples take the place of the dips."""
    trials = b.network("B")
    for t in trials:
        yield from of_trial(b, t, PAGES[t["name"]], size_bytes=t["size_bytes"])
    for size in 4096, 16384:
        yield from over_time(b, find(trials, "thp", size), "thp", size_bytes=size)


@figure("002", "5.3")
def solicited(b):
    """Processor time for a byte of the sink's process; receives shared."""
    trials = b.network("C")
    for yes, linked in named(trials, "solicited, #"):
        size = yes["size_bytes"]
        no = find(trials, f"unsolicited, {linked}", size)
        if no and yes["sink_cpu_s_per_gb"] and no["sink_cpu_s_per_gb"]:
            yield {"what": "solicited by unsolicited", "size_bytes": size, "linked": linked, "remark": b.network_remark(),
                   "reduction_percent": 100 * (1 - yes["sink_cpu_s_per_gb"] / no["sink_cpu_s_per_gb"])}
        else:
            yield missing("solicited by unsolicited", "trials of rashpa-bench network sweep that succeed", size_bytes=size, linked=linked)


@figure("002", "5.4")
def one_over_time(b):
    """Samples of 10 ms of each round; a dip is in the lowest one, if there is one. --json has all samples of network sweep."""
    yield from over_time(b, find(b.network("C"), "unsolicited, 1", 4096), "4 KiB, not linked")


@figure("002", "5.5")
def linked_writer(b):
    """Percent of a core that the writer's process takes."""
    for how in "unsolicited", "solicited":
        for t, linked in named(b.network("C"), how + ", #"):
            what = f"{t['size_bytes'] >> 10} KiB" + (", solicited" if how == "solicited" else "")
            yield from (row for row in of_writer(b, t, what, linked=linked) if "cpu_percent" in row)


@figure("002", "5.6")
def a_thread_each(b):
    """A thread, receives and completions for each pair at both ends. 50 linked in network.toml; means."""
    for t, pairs in named(b.network("D,E"), "a thread each, #"):
        yield from of_trial(b, t, "a thread each", size_bytes=t["size_bytes"], pairs=pairs)


@figure("002", "5.7")
def shared_receives(b):
    """Means, ten places for each pair if the memory is enough; network.toml: 10 linked, 20000 receives."""
    trials = b.network("D,E")
    for t, pairs in named(trials, "one thread, #"):
        yield from of_trial(b, t, "one thread", size_bytes=t["size_bytes"], pairs=pairs)
    yield from of_trial(b, find(trials, "one thread, 100", 8192), "configuration 2 of table 5.5, one thread", pairs=100)


@figure("002", "T5.6")
def threads(b):
    """10 % quantiles of samples of 10 ms, of the sink's process."""
    trials = b.network("D,E")
    for what, name in ("a thread each", "a thread each, #"), ("shared receive queue", "one thread, #"):
        for t, pairs in named(trials, name):
            if t["size_bytes"] == 16384 and t.get("cpu_p10_percent") is not None:
                yield {"what": what, "pairs": pairs, "cpu_percent": t["cpu_p10_percent"], "remark": b.network_remark()}


GPU = "a GPU, and a network card that writes into its memory (nvidia-peermem or dma-buf)"


def gpu_trials(b, experiment, pattern):
    """Those that succeeded, and their numbers."""
    if not b.options.file:
        raise Needs(f"{GPU}: 002.toml has trials (--file)")
    trials = [(t, pairs) for t, pairs in named(b.network(experiment), pattern) if t["goodput_bytes_per_second"]]
    if not trials:
        raise Needs(GPU)
    return trials


@figure("002", "5.8")
def gpu_memory(b):
    """Means."""
    for t, pairs in gpu_trials(b, "F", "GPU, one thread, #"):
        yield from of_trial(b, t, "GPU, one thread", size_bytes=t["size_bytes"], pairs=pairs)


@figure("002", "5.9")
def gpu_power(b):
    """100 pairs of 16 KiB; samples of 10 ms; what data add to the idle GPU, by median and largest sample."""
    t = next((t for t, pairs in gpu_trials(b, "F", "GPU, one thread, #") if (t["size_bytes"], pairs) == (16384, 100)), None)
    if not t:
        raise Needs(GPU)
    yield from over_time(b, t, "100 pairs, 16 KiB")
    if t["idle_watt"] is None or t["power_p50_watt"] is None:
        yield missing("power, idle", "a GPU that reports its power (NVML)")
        return
    yield {"what": "power, idle", "power_watt": t["idle_watt"]}
    yield {"what": "power, while memory is allocated", "power_watt": t["allocated_watt"]}
    yield {"what": "power, least that data add", "power_watt": t["power_p50_watt"] - t["idle_watt"]}
    yield {"what": "power, most that data add", "power_watt": t["power_max_watt"] - t["idle_watt"]}


@figure("002", "5.13")
def gpu_four_to_one(b):
    """Means."""
    for t, pairs in gpu_trials(b, "I", "GPU, 4 to 1, one thread, 4 x #"):
        yield from of_trial(b, t, "GPU, one thread", size_bytes=t["size_bytes"], pairs=4 * pairs)


@figure("002", "5.10")
def four_to_one_threads(b):
    """Messages of 8 KiB; network.toml: four writers of 5 MB/s each, which is their limit."""
    for t, pairs in named(b.network("G,H"), "4 to 1, a thread each, 4 x #"):
        if t["size_bytes"] == 8192:
            yield from of_trial(b, t, "a thread each", pairs=4 * pairs)


@figure("002", "5.11")
def two_runs(b):
    """Samples of 10 ms; 8 KiB in network.toml, which has no 16 KiB."""
    trials = b.network("G,H")
    t = find(trials, "4 to 1, a thread each, 4 x 100", 16384) or find(trials, "4 to 1, a thread each, 4 x 100", 8192)
    yield from over_time(b, t, f"400 pairs, {t['size_bytes'] >> 10 if t else 16} KiB")


@figure("002", "5.12")
def four_to_one(b):
    """Means; network.toml: four writers of 5 MB/s each, which is their limit."""
    for t, pairs in named(b.network("G,H"), "4 to 1, one thread, 4 x #"):
        yield from of_trial(b, t, "one thread", size_bytes=t["size_bytes"], pairs=4 * pairs)


def limit_of(trial):
    return f", limit {trial['rate'] * 8e-9:.3g} Gb/s" if trial.get("rate") else ""


@figure("002", "5.14")
def one_to_four(b):
    """A quarter of the sum of four sinks; network.toml limits the rate; pairs of all sinks."""
    for t, pairs in named(b.network("J"), "1 to 4, 4 x #"):
        for row in of_trial(b, t, "one of four responders" + limit_of(t), size_bytes=t["size_bytes"], pairs=4 * pairs):
            if "goodput_gbit_per_s" in row:
                row["goodput_gbit_per_s"] /= 4
            if "cpu_percent" not in row:
                yield row


@figure("002", "5.15")
def one_to_four_writer(b):
    """As 5.14, of the writer: the sum of its sinks."""
    for t, pairs in named(b.network("J"), "1 to 4, 4 x #"):
        yield from of_writer(b, t, f"{4 * pairs} pairs, {t['size_bytes'] >> 10} KiB{limit_of(t)}")


@figure("002", "T6.1")
def latency(b):
    """perftest between network cards: ib_write_lat (typical), ib_write_bw."""
    for t in b.network("latency"):
        at = {"what": "WRITE", "size_bytes": t["size_bytes"], "remark": b.network_remark()}
        if t.get("latency_us"):
            yield {**at, "latency_us": t["latency_us"]}
        if t["name"] == "ib_write_bw" and t["goodput_bytes_per_second"]:
            yield {**at, "throughput_mbit_per_s": t["goodput_bytes_per_second"] * 8e-6}


def writers(b, experiment, *names):
    """Rows of the writer's side, by size and number."""
    trials = b.network(experiment)
    for what, name, key in names:
        for t, number in named(trials, name):
            yield from of_writer(b, t, what, size_bytes=t["size_bytes"], **{key: number})


@figure("002", "B.1")
def solicited_writer(b):
    """As 5.3, of the writer."""
    yield from writers(b, "C", ("solicited", "solicited, #", "linked"), ("unsolicited", "unsolicited, #", "linked"))


@figure("002", "B.2")
def a_thread_each_writer(b):
    """As 5.6, of the writer."""
    yield from writers(b, "D,E", ("a thread each", "a thread each, #", "pairs"))


@figure("002", "B.3")
def shared_receives_writer(b):
    """As 5.7, of the writer."""
    yield from writers(b, "D,E", ("one thread", "one thread, #", "pairs"))


@figure("002", "B.6")
def four_to_one_threads_writer(b):
    """As 5.10, of the first writer and its pairs."""
    yield from writers(b, "G,H", ("a thread each", "4 to 1, a thread each, 4 x #", "pairs"))


@figure("002", "B.7")
def forty_pairs(b):
    """Samples of 10 ms of the sink; 8 KiB."""
    yield from over_time(b, find(b.network("G,H"), "4 to 1, a thread each, 4 x 10", 8192), "40 pairs")


@figure("002", "B.8")
def four_to_one_writer(b):
    """As 5.12, of the first writer and its pairs."""
    yield from writers(b, "G,H", ("one thread", "4 to 1, one thread, 4 x #", "pairs"))


# --- 003

WAYS = {"launches": "classical: driver, launch, driver", "gpu": "persistent kernel", "host": "a processor that polls and computes"}


@figure("003", "1")
def answers(b):
    """From the arrival of a datagram to its answer on the wire, by the counter of the board; one at a time, 256 bytes, in loopback.
    Medians. Events, descriptors and payload are in memory of the GPU in all of them. Classical: the program writes the
    descriptor, as this driver has no call that sends."""
    rows, remark = b.loop("--compute=200", "--events=4000", "--window=1")
    yield missing("the dummy kernel alone", "a clock in the kernel: it computes as many rounds as took 200 us before")
    for way, what in WAYS.items():
        r = rows[way]
        for name, key in ("", "p50"), (", 99 % of the answers", "p99"), (", slowest", "max"):
            yield {"what": what + name, "total_us": r[f"answer_{key}_ns"] / 1e3, "remark": remark}
        yield {"what": what, "late_percent": 100 * r["late"] / r["datagrams"], "remark": remark}


@figure("003", "P2")
def ring_fit(b):
    """A fit without a search: each event has one ring, and 12 to 32 hits. 2000 events in one launch, one thread in each group,
    without the launch; the document does not say how many at a time."""
    rows, remark = b.loop("--rings", "--events=4000")
    yield missing("recognition and fit of rings", "a search for several rings: an event has one here")
    yield {"what": "fit of one ring", "event_ns": rows["gpu"]["fit_ns"], "remark": remark}


@figure("003", "P1")
def card_rates(b):
    """Transfers of 4 MiB without a wait; the slot is that of the board here."""
    rate = rates(b.roundtrip())
    size = max(rate)
    yield {"what": "write to memory of the host", "throughput_gbyte_per_s": rate[size],
           "remark": ", ".join(filter(None, (f"{size} bytes", b.board_remark())))}
    yield missing("read of memory of the host", "a command that times reads by the board")
    yield missing("read of memory of the GPU", "a command that times reads by the board")
    rows, remark = b.roundtrip_gpu("off")
    rate = rates(rows)
    yield {"what": "write to memory of the GPU", "throughput_gbyte_per_s": rate[max(rate)], "remark": f"{max(rate)} bytes, {remark}"}


# --- 004

SHARED = "between two processes of one machine by its shared memory, unless --mpirun names others; from 1 KiB to 1 MiB"


def bandwidth(what, rows, key="ours", **at):
    for size, row in rows.items():
        yield {"what": what, "size_bytes": size, "bandwidth_gbyte_per_s": row[key], "remark": "" if key == "theirs" else
               f"{row['ratio']:.2f} of MPI alone", **at}


@figure("004", "8.2")
def protocols(b):
    for what, limit in ("eager, copied", 65536), ("rendezvous", 4096):
        for ways, beside in ("one way", "layer alone"), ("both ways", "both: test"):
            rows = b.burst(beside, env=[("OMPI_MCA_btl_sm_eager_limit", str(limit))])
            yield from bandwidth(f"{what}, {ways}", {s: r for s, r in rows.items() if 4096 < s < 65536}, "theirs")
    for what in "eager, zero copy, one way", "eager, zero copy, both ways":
        yield missing(what, "a transport of MPI with that protocol: shared memory has none")


protocols.__doc__ = f"""Not the OSU benchmarks but the same loop, 64 messages of one buffer; {SHARED}. Only sizes where both limits (64 KiB,
4 KiB) differ."""


@figure("004", "8.4")
def overhead(b):
    rows = b.burst("layer alone")
    yield from bandwidth("OSU, one way", rows, "theirs")
    yield from bandwidth("one buffer, one way", rows)
    yield from bandwidth("OSU, both ways", b.burst("both: test"), "theirs")
    yield missing("many buffers, one way", "Waitall with many buffers, which rashpa-builder burst has not (8.5 polls)")
    for what in "one buffer, both ways", "many buffers, both ways":
        yield missing(what, "Waitall both ways, which rashpa-builder burst has not")


overhead.__doc__ = f"""The library without its thread; OSU: the same loop, not the OSU benchmarks; {SHARED}."""


@figure("004", "8.5")
def polling(b):
    yield from bandwidth("Waitall, one way", b.burst("layer alone"))
    for way in "test", "testsome", "testall":
        yield from bandwidth(f"{way}, one way", b.burst(way))
        yield from bandwidth(f"{way}, both ways", b.burst(f"both: {way}"))


polling.__doc__ = f"""One buffer, not many; the library without its thread; both ways: the sum; {SHARED}."""


@figure("004", "8.6")
def depth(b):
    for deep in 1, 2, 8, 16, 64:
        yield from bandwidth("one way", b.burst("testsome" if deep == 8 else f"depth {deep}"), depth=deep)
    for deep in 8, 64:
        yield from bandwidth("both ways", b.burst("both: testsome" if deep == 8 else f"both: depth {deep}"), depth=deep)


depth.__doc__ = polling.__doc__

LEAVES = {2: 1, 4: 1, 8: 2, 16: 3, 32: 6, 64: 11, 128: 12, 178: 12}    # table 8.1
MPI, VERBS, CREDITS = ",rendezvous=12K", "", ",credits"
SIZES = 4096, 16384, 32768


def modelled(b, way, nodes, size, cost, protocol):
    """GB/s of a receiver."""
    n = nodes // 2 if way == "nton" else nodes
    # time for three times the data under way, as the first quarter does not count
    seconds = max(2e-3, 3 * 8 * size * nodes / 2 / 5e9)
    return b.builder("model", way, f"--readouts={n}", f"--size={size}", "--depth=8", f"--seconds={seconds:.6f}",
                     f"--network=gbps=54.3,latency=0.2,cost={cost:.2f},head=30,spines=6,cables=3,mixed,leaves={LEAVES[nodes]}{protocol}"
                     )["mean_bytes_per_second"] / 1e9


def lead(b, nodes, cost, protocol=VERBS):
    """The largest one, of all sizes."""
    return max(modelled(b, "nton", nodes, size, cost, protocol) - modelled(b, "nton", nodes, size, cost, MPI) for size in SIZES[:2])


def calibrated(b):
    """The time of a message for which the lead of verbs at 64 nodes is the document's."""
    low, high = 0.3, 2.0
    for _ in range(6):
        cost = round((low + high) / 2, 2)
        low, high = (cost, high) if lead(b, 64, cost) < 1 else (low, cost)
    return cost


@figure("004", "8.7")
def scaling(b):
    """Computed by rashpa-builder model, not measured: messages of MPI ask before they are sent from 12 KiB on; 4, 16 and
    32 KiB. The time of a message is that for which figure 8.8 is right at 64 nodes."""
    cost = calibrated(b)
    for nodes, leaves in LEAVES.items():
        for what, way in ("plateau, one way", "nton"), ("plateau, both ways", "nxn"):
            if way == "nxn" and nodes > 64:
                continue
            rates = {size: modelled(b, way, nodes, size, cost, MPI) for size in SIZES}
            best = max(rates.values())
            start = min(size for size, rate in rates.items() if rate > 0.95 * best)
            yield {"what": what, "nodes": nodes, "bandwidth_gbyte_per_s": best,
                   "remark": f"a model: leaves {leaves}, from {start} bytes on"}


@figure("004", "8.8")
def against_verbs(b):
    """Computed by rashpa-builder model, not measured: the largest lead at 4 and 16 KiB. One value of the document gives the
    time of a message, the others show the error; both are at the leaves of table 8.1, and the document's verbs were not."""
    cost = calibrated(b)
    for nodes in 16, 64, 128:
        here = lead(b, nodes, cost)
        yield {"what": "verbs ahead of MPI", "nodes": nodes, "lead_gbyte_per_s": here,
               "remark": f"given: {cost:.2f} us a message" if nodes == 64 else
               f"error {here - 1:+.2f} GB/s" if nodes == 128 else "error: it should not lead" if here > 0.05 else "right"}
        yield {"what": "verbs with credits ahead of MPI", "nodes": nodes, "lead_gbyte_per_s": lead(b, nodes, cost, CREDITS),
               "remark": "a model"}
