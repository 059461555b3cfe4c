#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# test: iommu=off seconds=105
# rashpa-builder with the driver: messages in named buffers; streams in, one stream of whole images out;
# verbs, where RASHPA_KILLS builders and as many other ranks are killed (default 1).
. "$(dirname "$0")/../lib/shell.sh"
. "$(dirname "$0")/../lib/by-hand.sh"

kills=${RASHPA_KILLS:-1}
examples=build/tools/examples
buffer() { rashpactl buffer create "$@" >/dev/null; }

# --- messages

buffer mesh0 8M && buffer mesh1 8M
ok $? "buffers: buffers"
by_hand 2 nxn --buffer mesh --messages 500 --size 30K --jitter 50 --verify --json --timeout 60
reap
is "messages-named-buffers: messages in named buffers" "$statuses" "0 0" || sed 's/^/# /' "$work"/err.*
json ".received == 2000 and .lost + .duplicate + .late + .wrong == 0 and all(.ranks[]; .registrations == 1)" \
	cat "$work/out.0"
ok $? "right: each is right"
by_hand 2 nxn --buffer mesh --messages 10 --size 4M --timeout 60
reap
is "buffer-small: a buffer that is too small" "$statuses $(cat "$work"/err.* | grep -c "need .* bytes, but the arena has .* left: .* buffers fit")" "1 1 2"
by_hand 1 nxn --buffer nowhere --messages 10
reap
is "buffer-not: a buffer that is not there" "$statuses $(grep -c "nowhere0" "$work/err.0")" "1 1"

# --- images

buffer part0 16M && buffer part1 16M && buffer whole0 32M
ok $? "buffers-streams: buffers of streams"
timeout 200 "$examples/consumer" whole0 >"$work/means" 2>"$work/seen" &
consumer=$!
by_hand 4 build --readouts 2 --from part --geometry 256x128 --to whole --json --timeout 120
timeout 200 "$examples/producer" part0 1003 2>"$work/err" &
producer=$!
timeout 200 "$examples/producer" part1 1003 2>>"$work/err"
ok $? "producer-sends-1003: a producer sends 1003 frames" || sed 's/^/# /' "$work/err"
wait "$producer"
ok $? "another-one: and another one" || sed 's/^/# /' "$work/err"
reap
is "run-ends-streams: the run ends with the streams" "$statuses" "0 0 0 0" || sed 's/^/# /' "$work"/err.*
wait "$consumer"
ok $? "stream-whole-images: so does the stream of whole images" || sed 's/^/# /' "$work/seen"
seq 0 1002 | sed 's/.*/& &.000/' | cmp - "$work/means" 2>&1 | sed 's/^/# /'
is "image-once-order: each image is there, once, in order, with its pixels" "${PIPESTATUS[2]}" 0
json ".events == 1003 and .built == 1003 and .incomplete == 0" cat "$work/out.0"
ok $? "rank-0: and rank 0 says so"

by_hand 3 build --readouts 1 --from part --geometry 100x100 --timeout 60
timeout 200 "$examples/producer" part0 100 2>"$work/err" &
producer=$!
reap
is "another-geometry: another geometry" "${statuses##* } $(grep -c "256 x 128 pixels of 2 bytes: set --geometry" "$work/err.1")" "1 1"
kill "$producer" 2>/dev/null
wait "$producer" 2>/dev/null
for name in mesh0 mesh1 part0 part1 whole0; do
	rashpactl buffer remove "$name"
done

# --- verbs, over soft-RoCE

if ! selftests/lib/rxe.sh >"$work/err" 2>&1; then
	skip "messages-verbs: messages over verbs" "no soft-RoCE: $(tail -n 1 "$work/err")"
	finish
fi
# a launcher takes most of the time of a short run, so it starts few of them
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe
verbs() { # N ARGUMENT...
	local count=$1 status=0
	shift
	timeout 240 mpirun --bind-to none -n "$count" rashpa-builder "$1" --transport verbs --device rxe0 --timeout 60 "${@:2}" \
		2>"$work/err" || status=$?
	((status == 0)) || sed 's/^/# /' "$work/err" >&2
	return "$status"
}
mkdir "$work/events"
json ".received == 80 and .lost + .duplicate + .late + .wrong == 0" verbs 2 nxn --messages 20 --size 6000 --verify --json
ok $? "messages-verbs-started: messages over verbs, started by mpirun"
json ".events == 501 and .built == 501 and .incomplete + .lost + .unknown + .foreign == 0" \
	verbs 5 build --events 501 --files "$work/events" --json &&
	json '.ranges == [[0, 500]] and .twice == [] and .wrong == []' \
		python3 -B tools/builder/tests/events.py "$work/events" 2 4
ok $? "verbs/2-readouts-2: verbs: 2 readouts, 2 builders: all events, once"

# without a launcher, which would end all when one dies
export RASHPA_MEET=127.0.0.1:7000
not_ready() { cat /sys/class/infiniband/rxe0/ports/1/hw_counters/send_rnr_err; }
not_ready=$(not_ready)
for count in 2 4 8; do
	for depth in 1 8 64; do
		total=$((count * count * 20))
		by_hand "$count" nxn --transport verbs --device rxe0 --depth "$depth" --messages 20 --size 6000 --jitter 100 \
			--verify --json --timeout 60
		reap
		[[ ! ${statuses//[0 ]/} ]] &&
			json ".received == $total and .lost + .duplicate + .late + .wrong == 0 and (.ranks | length) == $count
				and all(.ranks[]; .registrations == 1 and .resident_bytes < $((64 + count * depth / 10)) * 1048576)" \
				cat "$work/out.0"
		ok $? "verbs/depth-message-right/$count/$count/$depth: verbs: $count to $count, depth $depth: each message is right, and memory is bounded" ||
			sed 's/^/# /' "$work"/err.*
	done
done
by_hand 2 nton --transport verbs --device rxe0 --messages 100 --size 6000 --slow 2000 --verify --json --timeout 60
reap
[[ ! ${statuses//[0 ]/} ]] && json ".received == 100 and .lost + .wrong == 0" cat "$work/out.0"
ok $? "verbs-late: the receiver is late, and each message is right" || sed 's/^/# /' "$work"/err.*
is "verbs-credits: no message came before its receive, and was sent again" "$(not_ready)" "$not_ready"
# with certificates; by the wrong name no process meets another one
selftests/lib/certificates.sh "$work/keys" ca localhost >"$work/certificates" 2>&1
export RASHPA_TLS_CA=$work/keys/ca.pem RASHPA_TLS_CERT=$work/keys/localhost.pem RASHPA_TLS_KEY=$work/keys/localhost.key
RASHPA_MEET=tls:localhost:7000 by_hand 3 nxn --transport verbs --device rxe0 --messages 20 --verify --json --timeout 60
reap
[[ ! ${statuses//[0 ]/} ]] && json ".received == 180 and .lost + .wrong == 0" cat "$work/out.0"
ok $? "verbs-tls: processes with certificates meet over TLS" || sed 's/^/# /' "$work"/err.*
RASHPA_MEET=tls:127.0.0.1:7000 by_hand 2 nxn --transport verbs --device rxe0 --messages 20 --gather 2
reap
is "verbs-tls-name: a certificate for another name is refused" "${statuses//[ ]/} $(grep -c "not for the name" "$work/err.1")" "33 1" ||
	sed 's/^/# /' "$work"/err.*
unset RASHPA_TLS_CA RASHPA_TLS_CERT RASHPA_TLS_KEY
good=0
for ((round = 0; round < kills; round++)); do
	builder_died $((3 + round % 3)) --transport verbs --device rxe0 --timeout 60 --hold --events 2000 --fragment 256 &&
		good=$((good + 1))
	other_died $((round % 3)) --transport verbs --device rxe0 --timeout 60 --fragment 256 && good=$((good + 1))
done
is "verbs/kill-9-builder: verbs: kill -9 of a builder, and of another rank: no event wrong, twice, or lost without a word" "$good" $((2 * kills))
unset RASHPA_MEET
verbs 2 nxn --device nowhere --messages 1 >"$work/out" 2>&1
# the second one may have to end before it has searched
is "device-not: a device that is not there" "$? $(($(grep -c "no RDMA device" "$work/err") > 0))" "1 1"
finish
