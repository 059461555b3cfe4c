# SPDX-License-Identifier: LGPL-2.1-or-later
"""rashpa-bench validate: the state of the machine, the board test, latency and throughput of one board, on one page."""
import argparse
import html
import json
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
# pylint: disable=wrong-import-position
import draw
from benches import Benches, Needs

HELP = """Usage: rashpa-bench validate [OPTION...] fpgaN
Run rashpactl report, rashpactl board test, and measure latency and throughput of a board that nothing else uses. Needs root.
DIR/validation.json and DIR/index.html are for an issue: they contain no data of streams.

      --name=NAME            of the board, on the page and in the line for the table of README.md (default: its PCI ids)
      --out=DIR              folder of the results (default: validation)
  -r, --repeat=N             rounds of each measurement (default: its own)
  -h, --help                 give this help list

Exit status: 0 success; 1 failure, also of a test of the board; 2 wrong usage.
"""


class Parser(argparse.ArgumentParser):
    def error(self, message):
        print(f"rashpa-bench: {message}: see rashpa-bench validate --help", file=sys.stderr)
        sys.exit(2)


def parse(words):
    parser = Parser(add_help=False, usage=argparse.SUPPRESS)
    parser.add_argument("fpga")
    parser.add_argument("--name")
    parser.add_argument("--out", type=Path, default=Path("validation"))
    parser.add_argument("-r", "--repeat", type=int)
    return parser.parse_args(words)


# --- measurements

def figure(name, title, quantity, text, rows):
    """As figures of rashpa-bench paper; rows: (name, bytes or None, value)"""
    return {"source": "", "id": name, "title": title, "quantities": {quantity: text},
            **({"x": "size_bytes", "at": ["size_bytes"]} if rows and rows[0][1] else {"at": []}),
            "rows": [{"what": what, "quantity": quantity, "here": value, "document": None, **({"size_bytes": size} if size else {})}
                     for what, size, value in rows]}


def latency(b):
    rows = b.board_rows("latency", "--max-rate=0")
    yield figure("latency", "from an event of the board to the program", "latency_us", "us",
                 [(f"{r['path']}, {of}", None, r[of + "_ns"] / 1e3) for r in rows for of in ("p50", "p99")])


def roundtrip(b):
    rows = b.roundtrip()
    yield figure("round-trip", "start, DMA, notification and acknowledgement", "round_trip_us", "us, median",
                 [(r["path"], r["size_bytes"], r["p50_ns"] / 1e3) for r in rows])
    rates = {r["size_bytes"]: r["size_bytes"] / r["dma_ns"] for r in rows}
    yield figure("throughput", "DMA without a wait", "throughput_gbyte_per_s", "GB/s", [("DMA", *rate) for rate in rates.items()])


def transfers(test):
    """Of a board that starts when the kernel has written its addresses."""
    rows = test["transfers"]
    yield figure("transfer", "from the call that writes the addresses to the interrupt", "transfer_us", "us, median",
                 [("transfer", r["size_bytes"], r["p50_ns"] / 1e3) for r in rows])
    yield figure("throughput", "of these transfers, one at a time", "throughput_gbyte_per_s", "GB/s",
                 [("transfer", r["size_bytes"], r["size_bytes"] / r["p50_ns"]) for r in rows])


def measure(b, test):
    """(figures, {measurement: reason why it is missing})"""
    if test["transfers"]:
        return list(transfers(test)), {}
    figures, missing = [], {}
    for name, of in ("latency", latency), ("throughput", roundtrip):
        try:
            figures += of(b)
        except Needs as reason:
            missing[name] = str(reason)
    return figures, missing


# --- results

def status_line(result):
    """The board's line of the table in README.md. A program is no card, whatever it measures."""
    failed = [t["test"] for t in result["test"]["tests"] if t["verdict"] == "failed"]
    first = {f["id"]: f["rows"] for f in result["figures"] if f["rows"]}
    times = first.get("transfer") or first.get("round-trip")
    cells = ["lab only", "-", "-"] if result["software"] else [
        f"card, {result['report']['kernel']['release']}", f"{times[0]['here']:.1f} us" if times else "-",
        f"{max(r['here'] for r in first['throughput']):.2f} GB/s" if "throughput" in first else "-"]
    cells.insert(0, f"fails: {', '.join(dict.fromkeys(failed))}" if failed else "passed")
    return f"| {' | '.join([result['name'], *cells])} |"


def table(head, rows):
    yield "<table><tr>" + "".join(f"<th>{html.escape(cell)}</th>" for cell in head) + "</tr>"
    for row in rows:
        yield "<tr>" + "".join(f"<td>{html.escape(str(cell))}</td>" for cell in row) + "</tr>"
    yield "</table>"


def page(result):
    e = html.escape
    test, kernel = result["test"], result["report"]["kernel"]
    yield f"<!DOCTYPE html><meta charset=\"utf-8\"><title>{e(result['name'])}</title><style>{draw.STYLE}</style>"
    yield f"<h1>{e(result['name'])}</h1><p>{test['id']}, {'a software board' if result['software'] else 'a card'}; "
    yield f"rashpa {e(test['version'])}, Linux {e(kernel['release'])} {e(kernel['machine'])}, IOMMU {'on' if test['iommu'] else 'off'}; "
    yield f"{result['report']['date']}</p><h2>Board test</h2>"
    yield from table(("test", "", "verdict"), [(t["test"], t["text"], t["verdict"]) for t in test["tests"]])
    for f in result["figures"]:
        quantity, unit = next(iter(f["quantities"].items()))
        yield f"<h2>{f['id']}: {e(f['title'])}</h2>"
        yield from table(("", "bytes", unit), [(r["what"], r.get("size_bytes", ""), f"{r['here']:.4g}") for r in f["rows"]])
        svg = draw.plot(f, quantity)
        yield svg[svg.index("<svg"):] if svg else "<p>No plot: matplotlib is missing.</p>"
    for name, reason in result["missing"].items():
        yield f"<h2>{name}</h2><p class=\"needs\">Not measured: {e(reason)}</p>"
    yield "<h2>This machine</h2>"
    yield from table(("", "", "remedy"), [(f"{d['verdict']}: {d['check']}", d["text"], d["remedy"] or "") for d in result["report"]["doctor"]["checks"]])


def main():
    words = sys.argv[1:]
    if any(word in ("--help", "-h", "-?") for word in words):
        print(HELP, end="")
        return 0
    options = parse(words)
    b = Benches(options, os.environ.get("RASHPA_BENCH") or "rashpa-bench")
    try:
        report, test = b.run("rashpactl", "report"), b.run("rashpactl", "--json", "board", "test", options.fpga)
    except Needs as reason:
        print(reason, file=sys.stderr)
        return 1
    figures, missing = measure(b, test)
    result = {"bench": "validate", "name": options.name or test["id"], "software": bool(b.board_remark()),
              "report": report, "test": test, "figures": figures, "missing": missing}
    result["line"] = status_line(result)
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "validation.json").write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    (options.out / "index.html").write_text("\n".join(page(result)) + "\n", encoding="utf-8")
    print(f"{result['line']}\n{options.out}/index.html, {options.out}/validation.json")
    return int(any(t["verdict"] == "failed" for t in test["tests"]))


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(1)
    except OSError as failure:
        print(f"rashpa-bench: {failure.filename}: {failure.strerror}", file=sys.stderr)
        sys.exit(1)
