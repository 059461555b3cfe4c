# shellcheck shell=bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# A detector and a receiver that processes, at the buffer $buffer. Sourced after shell.sh.
# shellcheck disable=SC2154,SC2034 # buffer, fpga, work; float is for scripts that source this

width=256 height=128		# generated images: small, for emulated hardware
float=$((width * height * 4))	# bytes of a processed image

# start DATASET OPTION...: start the detector in the background
start() {
	local dataset=$1
	shift
	[[ $dataset != generate* ]] || set -- --geometry "${width}x$height" "$@"
	remu --buffer "$buffer" --fpga "$fpga" --dataset "$dataset" --timeout 60 "$@" >"$work/remu.out" 2>&1 &
	remu=$!
}
attach() { # PIPELINE OPTION...: start the receiver in the background
	local pipeline=$1
	shift
	romulu --buffer "$buffer" --timeout 60 --json="$work/romulu.json" --pipeline "$pipeline" "$@" \
		>"$work/out" 2>&1 &
	romulu=$!
}
both() { # STATUS "ID: SENTENCE": the detector succeeds, the receiver ends with STATUS
	wait "$romulu"
	is "$2" $? "$1" || sed 's/^/# /' "$work/out"
	wait "$remu"
	ok $? "${2/:/-detector:}, and the detector ends" || sed 's/^/# /' "$work/remu.out"
}

# Frames of a JUNGFRAU: sets data, their folder; writes the pipeline $work/photons.json, which makes
# $work/photons.f32
real_frames() {
	data=$RASHPA_DATA/jungfrau
	cat >"$work/photons.json" <<-END
		{"pretreat": {"detector": "jungfrau",
			"pedestal": ["$data/pedestal_g0.bin.zst", "$data/pedestal_g1.bin.zst", "$data/pedestal_g2.bin.zst"],
			"gain": ["$data/gain_g0.bin.zst", "$data/gain_g1.bin.zst", "$data/gain_g2.bin.zst"]},
		 "sinks": {"raw": {"file": "photons.f32", "overwrite": true}}}
	END
	cat >"$work/photons.py" <<-END
		import subprocess, sys
		import numpy as np
		got = np.fromfile(sys.argv[1], "<f4").reshape(10, 512, 1024)
		for i, image in enumerate(got):
		    right = subprocess.run(["zstd", "-dc", f"{sys.argv[2]}/photons{i}.bin.zst"], check=True,
		                           capture_output=True).stdout
		    right = np.frombuffer(right, "<f4").reshape(512, 1024)
		    unknown = right == 32678
		    assert (np.isnan(image) == unknown).all(), i
		    worst = np.abs(image - right)[~unknown].max()
		    assert worst < 1e-3, (i, worst)
	END
}
right() { # "ID: SENTENCE": the file contains the expected photons
	python3 -B "$work/photons.py" "$work/photons.f32" "$data" >"$work/err" 2>&1
	ok $? "$1" || sed 's/^/# /' "$work/err"
}
