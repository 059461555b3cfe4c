#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Runs inside the lab's root: draws the pictures of the pages, from the sources in this folder. Those of
# measurements are drawn if build has the results of "make bench" and of guest.sh. Colours are Okabe and Ito's.
set -euo pipefail

cd "$(dirname "$0")"
licence=$(sed -n '2s/# //p' make.sh)
export licence
font="DejaVu Sans,Verdana,sans-serif"
for source in *.dot; do
	# the names of nodes as tooltips help no reader; the name of the graph is the title
	dot -Tsvg -Gbgcolor=white -Gpad=0.2 -Gfontname="$font" -Gfontsize=13 -Gcolor="#999999" -Gstyle=rounded -Glabeljust=l \
		-Nfontname="$font" -Nfontsize=12 -Nshape=box -Nstyle=filled -Nfillcolor="#F4F4F4" -Ncolor="#444444" \
		-Efontname="$font" -Efontsize=11 -Ecolor="#444444" "$source" |
		perl -0777 -pe 's/<!--.*?-->\n//gs; s/<title>[\w&#;:]*<\/title>\n//g;
			s/<svg /<!-- $ENV{licence} -->\n<svg /' >"${source%.dot}.svg"
done
export MPLCONFIGDIR=/tmp PATH=$PWD/../../build/tools:$PATH
python3 -B measured.py ../../build .
python3 -B ../../tools/bench/lab/bench_curves.py builder-model.svg
