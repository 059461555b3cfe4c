#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# test: seconds=25
# Runs inside the lab's root: a card writes into memory of a GPU for rashpa-bench network, and the calls come in the
# right order. Card, CUDA and NVML are stand-ins (tools/fabric/tests/card.h, tools/lib/tests/gpu-libraries). TAP.
set -uo pipefail

# shellcheck source-path=SCRIPTDIR source=../../../selftests/lib/shell.sh
. "$(dirname "$0")/../../../selftests/lib/shell.sh"
bench=$PWD/${RASHPA_TOOLS:-build/tools}/rashpa-bench
here=$PWD/${RASHPA_TOOLS:-build/tools}/lib/tests/gpu-libraries
port=$((20000 + $$ % 10000))
mkdir -p "$work/card/device"
ln -s ../../mlx9 "$work/card/device/driver"

card=(env "LD_PRELOAD=$here/libcard.so" "LD_LIBRARY_PATH=$here")
# writes WORDS OPTION...: messages into memory of a GPU; both exit statuses
writes() {
	local sink
	rm -f "$work"/{sink,write}.{calls,json,err}
	((port++))
	"${card[@]}" "STAND_IN=$1" "STAND_IN_LOG=$work/sink.calls" timeout 60 "$bench" network sink --listen "127.0.0.1:$port" --gpu cuda --memory 1M \
		--series --interval 2 --json="$work/sink.json" >/dev/null 2>"$work/sink.err" &
	sink=$!
	"${card[@]}" "STAND_IN_LOG=$work/write.calls" timeout 60 "$bench" network write --to "127.0.0.1:$port" --size 4K --pairs 2 \
		--destinations 16 --time 0.3 --warm-up 0.1 --repeat 1 "${@:2}" --json="$work/write.json" >/dev/null 2>"$work/write.err"
	status=$?
	wait "$sink"
	status="$? $status"
}
# in_order NAME WORD...: the sink made these calls in this order, and no program made a mistake
in_order() {
	local got word at=0 next
	got=$(grep WRONG "$work/sink.calls" "$work/write.calls")
	for word in "${@:2}"; do
		next=$(grep -n "^$word" "$work/sink.calls" | head -1 | cut -d: -f1)
		((${next:-0} > at)) || got+=" not in order: $word"
		at=${next:-0}
	done
	is "$1" "$got" "" || sed 's/^/# /' "$work/sink.calls" "$work/sink.err" "$work/write.err"
}
report() { jq -r "$1" "$work/sink.json"; }

export STAND_IN_CARD=$work/card
writes ""
is "dma-buf: messages go into memory of a GPU" "$status" "0 0" || sed 's/^/# /' "$work/sink.err" "$work/write.err"
is "dma-buf-way: by its dma-buf" "$(report '[.gpu.registered_by, .gpu.other_node] | join(" ")')" "dma-buf false"
is "dma-buf-received: messages arrive" "$(report '.repeats[0].received_messages > 0')" true
in_order "dma-buf-order: the memory is given back after the registration" cuMemCreate cuMemGetHandleForAddressRange reg_dmabuf_mr \
	dereg_mr cuMemUnmap cuMemRelease
is "power: power of the idle GPU, with memory, and in each sample" \
	"$(report '[.gpu.idle_watt, .gpu.allocated_watt, (.repeats[0] | .gpu_p50_percent, .power_max_watt >= .power_p50_watt,
		(.series | .power_watt | length) == (.series.time_ms | length))] | join(" ")')" "36 36.5 17 true true"
writes no-power
is "no-power: a GPU that does not report it" "$(report '[.gpu | has("idle_watt")] + [.repeats[0] | has("power_p50_watt"), has("gpu_p50_percent")] | join(" ")')" \
	"false false true"
writes card-no-dmabuf
is "address: a card that takes no dma-buf" "$status $(report .gpu.registered_by)" "0 0 nvidia-peermem"
in_order "address-order: the memory is given back after the registration" cuMemCreate reg_dmabuf_mr reg_mr dereg_mr cuMemUnmap
writes card-no-dmabuf,no-pages
is "refused: neither" "${status%% *}" 1
grep -q "mlx9.*nvidia-peermem" "$work/sink.err"
ok $? "refused-named: the sentence names the driver and the module" || sed 's/^/# /' "$work/sink.err"
in_order "refused-order: nothing is left" cuMemCreate reg_dmabuf_mr reg_mr cuMemUnmap
STAND_IN_CARD='' writes card-no-dmabuf,no-pages
grep -q "card0 is a soft card" "$work/sink.err"
ok $? "soft: a soft card is named" || sed 's/^/# /' "$work/sink.err"
writes full
is "full: a GPU without memory" "${status%% *} $(grep -c 'no memory left' "$work/sink.err")" "1 1"
writes "" --transport udp
grep -q "transport udp.*--gpu" "$work/sink.err"
ok $? "udp: packets of UDP are not for a GPU" || sed 's/^/# /' "$work/sink.err"

# --- figures of the document about radio telescopes

cat >"$work/gpu.toml" <<T
[run]
time = 0.3
warm_up = 0.1
repeat = 1
memory = 1048576
[[sink]]
at = "${card[*]}"
address = "127.0.0.1"
[[writer]]
at = "${card[*]}"
[[group]]
experiment = "F"
with = {size = 16384, pairs = 100, gpu = "cuda", solicited = true, series = true}
trials = [{name = "GPU, one thread, {pairs}"}]
[[group]]
experiment = "I"
with = {size = 8192, pairs = 10, gpu = "cuda", writers = 4, rate = 1000000}
trials = [{name = "GPU, 4 to 1, one thread, 4 x {pairs}"}]
T
# figures OPTION...: of each of those three, whether it has a value here, and the reason
figures() {
	local one
	for one in 5.8 5.9 5.13; do
		PATH=${bench%/*}:$PATH RASHPA_BENCH=$bench python3 -B "${bench%/*}/bench/paper" 002 "$one" "$@" --json="$work/paper.json" \
			>/dev/null 2>"$work/paper.err" || sed 's/^/# /' "$work/paper.err" >&2
		jq -r '.figures[] | [.id, ([.rows[] | select(.here != null)] | length > 0),
			(.needs // "" | test("^a GPU, and a network card"))] | join(" ")' "$work/paper.json"
	done | paste -sd,
}
is "paper-needs: paper 002 names what its figures need" "$(figures)" "5.8 false true,5.9 false true,5.13 false true"
is "paper: and has values with both" "$(figures --file="$work/gpu.toml")" "5.8 true false,5.9 true false,5.13 true false" ||
	jq -c . "$work/paper.json" | sed 's/^/# /'

# --- the builder, whose messages processors read

"${card[@]}" RASHPA_RANK=0 RASHPA_SIZE=2 RASHPA_JOB=gpu "RASHPA_MEET=127.0.0.1:$((++port))" timeout 60 "${bench%/*}/rashpa-builder" nton \
	--transport verbs --gpu cuda 2>"$work/builder.err"
is "builder: it refuses memory that processors cannot read" "$? $(grep -c 'cuda.*does not map its memory' "$work/builder.err")" "1 1"

# --- memory that is taken away, and a process that dies

writes revoke --service rc
is "revoked: both fail" "$((${status% *} > 0)) $((${status#* } > 0))" "1 1"
is "revoked-once: the card refuses what comes later" "$(grep -c '^revoked$' "$work/sink.calls")" 1
in_order "revoked-order: nothing is posted later, and the memory is given back" reg_dmabuf_mr revoked dereg_mr cuMemUnmap
((port++))
rm -f "$work"/{sink,write}.calls
"${card[@]}" "STAND_IN_LOG=$work/sink.calls" "$bench" network sink --listen "127.0.0.1:$port" --gpu cuda --memory 1M \
	--json="$work/sink.json" 2>/dev/null &
sink=$!
"${card[@]}" "STAND_IN_LOG=$work/write.calls" timeout 60 "$bench" network write --to "127.0.0.1:$port" --size 4K --destinations 16 \
	--service rc --time 50 >/dev/null 2>"$work/write.err" &
writer=$!
wait_for 30 grep -qs reg_dmabuf_mr "$work/sink.calls"
kill -9 "$sink"
wait "$writer"
is "killed: the writer fails when the sink dies" $? 1
is "killed-order: it makes no mistake" "$(grep WRONG "$work/write.calls")" ""
finish
