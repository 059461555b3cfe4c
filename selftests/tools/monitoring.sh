#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# test: tier=all where=guest kernel=any iommu=off seconds=15
# Metrics for Prometheus, read by its own parser; a dashboard and a page that know them; a report without
# addresses and data.
. "$(dirname "$0")/../lib/shell.sh"

export PYTHONPATH=$PWD/build/tools/python
rashpactl buffer create watched 8M >/dev/null
ok $? "buffer: a buffer is made"
top() { rashpactl top --count 1 --interval 0.05 "$@"; }
# It fills all slots, and waits, so that the metrics do not change.
build/tools/examples/producer watched 100000 2>"$work/err" &
producer=$!
is_so() { [[ $(top --json watched 2>/dev/null | jq -r ".streams[0] | $1") == true ]]; }
wait_for 60 is_so '.state == "waiting"'
ok $? "full: a stream whose slots are full"

metrics=$work/rashpa.prom
measured() { # ID [OPTION...]
	top --prometheus="$metrics" "${@:2}" && python3 -B tools/data/monitoring/tests/metrics.py "$metrics" >"$work/metrics" 2>"$work/err"
	ok $? "metrics-$1: metrics can be read" || sed 's/^/# /' "$work/err"
}
says() { jq -r "$1" "$work/metrics"; }
measured full
slots=$(says '.samples["rashpa_stream_slots{buffer=watched}"]')
slots=${slots%.*}
holds "slots: there are slots" "slots > 4"
is "counts: stacks, images, bytes, lag and losses" "$(says '.samples | [.["rashpa_stream_" + ("stacks_total", "images_total", "bytes_total",
	"lag_stacks", "consumed_stacks_total", "lost_images_total") + "{buffer=watched}"]] | map(floor) | @csv')" \
	"$slots,$((slots * 8)),$((slots * 8 * 256 * 128 * 2)),$slots,0,0"
is "state: one state is true" "$(says '.samples | to_entries | map(select(.key | startswith("rashpa_stream_state")) | select(.value == 1).key) | @csv')" \
	'"rashpa_stream_state{buffer=watched,state=waiting}"'
is "memory: memory that is held" "$(says '.samples["rashpa_memory_used_bytes{}"] >= 8388608')" true
is "output: standard output has the same" "$(top --prometheus | grep -c "^rashpa_stream_lag_stacks{buffer=\"watched\"} $slots\$")" 1

# --- names used by the dashboard
says '.families | keys[]' | sort >"$work/families"
grep -oE '\brashpa_[a-z_]+' tools/data/monitoring/grafana.json | sort -u | comm -23 - "$work/families" >"$work/unknown"
[[ -s $work/families && ! -s $work/unknown ]] && jq -e '[.. | .expr? // empty] | length > 5' tools/data/monitoring/grafana.json >/dev/null
ok $? "dashboard: the dashboard uses metrics that there are" || sed 's/^/# /' "$work/unknown"

# --- a processing consumer with a full sink
mkfifo "$work/pipe"
romulu --buffer watched --pipeline "{\"sinks\": {\"raw\": {\"file\": \"$work/pipe\"}}}" >"$work/out" 2>&1 &
romulu=$!
exec {reader}<"$work/pipe"
# results of some stacks are taken, the next ones wait
head -c $((20 * 256 * 128 * 4)) <&"$reader" >/dev/null
wait_for 60 is_so '(.processing.sinks | length > 0) and .processing.queue.fill > 0'
ok $? "work: a consumer publishes its work"
measured work watched
is "work-counts: images, stages, sinks" "$(says '.samples | [(.["rashpa_processing_images_total{buffer=watched,engine=cpu}"] > 0),
	(.["rashpa_processing_queue_stacks{buffer=watched,engine=cpu}"] > 0),
	(keys | map(select(startswith("rashpa_stage_seconds_total"))) | map(capture("kind=(?<k>[a-z]+),.*stage=(?<s>[a-z]+)") | .k + " " + .s) | sort | join("+"))]
	| map(tostring) | join(",")')" "true,true,process pretreat+sink raw"
kill -9 "$romulu"
wait "$romulu" 2>/dev/null
exec {reader}<&-

# --- the file is complete at any time, and is removed with its writer
rm "$metrics"
rashpactl top --interval 0.01 --prometheus="$metrics" &
writer=$!
wait_for 30 test -s "$metrics"
whole=0
for ((i = 0; i < 50; i++)); do
	[[ $(<"$metrics") == "# HELP rashpa_build_info"*'resource="timer"}'* ]] && whole=$((whole + 1))
done
is "whole: each read of the file finds all metrics" "$whole" 50
kill "$writer"
wait "$writer"
is "top-ends: top ends by a signal" $? 0
is "top-file: it takes its file away" "$(compgen -G "$work/*.prom*")" ""
top --prometheus="$work/none/file" 2>"$work/err"
is "no-folder: a missing folder is reported" "$? $(grep -c "none/file.*No such file" "$work/err")" "1 1"
kill -9 "$producer"
wait "$producer" 2>/dev/null
measured dead watched
is "dead: a producer that died" "$(says '.samples["rashpa_stream_state{buffer=watched,state=dead}"]')" 1.0

# --- a report
python3 -c 'import mmap, os
m = mmap.mmap(os.open("/dev/rashpa/buffer/watched", os.O_RDWR), 8 << 20)
m[4 << 20:(4 << 20) + 15] = b"private-pixels!"'
ok $? "data: data in the buffer"
printf 'rashpa: planted at 0xfee01234, [mem 0x00000000fd000000-0x00000000fdffffff], ffff888012345678, 0x1234:0x5250, %s\n' \
	123456789 >/dev/kmsg
rashpactl report --json="$work/report" 2>"$work/err"
is "report: a report" "$? $(<"$work/err")" "0 " || sed 's/^/# /' "$work/err"
jq -e '(.module.version | length > 0) and (.module.parameters | length > 5) and (.doctor.checks | length > 10) and
	(.list | has("devices")) and (.limits | length > 5) and (.top | has("streams"))' "$work/report" >/dev/null
ok $? "report-parts: it has what doctor, list, limits and top print" || head -c 2000 "$work/report" | sed 's/^/# /'
is "report-log: addresses in the kernel's log are left out, and nothing else" \
	"$(jq -r '.log[] | select(contains("planted")) | sub(".*planted"; "planted")' "$work/report")" \
	"planted at 0x?, [mem 0x?-0x?], 0x?, 0x1234:0x5250, 123456789"
is "report-addresses: no address is anywhere" "$(grep -nE '0x[0-9a-f]{7,}|".*".*[0-9a-f]{12,}.*"|private-pixels' "$work/report" | head -n 5)" ""
rashpactl buffer remove watched
ok $? "buffer-free: no process holds the buffer"
finish
