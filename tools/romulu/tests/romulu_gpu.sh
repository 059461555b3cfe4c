#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# test: seconds=20
# Runs inside the lab's root: a card writes remu's images into memory of romulu's GPU, which processes them there. Card
# and CUDA are stand-ins (tools/fabric/tests/card.h, tools/lib/tests/gpu-libraries), the driver is files. TAP.
set -uo pipefail

# shellcheck source-path=SCRIPTDIR source=../../../selftests/lib/shell.sh
. "$(dirname "$0")/../../../selftests/lib/shell.sh"
tools=$PWD/${RASHPA_TOOLS:-build/tools}
here=$tools/lib/tests/gpu-libraries
port=$((20000 + $$ % 10000))
export RASHPA_DEV=$work/dev RASHPA_RUN=$work/run STAND_IN_CARD=$work/card
mkdir -p "$work/dev/buffer" "$work/run" "$work/card/device"
ln -s ../../mlx9 "$work/card/device/driver"
touch "$work/dev/memory"
truncate -s 1M "$work/dev/buffer/frames"
chmod 600 "$work/dev/buffer/frames"
card=(env "LD_PRELOAD=$here/libcard.so" "LD_LIBRARY_PATH=$here:$tools")

listening() { grep -q "$(printf ':%04X 00000000:0000 0A' "$port")" /proc/net/tcp; }
# streams WORDS OPTION...: 24 images over the card, processed into $work/images.f32; both exit statuses
streams() {
	local receiver
	rm -f "$work"/{romulu,remu}.{calls,json,out} "$work/images.f32"
	((port++))
	"${card[@]}" "STAND_IN=$1" "STAND_IN_LOG=$work/romulu.calls" timeout 60 "$tools/romulu-fake" --buffer frames \
		--listen "127.0.0.1:$port" --tune receives=512 --tune service=rc --timeout 30 --json="$work/romulu.json" \
		--pipeline "{\"pretreat\": {\"gain\": 2}, \"sinks\": {\"raw\": {\"file\": \"$work/images.f32\"}}}" "${@:2}" \
		>"$work/romulu.out" 2>&1 &
	receiver=$!
	wait_for 30 listening
	"${card[@]}" "STAND_IN_LOG=$work/remu.calls" timeout 60 "$tools/remu" --transport roce --to "127.0.0.1:$port" \
		--dataset generate:4 --geometry 96x64,u16 --images 24 --bunch 1 --policy wait --tune service=rc --timeout 30 \
		>"$work/remu.out" 2>&1
	status=$?
	wait "$receiver"
	status="$? $status"
}
gpu=(--engine cuda --offer gpu:2M --payload gpu)
shown() { sed 's/^/# /' "$work/romulu.out" "$work/remu.out"; }
# in_order NAME WORD...: romulu made these calls in this order, and no program made a mistake
in_order() {
	local got word at=0 next
	got=$(grep WRONG "$work/romulu.calls" "$work/remu.calls")
	for word in "${@:2}"; do
		next=$(grep -n "^$word" "$work/romulu.calls" | head -1 | cut -d: -f1)
		((${next:-0} > at)) || got+=" not in order: $word"
		at=${next:-0}
	done
	is "$1" "$got" "" || sed 's/^/# /' "$work/romulu.calls"
}

streams "" --engine reference
is "host: images go into a buffer of the host" "$status" "0 0" || shown
in_order "host-order: which is registered by its address" reg_mr dereg_mr
mv "$work/images.f32" "$work/reference.f32"
streams "" "${gpu[@]}"
is "gpu: and into memory of the GPU" "$status $(jq -c '[.frames, .lost]' "$work/romulu.json")" "0 0 [24,0]" || shown
cmp "$work/images.f32" "$work/reference.f32"
ok $? "gpu-same: the images are the same there"
in_order "gpu-order: its memory is given back after the registration, and nothing is posted later" \
	cuMemGetHandleForAddressRange reg_dmabuf_mr dereg_mr cuMemUnmap cuMemRelease
streams card-no-dmabuf "${gpu[@]}"
is "address: a card that takes no dma-buf" "$status" "0 0" || shown
cmp "$work/images.f32" "$work/reference.f32"
ok $? "address-same: the images are the same"
in_order "address-order: memory of CUDA is registered by its address" reg_dmabuf_mr reg_mr dereg_mr cuMemUnmap
streams card-no-dmabuf,no-pages "${gpu[@]}"
is "refused: neither: both end" "$status" "1 1"
grep -q "mlx9.*modprobe nvidia-peermem" "$work/romulu.out"
ok $? "refused-named: the sentence names the driver and the module" || shown
in_order "refused-order: nothing is left" reg_mr cuMemUnmap cuMemRelease
streams revoke "${gpu[@]}"
is "revoked: memory that is taken away: both end" "$((${status% *} > 0)) $((${status#* } > 0))" "1 1"
in_order "revoked-order: nothing is posted later, and the memory is given back" reg_dmabuf_mr revoked dereg_mr cuMemUnmap
cmp -n "$(stat -c %s "$work/images.f32")" "$work/images.f32" "$work/reference.f32"
ok $? "revoked-same: images that came before are right"

# --- a receiver that dies: the sender fails, and the next one has the name again

rm -f "$work/romulu.calls"
((port++))
"${card[@]}" "STAND_IN_LOG=$work/romulu.calls" "$tools/romulu-fake" --buffer frames --listen "127.0.0.1:$port" \
	--tune receives=512 --tune service=rc --pipeline '{}' "${gpu[@]}" >"$work/romulu.out" 2>&1 &
receiver=$!
wait_for 30 listening
"${card[@]}" "STAND_IN_LOG=$work/remu.calls" timeout 60 "$tools/remu" --transport roce --to "127.0.0.1:$port" \
	--dataset generate:4 --geometry 96x64,u16 --images 0 --bunch 1 --policy wait --tune service=rc --timeout 30 \
	>"$work/remu.out" 2>&1 &
sender=$!
wait_for 30 grep -qs LaunchKernel "$work/romulu.calls"
kill -9 "$receiver"
wait "$sender"
is "killed: the sender fails when the receiver dies" "$(($? % 124 > 0))" 1 || shown
streams "" "${gpu[@]}"
is "again: the next receiver has all" "$status" "0 0" || shown
finish
