#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# test: tier=all where=guest kernel=any iommu=on seconds=70
# romulu processes a stream: raw frames of a JUNGFRAU become photons; results in files and streams; and
# receivers that are killed or cannot write. Stages, vetoes and wrong pipelines: processing-selftest.
. "$(dirname "$0")/../lib/shell.sh"
. "$(dirname "$0")/../lib/pipeline.sh"

have_fpga || { skip "board: process" "no software FPGA in this guest"; finish; }
buffer=process
rashpactl buffer create "$buffer" 64M >/dev/null
ok $? "buffer: a buffer is made"

says() { jq -c ".processing | $1" "$work/romulu.json"; }
python() { # SCRIPT ARGUMENT...
	PYTHONPATH=$PWD/build/tools/python RASHPA_LIBRARY=$PWD/${RASHPA_TOOLS:-build/tools}/librashpa.so.0 \
		RASHPA_PROCESSING_LIBRARY=$PWD/${RASHPA_TOOLS:-build/tools}/librashpa-processing.so.0 \
		OPENBLAS_NUM_THREADS=1 exec python3 -B "$@"
}
# to_pipe [OPTION...]: a receiver that writes to a pipe
to_pipe() {
	rm -f "$work/pipe"
	mkfifo "$work/pipe"
	attach "{\"sinks\": {\"raw\": {\"file\": \"$work/pipe\"}}}" "$@"
}
# take N: so many halves of images; sets reader
take() {
	exec {reader}<"$work/pipe"
	head -c $(($1 * float / 2)) <&"$reader" >"$work/first"
}
# take_rest: after its writer has gone
take_rest() {
	cat <&"$reader" >>"$work/first"
	exec {reader}<&-
}
rest="{\"sinks\": {\"raw\": {\"file\": \"$work/rest\", \"overwrite\": true}}}"
# whole ID LEAST MOST: both files have all 40 images; some of them may be in both
whole() {
	local first rest
	first=$(($(stat -c %s "$work/first") / float)) rest=$(($(stat -c %s "$work/rest") / float))
	holds "$1: none is missing, and not more than a stack comes again: $first and $rest of 40" \
		"first >= 1 && rest >= 1 && first + rest >= $2 && first + rest <= $3"
}

# --- a board that processes, and another one that streams
other=$(lspci -D -d 1234:5250 | sed -n '2s/ .*//p')
if [[ $other ]]; then
	rashpactl unbind "$other" >/dev/null 2>&1
	other=$(rashpactl --json bind "$other" | jq -r .node)
	is "other: another board is there" "${other%%[0-9]*}" "fpga"
	unit() { rashpactl --json fpga status "$other" | jq -c ".units[0] | $1"; }
else
	skip "other: a board that processes" "there is no second software FPGA in this guest"
fi

# --- real frames
if [[ -d ${RASHPA_DATA-}/jungfrau ]]; then
	real_frames
	start "$data" --images 10 --bunch 2
	attach "$work/photons.json"
	both 0 "real-end: ten real frames"
	is "real-counts: all are processed, and written" "$(says '[.images, .vetoed, .lost, .sinks[0].images]') $(stat -c %s "$work/photons.f32")" \
		"[10,0,0,10] $((10 * 512 * 1024 * 4))"
	right "real: the file has the expected photons, within 1e-3"
	if [[ $other ]]; then
		start "$data" --images 10 --bunch 2
		attach "$work/photons.json" --engine "$other"
		both 0 "real-board-end: ten real frames, on a board"
		right "real-board: its file has the expected photons, within 1e-3"
	fi
else
	skip "real: ten real frames" "there is no RASHPA_DATA/jungfrau"
fi

# --- dark images between the others move the pedestal; a board has the same numbers
if [[ $other ]]; then
	cat >"$work/same.py" <<-END
		import sys
		import numpy as np
		a, b = (np.fromfile(f, "<f4") for f in sys.argv[1:])
		assert a.size == b.size == int(16 * $float / 4), (a.size, b.size)
		assert (np.isnan(a) == np.isnan(b)).all() and 0 < np.isnan(a).sum() < a.size / 2, np.isnan(a).sum()
		worst = np.nanmax(np.abs(a - b) / (1 + np.abs(a)))
		assert worst < 1e-5, worst
	END
	declare -A engines=([reference]=reference [board]=$other)
	for engine in reference board; do
		start generate:4 --images 24 --bunch 3 --tune darks=generate:2:7 --tune dark-every=3
		attach "{\"pretreat\": {\"dark\": \"move\", \"dark_images\": 4, \"gain\": 3, \"saturated\": 30000},
			\"sinks\": {\"raw\": {\"file\": \"$work/$engine.f32\"}}}" --engine "${engines[$engine]}"
		both 0 "dark-$engine-end: dark images, engine $engine"
		is "dark-$engine: all are accounted for" "$(says '[.engine, .images, .dark, .lost]')" "[\"${engines[$engine]}\",16,8,0]"
	done
	python3 -B "$work/same.py" "$work/reference.f32" "$work/board.f32" >"$work/err" 2>&1
	ok $? "board-numbers: the board's numbers are those of the reference" || sed 's/^/# /' "$work/err"
	is "board-counts: the board counts its images, and has stopped" \
		"$(unit '[.kind, .running, .faulted, .images, .results, .dark]')" '["pretreat",false,false,24,16,8]'

	# a board that is stopped by another program: the next receiver has the rest
	start generate:4 --images 40 --bunch 2 --slots 4
	to_pipe --engine "$other"
	take 3
	rashpactl fpga quiesce "$other" >/dev/null
	take_rest
	wait "$romulu"
	is "stopped: a receiver whose board is stopped fails, and reports it" \
		"$? $(grep -c "$other: another program stopped it" "$work/out")" "1 1" || sed 's/^/# /' "$work/out"
	romulu --buffer process --pipeline '{}' --engine "fpga$fpga" --timeout 60 >"$work/out" 2>&1
	is "streaming: the board that streams does not process" \
		"$? $(grep -c "fpga$fpga: process [0-9]* (remu)" "$work/out")" "1 1" || sed 's/^/# /' "$work/out"
	attach "$rest"
	both 0 "stopped-next-end: the next receiver has the rest"
	whole stopped-next 40 42

	# from board to board: no image passes the host's memory
	export RASHPA_RUN=$work
	has_offered() { [[ -S $work/board ]] || gone "$romulu"; }
	offered() { # romulu listens, or has ended
		wait_for 60 has_offered
	}
	policy=/sys/module/rashpa/parameters/p2p_bridge
	before=$(cat "$policy")
	echo allow >"$policy"
	rm -f "$work/board"
	attach "{\"pretreat\": {\"dark\": \"move\", \"dark_images\": 4, \"gain\": 3, \"saturated\": 30000},
		\"sinks\": {\"raw\": {\"file\": \"$work/board.f32\", \"overwrite\": true}}}" --engine "$other" --offer board
	offered
	start generate:4 --images 24 --bunch 1 --slots 5 --tune darks=generate:2:7 --tune dark-every=3 --payload board
	both 0 "peer-end: from board to board"
	is "peer: all were there" "$(says '[.in_place, .images, .dark, .lost]') $(unit '[.images, .results, .dark]')" \
		"[true,16,8,0] [24,16,8]"
	python3 -B "$work/same.py" "$work/reference.f32" "$work/board.f32" >"$work/err" 2>&1
	ok $? "peer-numbers: with the reference's numbers" || sed 's/^/# /' "$work/err"

	# another receiver offers the memory again, and begins in the middle of the ring
	start generate:7 --images 40 --bunch 2
	attach "{\"sinks\": {\"raw\": {\"file\": \"$work/all\"}}}"
	both 0 "peer-host-end: by way of the host"
	rm -f "$work/board"
	to_pipe --engine "$other" --offer board
	offered
	start generate:7 --images 40 --bunch 2 --slots 7 --payload board
	take 11
	kill -9 "$romulu"
	wait "$romulu" 2>/dev/null
	take_rest
	rm -f "$work/board"
	attach "$rest" --engine "$other" --offer board
	both 0 "peer-killed-end: one that was killed is followed by another"
	whole peer-killed 39 44
	first=$(($(stat -c %s "$work/first") / float)) last=$(($(stat -c %s "$work/rest") / float))
	cmp -n $((first * float)) "$work/all" "$work/first" && cmp <(tail -c $((last * float)) "$work/all") "$work/rest"
	ok $? "peer-killed-images: each image is the right one"

	# streams that the engine cannot take
	fresh() { rashpactl buffer remove process && rashpactl buffer create process 64M >/dev/null; }
	# refused ID WORDS OPTION...
	refused() {
		fresh
		rm -f "$work/board"
		attach '{}' --engine "$other" --offer board --timeout 20
		[[ $1 == elsewhere ]] || offered
		start generate:4 --images 40 --timeout 20 "${@:3}"
		wait "$romulu"
		is "refused-$1: romulu fails, and says: $2" "$? $(grep -c "$2" "$work/out")" "1 1" || sed 's/^/# /' "$work/out"
		kill "$remu" 2>/dev/null # if it has not ended for the same reason
		wait "$remu"
	}
	refused room "room for 17 images" --payload board --bunch 1 --slots 17
	refused overwrite "may be overwritten" --payload board --bunch 1 --slots 4 --policy overwrite
	refused gaps "gaps between its stacks" --payload board --slots 4 --dtp 0,0,100x10@0,0 --bunch 3
	refused elsewhere "stream with --payload board"
	fresh
	echo "$before" >"$policy"
	romulu --buffer process --pipeline '{}' --offer board >"$work/out" 2>&1
	is "refused-nobody: memory of a missing board" $? 2

	# in a program: the result of an aborted image is not taken for the next one's
	cat >"$work/stopped.py" <<-END
		import subprocess
		import numpy
		from rashpa import processing
		images = numpy.arange(3, dtype="u2")[:, None, None] + numpy.zeros((3, 64, 128), "u2")
		def fails(pipeline, words):
		    try:
		        pipeline(images[2])
		    except processing.Error as failure:
		        assert words in failure.strerror, failure
		    else:
		        raise AssertionError(words)
		with processing.Pipeline({"pretreat": {"gain": 2}}, engine="$other") as pipeline:
		    assert (pipeline(images[1]).image == 0.5).all()
		    subprocess.run(["rashpactl", "fpga", "quiesce", "$other"], check=True, capture_output=True)
		    fails(pipeline, "another program stopped it")
		    fails(pipeline, "failed before")
		with processing.Pipeline({"pretreat": {"gain": 2}}, engine="$other") as pipeline:
		    assert (pipeline(images[2]).image == 1).all()
	END
	(python "$work/stopped.py") >"$work/err" 2>&1
	ok $? "stopped-program: a board that was stopped has no more results until a program begins anew" || sed 's/^/# /' "$work/err"
fi

# --- results are streams, for programs in Python: images, profiles and peaks, and how many images were kept;
# the stream of raw images has the work itself
rashpactl buffer create results 64M >/dev/null && rashpactl buffer create profiles 4M >/dev/null && rashpactl buffer create peaks 64M >/dev/null
cat >"$work/beam.poni" <<'END'
poni_version: 2
Detector: Detector
Detector_config: {"pixel1": 7.5e-05, "pixel2": 7.5e-05, "max_shape": [128, 256]}
Distance: 0.1
Poni1: 0.0048
Poni2: 0.0096
Rot1: 0
Rot2: 0
Rot3: 0
Wavelength: 1e-10
END
cat >"$work/results.py" <<'END'
import sys
import numpy
import rashpa
with rashpa.Stream("profiles", timeout=100) as profiles, rashpa.Stream("peaks", timeout=100) as peaks:
    print("ready", flush=True)
    words, last = [], 0
    for profile, peak in zip(profiles, peaks, strict=True):
        assert profile.frame == peak.frame and profile.user == peak.user, (profile, peak)
        where, mean, error = profile.images[0]
        assert len(where) == 100 and (numpy.diff(where) > 0).all() and numpy.isfinite(mean).all()
        assert (mean[1:-1] > 0).all() and (error[1:-1] > 0).all()
        lines = peak.images[0]
        n = int(numpy.argmax(numpy.isnan([*lines[:, 0], numpy.nan])))
        assert n == min(peak.user[3], 50) and numpy.isfinite(lines[:n]).all(), (n, peak.user)
        words.append(peak.user)
    about = profiles.about, peaks.about
assert [a.content for a in about] == ["profile", "peaks"] and about[0].dataset == "2th_deg", about
assert [w[0] for w in words] == sorted({w[0] for w in words}) and words[-1][0] <= 16, words
assert [w[1] for w in words] == list(range(1, len(words) + 1)), words
with rashpa.Stream("process", observe=True, from_start=True) as stream:
    stream.begin(10)
    work = stream.told()
assert (work.engine, work.images, work.dark) == ("cpu", 16, 8), work
assert work.images - work.vetoed == len(words) > 0 and work.queue == 4 and not work.lost, work
stages = {s.name: (s.kind, s.images, s.lost) for s in work.stages}
assert stages == {"pretreat": (0, 24, 0), "peaks": (0, 16, 0), "veto": (0, 16, 0),
                  "integrate": (0, len(words), 0), "streams": (1, len(words), 0)}, stages
END
: >"$work/ready"
python "$work/results.py" >"$work/ready" 2>"$work/err" &
reader=$!
wait_for 60 grep -q ready "$work/ready"
start generate:4 --images 24 --bunch 3 --tune darks=generate:2:7 --tune dark-every=3
cat >"$work/results.json" <<-END
	{"pretreat": {"dark": "ignore"}, "peaks": {"finder": "peakfinder8", "poni": "beam.poni", "capacity": 50}, "veto": {"peaks": 1},
	 "integrate": {"poni": "beam.poni", "bins": 100, "unit": "2th_deg", "error": "poisson"},
	 "sinks": {"streams": {"profile": {"buffer": "profiles", "policy": "drop"},
		"peaks": {"buffer": "peaks", "policy": "drop"}}}}
END
attach "$work/results.json"
wait "$romulu"
result=$?
holds "results-end: profiles and peaks are streams: $result" "result == 0 || result == 4" || sed 's/^/# /' "$work/out"
wait "$remu"
wait "$reader"
ok $? "results: a program in Python has them, and what was kept" || sed 's/^/# /' "$work/err"
start generate:4 --images 1000000 --bunch 2 --slots 8
attach "$work/results.json"
seen() {
	rashpactl top --count 1 --interval 0.2 --json process >"$work/top" &&
		jq -e '.streams[0].processing | .images > 0 and .queue.stacks == 4 and
			(.stages | any(.name == "pretreat" and .seconds > 0 and .bytes_in > 0)) and
			(.sinks | map(.name)) == ["streams"]' \
			"$work/top" >"$work/err"
}
wait_for 60 seen
ok $? "top: rashpactl top has the stages" || sed 's/^/# /' "$work/top"
rashpactl top --count 1 --interval 0.2 process >"$work/top"
grep -q '^  cpu: [0-9]* images' "$work/top" && grep -q '^    pretreat  *[0-9]* images' "$work/top"
ok $? "top-text: rashpactl top shows them" || sed 's/^/# /' "$work/top"
kill "$remu"
wait "$remu" "$romulu"
rashpactl buffer remove profiles >/dev/null && rashpactl buffer remove peaks >/dev/null

romulu --buffer process --pipeline '{"sinks": {"streams": {"mean": {"buffer": "results"}}}}' --timeout 60 \
	>"$work/out" 2>&1 &
romulu=$!
start generate:4 --images 8 --bunch 2
wait "$romulu"
is "no-stage: results without a stage are no stream" "$? $(grep -c "sinks.streams.mean: .* accumulate" "$work/out")" "1 1"
attach '{}'
both 0 "no-stage-next: the next receiver has what it left"

# --- a receiver that is killed while it writes HDF5, which keeps things in memory: they are in the file before
# a stack is released
start generate:4 --images 40 --bunch 2
attach "{\"sinks\": {\"nexus\": {\"file\": \"$work/first.h5\"}}}"
has_some() { (($(stat -c %s "$work/first.h5" 2>/dev/null || echo 0) > 2 * float)); }
wait_for 60 has_some
kill -9 "$romulu"
wait "$romulu" 2>/dev/null
attach "{\"sinks\": {\"nexus\": {\"file\": \"$work/rest.h5\"}}}"
both 0 "hdf5-killed-end: a receiver after one that was killed while it wrote HDF5"
python3 -B - "$work/first.h5" "$work/rest.h5" <<-END >"$work/err" 2>&1
	import sys
	import h5py
	first, rest = (h5py.File(name, swmr=True)["entry"] for name in sys.argv[1:])
	a, b = (list(e["instrument/detector/sequence_number"]) for e in (first, rest))
	print(a, b)
	assert not first["complete"][()] and rest["complete"][()]
	# the first file may still be empty: it grows before its number of images is updated
	assert len(a) < 40 and sorted({*a, *b}) == list(range(min(b + a), min(b + a) + 40)) and len(a + b) <= 42
END
ok $? "hdf5-killed: both files have all images, and no more than a stack twice" || sed 's/^/# /' "$work/err"

# --- a stream that ends early: the file has the images that arrived, and is not marked complete
start generate:4 --images 1000000 --bunch 2 --slots 8
attach "{\"sinks\": {\"nexus\": {\"file\": \"$work/part.h5\"}}}"
has_part() { (($(stat -c %s "$work/part.h5" 2>/dev/null || echo 0) > 2 * float)); }
wait_for 60 has_part
kill "$remu"
wait "$remu"
wait "$romulu"
is "hdf5-short-end: a stream that ends in the middle" $? 1
python3 -B - "$work/part.h5" <<-END >"$work/err" 2>&1
	import sys
	import h5py
	with h5py.File(sys.argv[1]) as file:
	    frames = list(file["entry/instrument/detector/sequence_number"])
	    assert len(frames) and frames == list(range(len(frames))), frames
	    assert not file["entry/complete"][()]
END
ok $? "hdf5-short: it is not complete in the file, which opens" || sed 's/^/# /' "$work/err"

# --- a full disk: the receiver stops, or goes on, as configured
mkdir "$work/small"
mount -t tmpfs -o size=$((5 * float / 2)) tmpfs "$work/small"
start generate:4 --images 8 --bunch 2
attach "{\"sinks\": {\"raw\": {\"file\": \"$work/small/out\", \"overwrite\": true, \"on_error\": \"go_on\"}}}"
both 4 "full-go-on-end: a full disk, and the stream goes on"
is "full-go-on: losses are counted, and the file has whole images" \
	"$(says '[.images, .sinks[0].images, .sinks[0].lost]') $(stat -c %s "$work/small/out")" "[8,8,6] $((2 * float))"
grep -q "small/out: No space left on device" "$work/out"
ok $? "full-reason: it names the file and the reason" || sed 's/^/# /' "$work/out"
start generate:4 --images 8 --bunch 2
attach "{\"sinks\": {\"raw\": {\"file\": \"$work/small/out\", \"overwrite\": true}}}"
wait "$romulu"
is "full-stop: a full disk, and the receiver stops" $? 1
umount "$work/small"
attach "$rest"
both 0 "full-next-end: the next receiver has what was not written"
holds "full-next: it is, at least, all but the stack that was written: $(($(stat -c %s "$work/rest") / float))" \
	"$(stat -c %s "$work/rest") == 6 * float"

romulu --buffer process --pipeline '{"vetto": {}}' >"$work/out" 2>&1
is "wrong-pipeline: a pipeline that is wrong" "$? $(grep -c "vetto: unknown" "$work/out")" "1 1"
romulu --buffer process --engine fpga --pipeline '{}' >"$work/out" 2>&1
is "wrong-engine: an unknown engine" "$?" 2
rashpactl buffer remove process >/dev/null && rashpactl buffer remove results >/dev/null
ok $? "buffers-free: no process holds a buffer"
finish
