# SPDX-License-Identifier: LGPL-2.1-or-later
"""rashpa-bench paper: measurements of the source documents, repeated by commands that measure, and compared."""
import argparse
import json
import os
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
# pylint: disable=wrong-import-position
from benches import Benches, Needs
from figures import HOW

SOURCES = "000", "001", "002", "003", "004"
KINDS = {"T": "table", "S": "section", "E": "equation", "P": "poster"}
BOUNDS = {"about": "~", "at most": "<=", "at least": ">=", "below": "<", "above": ">"}

HELP = """Usage: rashpa-bench paper [OPTION...] 000|001|002|003|004 FIGURE
Repeat what the source documents measured, and print the document's value, the one here, and how they differ. Without
FIGURE all of a source, without a source all of them. FIGURE: 4.5 of a figure, T4.1 of a table, S4.3.2 of a section.

      --address=ADDRESS      address of the sink, as of network sweep; without it networks are left out
      --all                  also write a report, DIR/index.html
      --file=FILE            experiments and nodes of network sweep, as 002.toml (default: its own)
  -f, --fpga=fpgaN           a bound function (default: the first one)
      --gpu=vulkan[:N]|cuda[:N]
                             the GPU (default: vulkan); a program on processors runs only by its name here
  -j, --json[=FILE]          write the result as JSON
      --list                 print the figures, and what runs them
      --mpirun=COMMAND       starts two processes (default: mpirun -n 2, not bound)
      --out=DIR              folder of plots and report (default: paper)
      --plots                write a plot of each figure that was measured to DIR
  -r, --repeat=N             rounds of each measurement (default: its own)
      --sink-at=COMMAND      as of network sweep
      --sink-device=NAME     as of network sweep
      --time=SECONDS         of each trial of a network
      --writer-at=COMMAND    as of network sweep
      --writer-device=NAME   as of network sweep
  -h, --help                 give this help list

Exit status: 0 success, and each missing measurement is named; 1 failure; 2 wrong usage.
"""


class Parser(argparse.ArgumentParser):
    def error(self, message):
        print(f"rashpa-bench: {message}: see rashpa-bench paper --help", file=sys.stderr)
        sys.exit(2)


def parse(words):
    parser = Parser(add_help=False, usage=argparse.SUPPRESS)
    parser.add_argument("source", nargs="?", choices=SOURCES)
    parser.add_argument("figure", nargs="?")
    for flag in "--all", "--list", "--plots":
        parser.add_argument(flag, action="store_true")
    for name in "address", "file", "gpu", "sink-at", "sink-device", "writer-at", "writer-device", "time":
        parser.add_argument(f"--{name}")
    parser.add_argument("-f", "--fpga")
    parser.add_argument("-r", "--repeat", type=int)
    parser.add_argument("-j", "--json")
    parser.add_argument("--mpirun", default="mpirun --bind-to none -n 2")
    parser.add_argument("--out", type=Path, default=Path("paper"))
    # FILE is optional, and never the next word
    options = parser.parse_args(["--json=-" if word in ("--json", "-j") else word for word in words])
    if options.repeat is not None and not 1 <= options.repeat <= 1000:
        parser.error(f"--repeat: \"{options.repeat}\" is not 1 to 1000")
    if options.all and options.source:
        parser.error(f"--all excludes \"{options.source}\": it takes all sources")
    return options, parser.error


# --- what the documents have

def load(source):
    return json.loads((HERE / f"{source}.json").read_text(encoding="utf-8"))


def name_of(one):
    kind = KINDS.get(one[0], "figure")
    return f"{kind} {one[1:] if kind != 'figure' else one}"


def chosen(options, error):
    """(document, its figures that are asked for)"""
    for source in [options.source] if options.source else SOURCES:
        document = load(source)
        figures = document["figures"]
        if options.figure:
            figures = [f for f in figures if f["id"].lower() == options.figure.lower()]
            if not figures and options.figure.upper() in map(str.upper, document["diagrams"]):
                error(f"{source} {options.figure} shows no measurement")
            if not figures:
                error(f"{source} has no \"{options.figure}\": give one of " + ", ".join(f["id"] for f in document["figures"]))
        yield document, figures


# --- rows

def quantity_of(row, figure):
    return row.get("quantity") or next((q for q in figure["quantities"] if q in row), None)


def key_of(row, figure):
    return (row["what"], quantity_of(row, figure), *(row.get(at) for at in figure["at"]))


def measure(figure, how, benches):
    """Rows of the figure: of the document, with what is here, and then others that are here."""
    here, needs = [], figure.get("needs")
    if how and not needs:
        try:
            for row in how(benches):
                here.append(row)
        except Needs as reason:
            needs = str(reason)
    if not here:
        needs = needs or "a measurement that succeeds"
    rows, used = [], set()
    for row in figure["rows"]:
        key = key_of(row, figure)
        same = next((h for h in here if "needs" not in h and key_of(h, figure) == key), None)
        used.add(id(same))
        reason = next((h["needs"] for h in here if "needs" in h and h["what"] == row["what"] and
                       all(h[at] == row.get(at) for at in figure["at"] if at in h)), None)
        reason = None if same else reason or needs
        joint = joined(row, same, reason, figure)
        # a sentence about a curve, or a point of it, whose points here follow
        if not same and not reason:
            joint["remark"] = "see below" if "says" in row else "not with these settings: see below"
        rows.append(joint)
    for row in here:
        if id(row) in used or ("needs" in row and any(r["what"] == row["what"] for r in figure["rows"])):
            continue
        rows.append(joined(None, row if "needs" not in row else None, row.get("needs"), figure, row))
    return rows, needs


def joined(document, here, needs, figure, either=None):
    row = either or document
    quantity = quantity_of(row, figure)
    result = {"what": row["what"], **{at: row[at] for at in figure["at"] if at in row}, "quantity": quantity}
    result["document"] = None if not document else {k: document[k] for k in (quantity, "says", "bound", "uncertainty", "from")
                                                    if k in document}
    result["here"] = here[quantity] if here else None
    result["remark"] = here.get("remark", "") if here else ""
    if needs:
        result["needs"] = needs
    return result


# --- printing

def number(value):
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:.0f}"


def document_text(row):
    d = row["document"]
    if d is None:
        return ""
    if "says" in d:
        return d["says"]
    return BOUNDS.get(d.get("bound"), "") + number(d[row["quantity"]]) + (f" +-{number(d['uncertainty'])}" if "uncertainty" in d else "")


def cells(figure, row):
    of = [f"{row[at]} bytes" if at == "size_bytes" else f"{at.replace('_', ' ')} {row[at]}" for at in figure["at"] if at in row]
    several = len(figure["quantities"]) > 1 and row["quantity"]
    what = ", ".join([row["what"], *of]) + (f" ({figure['quantities'][row['quantity']].split(', ')[-1]})" if several else "")
    remark = "; ".join(filter(None, ("needs " + row["needs"] if "needs" in row else "", row["remark"])))
    return what, document_text(row), "" if row["here"] is None else number(row["here"]), remark


def unit_of(figure):
    return " and ".join(figure["quantities"].values())


def remark_of(figure, how):
    return " ".join((how.__doc__ or "").split()) if how else ""


def show(source, figure, rows, how, out=sys.stdout):
    print(f"\n{source} {name_of(figure['id'])}: {figure['title']}: {unit_of(figure)}", file=out)
    print(f"there: {figure['there']} ({figure['from']}{'; ' + figure['points'] if 'points' in figure else ''})", file=out)
    if any(row["here"] is not None for row in rows) and how.__doc__:
        print(f"here:  {remark_of(figure, how)}", file=out)
    table = [("", "document", "here", "remark"), *(cells(figure, row) for row in rows)]
    reasons = {row.get("needs") for row in rows}
    if len(reasons) == 1 and None not in reasons:    # once for all
        print(f"needs: {reasons.pop()}", file=out)
        table = [line[:2] for line in table]
    width = [max(len(line[i]) for line in table) for i in range(len(table[0]))]
    for what, *others in table if rows else ():
        print("  ".join([f"{what:{width[0]}}", *(f"{cell:>{width[i]}}" for i, cell in enumerate(others[:2], 1)), *others[2:]]).rstrip(), file=out)


def list_figures(options, error):
    for document, figures in chosen(options, error):
        print(f"{document['source']}  {document['title']}")
        for figure in figures:
            runs = "needs " + figure["needs"] if "needs" in figure else ""
            print(f"  {figure['id']:7} {figure['title']}{': ' if runs else ''}{runs}")
        if not options.figure:
            print(f"  without a measurement: {', '.join(document['diagrams'])}")


def main():
    words = sys.argv[1:]
    if any(word in ("--help", "-h", "-?") for word in words):
        print(HELP, end="")
        return 0
    options, error = parse(words)
    if options.list:
        list_figures(options, error)
        return 0
    benches = Benches(options, os.environ.get("RASHPA_BENCH") or "rashpa-bench")
    text = options.json != "-"
    results = []
    for document, figures in list(chosen(options, error)):
        for figure in figures:
            how = HOW.get((document["source"], figure["id"]))
            rows, needs = measure(figure, how, benches)
            sys.stdout.flush()
            if text:
                show(document["source"], figure, rows, how)
            results.append({"source": document["source"], "document": document["title"], **{k: figure[k] for k in figure if k not in ("rows", "needs")},
                            "differs": remark_of(figure, how), "needs": needs, "rows": rows,
                            **({"timeline": line} if (line := benches.timelines.get((document["source"], figure["id"]))) else {})})
    machine = next((r["machine"] for r in benches.results.values() if isinstance(r, dict) and "machine" in r), None)
    report = {"bench": "paper", "machine": machine, "figures": results}
    if text and machine:
        print(f"\nhere: {machine['cpu']}, {machine['cpus']} processors, Linux {machine['kernel']}"
              f"{', a virtual machine' if machine['virtual'] else ''}")
    if options.json:
        to = json.dumps(report, indent=1) + "\n"
        if text:
            Path(options.json).write_text(to, encoding="utf-8")
        else:
            sys.stdout.write(to)
    if options.plots or options.all:
        import draw  # pylint: disable=import-outside-toplevel
        draw.write(report, options.out, options.all, cells, name_of)
    return 0


if __name__ == "__main__":
    try:
        status = main()
        sys.stdout.flush()
        sys.exit(status)
    except KeyboardInterrupt:
        sys.exit(1)
    except OSError as failure:
        if failure.filename:
            print(f"rashpa-bench: {failure.filename}: {failure.strerror}", file=sys.stderr)
        else:
            print(f"rashpa-bench: cannot write standard output: {failure.strerror}", file=sys.stderr)
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
