#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Metrics, as Prometheus' own parser reads them: metrics.py FILE. JSON: "families" by name, with their
types, and "samples", by name and labels. Exit status 1 where a rule of names is not kept."""
import json
import re
import sys

from prometheus_client.parser import text_string_to_metric_families

families, samples, wrong = {}, {}, []
with open(sys.argv[1], encoding="utf-8") as file:
    for family in text_string_to_metric_families(file.read()):
        # the parser takes the suffix away from counters
        name = family.name + ("_total" if family.type == "counter" else "")
        if name in families:
            wrong.append(f"{name} comes twice")
        if not re.fullmatch(r"rashpa_[a-z_]+", name) or not family.documentation:
            wrong.append(f"{name} has another name, or no text")
        if re.search(r"_(ns|us|ms|kb|mb|percent)(_|$)", name) or (family.type != "counter" and name.endswith("_total")):
            wrong.append(f"{name}: units are seconds and bytes, and only counters end with _total")
        if family.type not in ("counter", "gauge"):
            wrong.append(f"{name}: {family.type}")
        families[name] = family.type
        for s in family.samples:
            key = s.name + "{" + ",".join(f"{k}={s.labels[k]}" for k in sorted(s.labels)) + "}"
            if key in samples:
                wrong.append(f"{key} comes twice")
            samples[key] = s.value
json.dump({"families": families, "samples": samples}, sys.stdout)
for fault in wrong:
    print(fault, file=sys.stderr)
sys.exit(bool(wrong))
