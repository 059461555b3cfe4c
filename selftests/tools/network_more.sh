#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# test: tier=all where=guest kernel=any iommu=off seconds=140
# Streams over RoCE v2: several receivers and senders, reliable connections, torn messages, losses that
# a mode cannot see, and killed processes. RASHPA_SEED: seed of the times; RASHPA_ROUNDS: number of rounds.
# Numbers that go round, and strangers: network_hostile.sh.
. "$(dirname "$0")/../lib/shell.sh"
. "$(dirname "$0")/../lib/rxe-pair.sh"
. "$(dirname "$0")/../lib/rxe-stream.sh"

need_rxe_pair
for i in 0 1; do
	rashpactl buffer create --backend contig "net$i" 32M >/dev/null
	ok $? "buffer$i: buffer net$i is made"
done
# a link to receiver 0 is there
has_link() { at b grep -q ":1389 [0-9A-F]*:[0-9A-F]* 01" /proc/net/tcp; }
both=(--to 10.1.0.2:5001 --to 10.1.0.2:5002)

# --- one detector, two receivers
for share in none images stacks; do
	part=share-$share
	options=(--tune share="$share") each=6
	[[ $share != none ]] || options=() each=12
	receive -0
	receive -1
	send "${both[@]}" "${options[@]}" --images 12 --bunch 2
	sent $? "to two receivers"
	for i in 0 1; do
		received 0 "$i"
		is "$part-$i: receiver $i has its images, and they are right" \
			"$(romulu_says '[.frames, .corrupt, .lost, .incomplete]' "$i")" "[$each,0,0,0]"
	done
done

# --- one of the receivers is slow: the other one has its account, and ends, before the slow one goes on
part=slow
mkfifo "$work/slowly"
receive -0 --slots 2 --write "$work/slowly"
receive -1
send "${both[@]}" --images 12 --bunch 2 &
sender=$!
exec {pipe}<"$work/slowly"
received 0 1
is "slow-other: the fast one does not wait for the slow one" "$(romulu_says '[.frames, .network.missing_messages]' 1)" "[12,0]"
cat <&"$pipe" >"$work/images" &
exec {pipe}<&-
wait "$sender"
sent $? "to both"
is "slow-account: nothing is missing at either" "$(remu_says '[.receivers[].missing_messages]')" "[0,0]"
received 0 0
is "slow: the slow one has all, too" "$(stat -c %s "$work/images")" $((12 * 1024 * 512 * 2))

# --- two detectors, one receiver
part=halves
receive --tune senders=2
at a remu --transport roce --to 10.1.0.2:5001 --device rxa --dataset generate:4 --bunch 2 \
	--images 8 --timeout 60 --dtp 0,0,1024x256 >"$work/upper" 2>&1 &
upper=$!
send --images 8 --bunch 2 --dtp 0,256,1024x256
sent $? "the lower half"
wait "$upper"
ok $? "halves-upper: another one sends the upper half" || sed 's/^/# /' "$work/upper"
received 0
is "halves: both halves make images" "$(romulu_says '[.frames, .corrupt, .incomplete]')" "[8,0,0]"
is "halves-senders: from two detectors" "$(romulu_says '[.network.flows[].sender] | unique | length')" 2

receive --tune senders=2 --timeout 20
send --images 8 --bunch 2 --dtp 0,0,1024x256 &
sender=$!
wait_for 20 has_link
at a remu --transport roce --to 10.1.0.2:5001 --device rxa --dataset generate:4 --bunch 2 \
	--images 8 --dtp 0,255,1024x256 >"$work/lower" 2>&1
is "overlap: a detector that writes where another one does is refused" "$? $(grep -c "overlap" "$work/lower")" "1 1" || sed 's/^/# /' "$work/lower"
kill "${receiver[0]}"
wait "$sender" "${receiver[0]}"

# --- two detectors, two receivers, over a router
part=router
rxe_routed >"$work/err" 2>&1
ok $? "router-way: a way over a router, packets of 1500 bytes" || sed 's/^/# /' "$work/err"
way=10.3.2.1 devices=(rxa1 rxb1)
for i in 0 1; do
	receive -$i --tune senders=2
done
at a remu --transport roce --to $way:5001 --to $way:5002 --device rxa1 --dataset generate:4 --bunch 2 \
	--images 4 --timeout 60 --dtp 0,0,1024x256 >"$work/upper" 2>&1 &
upper=$!
send --to $way:5001 --to $way:5002 --images 4 --bunch 2 --dtp 0,256,1024x256
sent $? "the lower half to both"
wait "$upper"
ok $? "router-upper: another one sends the upper half to both" || sed 's/^/# /' "$work/upper"
for i in 0 1; do
	received 0 $i
	is "router-$i: receiver $i has all of it, in packets of 1024 bytes" \
		"$(romulu_says '[.frames, .corrupt, .network.missing_messages, .network.mtu_bytes]' $i)" \
		"[4,0,0,1024]"
done
way=10.1.0.2 devices=(rxa rxb)

# --- a consumer that knows nothing of networks
part=consumer
receive --tune receive-only
build/tools/examples/consumer net0 >"$work/means" 2>"$work/err" &
consumer=$!
send --split 2 --images 20
sent $? "to a consumer of ten lines"
received 0
wait "$consumer"
ok $? "consumer-ends: it ends with the stream"
is "consumer: it has had all frames" "$(wc -l <"$work/means")" 20

# --- a receiver that is not on a processor, with room for more messages than it has receives
packets() { ip -n a -s -j link show va | jq '.[0].stats64.tx.packets'; }
part=stopped
begun() { (($(packets) > first + 500)); }
first=$(packets)
receive --tune receives=2048
send --split 2 --images 60 &
sender=$!
wait_for 30 begun
kill -STOP "${receiver[0]}"
# the sender waits for credit: it sends nothing but some words over the link
quiet() {
	local before
	before=$(packets)
	read -rt 0.5 -u "$silence"
	(($(packets) < before + 50))
}
wait_for 30 quiet
ok $? "stopped-wait: a receiver is stopped: the sender waits"
kill -CONT "${receiver[0]}"
wait "$sender"
sent $? "to one that was stopped"
received 0
is "stopped: nothing is missing" "$(romulu_says '[.frames, .corrupt, .network.missing_messages]')" "[60,0,0]"

# --- a reliable connection sends again
part=reliable
at a tc qdisc add dev va root netem loss 2%
receive --tune service=rc
send --tune service=rc --split 2 --images 8
sent $? "by a reliable connection, on a line that loses"
received 0
at a tc -s -j qdisc show dev va | jq -e '[.[] | select(.kind == "netem").drops] | add > 0' >/dev/null
ok $? "reliable-lost: packets were lost"
at a tc qdisc del dev va root
is "reliable: no message is missing" "$(romulu_says '[.frames, .corrupt, .network.missing_messages]')" "[8,0,0]"

# --- messages of three packets: one that loses its first packet stalls no pair, one that loses another
# packet does, and the pair receives nothing any more. An image is 128 packets of each pair, so that the
# same two are lost in each image; they are 64 apart, so that they are not both first ones
part=stall
one_of=64 dropping 39 match ip dport 4791 0xffff
receive --slots 3 --tune stall=300 --tune settle=2000
send --split 2 --images 24 --tune message=12K
sent $? "messages of several packets on a line that loses"
received 4
heal
is "stall-missing: messages that did not come are missing" "$(romulu_says '[.corrupt, .frames,
	.network.received_messages + .network.missing_messages]')" "[0,24,$(remu_says .receivers[0].messages)]"
holds "stall: pairs were set up again ($(romulu_says '[.network.flows[].received_again] | add'))" \
	"$(romulu_says '[.network.flows[].received_again] | add') > 0"

# --- one immediate a stack: lines that are lost are not noticed, but by a pattern
part=blind
# WRITE without immediate only
dropping 39 match ip dport 4791 0xffff match u8 0x2a 0xff at 28
receive --slots 2
send --tune immediate=stack --split 1 --images 16 --bunch 2
sent $? "one immediate a stack, on a line that loses"
lost=$(dropped)
heal
received 4
holds "blind: the pattern of --check shows it ($lost lost, $(romulu_says .corrupt) of 16 frames)" \
	"$lost > 10 && $(romulu_says .corrupt) > 0 && $(romulu_says .network.missing_messages) == 0"

# --- a detector that does not wait, and a receiver that is too slow
part=overrun
receive --slots 3 --tune settle=1000
send --split 2 --images 60 --bunch 2 --rate 100
sent $? "and does not wait"
wait "${receiver[0]}"
overrun=$(romulu_says .network.overrun_stacks)
holds "overrun: frames that were overwritten are counted as lost ($(romulu_says .lost)), or as overrun ($overrun)" \
	"$(romulu_says '.frames + .lost') == 60 && $(romulu_says .corrupt) <= $overrun * 2"

# --- processes that are killed
progress() { grep -Eq "$1" "$2"; }
long_stream() { # OPTION...
	ip netns exec a remu --transport roce --to $way:5001 --device rxa --dataset generate:4 --bunch 4 \
		--split 2 --images 100000 --timeout 60 "$@" >"$work/err" 2>&1 &
	sender=$!
}
receive --tune progress
long_stream
wait_for 60 progress 'romulu: [1-9][0-9]* frames' "$work/out0"
kill -9 "$sender"
wait "$sender"
part=killed
received 1
grep -q "ended the stream after [0-9]* of 100000" "$work/out0"
ok $? "killed-sender: the receiver reports how much came" || sed 's/^/# /' "$work/out0"
receive --tune progress
long_stream
wait_for 60 progress 'romulu: [1-9][0-9]* frames' "$work/out0"
kill -9 "${receiver[0]}"
wait "$sender"
is "killed-receiver: the sender ends" $? 1
wait "${receiver[0]}"

# any of them, at any time: before they know each other, too
RANDOM=${RASHPA_SEED:=1}
echo "# RASHPA_SEED=$RASHPA_SEED"
head -c 128K /dev/urandom >"$work/small"
small=(--dataset "$work/small" --geometry 256x64,u16)
for ((round = 1; round <= ${RASHPA_ROUNDS:-3}; round++)); do
	receive --tune receive-only --tune settle=200
	romulu --buffer net0 --check "${small[@]}" --timeout 60 >"$work/consumer" 2>&1 &
	consumer=$!
	long_stream "${small[@]}"
	name=(sender receiver consumer)
	all=("$sender" "${receiver[0]}" "$consumer")
	which=$((RANDOM % 3)) ms=$((RANDOM % 600))
	sleep "$(printf 0.%03d $ms)"
	kill -9 "${all[which]}"
	# the others end by themselves, or wait for another one
	for pid in "${all[@]}"; do
		kill "$pid" 2>/dev/null
		wait "$pid"
	done
	receive "${small[@]}"
	send --split 2 --images 4 "${small[@]}"
	wait "${receiver[0]}"
	is "killed-round$round: ${name[which]} is killed after $ms ms: the next stream is right" \
		"$? $(romulu_says '[.frames, .corrupt, .network.missing_messages]')" "0 [4,0,0]" ||
		sed 's/^/# /' "$work/out0" "$work/err"
done
for i in 0 1; do
	rashpactl buffer remove "net$i"
	ok $? "buffer$i-free: no process holds net$i"
done
finish
