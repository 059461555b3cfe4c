#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# test: tier=check iommu=on seconds=76
# test: needs=sanitized iommu=on seconds=90
# test: tier=nightly kernel=rt iommu=on smp=2 seconds=90
# test: tier=nightly needs=passthrough,numa,amd,virtio iommu=on seconds=60
# The main job, end to end: frames, two transfer processes, every byte compared.
. "$(dirname "$0")/../lib/shell.sh"

have_fpga || { skip "stream: stream" "no software FPGA in this guest"; finish; }
expected=$([[ $RASHPA_IOMMU == on ]] && echo iova || echo host)
images=800
[[ ${RASHPA_TIER-} != nightly ]] || images=2000

selftests/demo/demo-guest.sh "$work/demo.json" $images >"$work/out" 2>&1
ok $? "romulu-remu-succeed: romulu and remu succeed"
grep -v "romulu:" "$work/out" | sed 's/^/# /'
grep -Eq "^   \| ring0 +fpga$fpga +(running|waiting) " "$work/out"
ok $? "top-shows-stream: top shows the stream"
is "group-event-processes: a group event comes when both processes have a stack" \
	"$(grep -cE '^   \| .* group 1,2: [0-9]+ sequence [1-3]$' "$work/out")" 3
get() { jq -r "$1" "$work/demo.json"; }
is "all-frames-arrived: all frames arrived" "$(get .frames)" $images
is "none-lost: none lost" "$(get .lost)" 0
is "none-corrupt: none corrupt" "$(get .corrupt)" 0
is "bytes-images: bytes are those of the images" "$(get .bytes)" $((images * 1024 * 512 * 2))
is "fpga-wrote: the FPGA wrote as many" "$(get .fpga.bytes)" $((images * 1024 * 512 * 2))
is "one-descriptor-per: one descriptor per line" "$(get .fpga.descriptors)" $((images * 512))
is "two-transfer-processes: two transfer processes" "$(get .dtps)" 2
is "group-nobody-lapped: a group that was never lapped" "$(get .overruns)" 0
is "no-address-fault: no address fault" "$(get .fpga.faults)" 0
is "64-mib-one-segment: 64 MiB are one segment" "$(get .segments)" 1
is "class: class is $expected" "$(get '.class | ascii_downcase')" "$expected"
holds "one-wait-per: at most one wait per stack" "$(get .waits) <= $(get .stacks) + 1"
echo "# $(get .bytes_per_second) bytes/s, event to user p50 $(get .latency_ns.p50) ns, p99 $(get .latency_ns.p99) ns"

# Doorbells are stores that no kernel sees; a probe on the function that makes them does.
trace=/sys/kernel/tracing
cp "$(command -v romulu)" "$work/romulu"
offset=$(nm "$work/romulu" | sed -n 's/ T rashpa_doorbell64$//p')
if [[ -e $trace/uprobe_events ]]; then
	echo "p:rashpa_user/doorbell $work/romulu:0x$offset offset=%si:x64 value=%dx:u32" \
		>"$trace/uprobe_events"
	grep -q "rashpa_user/doorbell" "$trace/uprobe_events"
	ok $? "probe-rashpa-doorbell64: a probe on rashpa_doorbell64"
	echo 1 >"$trace/events/rashpa_user/enable"
	rashpactl buffer create bells 16M >/dev/null
	"$work/romulu" --buffer bells --check --timeout 60 >/dev/null &
	receiver=$!
	remu --buffer bells --fpga "$fpga" --split 2 --bunch 1 --slots 4 --images 20 \
		--timeout 60 >/dev/null
	wait "$receiver"
	is "stream-probe: the stream with a probe" $? 0
	# the lower half of the word; the upper one is the number of the run
	for offset in 0x18 0x1018; do
		is "doorbell-seen-giving/$offset: the doorbell at $offset is seen giving back the last stack" "$(grep -c \
			" doorbell: .*offset=$offset value=20$" "$trace/trace")" 1
	done
	rashpactl buffer remove bells
	echo 0 >"$trace/events/rashpa_user/enable"
	echo >"$trace/uprobe_events"
	echo >"$trace/trace"
else
	skip "doorbells-trace: doorbells in a trace" "a kernel without uprobe events"
fi

# A free-running detector overtakes a receiver that stands still: losses are counted.
rashpactl buffer create lossy 64M >/dev/null
romulu --buffer lossy --check --timeout 60 --json="$work/lossy.json" >"$work/out" 2>&1 &
receiver=$!
# a detector that does not wait may be through before a busy machine has started its receiver
mapped() { (($(rashpactl --json buffer info lossy | jq .mappings) > 0)); }
wait_for 30 mapped
remu --buffer lossy --fpga "$fpga" --split 2 --bunch 4 --slots 2 --policy overwrite \
	--timeout 60 --json="$work/lossy-remu.json" >/dev/null &
producer=$!
# its group exists when its channel has a record
attached() { awk '/^rashpa-records/ && $2 > 0 { n++ } END { exit !n }' /proc/"$receiver"/fdinfo/* 2>/dev/null; }
wait_for 30 attached
kill -STOP "$receiver"
overruns=$(status '.dtps[0].overruns')
overtaken() { (($(status '.dtps[0].overruns') > overruns + 8)); }
wait_for 30 overtaken
kill -CONT "$receiver"
kill "$producer"
wait "$producer"
wait "$receiver"
# shellcheck disable=SC2034 # holds reads them
lost=$(jq .lost "$work/lossy.json") frames=$(jq .frames "$work/lossy.json")
# shellcheck disable=SC2034
sent=$(jq .images "$work/lossy-remu.json")
# the board may have stopped within a stack of four
holds "received-lost-add: received and lost add up to the stacks that were sent" \
	"lost + frames <= sent && sent < lost + frames + 4"
holds "receiver-stands-loses: a receiver that stands still loses frames" "$lost > 0"
is "kept-right: the frames that it kept are right" "$(jq .corrupt "$work/lossy.json")" 0
holds "group-counted-overruns: the group counted overruns" "$(jq .overruns "$work/lossy.json") > 0"
holds "fpga-counted-overruns: the FPGA counted overruns" "$(jq .overruns "$work/lossy-remu.json") > 0"
rashpactl buffer remove lossy

# top: all events, although it times 256 of them; and lost are frames, not stacks.
rashpactl buffer create many 16M >/dev/null
remu --buffer many --fpga "$fpga" --dtp 0,0,8x8 --bunch 1 --slots 8 --policy overwrite --timeout 60 \
	>/dev/null 2>&1 &
producer=$!
many_events() {
	rashpactl --json top --count 1 --interval 0.5 many |
		jq -e '.streams[0] | .events > 512 and .latency_ns.samples <= 256' >/dev/null
}
wait_for 60 many_events
ok $? "top-counts-events: top counts more events than it times"
kill "$producer"
wait "$producer"
if selftests/lab/host fpga 0 clock run >/dev/null; then
	remu --buffer many --fpga "$fpga" --dtp 0,0,8x8 --bunch 4 --slots 2 --rate 2000 \
		--timeout 60 >/dev/null 2>&1 &
	producer=$!
	overrun() { (($(status '.dtps[0].overruns') > 8)); }
	wait_for 30 overrun
	selftests/lab/host fpga 0 clock hold >/dev/null
	# the lock record does not have the stack yet that is being written
	frames_lost() {
		local lost stacks
		lost=$(rashpactl --json top --count 1 --interval 0.01 many | jq '.streams[0].lost')
		stacks=$(status '.dtps[0].overruns')
		((lost == 4 * stacks || lost == 4 * (stacks - 1)))
	}
	wait_for 15 frames_lost
	ok $? "top-frames-lost: top reports lost frames, four for each stack"
	selftests/lab/host fpga 0 clock run >/dev/null
	kill "$producer"
	wait "$producer"
else
	skip "frames-lost: frames that were lost" "no way to reach the FPGA's control socket"
fi
rashpactl buffer remove many

# An FPGA sends events before the data: a receiver with --check must detect it.
if selftests/lab/host fpga 0 early on >/dev/null; then
	rashpactl buffer create early 64M >/dev/null
	romulu --buffer early --check --timeout 60 --json="$work/early.json" >"$work/out" 2>&1 &
	receiver=$!
	remu --buffer early --fpga "$fpga" --split 2 --bunch 4 --slots 2 --images 80 \
		--timeout 60 --json="$work/early-remu.json" >/dev/null
	wait "$receiver"
	is "events-before-data/romulu-exit-status: events before data: romulu says so by its exit status" $? 4
	holds "events-before-data/frames-corrupt: events before data: frames are corrupt" "$(jq .corrupt "$work/early.json") > 0"
	selftests/lab/host fpga 0 honest >/dev/null
	rashpactl buffer remove early

	# A bus that delays payload, and lines that arrive in reverse order: remu's streams flush, so that
	# consumers see no difference.
	selftests/lab/host fpga 0 late on hold >/dev/null
	selftests/lab/host fpga 0 reorder on >/dev/null
	rashpactl buffer create late 64M >/dev/null
	romulu --buffer late --check --timeout 60 --json="$work/late.json" >"$work/out" 2>&1 &
	receiver=$!
	remu --buffer late --fpga "$fpga" --split 2 --bunch 4 --slots 2 --images 80 \
		--timeout 60 --json="$work/late-remu.json" >/dev/null
	wait "$receiver"
	ok $? "data-late-flush: data that would be late: the flush pushes them"
	is "data-late-all: data that would be late: all frames are right" "$(jq .frames "$work/late.json")" 80
	selftests/lab/host fpga 0 honest >/dev/null
	rashpactl buffer remove late
else
	skip "events-before-data: events before data" "no way to reach the FPGA's control socket"
	skip "data-late: data that would be late" "no way to reach the FPGA's control socket"
fi

# A live source is faster than its receiver: every frame is accounted for, and each frame that arrives
# is the one that its metadata name.
live() { # NAME REMU-OPTION...: streams 400 frames, a receiver compares them; its exit status
	local status
	name=$1
	rashpactl buffer create "$name" 64M >/dev/null
	romulu --buffer "$name" --check --timeout 60 --json="$work/$name.json" >"$work/out" 2>&1 &
	receiver=$!
	mapped() { (($(rashpactl --json buffer info "$name" | jq .mappings) > 0)); }
	wait_for 30 mapped
	remu --buffer "$name" --fpga "$fpga" --bunch 4 --slots 2 --images 400 --timeout 60 \
		--json="$work/$name-remu.json" "${@:2}" >/dev/null
	ok $? "remu: $name: remu"
	wait "$receiver"
	status=$?
	rashpactl buffer remove "$name"
	got() { jq -r "$1" "$work/$name.json"; }
	sent() { jq -r "$1" "$work/$name-remu.json"; }
	is "frame-arrived-right: $name: every frame that arrived is right" "$(got .corrupt)" 0
	is "other-accounted: $name: and every other is accounted for" "$(got .unaccounted)" 0
	is "receiver-knows-board: $name: the receiver knows what the board counted" \
		"$(got '"\(.dropped) \(.source_lost) \(.source_missed)"')" \
		"$(sent '"\(.dropped) \(.source_lost) \(.source_missed)"')"
	return "$status"
}
live wait --live --rate 20000
is "wait/exit-status-frames: wait: the exit status says that frames are missing" $? 4
is "wait/400-frames-arrive: wait: 400 frames arrive" "$(got '"\(.frames) \(.lost)"')" "400 0"
holds "wait/source-lost-meanwhile: wait: the source has lost some meanwhile" "$(sent .source_lost) > 0"
is "wait/numbers-frames-jump: wait: as many as the gaps in the numbers of frames" "$(got .skipped)" "$(sent .source_lost)"
holds "wait/waited-fifo: wait: they waited in the FIFO" "$(sent .fifo_peak) == 16"
live overwrite --live --rate 20000 --policy overwrite
is "overwrite/arrived-overwritten-before: overwrite: arrived, and overwritten before that" "$(got '.frames + .lost')" 400
holds "overwrite/board-counts: overwrite: the board counts what it did" "$(sent .overruns) > 0"
live drop --live --rate 20000 --policy drop
is "drop/arrived-stacks-left: drop: arrived, and in stacks that were left out" "$(got '.frames + 4 * .dropped')" 400
is "drop/none-overwritten: drop: none was overwritten" "$(got .lost)" 0
live sampling --live --rate 500 --tune sampling=3,2 --images 40
is "1-3/40-frames: 1 of 3: 40 frames" "$(got .frames)" 40
live memory --policy drop --rate 20000
is "dropped-memory/same: dropped from memory: the same" "$(got '.frames + 4 * .dropped')" 400
is "dropped-memory/no-frame-lost: dropped from memory: no frame is lost otherwise" "$(got .source_lost)" 0

# Without a receiver: all omissions are reported afterwards.
rashpactl buffer create nobody 64M >/dev/null
remu --buffer nobody --fpga "$fpga" --bunch 4 --slots 2 --images 402 --live --rate 10000 \
	--policy drop --timeout 60 --json="$work/nobody-remu.json" >/dev/null
ok $? "drop-without-receiver/remu-not-wait: drop without a receiver: remu does not wait"
romulu --buffer nobody --check --timeout 60 --json="$work/nobody.json" >"$work/out" 2>&1
is "drop-without-receiver/romulu-frames-missing: drop without a receiver: romulu says that frames are missing" $? 4
is "drop-without-receiver/two-stacks-101: drop without a receiver: two stacks of 101" "$(jq -r '"\(.frames) \(.dropped) \(.unaccounted)"' \
	"$work/nobody.json")" "8 99 0"
rashpactl buffer remove nobody

if selftests/lab/host fpga 0 miss frames 7 >/dev/null; then
	selftests/lab/host fpga 0 miss lines 10 3 >/dev/null
	live missing --live --rate 500 --images 60
	is "detector-misses-frames: the detector misses frames and lines: romulu says so" $? 4
	holds "frames-lines-missing: which frames have lines missing" "$(got .incomplete) > 0"
	is "and-how-many: and how many" "$(got .missing_lines)" $((3 * $(got .incomplete)))
	holds "frames-missed: and how many frames were missed" "$(got .skipped) - $(sent .source_lost) > 0"
	selftests/lab/host fpga 0 miss frames off >/dev/null
	selftests/lab/host fpga 0 miss lines off >/dev/null
else
	skip "detector-misses: losses of a detector" "no way to reach the FPGA's control socket"
fi

# Regions, sampling: four corners of the image, 1 of 3, into another arrangement. The
# receiver comes after the stream has ended: a paced one waits for it in the buffer.
rashpactl buffer create roi 64M >/dev/null
remu --buffer roi --fpga "$fpga" --dtp 0,0,100x50@0,0 --dtp 924,0,100x50@100,0 \
	--dtp 0,462,100x50@0,50 --dtp 924,462,100x50@100,50 --tune sampling=3 \
	--bunch 5 --images 203 --timeout 60 --json="$work/roi-remu.json" >/dev/null
ok $? "remu-sends-four: remu sends four regions, 1 image of 3, and a last stack that is not full"
romulu --buffer roi --check --timeout 60 --json="$work/roi.json" >"$work/out" 2>&1
ok $? "romulu-finds-right: romulu finds the right pixels in all of them"
sed 's/^/# /' "$work/out"
is "203-images: 203 images" "$(jq .frames "$work/roi.json")" 203
rashpactl buffer remove roi

# Images in another buffer than their header; the lock records in a third place.
payload() {
	remu --buffer told --payload shown --fpga "$fpga" --bunch 4 --images 80 --timeout 60 "$@" \
		--json="$work/remu.json" >"$work/err" 2>&1
}
rashpactl buffer create told 1M >/dev/null && rashpactl buffer create shown 64M >/dev/null &&
	rashpactl lock create "fpga$fpga" told.lock 2 >/dev/null
ok $? "small-buffer-large: a small buffer, and a large one for images"
for lock in "" told.lock; do
	romulu --buffer told --check --timeout 60 --json="$work/told.json" >"$work/out" 2>&1 &
	receiver=$!
	payload ${lock:+--tune lock="$lock"}
	ok $? "remu-streams: remu streams into it${lock:+, with lock memory}" || sed 's/^/# /' "$work/err"
	wait "$receiver"
	ok $? "all-right: all is right" || sed 's/^/# /' "$work/out"
	is "all-frames: all frames" "$(jq -c '[.frames, .corrupt, .lost]' "$work/told.json")" "[80,0,0]"
done
payload --payload nowhere
is "memory-nobody: memory that does not exist" $? 1
grep -q nowhere "$work/err"
ok $? "named: is named"
payload --payload ""
is "memory-without-name: memory without a name" $? 2
rashpactl buffer remove told && rashpactl buffer remove shown && rashpactl buffer remove told.lock
ok $? "nobody-holds: no process holds them"

# An ordinary member of the group can do all of it within the default limits. The user that drives the
# board also needs its registers, which the profile keeps from users.
group=tape
nodes=(/dev/rashpa/memory "/dev/rashpa/fpga$fpga")
modes=$(stat -c "%g %a" "${nodes[0]}")
chgrp "$group" "${nodes[@]}" && chmod 0660 "${nodes[@]}"
member() { setpriv --reuid daemon --regid daemon --groups "$(getent group "$group" | cut -d: -f3)" "$@"; }
chmod 0777 "$work"
holds "one-user-limit: one user has a limit" \
	"$(rashpactl --json limits | jq '.[] | select(.resource == "memory").user_limit') > 0"
member rashpactl buffer create member 64M >/dev/null
ok $? "member-buffer: a member makes a buffer"
is "member-group: which is the member's, and the group's" "$(stat -c %U:%G:%a /dev/rashpa/buffer/member)" \
	"daemon:$group:660"
member rashpactl lock create "fpga$fpga" member.lock 2 >/dev/null
ok $? "lock-memory: and lock memory"
member romulu --buffer member --check --timeout 60 --json="$work/member.json" >"$work/out" 2>&1 &
receiver=$!
member --inh-caps +sys_rawio --ambient-caps +sys_rawio \
	remu --buffer member --tune lock=member.lock --fpga "$fpga" --split 2 --bunch 4 --slots 2 \
	--images 80 --timeout 60 --json="$work/member-remu.json" >"$work/err" 2>&1
ok $? "remu-streams-member: remu streams with the member's rights and CAP_SYS_RAWIO" || sed 's/^/# /' "$work/err"
wait "$receiver"
ok $? "member-romulu-finds: a member's romulu finds every pixel right" || sed 's/^/# /' "$work/out"
is "all-member-frames: all of a member's frames" "$(jq .frames "$work/member.json")" 80
member rashpactl buffer remove member >/dev/null && member rashpactl buffer remove member.lock >/dev/null
ok $? "member-removes: a member removes them"
chgrp "${modes% *}" "${nodes[@]}"
chmod "${modes#* }" "${nodes[@]}"
finish
