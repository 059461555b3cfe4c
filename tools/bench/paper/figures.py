# SPDX-License-Identifier: LGPL-2.1-or-later
"""How each figure is measured here. The docstring says how this differs from the document's measurement; a row has the
names of the document's rows, so that equal ones are printed in one line. Other quantities are not yielded; a
row may have "needs" instead of a value."""
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


SOCKETS = {"UDP, regular socket": "UDP sockets", "ZeroMQ, push/pull": "ZeroMQ push/pull"}


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
    """Both ends as given; goodput at full rate. A rate with losses is another quantity than one without, and is left
    out."""
    trials = b.network("peers")
    for what, name in SOCKETS.items():
        for size in 2048, 4096, 8246:
            for places in 1, 100000:
                at = {"size_bytes": size, "destinations": places}
                trial = find(trials, name, size, places)
                lost = trial and trial["missing_percent"]
                if lost:
                    yield missing(what, f"a search of the rate without loss: at full rate {lost:.1f} % are lost", **at)
                else:
                    yield from throughput_of(b, trial, what, **at)
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


@figure("000", "T4.1")
def kernels(b):
    """Nothing yet."""
    yield missing("peak finder of pyFAI", "a peak finder on the GPU: processors find peaks")
    b.gpu("--sizes=4K", "--copies=16M")
    raise Needs("kernel times of stages, of JUNGFRAU images and of ten at a time: rashpa-bench gpu times the host's calls, one image each")


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

@figure("002", "T5.1")
def udp_roce(b):
    """Largest datagram 65507 bytes; RoCE in 64 kB likewise; goodput and processor time of the sink. A rate of UDP with losses
    is left out: the document does not say whether its rate has any."""
    trials = b.network("A")
    for what, name in ("UDP", "UDP sockets"), ("RoCE", "rc"):
        for size, here in (9000, 9000), (32000, 32768), (64000, 65507):
            t = find(trials, name, here)
            if t and t["missing_percent"]:
                yield missing(what, f"a rate without loss: {t['missing_percent']:.1f} % are lost", size_bytes=size)
                continue
            yield from of_trial(b, t, what, "" if here == size else f"{here} bytes", size_bytes=size)
    yield missing("UDP", "a datagram of 1 MB: 65507 bytes are the most", size_bytes=1000000)
    yield missing("RoCE", "a trial of 1 MB, which the experiment A has not", size_bytes=1000000)


@figure("002", "5.2")
def pages(b):
    """Messages of 4 KiB, 64 KiB and 1 MiB, 10 linked, ten places."""
    trials = b.network("B")
    for what, name in ("thp", "thp"), ("pages of 2 MiB", "2M"), ("pages of 1 GiB", "1G"):
        for size in 4096, 65536, 1048576:
            yield from of_trial(b, find(trials, name, size), what, size_bytes=size)
    for what in "4 and 16 KiB, lowest in a dip", "4 and 16 KiB, after a dip":
        yield missing(what, "series over time, which rashpa-bench network sweep does not keep")


@figure("002", "5.3")
def solicited(b):
    """Processor time for a byte of the sink's process; 256 writes under way, receives shared (2000)."""
    trials = b.network("C")
    for size in 4096, 16384:
        for linked in 5, 25, 100:
            yes, no = (find(trials, f"{name}, {linked}", size) for name in ("solicited", "unsolicited"))
            if yes and no and yes["sink_cpu_s_per_gb"] and no["sink_cpu_s_per_gb"]:
                yield {"what": "solicited by unsolicited", "size_bytes": size, "linked": linked, "remark": b.network_remark(),
                       "reduction_percent": 100 * (1 - yes["sink_cpu_s_per_gb"] / no["sink_cpu_s_per_gb"])}
            else:
                yield missing("solicited by unsolicited", "trials of rashpa-bench network sweep that succeed",
                              size_bytes=size, linked=linked)


@figure("002", "5.7")
def shared_receives(b):
    """10 linked, 20000 receives; means; all pairs write to one place, not to ten for each."""
    trials = b.network("E")
    for size in 4096, 16384:
        for pairs in 100, 750:
            yield from of_trial(b, find(trials, f"one thread, {pairs}", size), "one thread", size_bytes=size, pairs=pairs)
    yield missing("configuration 2 of table 5.5, one thread", "messages of 8 KiB, which the experiment E has not")


@figure("002", "T5.6")
def threads(b):
    """The mean of the sink's process, not the 10 % quantile; 10 linked, 20000 receives; all pairs write to one place, not to ten
    for each."""
    trials = b.network("E")
    yield missing("a thread each", "private receive queues with a thread each: queue pairs of the sink share the receives of a thread")
    for pairs in 100, 750:
        yield from (row for row in of_trial(b, find(trials, f"one thread, {pairs}", 16384), "shared receive queue", pairs=pairs)
                    if "goodput_gbit_per_s" not in row)


@figure("002", "5.12")
def four_to_one(b):
    """Four writers of 5 MB/s each, which is their limit; 10 linked; means; all pairs of a writer write to one place."""
    trials = b.network("G,H")
    for pairs in 1, 10, 100, 500:
        yield from of_trial(b, find(trials, f"4 to 1, one thread, 4 x {pairs}", 8192), "one thread", size_bytes=8192, pairs=4 * pairs)


@figure("002", "5.14")
def one_to_four(b):
    """A quarter of the sum of four sinks, with a limit of the rate; pairs of all sinks."""
    yield missing("one of four responders", "one writer without a limit of the rate: rashpa-bench network sweep has one of 20 MB/s")
    trials = b.network("J")
    for pairs in 1, 100, 500:
        for row in of_trial(b, find(trials, f"1 to 4, 4 x {pairs}", 8192), "one of four responders, limit 0.04 Gb/s", size_bytes=8192,
                            pairs=4 * pairs):
            if "goodput_gbit_per_s" in row:
                row["goodput_gbit_per_s"] /= 4
            if "cpu_percent" not in row:
                yield row


# --- 003

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

