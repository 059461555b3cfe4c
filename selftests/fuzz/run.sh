#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# "make fuzz": each fuzzer for MINUTES, the guest's and the host's side by side.
# run.sh MINUTES [SEED], or run.sh kernel: print the guest's kernel. Findings stay in build/fuzz; the
# last line counts them, and so does build/fuzz.json.
set -uo pipefail

cd "$(dirname "$0")/../.." || exit 1
lab=selftests/lab/lab
out=build/fuzz
bin=build/selftests/fuzz
# the debug kernel sees more, where it has been made; else the newest
series=$("$lab" kernels | awk '$1 != "debug" { last = $1 }
	$1 == "debug" && $2 != "not" { debug = $1 }
	END { print debug ? debug : last }')
if [[ ${1-} == kernel ]]; then
	echo "$series"
	exit
fi
minutes=${1:?minutes} seed=${2:-$(date +%s)}
release=$("$lab" release "$series") || exit

host=(vfu control stream share text frame link telegram)
weight=(2 1 1 1 1 1 1 1) # tenths of the time; the last one is of two devices

mkdir -p "$out"
rm -f "$out"/*.log "$out"/*-{crash,timeout,oom,leak,slow-unit}-*
trap 'kill $(jobs -p) 2>/dev/null; wait; exit 130' INT TERM

# The corpus begins with what the self-test says to a board, a profile, and words.
seeds() {
	local name=$out/corpus word
	[[ -d $name/vfu ]] && return
	mkdir -p "$name"/{vfu,control,stream,share,text,frame,link,telegram}
	"$lab" exec -- python3 -B tools/frames/tests/oracle.py seeds "$name/frame"
	"$lab" exec -- build/tools/network-selftest "$name/link"
	# to lead, configure, arm, start, pause, resume, stop; the child does all of it
	printf '\x00\x01a\x6e\x018\x65\x00\x06\x00\x67\x00\x08\x00\x6a\x00' >"$name/telegram/run"
	cp selftests/demo/demo-network.xml "$name/telegram/experiment"
	for word in "early on" "twice interrupt 100" "lose on 3 dtp 1" "wild 0x100001000" release \
		"stuck on" "dead on" "dead link" "dead off" "flood max 0" "clock hold"; do
		printf "\x01\x04\x01\x$(printf %02x ${#word})\x00%s" "$word" >"$name/vfu/${word// /-}"
	done
	RASHPA_RECORD=/rashpa/$name/vfu "$lab" exec -- build/tools/rashpa-fpga-selftest --all >/dev/null
	printf '%s\n' $'\x08status' "stuck on" "early lock 100" "late on hold dtp 1" "twice on" \
		"lose on 3 dtp 0" "reorder on" "wild 0x1000" release "dead on" "dead link" \
		"flood max 0" "clock hold" "clock step 9" honest "dead off" disconnect >"$name/control/commands"
	{ printf '\0'; cat tools/data/profiles/rashpa-fpga.json; } >"$name/text/profile"
	printf '\x0332,0,64x32@1,2' >"$name/text/region"
	printf '\x0312.5K' >"$name/text/size"
	printf '\x04poni_version: 2.1\nDetector: Eiger4M\nDetector_config: %s\nDistance: 0.1\n%s\n' \
		'{"pixel1": 7.5e-05, "pixel2": 7.5e-05, "max_shape": [5, 7], "orientation": 3}' \
		$'Poni1: 0.1\nPoni2: 0.1\nRot1: 0.1\nRot2: 0\nRot3: 0\nWavelength: 1e-10' >"$name/text/poni"
	# three planes of eight pixels, as numbers, as NumPy has them, and compressed
	"$lab" exec -- python3 - "$name/text" <<-END
		import io, subprocess, sys
		import numpy as np
		plane, npy = np.arange(24, dtype="<f4").reshape(3, 2, 4), io.BytesIO()
		np.save(npy, plane)
		raw = plane.tobytes()
		zstd = subprocess.run(["zstd", "-c"], input=raw, capture_output=True, check=True).stdout
		for kind, data in ("raw", raw), ("npy", npy.getvalue()), ("zstd", zstd):
		    with open(f"{sys.argv[1]}/plane-{kind}", "wb") as file:
		        file.write(b"\x05" + data)
	END
	printf '\x06%s' '{"pretreat": {"detector": "jungfrau", "pedestal": ["a", "b", "c"], "gain": "g", "dark": "move",
		"unit": "keV", "photon_energy_kev": 12.4}, "correct": {"common_mode": {"chip_width": 256, "chip_height": 256,
		"below": 0.5}}, "assemble": {"modules": [{"x": 0, "y": 0, "width": 8, "height": 2, "to_x": 1, "to_y": 2,
		"flip": "y", "rotate": 90}], "bin_x": 2, "bin_y": 2}, "peaks": {"finder": "peakfinder8", "centre": [1, 2]}, "veto": {"threshold": 1,
		"pixels": 2}, "compress": {"threshold": 1, "capacity": 9}, "integrate": {"poni": "p", "bins": 10},
		"accumulate": {"images": 3}, "sinks": {"raw": {"file": "f", "on_error": "go_on"},
		"nexus": {"file": "n"}, "streams": {"image": {"buffer": "b"}}}}' >"$name/text/pipeline"
}

# The same streams into the model and the second implementation, or into the model twice.
two_devices() {
	local first=selftests/conformance/model.sh second=build/tools/rashpa-fpga-second
	[[ -x $second ]] || second=$first
	"$lab" exec -- build/selftests/conformance/differ "$first" "$second" \
		--seed "$seed" --seconds $((minutes * 6)) --save "$out/differ-crash-$seed.txt" \
		>"$out/differ.log" 2>&1
}

on_host() {
	local i name seconds status=0
	for i in "${!host[@]}"; do
		name=${host[i]} seconds=$((minutes * 6 * weight[i]))
		"$lab" exec -- "$bin/${name}_fuzz" -seed="$((seed & 0x7fffffff))" \
			-max_len=8192 -dict=selftests/fuzz/words.dict -timeout=20 -rss_limit_mb=3000 \
			-max_total_time="$seconds" -print_final_stats=1 \
			-artifact_prefix="$out/$name-" "$out/corpus/$name" \
			>"$out/$name.log" 2>&1 || status=1
	done
	two_devices || status=1
	return "$status"
}

in_guest() {
	RASHPA_FPGA=$PWD/$bin/rashpa-fpga "$lab" run --kernel "$series" --iommu on --fpga 2 \
		--timeout $((minutes * 60 + 600)) --log "$out/kernel.log" -- \
		selftests/fuzz/guest.sh $((minutes * 60)) "$seed" >"$out/guest.log" 2>&1
}

seeds
echo "fuzzing for $minutes minutes, seed $seed, guest Linux $release"
guest=0 other=0
in_guest &
pid=$!
on_host || other=$?
wait "$pid" || guest=$?
# jq is in the lab's root
"$lab" exec -- selftests/fuzz/report.sh "$other" "$guest" "$release" "$seed"
((guest)) && grep '^# kernel\|^not ok\|^lab:\|left$' "$out/guest.log" | head -n 20
((other)) && grep -h 'ERROR:\|runtime error\|not true\|^# stream\|^Bail' "$out"/*.log | head -n 20
if ((guest || other)); then
	echo "something was found (host $other, guest $guest): see $out"
	exit 1
fi
echo "nothing was found"
