# shellcheck shell=bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Streams between the namespaces of rxe-pair.sh: remu in a, receivers in b. Sourced.
# shellcheck disable=SC2154 # work is set by shell.sh

# line: place where packets are dropped; part: first part of ids
way=10.1.0.2 devices=(rxa rxb) line=(b vb ingress) part=stream

# listens PROCESS PORT: starts no other process, which would take the processor from that one
listens() {
	local at state port
	printf -v port %04X "$2"
	while read -r _ at _ state _; do
		[[ $state != 0A || $at != *:$port ]] || return 0
	done 2>/dev/null <"/proc/$1/net/tcp"
	return 1
}

# receive [-N] OPTION...: starts receiver N (0) of buffer netN, which listens at port 5001 + N
receive() {
	local i=0
	[[ ${1-} != -[0-9] ]] || { i=${1#-}; shift; }
	rm -f "$work/romulu$i.json"
	ip netns exec b romulu --buffer "net$i" --check --listen "$way:$((5001 + i))" --device "${devices[1]}" --dataset generate:4 \
		--timeout 60 --tune settle=10000 --json="$work/romulu$i.json" "$@" >"$work/out$i" 2>&1 &
	receiver[i]=$!
	wait_for 60 listens "${receiver[i]}" $((5001 + i))
}
# received STATUS [N]: 0/4 allows both statuses, as the network may lose packets
received() {
	local i=${2:-0} status=0
	wait "${receiver[i]}" || status=$?
	[[ /$1/ == */$status/* ]]
	ok $? "$part-receiver$i: romulu ends with $1" || { echo "# $status"; sed 's/^/# /' "$work/out$i"; }
}
# send OPTION...: by RDMA to receiver 0, unless an option says otherwise
send() {
	local -a to=(--to "$way:5001")
	[[ " $* " != *" --to "* ]] || to=()
	at a remu --transport roce "${to[@]}" --device "${devices[0]}" --dataset generate:4 --bunch 4 \
		--timeout 60 --json="$work/remu.json" "$@" >"$work/err" 2>&1
}
# sent STATUS TEXT: verdict of send's status
sent() { ok "$1" "$part-sender: remu sends $2" || sed 's/^/# /' "$work/err"; }
# romulu_says FILTER [N]
romulu_says() { jq -c "$1" "$work/romulu${2:-0}.json"; }
remu_says() { jq -c "$1" "$work/remu.json"; }
# adds_up IMAGES: UDP may lose any number of messages. All images are counted, no image is corrupt,
# and each message that was sent was received or is counted as missing
adds_up() {
	is "$part-account: all images are counted, no image is corrupt, and lost messages count as missing" \
		"$(romulu_says '[.frames + .lost, .corrupt, .network.received_messages +
		.network.missing_messages - ([.network.flows[].duplicate] | add)]')" \
		"[$1,0,$(remu_says .receivers[0].messages)]" || romulu_says .network | sed 's/^/# /'
}

# dropping AT MATCH...: drop 1 of 128 packets, or of $one_of (a power of two), by the last bits of
# byte AT
dropping() { drop match u8 0x07 "$(printf 0x%x $((${one_of:-128} - 1)))" at "$@"; }
# drop MATCH...: drop all matching packets of UDP
drop() {
	at "${line[0]}" tc qdisc add dev "${line[1]}" clsact &&
		at "${line[0]}" tc filter add dev "${line[@]:1}" protocol ip u32 match ip protocol 17 0xff \
			"$@" action drop
	ok $? "$part-line: a filter drops packets"
}
dropped() {
	at "${line[0]}" tc -s -j filter show dev "${line[@]:1}" |
		jq '[.. | .stats? // empty | .drops? // empty] | add // 0'
}
heal() { at "${line[0]}" tc qdisc del dev "${line[1]}" clsact; }
