#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# The part of the soak test that runs in the guest: rounds of random work for a given time.
# soak-guest.sh FOLDER MINUTES SEED. Each round writes a JSON object to FOLDER/rounds, and
# FOLDER/memory gets two: before and after. The same seed draws the same numbers (a round's
# "drawn"). Needs two software FPGAs: one streams, the other does random work meanwhile, since
# every map that ends stops the streams of its function.
. "$(dirname "$0")/../lib/shell.sh"
export PATH=$PWD/build/tools:$PATH RASHPA_PROFILES=$PWD/tools/data/profiles
out=$1 minutes=$2 seed=$3
RANDOM=$seed
errors=0 round=0 board=0 boards=${RASHPA_FPGAS:?set by the lab}
dataset=generate:3:1
: >"$out/rounds"
: >"$out/memory"

complain() {
	echo "soak: round $round ($kind): $1"
	sed 's/^/soak:   /' "$work"/*.out 2>/dev/null | tail -n 12
	errors=$((errors + 1))
	wrong=$((wrong + 1))
}
expect() { # WHAT EXPRESSION
	(($2)) || complain "$1: not $2"
}
same() { # WHAT ACTUAL EXPECTED
	[[ $2 == "$3" ]] || complain "$1: \"$2\", expected \"$3\""
}
# pick VARIABLE FIRST LAST: sets a random number from FIRST to LAST. Not in a subshell: each one
# starts with another state of RANDOM, and the numbers would not depend on the seed alone.
pick() {
	printf -v "$1" %d $(($2 + RANDOM % ($3 - $2 + 1)))
	drawn+=("\"$1=${!1}\"")
}
host() { selftests/lab/host "$@" >/dev/null; }
control() { host fpga "$board" "$@" || complain "the board does not know \"$*\""; }
# A missing report or field is -1, which differs from every count, so the comparison complains.
figure() { jq "${2} // -1" "$work/$1.json" 2>/dev/null || echo -1; }

bind_board() {
	local node
	rashpactl unbind "$bdf" >/dev/null 2>&1
	node=$(rashpactl --json bind "$bdf" | jq -r .node)
	fpga=${node#fpga}
	[[ $fpga ]] || complain "bind of $bdf"
}
# Find the board that streams.
find_board() { bdf=$(lspci -D -d 1234:5250 | cut -d' ' -f1 | grep -vx "$other" | head -n 1); [[ $bdf ]]; }
ours() { rashpactl --json list | jq -r ".devices[] | select(.node == \"fpga$fpga\").$1"; }
maps_gone() { [[ $(ours maps) == 0 ]]; }
busy() { [[ $(status .busy) == true ]]; }
passed() { (($(status .bytes) > $1)); }

# Random options of both programs, and a random number of images.
shape() {
	local split=0 bunch=0 slots=0
	images=0
	pick images 40 200
	pick split 1 4
	pick bunch 1 12
	pick slots 2 3
	options=(--split "$split" --bunch "$bunch" --slots "$slots")
}
produce() { # OPTION...
	remu --buffer soak --fpga "$fpga" --dataset "$dataset" "${options[@]}" "$@" --timeout 60 \
		--json="$work/remu.json" >"$work/remu.out" 2>&1 &
	remu=$!
}
receive() {
	romulu --buffer soak --check --dataset "$dataset" --timeout 60 \
		--json="$work/romulu.json" >"$work/romulu.out" 2>&1 &
	romulu=$!
}
mapped() { (($(rashpactl --json buffer info soak | jq .mappings) > 0)); }
# A receiver ends with 0 (success), or with 4 in rounds that allow losses.
received() { # ALLOWED-STATUS
	local code=0
	wait "$romulu" || code=$?
	((code == 0 || code == $1)) || complain "romulu: status $code"
	same "corrupt" "$(figure romulu .corrupt)" 0
	n_images=$((n_images + $(figure romulu .frames)))
	n_bytes=$((n_bytes + $(figure romulu .bytes)))
	n_events=$((n_events + $(figure romulu .events)))
	n_lost=$((n_lost + $(figure romulu .lost)))
}
produced() {
	wait "$remu" || complain "remu: status $?"
	same "faults" "$(figure remu .faults)" 0
}
in_midstream() {
	local begin split bunch megabytes
	pick split 1 4
	pick bunch 1 8
	pick megabytes 1 30
	options=(--split "$split" --bunch "$bunch" --slots 2)
	produce --policy overwrite
	wait_for 60 busy || complain "it does not begin"
	begin=$(status .bytes)
	wait_for 60 passed $((begin + 1000000 * megabytes)) || complain "no data"
}
killed() { # PROCESS
	kill -9 "$1" 2>/dev/null
	wait "$1" 2>/dev/null
	n_kills=$((n_kills + 1))
}
# After a stop in mid-stream the board is idle, and nothing moves any more.
quiet() {
	local before
	wait_for 30 maps_gone || complain "its maps stay"
	same "busy" "$(status .busy)" false
	before=$(status .bytes)
	same "faults" "$(status .faults)" 0
	same "bytes afterwards" "$(status .bytes)" "$before"
}

# ---------------------------------------------------------------- rounds ---

round_stream() { # paced: no losses are allowed
	shape
	receive
	wait_for 60 mapped
	produce --images "$images"
	produced
	received 0
	n_uncounted=$((images - $(figure romulu .frames) - $(figure romulu .lost)))
	same "lost" "$(figure romulu .lost)" 0
}

round_free() { # faster than the receiver: all losses are counted
	shape
	receive
	wait_for 60 mapped
	produce --images "$images" --policy overwrite
	produced
	received 4
	n_uncounted=$((images - $(figure romulu .frames) - $(figure romulu .lost)))
}

round_kill_producer() {
	in_midstream
	killed "$remu"
	quiet
}

round_kill_receiver() { # a second receiver continues after the first one
	local i pieces
	shape
	produce
	wait_for 60 busy
	for i in 1 2; do
		pick pieces 1 4
		receive
		wait_for 60 passed $(($(status .bytes) + 5000000 * pieces)) ||
			complain "receiver $i: no data"
		((i == 2)) || killed "$romulu"
	done
	# the producer ends normally, and so must the receiver
	kill -INT "$remu"
	produced
	received 0
	same "lost" "$(figure romulu .lost)" 0
}

round_kill_both() {
	in_midstream
	receive
	wait_for 60 mapped
	killed "$romulu"
	killed "$remu"
	quiet
}

round_unbind() {
	in_midstream
	rashpactl unbind "$bdf" >/dev/null || complain "unbind"
	killed "$remu"
	bind_board
}

round_stuck() {
	in_midstream
	control stuck on
	killed "$remu"
	wait_for 30 maps_gone || complain "its maps stay"
	same "state" "$(ours state)" stuck
	rashpactl fpga reset "fpga$fpga" || complain "reset"
	same "state after reset" "$(ours state)" ready
}

round_dead() { # registers read all ones; the DMA goes on until bus mastering ends
	in_midstream
	control dead on
	killed "$remu"
	wait_for 30 maps_gone || complain "its maps stay"
	same "state" "$(ours state)" stuck
	rashpactl fpga reset "fpga$fpga" >/dev/null 2>&1 && complain "a dead board can be reset"
	control dead off
	rashpactl fpga reset "fpga$fpga" || complain "reset"
	same "state after reset" "$(ours state)" ready
}

round_link() { # the link is lost, and comes back
	in_midstream
	control dead link
	echo 1 >"/sys/bus/pci/devices/$bdf/remove"
	killed "$remu"
	control dead off
	echo 1 >/sys/bus/pci/rescan
	find_board || complain "it does not come back"
	n_unplugs=1
	bind_board
}

round_power() { # another board takes its place
	((board == 0 || board < boards + RASHPA_SOAK_SPARE - 1)) || { round_link; return; }
	in_midstream
	# QEMU 11.1 aborts (error_setv) if an access to a register waits for its answer
	kill -STOP "$remu"
	wait_for 10 eval '[[ $(ps -o state= -p "$remu") == T ]]'
	host fpga "$board" exit 2>/dev/null
	echo 1 >"/sys/bus/pci/devices/$bdf/remove"
	killed "$remu"
	board=$((board ? board + 1 : boards))
	host start-fpga "$board" || complain "no other board"
	host qmp device_add "$(<"/run/lab/fpga$board.json")" || complain "it cannot be plugged in"
	wait_for 30 find_board || complain "it does not come"
	n_unplugs=1
	bind_board
}

round_flood() { # a flood of interrupts during a stream
	local rate=max
	((RANDOM % 2)) && pick rate 10 5000
	control flood "$rate" 7
	round_stream
	control flood off
}

# ----------------------------------------------------- concurrent work ---

# Make free memory less contiguous: page cache, and huge pages that come and go.
fragment() {
	local huge cache
	pick huge 0 96
	pick cache 1 300
	((RANDOM % 2)) && echo "$huge" >/proc/sys/vm/nr_hugepages
	((RANDOM % 2)) && head -c "${cache}M" /dev/zero >/tmp/cache
	((RANDOM % 3)) || rm -f /tmp/cache
}

churn() {
	local nth seconds mib churn_seed
	pick churn_seed 0 32767
	pick seconds 2 8
	pick mib 1 128
	nth=$(lspci -D -d 1234:5250 | cut -d' ' -f1 | grep -nx "$other" | cut -d: -f1)
	rm -f "$work/churn.json"
	RASHPA_CHURN_SECONDS=$seconds RASHPA_CHURN_SEED=$churn_seed RASHPA_CHURN_FPGA=$((nth - 1)) \
		RASHPA_CHURN_MIB=$mib RASHPA_CHURN_JSON=$work/churn.json \
		build/selftests/churn_test >"$work/churn.out" 2>&1 &
	churn=$!
}
churned() {
	wait "$churn" || complain "random work: status $?"
	[[ -s $work/churn.json ]] || echo "{}" >"$work/churn.json"
}

# ------------------------------------------------------------------------ ---

run_round() { # KIND
	local begin=$SECONDS with=0
	kind=$1 wrong=0 drawn=()
	n_images=0 n_bytes=0 n_events=0 n_lost=0 n_uncounted=0 n_kills=0 n_unplugs=0
	rm -f "${work:?}"/*.json "$work"/*.out
	fragment
	# not during scans of buses: the numbers of boards would change
	[[ $kind == link || $kind == power ]] || with=$((RANDOM % 2))
	((with)) && churn
	"round_$kind"
	((with)) && churned
	expect "uncounted images" "n_uncounted == 0"
	jq -nc --arg kind "$kind" --argjson seconds $((SECONDS - begin)) --argjson wrong "$wrong" \
		--argjson images "$n_images" --argjson bytes "$n_bytes" --argjson events "$n_events" \
		--argjson lost "$n_lost" --argjson uncounted "$n_uncounted" \
		--argjson kills "$n_kills" --argjson unplugs "$n_unplugs" \
		--argjson churn "$( ((with)) && cat "$work/churn.json" || echo null)" \
		--argjson drawn "[$(IFS=,; echo "${drawn[*]}")]" \
		'$ARGS.named' >>"$out/rounds"
	round=$((round + 1))
	((wrong)) && bind_board
}

# Measure the memory in use when nothing runs.
measure() {
	echo 0 >/proc/sys/vm/nr_hugepages
	rm -f /tmp/cache
	sync
	echo 3 >/proc/sys/vm/drop_caches
	# complete files, to search for missing memory
	cat /proc/meminfo /proc/pagetypeinfo /proc/buddyinfo >"$out/memory-$kind"
	# since 6.7 each processor may keep an eighth of its freed pages, which is not counted
	awk '/^(MemTotal|MemAvailable|Slab|SUnreclaim|PageTables):/ {
		printf "%s\"%s\": %d", n++ ? ", " : "{ ", substr($1, 1, length($1) - 1), $2 }
		/^ +count:/ { kept += $2 * 4 }
		END { printf ", \"Processors\": %d }\n", kept }' /proc/meminfo /proc/zoneinfo \
		>>"$out/memory"
}

kind=begin wrong=0
insmod "build/modules/$RASHPA_KERNEL/rashpa.ko" || exit 1
mapfile -t functions < <(lspci -D -d 1234:5250 | cut -d' ' -f1)
((${#functions[@]} >= 2)) || { echo "soak: two software FPGAs are needed"; exit 1; }
other=${functions[1]}
rashpactl bind "$other" >/dev/null
find_board && bind_board
rashpactl buffer create soak 64M >/dev/null || exit 1
# weights; rare kinds take long, or work only a few times
kinds=(stream stream stream stream free free free kill_producer kill_producer kill_receiver
	kill_receiver kill_both unbind unbind stuck dead link link flood flood power)
run_round stream # objects that are made only once are made now
measure
end=$((SECONDS + minutes * 60))
while ((SECONDS < end)); do
	run_round "${kinds[RANDOM % ${#kinds[@]}]}"
	echo "soak: round $round, $kind, $((end > SECONDS ? end - SECONDS : 0)) s left, $errors wrong"
done
kind=end
measure # with the same buffer and module as before
rashpactl buffer remove soak || complain "the buffer is still held"
same "buffers" "$(find /dev/rashpa/buffer -mindepth 1 2>/dev/null | wc -l)" 0
rmmod rashpa || complain "rmmod"
((errors == 0))
