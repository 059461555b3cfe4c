#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# test: tier=all where=guest kernel=any iommu=off seconds=55
# rashpa-inject, in its own network namespace, sends to the kernel's soft-RoCE: correct frames arrive
# where they belong, and wrong ones are counted as the kernel counts them.
# rashpa-capture-check watches the receiver's interface meanwhile.
. "$(dirname "$0")/../lib/shell.sh"

from=10.78.0.1 to=10.78.0.2
responder=build/selftests/responder
counters=/sys/class/infiniband/rxe-near/ports/1/hw_counters

if ! modprobe -a veth rdma_rxe 2>"$work/err"; then
	skip "namespaces: frames to soft-RoCE" "no soft-RoCE: $(head -n 1 "$work/err")"
	finish
fi
far() { ip netns exec far "$@"; }
leave() {
	rdma link delete rxe-near
	ip netns delete far
	rm -rf "$work"
}
trap leave EXIT
ip netns add far && ip link add near0 mtu 4200 type veth peer name far0 netns far mtu 4200 &&
	ip address add "$to/24" dev near0 && ip link set near0 up &&
	far ip address add "$from/24" dev far0 && far ip link set far0 up &&
	rdma link add rxe-near type rxe netdev near0
ok $? "namespaces: two network namespaces, and soft-RoCE in one of them"
has_gid() { grep -qs ffff:0a4e:0002 /sys/class/infiniband/rxe-near/ports/1/gids/1; }
wait_for 20 has_gid
ok $? "address: soft-RoCE has its address"

# receive TRANSPORT BYTES LAST: start a receiver; sets to_it, qpn and address
receive() {
	local rkey
	: >"$work/told"
	"$responder" rxe-near "$from" "$1" "$2" "$3" "$work/memory" >"$work/told" 2>"$work/said" &
	receiver=$!
	wait_for 30 test -s "$work/told" || { sed 's/^/# /' "$work/said"; return 1; }
	read -r qpn rkey address <"$work/told"
	to_it=(--interface far0 --destination "$to" --transport "$1" --queue-pair "$qpn" --rkey "$rkey"
		--region "$2")
}
inject() { # OPTION...
	far rashpa-inject "${to_it[@]}" --json="$work/sent" "$@" >"$work/out" 2>&1 ||
		{ sed 's/^/# /' "$work/out"; false; }
}
# when all has come; sets arrived
received() {
	wait "$receiver" || sed 's/^/# /' "$work/said"
	arrived=$(sed 1d "$work/told")
}

# watch OPTION...: watch the receiver's interface
watch() {
	: >"$work/seen"
	rashpa-capture-check --interface near0 "$@" >"$work/seen" 2>&1 &
	watcher=$!
	wait_for 30 grep -q "looking at near0" "$work/seen"
}
# when all has passed; sets passed: the status, how many frames, how many answers
watched() {
	local status=0
	wait "$watcher" || status=$?
	passed="$status $(jq -r '"\(.frames) \([.queue_pairs[].responses] | add)"' "$work/json")"
}

# --- what is right: messages of four packets, two at each place of the memory
head -c 80000 /dev/urandom >"$work/payload"
for transport in uc rc; do
	answers=0
	[[ $transport == uc ]] || answers=20
	receive "$transport" 40000 19
	watch --seconds 60 --frames $((80 + answers)) --json="$work/json"
	inject --address "$address" --size 4000 --messages 20 --rate 500 --payload "$work/payload"
	is "$transport-sent: all is sent, to the address of ARP" "$? $(jq .frames "$work/sent")" "0 80"
	received
	is "$transport-taken: the kernel takes each message" "$arrived" "$(seq -s ' ' 0 19)"
	good "$transport-memory: the kernel has put it where it belongs" \
		cmp <(tail -c 40000 "$work/payload") "$work/memory"
	watched
	is "$transport-right: nothing is wrong with the frames" "$passed" "0 $((80 + answers)) $answers" ||
		sed 's/^/# /' "$work/seen"
	paced=$(jq '.seconds * 1000 | floor' "$work/sent")
	holds "$transport-pace: they kept their pace ($paced ms)" "$paced >= 150"
done

# --- faults: ten messages of a packet each, the fifth of them with a fault. Each row:
# the messages to repeat, as a sender of a reliable connection does, from which message on;
# how many frames arrive the first time, and how many answers leave;
# faults by frame, where no answers are between them, else by kind;
# immediates that arrive;
# counts of the kernel in the transport layer, and below it, if it counts there
names="rcvd_pkts duplicate_request out_of_seq_request"
network="UdpNoPorts UdpInCsumErrors IpExtInTruncatedPkts IpExtInCsumErrors"
# shellcheck disable=SC2086 # several
count() {
	local name
	for name in $names; do
		echo "$name $(<"$counters/$name")"
	done
	nstat --ignore --noupdate --zeros $network
}
head -c 1000 /dev/zero >"$work/none"
head -c 10000 "$work/payload" >"$work/ten"
split --bytes 1000 --numeric-suffixes --suffix-length 1 "$work/ten" "$work/message"
# landed IMMEDIATE...: expected content of the memory
landed() {
	local m parts=()
	for ((m = 0; m < 10; m++)); do
		[[ " $* " == *" $m "* ]] && parts+=("$work/message$m") || parts+=("$work/none")
	done
	cat "${parts[@]}"
}
while IFS='|' read -r transport fault again frames answers faults arrive counts; do
	id=$transport-$fault
	receive "$transport" 10000 9
	watch --seconds 60 --frames $((frames + answers)) --json="$work/json" --queue-pair "$qpn:0" \
		--path-mtu 1024
	count >"$work/before"
	inject --address "$address" --size 1000 --messages 10 --payload "$work/ten" --fault "$fault@5"
	ok $? "$id-sent: it is sent"
	if [[ $transport == uc ]]; then
		filter='.faults[] | "\(.frame):\(.kind)"'
	else
		filter='.faults[].kind'
	fi
	watched
	is "$id-frames: $frames frames, $answers answers" "$passed" "4 $((frames + answers)) $answers"
	is "$id-fault: it is named: $faults" "$(jq -r "[$filter] | join(\" \")" "$work/json")" "$faults" ||
		sed 's/^/# /' "$work/seen"
	if [[ $again != - ]]; then
		tail -c +$((again * 1000 + 1)) "$work/ten" >"$work/rest"
		inject --first-psn "$again" --immediate "$again" --address $((address + again * 1000)) \
			--region $(((10 - again) * 1000)) --size 1000 --messages $((10 - again)) --payload "$work/rest"
	fi
	received
	is "$id-arrives: these messages arrive" "$arrived" "$arrive"
	count >"$work/after"
	# an error ends the queue pair, and with it the count
	[[ $counts == - ]] || is "$id-counts: the kernel counts it" "$(awk 'NR == FNR { was[$1] = $2; next }
		$2 != was[$1] { printf "%s%s %d", sep, $1, $2 - was[$1]; sep = ", " }' \
		"$work/before" "$work/after")" "$counts"
	# the immediate alone is wrong of this one
	good "$id-memory: memory has what arrived, and nothing else" \
		cmp <(landed "${arrive/4100/4}") "$work/memory"
done <<'END'
uc|icrc|-|10|0|5:icrc|0 1 2 3 5 6 7 8 9|rcvd_pkts 9
uc|psn|-|10|0|5:psn|0 1 2 3 4 5 6 7 8 9|rcvd_pkts 10
uc|opcode|-|10|0|5:opcode|0 1 2 3 5 6 7 8 9|rcvd_pkts 10
uc|drop|-|9|0|5:psn-gap 5:immediate-gap|0 1 2 3 5 6 7 8 9|rcvd_pkts 9
uc|duplicate|-|11|0|6:psn-duplicate|0 1 2 3 4 4 5 6 7 8 9|rcvd_pkts 11
uc|reorder|-|10|0|6:psn-order 6:immediate-order|0 1 2 3 5 4 6 7 8 9|rcvd_pkts 10
uc|df|-|10|0|5:df|0 1 2 3 4 5 6 7 8 9|rcvd_pkts 10
uc|mtu|-|10|0|5:mtu|0 1 2 3 5 6 7 8 9|rcvd_pkts 10
uc|qp|-|10|0|5:queue-pair 6:psn-gap 6:immediate-gap|0 1 2 3 5 6 7 8 9|rcvd_pkts 9
uc|short|-|10|0|5:short 6:psn-gap 6:immediate-gap|0 1 2 3 5 6 7 8 9|rcvd_pkts 9, IpExtInTruncatedPkts 1
uc|length|-|10|0|5:length|0 1 2 3 5 6 7 8 9|rcvd_pkts 10
uc|port|-|10|0|5:port|0 1 2 3 5 6 7 8 9|rcvd_pkts 9, UdpNoPorts 1
uc|immediate|-|10|0|5:immediate|0 1 2 3 4100 5 6 7 8 9|rcvd_pkts 10
uc|checksum|-|10|0|5:checksum|0 1 2 3 5 6 7 8 9|rcvd_pkts 9, IpExtInCsumErrors 1
uc|udp-checksum|-|10|0|5:checksum|0 1 2 3 5 6 7 8 9|rcvd_pkts 9, UdpInCsumErrors 1
rc|icrc|4|10|5|icrc|0 1 2 3 4 5 6 7 8 9|rcvd_pkts 15, out_of_seq_request 1
rc|psn|4|10|5|psn|0 1 2 3 4 5 6 7 8 9|rcvd_pkts 16, out_of_seq_request 1
rc|drop|4|9|5|psn-gap immediate-gap|0 1 2 3 4 5 6 7 8 9|rcvd_pkts 15, out_of_seq_request 1
rc|duplicate|-|11|11|psn-duplicate|0 1 2 3 4 5 6 7 8 9|rcvd_pkts 11, duplicate_request 1
rc|reorder|5|10|7|psn-order immediate-order|0 1 2 3 4 5 6 7 8 9|rcvd_pkts 15, out_of_seq_request 2
rc|qp|4|10|5|queue-pair psn-gap immediate-gap|0 1 2 3 4 5 6 7 8 9|rcvd_pkts 15, out_of_seq_request 1
rc|length|-|10|5|length|0 1 2 3 remote invalid request error|-
rc|mtu|-|10|5|mtu|0 1 2 3 remote invalid request error|-
rc|opcode|-|10|5|opcode|0 1 2 3 Work Request Flushed Error|-
END

# --- while frames come: a fault is named when it is there
receive uc 1000 0
watch
ip netns exec far rashpa-inject "${to_it[@]}" --address "$address" --size 1000 --immediate 1 --messages 0 \
	--rate 100 --fault icrc@5 >"$work/out" 2>&1 &
sender=$!
wait_for 60 grep -q "^frame 5: $from > $to queue pair .* wrong ICRC" "$work/seen"
ok $? "live-fault: a fault is named while frames come"
kill -TERM "$watcher"
status=0
wait "$watcher" || status=$?
is "live-check-ends: a signal ends it, with its count" "$status $(tail -n 2 "$work/seen" | grep -c ": 1 fault")" "4 2"
kill -TERM "$sender"
status=0
wait "$sender" || status=$?
is "live-inject-ends: a signal ends the sender" "$status $(grep -c "faults: 1" "$work/out")" "0 1"
inject --address "$address" --size 1000 --messages 1
ok $? "live-last: the last message"
received
is "live: all have arrived but that one" "$(cut -d ' ' -f 1-7 <<<"$arrived")" "1 2 3 4 6 7 8"
rashpa-capture-check --interface near0 --seconds 0.5 >"$work/out" 2>&1
is "no-frame: no frame passes" "$? $(grep -c "no frame of RoCE" "$work/out")" "1 1"

# --- what it says where it cannot work
far rashpa-inject --interface far0 --destination 10.78.0.9 --queue-pair 1 >"$work/out" 2>&1
is "no-arp: ARP without an answer" "$? $(grep -c "no ARP reply.*--destination-mac" "$work/out")" "1 1"
far rashpa-inject --interface far0 --destination "$to" --queue-pair 1 --path-mtu 4096 \
	--fault mtu@1:200 >"$work/out" 2>&1
is "large: a frame larger than the interface takes" \
	"$? $(grep -c "ip link set far0 mtu" "$work/out")" "1 1"
rashpa-capture-check --interface none0 >"$work/out" 2>&1
is "no-interface: an interface that is not there" "$? $(grep -c "no such interface" "$work/out")" "1 1"
setpriv --reuid=65534 --clear-groups rashpa-capture-check --interface near0 >"$work/out" 2>&1
is "may-look: others may not look" "$? $(grep -c "CAP_NET_RAW" "$work/out")" "1 1"
far setpriv --reuid=65534 --clear-groups rashpa-inject --interface far0 --destination "$to" \
	--queue-pair 1 >"$work/out" 2>&1
is "may-send: nor send" "$? $(grep -c "CAP_NET_RAW" "$work/out")" "1 1"
finish
