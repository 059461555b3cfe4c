# SPDX-License-Identifier: LGPL-2.1-or-later
"""Plots in the axes of the documents, and the report of all figures."""
import html
import io

LINES = {"size_bytes": "size, bytes", "pairs": "queue pairs", "linked": "linked writes", "nodes": "nodes"}


def points(figure, quantity, where):
    """{row: [(x, y), ...]} of the document or of here; without an axis, x is None."""
    lines = {}
    for row in figure["rows"]:
        value = row["here"] if where == "here" else (row["document"] or {}).get(quantity)
        if value is None or row["quantity"] != quantity:
            continue
        x = figure.get("x")
        others = [f"{at} {row[at]}".replace("_", " ") for at in figure["at"] if at != x and at in row]
        lines.setdefault(", ".join([row["what"], *others]), []).append((row.get(x), value))
    return lines


def plot(figure, quantity):
    """The figure as SVG; None: matplotlib is missing, or nothing was measured."""
    here, there = (points(figure, quantity, where) for where in ("here", "document"))
    if not here:
        return None
    try:
        import matplotlib
    except ImportError:
        return None
    matplotlib.use("svg")
    matplotlib.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "rashpa", "font.size": 9})
    from matplotlib import pyplot
    figure_, axis = pyplot.subplots(figsize=(9, 4.5), layout="constrained")
    names = list(dict.fromkeys([*here, *there]))
    x = figure.get("x")
    for i, name in enumerate(names):
        for lines, style in (here, "o-"), (there, "x--"):
            of = lines.get(name, [])
            label = f"{name}: {'here' if lines is here else 'document'}" if there else name
            if x:
                placed = sorted(p for p in of if p[0] is not None)
                if placed:
                    axis.plot(*zip(*placed), style, ms=5, lw=1, color=f"C{i}", label=label)
                for value in (p[1] for p in of if p[0] is None):
                    axis.axhline(value, ls=":", lw=1, color=f"C{i}", label=label)
            elif of:
                axis.plot([p[1] for p in of], [i] * len(of), style[0], ms=7, color="C0" if lines is here else "C1", label=label)
    text = figure["quantities"][quantity]
    if x:
        axis.set_xscale("log", base=2)
        axis.set(yscale="log", xlabel=LINES[x], ylabel=text)
        figure_.legend(fontsize=7, loc="outside right upper")
    else:
        axis.set(xscale="log", xlabel=text + (": o here, x document" if there else ""), yticks=range(len(names)), yticklabels=names)
        axis.margins(y=0.3)
    axis.grid(alpha=0.3)
    axis.set_title(f"{figure['source']} {figure['id']}: {figure['title']}".strip(), fontsize=9)
    out = io.StringIO()
    figure_.savefig(out, metadata={"Date": None})
    pyplot.close(figure_)
    return out.getvalue()


def timeline(figure):
    """The streams of a GPU as SVG; None as in plot()."""
    try:
        import matplotlib
    except ImportError:
        return None
    matplotlib.use("svg")
    from matplotlib import pyplot
    events = figure["timeline"]
    streams = {e["tid"]: e["name"].split()[0] for e in events}
    figure_, axis = pyplot.subplots(figsize=(9, 2), layout="constrained")
    for e in events:
        axis.broken_barh([(e["ts"], e["dur"])], (e["tid"] - 0.4, 0.8), color=f"C{e['args']['image'] % 10}")
    axis.set(xlabel="time, us; a colour for each image", yticks=list(streams), yticklabels=streams.values())
    axis.invert_yaxis()
    out = io.StringIO()
    figure_.savefig(out, format="svg", metadata={"Date": None})
    pyplot.close(figure_)
    return out.getvalue()


STYLE = """body { font: 15px sans-serif; max-width: 70em; margin: 2em auto } table { border-collapse: collapse }
td, th { padding: .2em .8em; border-bottom: 1px solid #ccc; text-align: left } td:nth-child(2), td:nth-child(3) { text-align: right }
.needs { color: #777 } svg { max-width: 100% }"""


def section(figure, cells, name_of, plots):
    e = html.escape
    yield f"<h3 id=\"{figure['source']}-{figure['id']}\">{figure['source']} {e(name_of(figure['id']))}: {e(figure['title'])}</h3>"
    yield f"<p>There: {e(figure['there'])} ({e(figure['from'])}).</p>"
    if figure["differs"]:
        yield f"<p>Here: {e(figure['differs'])}</p>"
    yield "<table><tr><th></th><th>document</th><th>here</th><th>remark</th></tr>"
    for row in figure["rows"]:
        kind = ' class="needs"' if "needs" in row else ""
        yield f"<tr{kind}>" + "".join(f"<td>{e(cell)}</td>" for cell in cells(figure, row)) + "</tr>"
    yield "</table>"
    # without the head of the file
    yield from (svg[svg.index("<svg"):] for svg in plots.values())


def write(report, folder, whole, cells, name_of):
    folder.mkdir(parents=True, exist_ok=True)
    page = ["<!DOCTYPE html><meta charset=\"utf-8\"><title>rashpa-bench paper</title>", f"<style>{STYLE}</style>",
            "<h1>Measurements of the source documents, and here</h1>"]
    source = None
    for figure in report["figures"]:
        plots = {q: svg for q in figure["quantities"] if (svg := plot(figure, q))}
        if "timeline" in figure and (svg := timeline(figure)):
            plots["timeline"] = svg
        for quantity, svg in plots.items():
            (folder / f"{figure['source']}-{figure['id']}-{quantity}.svg").write_text(svg, encoding="utf-8")
        if figure["source"] != source:
            source = figure["source"]
            page.append(f"<h2>{source}: {html.escape(figure['document'])}</h2>")
        page += section(figure, cells, name_of, plots)
    if whole:
        (folder / "index.html").write_text("\n".join(page) + "\n", encoding="utf-8")
