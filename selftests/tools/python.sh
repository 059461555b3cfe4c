#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# test: iommu=off seconds=130
# The Python package: consumers, observers and producers of streams, by tools/python/tests/check.py.
. "$(dirname "$0")/../lib/shell.sh"

export PYTHONPATH=$PWD/build/tools/python PYTHONDONTWRITEBYTECODE=1
RASHPA_LIBRARY=$PWD/${RASHPA_TOOLS:-build/tools}/librashpa.so.0
# one thread: the check forks. A cache of fonts takes long to make
export RASHPA_LIBRARY MPLCONFIGDIR=$PWD/build/matplotlib OPENBLAS_NUM_THREADS=1

have_fpga || { fpga=-; skip "frames-remu: frames of remu" "no software FPGA in this guest"; }
mkdir "$work/data"
last=
while IFS= read -r line; do
	case $line in
	"ok "*) ok 0 "${line#ok }" ;;
	"not ok "*) ok 1 "${line#not ok }" ;;
	*) echo "# ${line#\# }" ;;
	esac
	last=$line
done < <(python3 tools/python/tests/check.py "$fpga" "$work/data" 2>&1)
is "all-checks: all checks were made" "$last" end

# --- installed in a folder that a user's Python searches
meson install -C build/tools --no-rebuild --tags python --destdir "$work/root" >"$work/err" 2>&1
ok $? "install-python: meson install --tags python" || sed 's/^/# /' "$work/err"
installed=$(dirname "$work/root"/usr/local/lib/python3*/dist-packages/rashpa)
is "installs-all: which installs all of it" "$(cd "$installed/rashpa" && printf '%s ' *.py)" \
	"$(cd build/tools/python/rashpa && printf '%s ' *.py)"
is "imported: and it can be imported" "$(PYTHONPATH=$installed python3 -c \
	'import rashpa; print(rashpa.buffers(), rashpa.__file__.split("/")[-3])')" "[] dist-packages"
[[ $fpga != - ]] || finish

# --- programs
images=400
rashpactl buffer create ring5 64M >/dev/null
stream() { # DATASET, more arguments of remu
	remu --buffer ring5 --fpga "$fpga" --bunch 4 --slots 8 --images "$images" --timeout 60 \
		--dataset "$@" >"$work/remu.out" 2>&1 &
	remu=$!
}
is_png() { [[ $(head -c 4 "$1" | tail -c 3) == PNG ]]; }
stream "$work/data"
tools/examples/consumer.py ring5 "$work/plot.png" >"$work/out" 2>&1
ok $? "example: the example" || sed 's/^/# /' "$work/out"
is "takes-all-images: it takes all images" "$(cat "$work/out")" "$images images, 0 lost, 0 left out"
is_png "$work/plot.png"
ok $? "plots: and plots them"
lines=$(sed '1,/"""/d' tools/examples/consumer.py | grep -vcE '^( *#.*)?$')
holds "15-lines: it has 15 lines at most ($lines)" "$lines > 0 && $lines <= 15"
wait "$remu"
ok $? "remu-ends-well: remu ends well" || sed 's/^/# /' "$work/remu.out"
rashpactl buffer remove ring5
ok $? "buffer-not-held: no process holds the buffer"
finish
