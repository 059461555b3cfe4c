#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# test: tier=check seconds=60
# romulu records streams of a program in folders. The driver is files (librashpa-fake.so). TAP.
set -uo pipefail

# shellcheck source-path=SCRIPTDIR source=../../../selftests/lib/shell.sh
. "$(dirname "$0")/../../../selftests/lib/shell.sh"
tools=$PWD/${RASHPA_TOOLS:-build/tools}
export LD_LIBRARY_PATH=$tools RASHPA_DEV PYTHONPATH=$tools/python RASHPA_LIBRARY=$tools/librashpa-fake.so

# stream WIDTHxHEIGHT BUNCH STACKS [POLICY]: the one that the following tests record
stream() {
	[[ ! ${input-} ]] || { exec {input}>&-; wait "$pid"; }
	coproc program { python3 -B tools/romulu/tests/recorder.py stream "$1" "$2" "$3" "${4-wait}" 2>&1; }
	input=${program[1]}
	read -r RASHPA_DEV <&"${program[0]}"
	# shellcheck disable=SC2154 # coproc sets it
	pid=$program_PID size=$1 images=$(($2 * $3 - $2 / 2))
}
folders() { # NAME...: empty ones
	rm -rf "$work"/d?
	to=() at=()
	for name; do
		mkdir "$work/$name"
		to+=("--write=$work/$name") at+=("$work/$name")
	done
}
# record NAME STATUS OPTION...
record() {
	local status=0
	rm -f "$work/report"
	timeout 60 "$tools/romulu-fake" --buffer frames --timeout 5 --json="$work/report" "${to[@]}" \
		"${@:3}" >"$work/out" 2>&1 || status=$?
	is "$1" "$status" "$2" || sed 's/^/# /' "$work/out"
}
compares() { # NAME IMAGES
	good "$1" python3 -B tools/romulu/tests/recorder.py compare "$size" "$2" "${at[@]}"
}
says() { # NAME WORDS
	grep -q "$2" "$work/out"
	ok $? "$1" || sed 's/^/# /' "$work/out"
}
counted() { jq -c '[.frames, .stacks]' "$work/report"; }

# --- one folder, several, sizes that are no blocks
stream 64x96 2 20
folders da
record "one: a stream in a folder" 0 --tune from-start
is "one-report: the report counts all" "$(counted)" "[$images,20]"
compares "one-right: each image is there and right" "$images"
is "one-size: the file ends with the last stack" "$(stat -c %s "$work/da/frames-0.raw")" $((20 * 24576))
stream 61x37 3 20
folders da db dc
record "three: stacks that are no blocks, in three folders" 0 --tune from-start
compares "three-right: each image is right" "$images"
record "again: the same stream once more" 0 --tune from-start
compares "again-once: adds no stack twice" "$images"
to=("${to[@]:0:2}")
record "other-folders: fewer folders than before are refused" 1 --tune from-start
says "other-folders-reason: with the reason" "in 3 folders"
stream 61x38 3 4
to=("--write=$work/da" "--write=$work/db" "--write=$work/dc")
record "other-size: images of another size are refused" 1 --tune from-start
says "other-size-reason: with the reason" "another size"
size=61x37
compares "other-size-kept: the recording stays as it was" $((3 * 20 - 1))

# --- receivers that are killed: the recording has each frame once, and right
folders da db
good "killed: receivers that are killed, and the next ones, keep each image once" \
	python3 -B tools/romulu/tests/recorder.py kill 64x48 8000 6 "$tools/romulu-fake" "${at[@]}"
grep '^#' "$work/log"

# --- a file that may not grow, and one disk of two that is full
stream 64x96 2 20
folders da
ulimit -S -f 200
record "limit: a file reaches its limit" 1
ulimit -S -f unlimited
says "limit-reason: the reason" "File too large"
is "limit-counts: whole stacks are counted" "$(counted)" "[16,8]"
compares "limit-kept: and kept" 16
record "limit-next: the next receiver goes on" 0
compares "limit-all: and has the rest" "$images"
stream 64x96 2 100
folders da db
if mount -t tmpfs -o size=1M none "$work/db" 2>/dev/null; then
	record "full: one of two disks is full" 1
	says "full-reason: the reason" "db.*No space left"
	kept=$(jq .frames "$work/report")
	holds "full-counts: whole stacks of both are counted" "$kept > 60 && $kept % 2 == 0"
	compares "full-kept: and kept" "$kept"
	mount -o remount,size=100M "$work/db"
	record "full-next: the next receiver goes on" 0
	compares "full-all: and has the rest" "$images"
	umount "$work/db"
else
	skip "full: one of two disks is full" "this user cannot mount"
fi

# --- other ways to the disk
stream 64x96 2 20 overwrite
folders da
record "overwrites: a stream that overwrites" 0 --tune from-start --sync each
says "overwrites-copy: is copied first" "copied before"
compares "overwrites-right: and right" "$images"
folders da
exec {lock}>"$work/da/frames.index"
flock "$lock"
record "busy: another program records there" 1 --tune from-start
says "busy-reason: the reason" "another program"
exec {lock}>&-
echo x >"$work/da/frames-0.raw"
record "no-index: frames without an index are not overwritten" 1 --tune from-start
says "no-index-reason: the reason" "index"
is "no-index-kept: they are kept" "$(<"$work/da/frames-0.raw")" x
to=(--write="$work/file" --write="$work/da")
record "mixed: a file and a folder" 2
to=(--write="$work/none/da")
record "missing: a folder that is missing" 1

exec {input}>&-
wait
finish
