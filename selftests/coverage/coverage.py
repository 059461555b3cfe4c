#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Merge the counts of several guests, by line.

coverage.py BUILD RUNS RESULT: BUILD contains the module's .gcno files, RUNS a folder of
.gcda files for each guest.
"""
import collections
import glob
import json
import os
import subprocess
import sys
import tempfile


def counts(gcda, gcno):
    """Lines of one object file in one guest: (file, line, count)."""
    with tempfile.TemporaryDirectory() as folder:
        name = os.path.basename(gcda)
        os.symlink(os.path.abspath(gcda), os.path.join(folder, name))
        os.symlink(os.path.abspath(gcno), os.path.join(folder, name.replace(".gcda", ".gcno")))
        text = subprocess.run(["gcov", "--json-format", "--stdout", name], cwd=folder,
                              check=True, capture_output=True, text=True).stdout
    for file in json.loads(text)["files"]:
        for line in file["lines"]:
            yield file["file"], line["line_number"], line["count"]


def ranges(missed, known):
    """Missed lines as [first, last]; lines that hold no code do not end a range."""
    result = []
    open_range = False
    for line in sorted(known):
        if line not in missed:
            open_range = False
        elif open_range:
            result[-1][1] = line
        else:
            result.append([line, line])
            open_range = True
    return result


def main():
    build, runs, target = sys.argv[1:]
    lines = collections.defaultdict(collections.Counter)
    for gcda in sorted(glob.glob(os.path.join(runs, "*", "*.gcda"))):
        name = os.path.basename(gcda).replace(".gcda", ".gcno")
        gcno = glob.glob(os.path.join(build, "drivers", "**", name), recursive=True)[0]
        for file, line, count in counts(gcda, gcno):
            at = file.rfind("drivers/")
            if at >= 0:
                lines[file[at:]][line] += count
    if not lines:
        sys.exit("coverage.py: no counters in " + runs)

    files = []
    for file in sorted(lines):
        missed = {line for line, count in lines[file].items() if not count}
        total, covered = len(lines[file]), len(lines[file]) - len(missed)
        files.append({"file": file, "lines": total, "covered": covered,
                      "percent": round(100 * covered / total, 1),
                      "missed": ranges(missed, lines[file])})
    total, covered = (sum(f[key] for f in files) for key in ("lines", "covered"))
    result = {"files": files, "total": {"lines": total, "covered": covered,
                                        "percent": round(100 * covered / total, 1)}}
    with open(target, "w", encoding="ascii") as out:
        json.dump(result, out, indent=1)
        out.write("\n")

    for f in files + [dict(result["total"], file="total", missed=[])]:
        missed = " ".join(str(a) if a == b else f"{a}-{b}" for a, b in f["missed"])
        print(f"{f['percent']:5.1f} % {f['covered']:5}/{f['lines']:<5} {f['file']:26} {missed}")


main()
