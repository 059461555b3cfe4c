#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Runs in a guest: throughput of a receiver that touches no pixels, compared with that of the FPGA alone.
# bench-keepup.sh FPGA FOLDER: FPGA is an unused bound function; writes FOLDER/keepup.json.
set -euo pipefail
fpga=$1 out=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
rashpactl buffer create keepup 128M >/dev/null
send() { # NAME OPTION...
	remu --buffer keepup --fpga "$fpga" --split 2 --bunch 8 --slots 8 --images 8000 --timeout 60 \
		--json="$work/$1.json" "${@:2}" >/dev/null
}
send alone --policy overwrite
romulu --buffer keepup --timeout 60 >/dev/null 2>&1 &
send with
wait
rashpactl buffer remove keepup
jq -n --slurpfile a "$work/alone.json" --slurpfile w "$work/with.json" \
	'{alone_bytes_per_second: ($a[0].bytes / $a[0].seconds), with_receiver_bytes_per_second: ($w[0].bytes / $w[0].seconds),
	  ratio: ($a[0].seconds / $w[0].seconds)}' >"$out/keepup.json"
cat "$out/keepup.json"
