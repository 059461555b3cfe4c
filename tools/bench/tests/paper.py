# SPDX-License-Identifier: LGPL-2.1-or-later
"""Values of the documents, in the form that "rashpa-bench paper" expects: paper.py FOLDER"""
import json
import sys
from pathlib import Path

sys.path.insert(0, sys.argv[1])
from figures import HOW

UNITS = "bit_per_s", "byte_per_s", "_us", "_ns", "_percent", "_watt", "_cycles", "in_flight", "queue_pairs"
BOUNDS = "about", "at most", "at least", "below", "above"


def check_row(row, figure):
    """The name of the row: all of them differ."""
    has = [q for q in figure["quantities"] if q in row]
    if not has:
        assert row["says"] and row["quantity"] in figure["quantities"], row
        has = [row["quantity"]]
    else:
        assert len(has) == 1 and isinstance(row[has[0]], (int, float)) and "says" not in row, row
    assert set(row) <= {"what", "says", "quantity", "bound", "uncertainty", *figure["at"], *has}, row
    assert row.get("bound", "about") in BOUNDS, row
    assert ("uncertainty" in row) == ("read from the plot" in figure["from"]), row
    return row["what"], has[0], *(row.get(at) for at in figure["at"])


def check_figure(figure, how):
    assert all(figure[key] for key in ("title", "there", "from", "quantities")), "a text is missing"
    assert all(quantity.endswith(UNITS) for quantity in figure["quantities"]), "a unit is missing in a name"
    assert figure.get("x") in [None, *figure["at"]], "the axis is not in the rows"
    assert figure["rows"] or how or figure["needs"], "neither values nor a reason"
    assert ("needs" in figure) != bool(how), "a reason, or a way to measure it"
    assert not how or how.__doc__, "nothing says how the measurement differs"
    names = [check_row(row, figure) for row in figure["rows"]]
    assert len(set(names)) == len(names), "a row occurs twice"


known = set()
for path in sorted(Path(sys.argv[1]).glob("00?.json")):
    document = json.loads(path.read_text(encoding="utf-8"))
    assert document["source"] == path.stem and document["title"], path
    ids = [figure["id"] for figure in document["figures"]] + document["diagrams"]
    assert len(set(ids)) == len(ids), path
    for one in document["figures"]:
        known.add((path.stem, one["id"]))
        try:
            check_figure(one, HOW.get((path.stem, one["id"])))
        except (AssertionError, KeyError) as error:
            sys.exit(f"{path.stem} {one['id']}: {error!r}")
assert len({source for source, _ in known}) == 5 and set(HOW) <= known, set(HOW) - known
