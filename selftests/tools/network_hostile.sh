#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# test: tier=all where=guest kernel=any iommu=off seconds=120
# Packets of strangers, and detectors and receivers that lie: streams are right and whole next to the
# former, and end with a reason because of the latter. Only the last one needs an RDMA device.
. "$(dirname "$0")/../lib/shell.sh"
. "$(dirname "$0")/../lib/rxe-pair.sh"

rashpactl buffer create --backend contig hostile0 32M >/dev/null
ok $? "buffer: a buffer is made"
head -c 256K /dev/urandom >"$work/data"
head -c 8M /dev/urandom >"$work/modules"
here=127.0.0.1:5001
peer() { python3 -B selftests/lib/network_peer.py "$1" "${3-$here}" "$work/data" "${2-}" 2>&1; }
listens() { grep -qsi "0100007F:$(printf %04X "$1") 00000000:0000 0A" /proc/net/tcp; }
# receive OPTION...: begins a receiver
receive() {
	rm -f "$work/romulu.json"
	romulu --buffer hostile0 --check --transport udp --listen "$here" --dataset "$work/data" \
		--geometry 256x64,u16 --timeout 60 --tune settle=10000 --json="$work/romulu.json" "$@" \
		>"$work/out" 2>&1 &
	receiver=$!
	wait_for 20 listens 5001
}
received() { # ID STATUS
	wait "$receiver"
	is "$1-receiver: romulu ends" $? "$2" || sed 's/^/# /' "$work/out"
}
romulu_says() { jq -c "$1" "$work/romulu.json"; }
# said ID WORDS: the reason, and nothing for the terminal
said() {
	[[ $(grep -c "$2" "$work/out") -gt 0 && $(grep -c $'\e' "$work/out") == 0 ]]
	ok $? "$1-reason: it says $2" || sed 's/^/# /' "$work/out"
}

# --- strangers among packets of UDP and of a JUNGFRAU, by sockets and past them
ways=(sockets xdp)
romulu --buffer hostile0 --transport udp --tune xdp --listen 1 2>&1 | grep -q "built without" && ways=(sockets)
for by in "${ways[@]}"; do
	option=(--tune xdp)
	[[ $by == xdp ]] || option=()
	receive --slots 3 "${option[@]}"
	read -r strangers missing <<<"$(peer packets)"
	holds "$by-some: there were packets of strangers ($strangers)" "${strangers:-0} > 1000"
	received "$by" 0
	is "$by: the stream is right, and whole" "$missing $(romulu_says '[.frames, .corrupt, .lost,
		.incomplete, .network.missing_messages, .network.socket_drops]')" "0 [8,0,0,0,0,0]"
	# ten of 35 are handed over together, which only the kernel cuts
	[[ $by == sockets ]] || strangers=$((strangers * 26 / 35))
	is "$by-counts: strangers and duplicates are counted" "$(romulu_says '.network |
		[.strange_packets, .received_messages,
		([.flows[] | .duplicate, .reordered, .late] | add)]')" "[$strangers,516,4]"

	rm -f "$work/romulu.json"
	romulu --buffer hostile0 --check --transport jungfrau "${option[@]}" --listen $here --tune modules=1x2 --tune bunch=1 --images 4 \
		--dataset "$work/modules" --geometry 1024x1024,u16 --timeout 60 --tune settle=10000 --tune idle=30 \
		--json="$work/romulu.json" >"$work/out" 2>&1 &
	receiver=$!
	wait_for 20 grep -qs ":138A " /proc/net/udp
	strangers=$(python3 -B selftests/lib/network_peer.py jungfrau 5001 "$work/modules" 2>&1)
	holds "jungfrau-$by-some: there were packets of no module ($strangers)" "$strangers > 100"
	received "jungfrau-$by" 0
	is "jungfrau-$by: modules are right, and whole" "$(romulu_says '[.frames, .corrupt, .lost, .incomplete,
		.network.missing_messages, .network.socket_drops, .network.first_frame]')" "[4,0,0,0,0,0,5]"
	is "jungfrau-$by-counts: strangers are counted" "$(romulu_says '.network | [.strange_packets, .received_messages,
		([.flows[] | .duplicate, .reordered, .late] | add)]')" "[$strangers,1024,0]"
done

# --- hellos
receive
is "hellos-refused: wrong hellos are refused with the reason, and then a stream begins" "$(peer hellos)" 0
received hellos 0
is "hellos: it is right" "$(romulu_says '[.frames, .corrupt, .incomplete]')" "[8,0,0]"
receive --tune senders=2
is "gone-again: a detector that goes away before it begins can come again" "$(peer gone)" "[0, 0]"
received gone 0
is "gone: both make images" "$(romulu_says '[.frames, .corrupt, .incomplete]')" "[8,0,0]"

receive
is "unready: detectors that are never ready keep no other one out" "$(peer unready)" "['error', True, True] 0"
received unready 0
is "unready-right: the stream of the right one is right" "$(romulu_says '[.frames, .corrupt, .incomplete]')" "[8,0,0]"

# --- counts
for lie in negative text less more few images; do
	receive --tune settle=100
	[[ $(peer counts $lie) == *"'error'"* ]]
	ok $? "lie-$lie: a detector with impossible counts gets an error"
	# of what was sent some has not come
	received "lie-$lie" 4
	case $lie in
	images) said "lie-$lie" '"images": 9' ;;
	few) said "lie-$lie" '"sent"' ;;
	less) said "lie-$lie" '"sent\[1\]": 9' ;;
	more) said "lie-$lie" '"sent\[1\]": 257' ;;
	*) said "lie-$lie" '"sent\[0\]"' ;;
	esac
done
receive
is "twice-ignored: words after the end are ignored" "$(peer twice)" 0
received twice 0
is "twice: the stream is right" "$(romulu_says '[.frames, .corrupt, .incomplete]')" "[8,0,0]"
rm -f "$work/data.flood"
receive
peer flood >"$work/flood" &
flood=$!
wait_for 30 test -e "$work/data.flood"
# meanwhile the buffer is that receiver's
romulu --buffer hostile0 --check --transport udp --listen 127.0.0.1:5002 --tune receive-only --timeout 30 \
	>"$work/second" 2>&1 &
second=$!
wait_for 20 listens 5002
[[ $(peer ask '' 5002) == *"cannot begin the stream"* ]]
ok $? "busy-detector: a detector gets the error that its receiver has no buffer"
wait "$second"
is "busy: the receiver fails, and names the buffer" "$? $(grep -c "hostile0.*producer" "$work/second")" "1 1" ||
	sed 's/^/# /' "$work/second"
kill -INT "$receiver"
timeout $((20 * ${RASHPA_SLOW:-1})) tail --pid="$receiver" -f /dev/null
ok $? "flood: a detector that never stops talking does not keep romulu from ending" || kill -9 "$receiver"
wait "$receiver" "$flood"

# --- certificates
(selftests/lib/certificates.sh "$work/keys" ca localhost detector &&
	selftests/lib/certificates.sh "$work/keys" impostor stranger) >"$work/certificates" 2>&1
ok $? "certificates: there are certificates of two authorities" || sed 's/^/# /' "$work/certificates"
# refused ID WORDS TO [OPTION...]: a detector ends with this reason
refused() {
	timeout -k 5 $((30 * ${RASHPA_SLOW:-1})) remu --transport udp --to "$3" --dataset "$work/data" \
		--geometry 256x64,u16 --images 8 --timeout 20 "${@:4}" >"$work/refused" 2>&1
	is "tls-$1: a detector is refused: $2" "$? $(grep -c "$2" "$work/refused")" "1 1" || sed 's/^/# /' "$work/refused"
}
keys() { echo --tls="$work/keys/$2.pem,$work/keys/$2.key,$work/keys/$1.pem"; } # AUTHORITY NAME
refused without-keys "requires a certificate" tls:localhost:5001
here=tls:127.0.0.1:5001 receive "$(keys ca localhost)"
refused plain "has tls:" localhost:5001
refused stranger "not signed by our authority" tls:localhost:5001 "$(keys impostor stranger)"
refused name "not for the name" tls:127.0.0.1:5001 "$(keys ca detector)"
remu --transport udp --to tls:localhost:5001 --dataset "$work/data" --geometry 256x64,u16 --split 2 \
	--images 8 --timeout 20 "$(keys ca detector)" >"$work/sent" 2>&1
ok $? "tls-sender: a detector with a certificate sends" || sed 's/^/# /' "$work/sent"
received tls 0
is "tls: the stream is right, and whole" "$(romulu_says '[.frames, .corrupt, .lost, .incomplete]')" "[8,0,0,0]"
is "tls-strangers: the receiver names two" "$(grep -c "speak TLS\|certificate" "$work/out")" 3 || sed 's/^/# /' "$work/out"

rashpactl buffer remove hostile0
ok $? "buffer-free: no process holds the buffer"

# --- receivers
# send LIE [OPTION...]: to a receiver with this lie; its status
send() {
	local status
	peer receiver "$1" "${to-$here}" >"$work/peer" &
	wait_for 20 listens 5001
	"${in[@]}" timeout -k 5 $((30 * ${RASHPA_SLOW:-1})) remu --to "${to-$here}" --dataset "$work/data" \
		--geometry 256x64,u16 --split 2 --images 8 --timeout 20 --json="$work/remu.json" \
		"${@:2}" >"$work/out" 2>&1
	status=$?
	wait $!
	return $status
}
in=()
for lie in absurd backwards flood; do
	send $lie --transport udp
	is "harmless-$lie: a receiver's lie harms no detector" "$? $(jq -c '.receivers[0] |
		[.images, .missing_messages]' "$work/remu.json")" "0 [8,0]" || sed 's/^/# /' "$work/out"
done
while read -r lie what; do
	send "$lie" --transport udp
	is "left-$lie: a receiver that lies is left" $? 1
	said "left-$lie" "$what"
done <<'L'
mtu packets have
bye ended the stream early
negative "credit"
escape error
L

# --- invalid memory, by a reliable connection
need_rxe_pair
in=(at a)
to=10.1.0.2:5001
listens() { at b grep -qi ":1389 00000000:0000 0A" /proc/net/tcp; }
peer() { at b python3 -B selftests/lib/network_peer.py "$1" "$3" "$work/data" "$2" 2>&1; }
send absurd --transport roce --device rxa --tune service=rc --tune retries=1
is "nowhere: a detector with writes to invalid memory fails" $? 1
said nowhere "write failed"
finish
