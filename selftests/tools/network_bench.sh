#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# test: tier=all where=guest kernel=any iommu=off seconds=50
# rashpa-bench network: a writer and a sink count the same messages, also those dropped on purpose, or
# with a wrong checksum. The test does not judge measured values, nor losses of the line itself.
. "$(dirname "$0")/../lib/shell.sh"
. "$(dirname "$0")/../lib/rxe-pair.sh"

need_rxe_pair
ok 0 "pair: soft-RoCE in two namespaces"

port=5100
# sink OPTION...: begins one
sink() {
	port=$((port + 1))
	rm -f "$work/sink.json" "$work/write.json"
	at b rashpa-bench network sink --device rxb --listen 10.1.0.2:$port --settle 1000 \
		--json="$work/sink.json" "$@" >"$work/out" 2>&1 &
	sink=$!
}
# write ID STATUS OPTION...: a writer, which ends with this status, and its sink
write() {
	local status=$2 got
	part=$1
	shift 2
	at a rashpa-bench network write --device rxa --to 10.1.0.2:$port --json="$work/write.json" \
		"$@" >"$work/err" 2>&1
	got=$?
	wait "$sink"
	is "$part-end: write and sink end: $*" "$got $?" "$status $status" || sed 's/^/# /' "$work/out" "$work/err"
}
says() { jq -c "$1" "$work/write.json"; }
same() {
	is "$part-same: both have the same counts" "$(says '.repeats[0].sinks[0]')" \
		"$(jq -c '.repeats[0] | del(.kind, .series)' "$work/sink.json")"
}
# both SENT RECEIVED MISSING: counts of the first repetition
both() {
	is "$part: counts are right" "$(says '.repeats[0].sinks[0] |
		[.sent_messages, .received_messages, .missing_messages, .duplicate_messages]')" "[$1,$2,$3,0]"
	same
}
# adds_up SENT: some came, and the others are missing
adds_up() {
	is "$part: each of $1 messages came or is missing" "$(says '.repeats[0].sinks[0] |
		[.received_messages > 0, .received_messages + .missing_messages]')" "[true,$1]"
}
written() { is "$part-written: each destination has its message" "$(jq .destinations_written "$work/sink.json")" "$1"; }

# --- what is counted
sink --verify
write uc 0 --messages 100 --repeat 2 --destinations 32 --pairs 4 --linked 7 --depth 16
both 400 400 0
is "uc-repeats: each repetition" "$(says '[.repeats[].sinks[0].received_messages]')" "[400,400]"
written 32
is "uc-framing: framing is counted" "$(says '.repeats[0].sinks[0].line_efficiency_percent | . * 100 | round')" 9757
is "uc-counters: the card's counters" "$(says '.repeats[0].sinks[0].counters |
	[.["rdma.rcvd_pkts"], .["udp.received"], .frames_refused]')" "[400,400,0]"

sink --threads 3 --wait adaptive --pages 4K
write rc 0 --messages 50 --repeat 1 --service rc --pairs 5 --size 16K --wait poll --threads 2
both 250 250 0
# receives of each pair, and a thread each; the pairs of UC begin again after a loss
sink --threads 5 --private-receives --receives 16 --series
write private 0 --messages 50 --repeat 2 --service rc --pairs 5 --threads 5 --rate 4M
both 250 250 0
is "private-series: samples of goodput and processor time" "$(jq -c '.repeats[1].series | map_values(length) |
	[.time_ms > 0, .time_ms == .goodput_bytes_per_second, .time_ms == .cpu_percent]' "$work/sink.json")" "[true,true,true]"
sink --threads 2 --private-receives --receives 64
write private-uc 0 --messages 50 --repeat 1 --pairs 4 --rate 4M
both 200 200 0
# one queue of receives for 200 pairs
sink
write pairs 0 --messages 4 --repeat 1 --pairs 200 --rate 4M
both 800 800 0
rashpactl buffer create bench0 4M --backend contig >/dev/null
sink --buffer bench0 --wait poll
write buffer 0 --messages 10 --repeat 1 --destinations 10
both 10 10 0
rashpactl buffer remove bench0
ok $? "buffer-free: no process holds the buffer"

# 100 messages in chains of 50 ask for two events
sink
write events 0 --messages 100 --repeat 1 --linked 50 --solicited --depth 100
holds "events: far fewer than messages ($(says '.repeats[0].sinks[0].events'))" \
	"$(says '.repeats[0].sinks[0].events') <= 10"

# --- peers
sink --verify
write udp 0 --transport udp --messages 20 --repeat 1 --destinations 20 --rate 100K
adds_up 20
same
sink --verify
write zmq 0 --transport zmq --messages 20 --repeat 1 --destinations 20 --rate 100K
both 20 20 0
written 20

# --- several
sink --writers 2
at a rashpa-bench network write --device rxa --to 10.1.0.2:$port --messages 30 --repeat 1 \
	>"$work/other" 2>&1 &
other=$!
write writers 0 --messages 50 --repeat 1 --pairs 2
wait "$other"
is "writers-other: the other writer ends" $? 0
both 130 130 0
sink
first=$sink
sink
at a rashpa-bench network write --device rxa --to 10.1.0.2:$port --to 10.1.0.2:$((port - 1)) \
	--messages 20 --repeat 1 --json="$work/write.json" >"$work/err" 2>&1
wait "$first" && wait "$sink"
is "sinks: two sinks" "$?$(says '[.repeats[0].sinks[].received_messages]')" "0[20,20]"

# line ID ACTION...: 1 of 128 packets, by its number
line() {
	at a tc qdisc add dev va root handle 1: prio &&
		at a tc filter add dev va parent 1: protocol ip u32 match ip protocol 17 0xff \
			match ip dport 4791 0xffff match u8 0x07 0x7f at 39 action "${@:2}"
	ok $? "$1-line: a line that does so"
}
# --- messages of 12 KiB have three packets, and it is another one of them that is dropped each time: not
# each one that is lost stalls a pair
line dropped drop
dropped() { at a tc -s -j filter show dev va parent 1: | jq '[.. | .stats? // empty | .drops? // empty] | add'; }
before=$(dropped)
sink
write dropped 0 --messages 1000 --repeat 1 --pairs 2
lost=$(($(dropped) - before))
holds "dropped-some: packets were dropped ($lost)" "$lost > 8"
both 2000 $((2000 - lost)) $lost
sink --stall 100
write stall 0 --size 12K --messages 300 --warm-up 0 --repeat 1 --rate 2M
holds "stall: a pair that stalls receives again ($(says '.repeats[0].sinks[0] |
	[.received_again, .received_messages, .missing_messages]'))" \
	"$(says '.repeats[0].sinks[0] | if .received_again > 0 and .received_messages > 20 and
		.received_messages + .missing_messages == .sent_messages then 1 else 0 end')"
at a tc qdisc del dev va root

# --- what soft-RoCE does not do to messages, a line does to datagrams
at a tc qdisc add dev va root netem duplicate 100%
ok $? "twice-line: a line that repeats all"
sink
write twice 0 --transport udp --messages 50 --repeat 1 --rate 200K
twice=$(says '.repeats[0].sinks[0].duplicate_messages')
holds "twice-some: repeated messages are counted ($twice)" "$twice > 0 && $twice <= 50"
adds_up 50
at a tc qdisc replace dev va root netem delay 50ms reorder 100% gap 5
ok $? "order-line: a line that is not in order"
sink
write order 0 --transport udp --messages 50 --repeat 1 --rate 1M
holds "order-some: late messages are counted ($(says '.repeats[0].sinks[0].reordered_messages'))" \
	"$(says '.repeats[0].sinks[0].reordered_messages') > 0"
adds_up 50
at a tc qdisc del dev va root

# --- a byte of the payload of one packet in 128 is another one: no card takes it, none reports it
line refused pedit munge offset 100 u8 set 0x11
sink
write refused 0 --messages 512 --repeat 1
refused=$(says '.repeats[0].sinks[0].counters.frames_refused')
holds "refused-some: frames were refused ($refused)" "$refused >= 3"
both 512 $((512 - refused)) "$refused"
at a tc qdisc del dev va root

# --- what cannot be
sink --memory 4K
write memory 1 --destinations 10000 --messages 1 --repeat 1
grep -q "raise --memory" "$work/err"
ok $? "memory: too little memory, and the remedy" || sed 's/^/# /' "$work/err"
finish
