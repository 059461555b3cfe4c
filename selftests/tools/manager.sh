#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# test: iommu=on seconds=150
# rashpa-manager leads detectors and receivers that are daemons.
# shellcheck disable=SC2154 # pid_ with a name is set by daemon
# RASHPA_KILLS: so many of each, and if it is more than one, nothing else. A second board, and soft-RoCE
# for namespaces, are used where they are.
. "$(dirname "$0")/../lib/shell.sh"
. "$(dirname "$0")/../lib/rxe-pair.sh"

have_fpga || { skip "manager" "no software FPGA in this guest"; finish; }
client=tools/telegram/tests/telegram.py
export RASHPA_RUN=$work
rashpactl buffer create led 64M >/dev/null
ok $? "buffer"

# daemon NAME TOOL OPTION...: sets pid_NAME
daemon() {
	local name=$1 tool=$2
	shift 2
	rm -f "$work/$name" # of one that was killed
	"$tool" --daemon "unix:$work/$name" "$@" >"$work/$name.log" 2>&1 &
	declare -g "pid_$name=$!"
	wait_for 20 test -S "$work/$name"
}
# experiment ATTRIBUTES DETECTOR RECEIVER MORE: one of each, over PCIe
experiment() {
	cat >"$work/experiment.xml" <<-END
		<experiment xmlns="urn:rashpa:1" version="1.0" name="test" $1>
			<detector name="board" at="unix:$work/remu">
				<fpga>$fpga</fpga> <dataset>generate:4</dataset> $2
			</detector>
			<receiver name="judge" at="unix:$work/romulu">
				<buffer>led</buffer> <dataset>generate:4</dataset> $3
			</receiver>
			<flow from="board" to="judge" transport="pcie"/>
			$4
		</experiment>
	END
}
manager() { rashpa-manager "$@" "$work/experiment.xml"; }
# is_in NAME STATE [NAME]: wait for it, and for another one
is_in() { timeout 60 python3 -B "$client" "$work/$1" until "$2" ${3:+"$work/$3"}; }
# says FILTER: of the report
says() { jq -c "$1" "$work/report.json"; }
child() { ps -o pid= --ppid "$1" | tr -d ' '; }
# part NAME: begins; how long the one before took
part() {
	[[ ! ${part-} ]] || echo "# $part: $((SECONDS - since)) s"
	part=$1 since=$SECONDS
}

daemon remu remu
ok $? "a detector listens" || sed 's/^/# /' "$work/remu.log"
daemon romulu romulu
ok $? "a receiver listens" || sed 's/^/# /' "$work/romulu.log"

# --- killed at any time
still() { rashpactl --json fpga status "fpga$fpga" | jq -e 'all(.dtps[]; .running | not)' >/dev/null; }
wrong() { echo "# $victim: $1"; bad_kills=1; }
# killed VICTIM: one of them, in mid-stream
killed() {
	local victim=$1 code left
	rashpa-manager run --json="$work/report.json" "$work/experiment.xml" >"$work/out" 2>&1 &
	manager=$!
	if ! is_in romulu running remu; then
		wrong "it does not run"
		kill -9 "$manager"
		wait "$manager" 2>/dev/null
		return
	fi
	child_remu=$(child "$pid_remu") child_romulu=$(child "$pid_romulu")
	sleep "0.$((RANDOM % 10))" # at any time
	kill -9 "${!victim}"
	wait "$manager" 2>/dev/null
	code=$?
	case $victim in
	manager)
		# nobody comes: it is stopped
		is_in remu ended romulu || wrong "the detector, or the receiver, goes on"
		;;
	pid_*)
		((code == 1)) || wrong "the manager ends with $code"
		wait "${!victim}" 2>/dev/null
		daemon "${victim#pid_}" "${victim#pid_}" || wrong "there is no next daemon"
		;;
	child_*)
		((code == 1)) || wrong "the manager ends with $code"
		[[ $(says '[.parties[].outcome] | index("killed") != null') == true ]] || wrong "it is not told"
		;;
	esac
	for left in "$child_remu" "$child_romulu"; do
		wait_for 30 test ! -e "/proc/$left" || wrong "$left runs on"
	done
	wait_for 30 still || wrong "the board runs on"
	[[ -e /dev/rashpa/buffer/led ]] || wrong "the buffer has gone"
}
# kills ROUNDS
kills() {
	local round victim bad_kills=0
	part "kills"
	experiment 'orphan="stop"' "<bunch>2</bunch><slots>16</slots><rate>50</rate>" ""
	for ((round = 1; round <= $1; round++)); do
		echo "# round $round"
		for victim in manager pid_remu pid_romulu child_remu child_romulu; do
			killed "$victim"
			((bad_kills == 0)) || break 2
		done
	done
	ok "$bad_kills" "killed $1 times each: manager, daemons, children" || sed 's/^/# /' "$work/out"
}
# the daemons end, and the buffer is not held
leave() {
	kill "$pid_remu" "$pid_romulu"
	wait "$pid_remu"
	ok $? "the detector's daemon ends"
	wait "$pid_romulu"
	ok $? "the receiver's daemon ends"
	rashpactl buffer remove led >/dev/null
	ok $? "buffer removed"
	part ""
	finish
}

if ((${RASHPA_KILLS:-1} > 1)); then
	kills "$RASHPA_KILLS"
	leave
fi

# --- before anything begins
part "ahead"
experiment "" "<bunch>4</bunch><images>80</images>" ""
manager check >"$work/out" 2>&1
ok $? "nothing is in the way" || sed 's/^/# /' "$work/out"
manager plan >"$work/out" 2>&1
ok $? "a plan" || sed 's/^/# /' "$work/out"
sed 's/^/# /' "$work/out"

# --- a run
part "runs"
manager run --json="$work/report.json" >"$work/out" 2>&1
is "a run" $? 0 || sed 's/^/# /' "$work/out"
is "what was sent came" "$(says '.flows[0] | [.sent, .received, .lost, .unaccounted]')" "[80,80,0,0]"
is "both are done" "$(says '[.parties[].outcome]')" '["done","done"]'
manager run --json="$work/report.json" >"$work/out" 2>&1
is "and again" $? 0 || sed 's/^/# /' "$work/out"

part "pause"
# --- pause: the receiver writes where nobody reads yet
mkfifo "$work/pipe"
experiment 'overrun="pause"' "<bunch>1</bunch><slots>32</slots><images>60</images><rate>10</rate>" \
	"<write>$work/pipe</write>"
rashpa-manager run --json="$work/report.json" "$work/experiment.xml" >"$work/out" 2>&1 &
manager=$!
exec {reader}<>"$work/pipe" # no end of file until it is closed
is_in remu paused
ok $? "a buffer that is full pauses the detector" || sed 's/^/# /' "$work/out"
cat <&"$reader" >"$work/images" &
reads=$!
wait "$manager"
is "it goes on, to its end" $? 0 || sed 's/^/# /' "$work/out"
kill "$reads"
exec {reader}<&-
is "nothing was lost" "$(says '.flows[0] | [.sent, .received, .lost, .unaccounted]')" "[60,60,0,0]"
is "nor overwritten" "$(says '.parties[0].report.overruns')" 0

# --- a program that hangs while it goes on again
part "hang"
experiment 'overrun="pause"' "<bunch>1</bunch><slots>32</slots><rate>10</rate>" "<write>$work/pipe</write>"
rashpa-manager run --json="$work/report.json" "$work/experiment.xml" >"$work/out" 2>&1 &
manager=$!
exec {reader}<>"$work/pipe"
is_in remu paused
ok $? "it pauses" || sed 's/^/# /' "$work/out"
hangs=$(child "$pid_remu")
kill -STOP "$hangs"
cat <&"$reader" >"$work/images" &
reads=$!
is_in remu pausing
ok $? "it is to go on, and hangs" || sed 's/^/# /' "$work/out"
kill "$manager"
is_in remu stopping
ok $? "it can be stopped all the same" || sed 's/^/# /' "$work/out"
kill -CONT "$hangs"
wait "$manager"
is "and the run is accounted for" "$? $(says '.flows[0] | [.sent == .received, .lost, .unaccounted]')" \
	"0 [true,0,0]" || sed 's/^/# /' "$work/out"
kill "$reads"
exec {reader}<&-

part "networks"
# --- the same file, over a network and not
experiment "" "<bunch>4</bunch><images>40</images>" ""
sed -i 's|transport="pcie"|transport="udp" address="127.0.0.1:5001"|' "$work/experiment.xml"
manager run --json="$work/report.json" >"$work/out" 2>&1
is "a run over a network" $? 0 || sed 's/^/# /' "$work/out"
is "what was sent came" "$(says '.flows[0] | [.transport, .sent, .received, .lost, .unaccounted]')" \
	'["udp",40,40,0,0]'
sed -i 's|transport="udp" address="127.0.0.1:5001"|transport="pcie"|' "$work/experiment.xml"
manager run --json="$work/report.json" >"$work/out" 2>&1
is "the same over PCIe" $? 0 || sed 's/^/# /' "$work/out"
is "what was sent came" "$(says '.flows[0] | [.transport, .sent, .received, .lost, .unaccounted]')" \
	'["pcie",40,40,0,0]'

part "rules"
# --- what a pipeline finds acts on the run
experiment "" "<bunch>1</bunch><slots>32</slots><rate>10</rate>" \
	'<pipeline>{"veto": {"threshold": 1, "pixels": 1}}</pipeline>' \
	'<rule of="judge" count="kept" at-least="5"><set-rate detector="board">20</set-rate></rule>
	 <rule of="judge" count="kept" at-least="20"><stop/></rule>'
sed -i '/name="judge"/,/receiver>/s|<dataset>generate:4</dataset>||' "$work/experiment.xml"
manager run --json="$work/report.json" >"$work/out" 2>&1
is "a run that has no end but a rule" $? 0 || sed 's/^/# /' "$work/out"
grep -q "judge has [0-9]* kept: set-rate board" "$work/out"
ok $? "a rule changes the rate" || sed 's/^/# /' "$work/out"
holds "it ended soon behind its 20th hit: $(says '.parties[1].counts.kept')" \
	"$(says '.parties[1].counts.kept') >= 20 && $(says '.parties[1].counts.kept') < 200"
is "and all of it adds up" "$(says '.flows[0] | [.lost, .unaccounted]')" "[0,0]"

part "drops"
# --- a live source does not wait, and a stream that leaves stacks out is not paused
for what in "<live/><policy>drop</policy>" "<policy>drop</policy>"; do
	experiment 'overrun="pause"' "<bunch>1</bunch><slots>4</slots><split>1</split><images>60</images><rate>200</rate>$what" \
		"<write>$work/slow</write>"
	[[ -p $work/slow ]] || mkfifo "$work/slow"
	rashpa-manager run --json="$work/report.json" "$work/experiment.xml" >"$work/out" 2>&1 &
	manager=$!
	exec {reader}<>"$work/slow"
	wait_for 60 grep -q "images are lost, and counted" "$work/out"
	ok $? "$what: it is told that it cannot pause" || sed 's/^/# /' "$work/out"
	cat <&"$reader" >/dev/null &
	reads=$!
	wait "$manager"
	is "$what: what was dropped is told" $? 4 || sed 's/^/# /' "$work/out"
	is "$what: and nothing is unaccounted" "$(says '.flows[0].unaccounted')" 0
	kill "$reads"
	exec {reader}<&-
done

part "registers"
# --- a hit writes a register of the board: the role of a source that this run does not use
role=$((0x4018)) # of the first source of the software FPGA
experiment "" "<bunch>1</bunch><slots>32</slots><rate>5</rate>" "<no-check/>" \
	"<rule of=\"judge\" count=\"images\" at-least=\"5\">
	 <write-register at=\"board\" fpga=\"$fpga\" window=\"registers\" offset=\"$role\" value=\"4711\"/></rule>"
rashpa-manager run --json="$work/report.json" "$work/experiment.xml" >"$work/out" 2>&1 &
manager=$!
rashpa-manager watch "$work/experiment.xml" >"$work/seen" 2>&1 &
watch=$!
both_run() { grep -q "^board .*running" "$work/seen" && grep -q "^judge .*running" "$work/seen"; }
wait_for 60 both_run
ok $? "who watches sees it run" || sed 's/^/# /' "$work/seen"
kill "$watch"
wait "$watch"
is "and leaves when told to" $? 0
written() { [[ $(status '.sources[0].role') == 4711 ]]; }
wait_for 60 written
ok $? "the register has what the rule says" || sed 's/^/# /' "$work/out"
# who sleeps until there is something to see wakes up a few times for each image
switches() { cat "/proc/$1/task/"*/status | awk '/^voluntary/ { n += $2 } END { print n }'; }
one=$(child "$pid_romulu")
before=$(switches "$one")
read -rt 2 -u "$silence"
holds "a receiver sleeps where little comes: $(($(switches "$one") - before)) times awake in 2 s" \
	"$(switches "$one") - before < 250"
kill "$manager"
wait "$manager"
is "a run that is interrupted, and adds up" $? 0 || sed 's/^/# /' "$work/out"

part "two receivers"
# --- two receivers, one of which dies: the other one goes on
rashpactl buffer create led2 16M >/dev/null
daemon romulu2 romulu
cat >"$work/experiment.xml" <<-END
	<experiment xmlns="urn:rashpa:1" version="1.0" name="test" failure="degrade">
		<detector name="board" at="unix:$work/remu">
			<dataset>generate:4</dataset> <bunch>2</bunch> <images>40</images>
		</detector>
		<receiver name="one" at="unix:$work/romulu"> <buffer>led</buffer> <slots>4</slots> <write>$work/slow</write> </receiver>
		<receiver name="two" at="unix:$work/romulu2"> <buffer>led2</buffer> <dataset>generate:4</dataset> </receiver>
		<flow from="board" to="one" transport="udp" address="127.0.0.1:5001"/>
		<flow from="board" to="two" transport="udp" address="127.0.0.1:5002"/>
	</experiment>
END
sed 's|<write>.*</write>|<pipeline>{}</pipeline>|; s|<images>|<rate>100000</rate> &|' "$work/experiment.xml" >"$work/fast.xml"
rashpa-manager plan --json="$work/plan.json" "$work/fast.xml" >"$work/out" 2>&1
is "a receiver that is slow lowers its own flow, and no other one" \
	"$(jq -c '[.[] | [.to, .limit, .images_per_second == 100000]]' "$work/plan.json")" \
	'[["one","engine",false],["two","detector",true]]' || sed 's/^/# /' "$work/out" "$work/plan.json"
rashpa-manager run --json="$work/report.json" "$work/experiment.xml" >"$work/out" 2>&1 &
manager=$!
is_in remu running
kill -9 "$(child "$pid_romulu")"
wait "$manager"
is "one dies: the run has failed" $? 1 || sed 's/^/# /' "$work/out"
is "and the other one has all" "$(says '[(.parties[] | select(.name == "one").outcome), (.flows[1] | .received, .lost)]')" \
	'["killed",40,0]' || sed 's/^/# /' "$work/out"
kill "$pid_romulu2"
wait "$pid_romulu2"
rashpactl buffer remove led2 >/dev/null
ok $? "the second buffer is not held"

# --- a board that processes: what it does not hold is told before
part "boards"
other=$(lspci -D -d 1234:5250 | sed -n '2s/ .*//p')
if [[ $other ]]; then
	rashpactl unbind "$other" >/dev/null 2>&1
	other=$(rashpactl --json bind "$other" | jq -r .node)
	# processing ENGINE DETECTOR: over PCIe, from board to board
	processing() {
		experiment "" "<payload>there</payload> $2" "<engine>$1</engine> <offer>there</offer> <pipeline>{}</pipeline>"
		sed -i '/name="judge"/,/receiver>/s|<dataset>generate:4</dataset>||' "$work/experiment.xml"
	}
	# refused TEXT NAME
	refused() {
		manager check >"$work/out" 2>&1
		is "$2" "$? $(grep -c "$1" "$work/out")" "1 1" || sed 's/^/# /' "$work/out"
	}
	half=$(($(rashpactl --json fpga status "$other" | jq .memory_bytes) / 2))
	processing "$other" "<bunch>8</bunch><slots>8</slots>"
	refused "judge .*$other offers $half bytes of its memory, and 8 slots of 8 images take 67108864: give board fewer <slots>" \
		"slots that do not fit into a board"
	processing "$other" "<bunch>2</bunch>"
	refused "judge .*takes 16 images .* 16 slots of 2 have 32: give board <slots>8</slots>" "more than its unit takes"
	processing "$other" "<bunch>3</bunch><slots>3</slots><dtp>0,0,100x10</dtp>"
	refused "judge .*no gaps.* 2000 bytes: give board <bunch>1</bunch>" "stacks with gaps between them"
	truncate -s 8M "$work/large.raw"
	processing "$other" "<bunch>1</bunch><slots>2</slots><geometry>2048x2048</geometry>"
	sed -i "s|generate:4|$work/large.raw|" "$work/experiment.xml"
	refused "judge .*has $((2 * half)) bytes of memory, and images of 8388608 bytes .* take 100663296" \
		"images that are too large for it"
	processing "fpga$fpga" "<bunch>1</bunch><slots>4</slots>"
	refused "judge .*fpga$fpga is the board of board" "the detector's own board"
	processing fpga99 ""
	refused "judge .*there is no fpga99" "a board that is not there"
	# what check lets pass runs
	policy=/sys/module/rashpa/parameters/p2p_bridge
	before=$(cat "$policy")
	echo allow >"$policy"
	processing "$other" "<bunch>2</bunch><slots>8</slots><images>20</images>"
	manager check >"$work/out" 2>&1
	is "what fits" "$? $(cat "$work/out")" "0 nothing is in the way"
	manager run --json="$work/report.json" >"$work/out" 2>&1
	is "runs from board to board" "$? $(says '[.parties[1].report.processing.in_place, .flows[0].sent, .flows[0].received]')" \
		"0 [true,20,20]" || sed 's/^/# /' "$work/out"
	echo "$before" >"$policy"
else
	skip "boards that process" "no second software FPGA in this guest"
fi

kills 1

# --- another manager takes over
# taken_over TRANSPORT: who leads dies; another one leads to the end
taken_over() {
	part "take-over, $1"
	rashpa-manager run "$work/experiment.xml" >"$work/out" 2>&1 &
	manager=$!
	is_in "${2:-remu}" running "${3:-romulu}"
	ok $? "$1: it runs" || sed 's/^/# /' "$work/out"
	kill -9 "$manager"
	wait "$manager" 2>/dev/null
	manager run >"$work/out" 2>&1
	is "$1: who does not take over is told to" "$? $(grep -c "take it over" "$work/out")" "1 2"
	rashpa-manager run --take-over --json="$work/report.json" "$work/experiment.xml" >"$work/out" 2>&1 &
	manager=$!
	wait_for 60 grep -q "took over run" "$work/out"
	ok $? "$1: another manager takes over" || sed 's/^/# /' "$work/out"
	kill "$manager"
	wait "$manager"
	is "$1: and leads it to its end" $? 0 || sed 's/^/# /' "$work/out"
	is "$1: it has all of the account" "$(says '.flows[0] | [.sent > 0, .sent == .received, .lost, .unaccounted]')" \
		"[true,true,0,0]"
}
# by TRANSPORT ADDRESS: not over PCIe
by() { sed -i "s|transport=\"pcie\"|transport=\"$1\" address=\"$2\"|" "$work/experiment.xml"; }
# there: the other daemons, which have RDMA
there() {
	by roce 10.1.0.2:5001
	sed -i "s|unix:$work/remu|unix:$work/far|; s|unix:$work/romulu|unix:$work/near|; s|<buffer>led|<buffer>net0|
		s|<fpga>.*</fpga>||" "$work/experiment.xml"
}
small="<bunch>2</bunch><rate>10</rate><dtp>0,0,1024x64</dtp><dtp>0,64,1024x64</dtp>"
experiment "" "<slots>24</slots>$small" ""
taken_over pcie
experiment "" "$small" ""
by udp 127.0.0.1:5001
taken_over udp
# so few receives that what may come unseen does not take all slots; on a busy machine packets are lost
by_rdma() {
	experiment "$1" "<service>rc</service>$2" "<service>rc</service><receives>512</receives>"
	there
}
remu_there() { exec ip netns exec a remu --device rxa "$@"; }
romulu_there() { exec ip netns exec b romulu --device rxb "$@"; }
rdma=
if rxe_pair >"$work/err" 2>&1; then
	rdma=yes
	rashpactl buffer create --backend contig net0 32M >/dev/null
	ok $? "a buffer for RDMA"
	daemon far remu_there
	daemon near romulu_there
	by_rdma "" "$small"
	taken_over roce far near
else
	skip "take-over, roce" "$(tr '\n' ' ' <"$work/err")"
fi

# --- where nobody takes over, a run goes on to its end: by UDP, and at the same time by RDMA
# orphan NAME DETECTOR RECEIVER: its manager dies
orphan() {
	cp "$work/experiment.xml" "$work/$1.xml"
	rashpa-manager run "$work/$1.xml" >"$work/$1.out" 2>&1 &
	manager=$!
	is_in "$2" running "$3"
	ok $? "$1: it runs" || sed 's/^/# /' "$work/$1.out"
	kill -9 "$manager"
	wait "$manager" 2>/dev/null
}
# finished NAME DETECTOR RECEIVER
finished() {
	is_in "$2" ended "$3"
	ok $? "$1: it ends" || sed 's/^/# /' "$work/$2.log" "$work/$3.log"
	is "$1: nobody has led it" "$(cat "$work/$2.log" "$work/$3.log" | grep -c "nobody leads run .* it goes on to its end")" 2
	rashpa-manager run --take-over --json="$work/report.json" "$work/$1.xml" >"$work/out" 2>&1
	is "$1: who comes late has the account" "$? $(says '.flows[0] | [.sent, .received, .lost, .unaccounted]')" \
		"0 [250,250,0,0]" || sed 's/^/# /' "$work/out"
}
part "orphans"
finishes='orphan="finish"' images="$small<images>250</images>" # longer than anybody waits
if [[ $rdma ]]; then
	by_rdma "$finishes" "$images"
	orphan rdma far near
fi
experiment "$finishes" "$images" ""
by udp 127.0.0.1:5001
orphan udp remu romulu
finished udp remu romulu
[[ ! $rdma ]] || finished rdma far near

# --- what the way does not carry is told before: a router that has 1500 bytes behind it
if [[ $rdma ]]; then
	part "ways"
	experiment "" "<images>4</images>" ""
	there
	rashpa-manager check "$work/experiment.xml" >"$work/out" 2>&1
	is "a way that carries packets of RDMA" "$? $(cat "$work/out")" "0 nothing is in the way"
	rxe_routed >"$work/err" 2>&1 && at a ip link set va1 mtu 9000 && at r ip link set vr1 mtu 9000
	ok $? "a router" || sed 's/^/# /' "$work/err"
	sed -i 's|10.1.0.2:5001|10.3.2.1:5001|' "$work/experiment.xml"
	# rxa does not lead there, so of that nothing is known
	rashpa-manager check "$work/experiment.xml" >"$work/out" 2>&1
	is "a way by another interface is not this one" "$(grep -c "carries" "$work/out")" 0 || sed 's/^/# /' "$work/out"
	sed -i 's|<images>4|<device>rxa1</device>&|' "$work/experiment.xml"
	rashpa-manager check "$work/experiment.xml" >"$work/out" 2>&1
	grep -q "board .*have 4160 bytes.* carries 1500 unfragmented.* to 4160, or give both <mtu>1024</mtu>" "$work/out"
	ok $? "a router that does not pass them on" || sed 's/^/# /' "$work/out"
	sed -i 's|<images>4|<mtu>1024</mtu>&|' "$work/experiment.xml"
	rashpa-manager check "$work/experiment.xml" >"$work/out" 2>&1
	is "its remedy" "$(grep -c "carries" "$work/out")" 0 || sed 's/^/# /' "$work/out"
	kill "$pid_far" "$pid_near"
	wait "$pid_far" "$pid_near"
	rashpactl buffer remove net0 >/dev/null
	ok $? "the buffer for RDMA is not held"
fi
leave
