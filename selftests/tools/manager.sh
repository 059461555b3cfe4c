#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# test: iommu=on seconds=150
# rashpa-manager leads detectors and receivers that are daemons.
# shellcheck disable=SC2154 # pid_ with a name is set by daemon
# RASHPA_KILLS: number of kills of each process; above 1, only kills are tested. RASHPA_SEED: seed of the
# times of kills. A second board, and soft-RoCE for namespaces, are used where they are.
# Without a driver, telegrams.sh has daemons in each state, and wire-selftest has links.
. "$(dirname "$0")/../lib/shell.sh"
. "$(dirname "$0")/../lib/rxe-pair.sh"

have_fpga || { skip "board: manager" "no software FPGA in this guest"; finish; }
client=tools/link/tests/telegram.py
RANDOM=${RASHPA_SEED:=1}
echo "# RASHPA_SEED=$RASHPA_SEED"
export RASHPA_RUN=$work
rashpactl buffer create led 64M >/dev/null
ok $? "buffer: a buffer is made"

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
				<buffer>led</buffer> <check/> <dataset>generate:4</dataset> $3
			</receiver>
			<flow from="board" to="judge" transport="pcie"/>
			$4
		</experiment>
	END
}
no_dataset() { sed -i '/name="judge"/,/receiver>/s|<check/> <dataset>generate:4</dataset>||' "$work/experiment.xml"; }
# by TRANSPORT ADDRESS: not over PCIe
by() { sed -i "s|transport=\"pcie\"|transport=\"$1\" address=\"$2\"|" "$work/experiment.xml"; }
# manage COMMAND OPTION...: its output is in out
manage() { rashpa-manager "$@" "${file-$work/experiment.xml}" >"$work/out" 2>&1; }
# lead OPTION...: in the background; sets manager
slow=${RASHPA_SLOW:-1}	# a stream by soft-RoCE may leave little of the processor
lead() {
	rashpa-manager run --timeout=$((30 * slow)) --json="$work/report.json" "$@" "${file-$work/experiment.xml}" >"$work/out" 2>&1 &
	manager=$!
}
show() { sed 's/^/# /' "$work/out"; }
# is_in NAME STATE [NAME]: wait for it, and for another one
is_in() { timeout $((60 * slow)) python3 -B "$client" "$work/$1" until "$2" ${3:+"$work/$3"}; }
# says FILTER: values from the report
says() { jq -c "$1" "$work/report.json"; }
# accounted ID STATUS [SENT]: a run has ended with this status, and its flow adds up. A network loses
# images, or leaves them incomplete (status 4); the test does not check how many.
accounted() {
	local want='.flows[0] | .known and .sent > 0 and .sent == .received + .lost and .unaccounted == 0'
	[[ ! ${3-} ]] || want+=" and .sent == $3"
	[[ $2 == 0 || ($2 == 4 && $(says '.flows[0] | .transport != "pcie" or .lost > 0') == true) ]] &&
		[[ $(says "$want") == true ]]
	ok $? "$1: each image that was sent was received, or is counted as lost" ||
		{ echo "# status $2: $(says '.flows, .parties[].report' | tr '\n' ' ')"; show; }
}
child() { ps -o pid= --ppid "$1" | tr -d ' '; }
# part NAME: begins; prints how long the one before took
part() {
	[[ ! ${part-} ]] || echo "# $part: $((SECONDS - since)) s"
	part=$1 since=$SECONDS
}
# A receiver that writes to a pipe, which is not read until read_it. Sets reader, which has no end of file.
mkfifo "$work/pipe"
hold_it() { exec {reader}<>"$work/pipe"; }
read_it() {
	cat <&"$reader" >/dev/null &
	reads=$!
}
leave_it() {
	kill "$reads"
	exec {reader}<&-
}

daemon remu remu
ok $? "detector: a detector listens" || sed 's/^/# /' "$work/remu.log"
daemon romulu romulu
ok $? "receiver: a receiver listens" || sed 's/^/# /' "$work/romulu.log"

# --- killed at any time
still() { rashpactl --json fpga status "fpga$fpga" | jq -e 'all(.dtps[]; .running | not)' >/dev/null; }
wrong() { echo "# $victim: $1"; bad_kills=1; }
# killed VICTIM: one of them, in mid-stream
killed() {
	local victim=$1 code left
	lead
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
		# no other manager takes over: it is stopped
		is_in remu ended romulu || wrong "the detector, or the receiver, goes on"
		;;
	pid_*)
		((code == 1)) || wrong "the manager ends with $code"
		wait "${!victim}" 2>/dev/null
		daemon "${victim#pid_}" "${victim#pid_}" || wrong "there is no next daemon"
		;;
	child_*)
		((code == 1)) || wrong "the manager ends with $code"
		[[ $(says '[.parties[].outcome] | index("killed") != null') == true ]] || wrong "the report does not have it"
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
	ok "$bad_kills" "kills: manager, daemons and children are killed, $1 times each" || show
}
# the daemons end, and the buffer is not held
leave() {
	kill "$pid_remu" "$pid_romulu"
	wait "$pid_remu"
	ok $? "detector-ends: the detector's daemon ends"
	wait "$pid_romulu"
	ok $? "receiver-ends: the receiver's daemon ends"
	rashpactl buffer remove led >/dev/null
	ok $? "buffer-free: no process holds the buffer"
	part ""
	finish
}

if ((${RASHPA_KILLS:-1} > 1)); then
	kills "$RASHPA_KILLS"
	leave
fi

# --- before anything begins, and a run; the second one over a network
part "run"
experiment "" "<bunch>4</bunch><images>40</images>" ""
manage check
ok $? "check: nothing is in the way" || show
manage plan
ok $? "plan: a plan is made" || show
lead
wait "$manager"
is "run: all images arrived" "$? $(says '[.flows[0] | .transport, .sent, .received, .lost, .unaccounted], [.parties[].outcome]' | xargs)" \
	'0 [pcie,40,40,0,0] [done,done]' || show
by udp 127.0.0.1:5001
lead
wait "$manager"
accounted run-udp $? 40
# the receiver has ended, with the request to start unread, before its daemon looks at what it said last
zombie() { [[ $(ps -o stat= -p "$1") == Z* ]]; }
late=$((40 * slow))	# it must still run when its process is known
experiment "" "<bunch>4</bunch><images>$late</images><rate>10</rate>" ""
lead
is_in romulu running
ended=$(child "$pid_romulu")
kill -STOP "$pid_romulu"
wait_for 60 zombie "$ended"
ok $? "late-ends: a receiver ends while its daemon is stopped" || show
kill -CONT "$pid_romulu"
wait "$manager"
is "late: its last counts are those of the account" "$? $(says '[.flows[0] | .sent, .received, .lost, .unaccounted]')" \
	"0 [$late,$late,0,0]" || show

part "pause"
# --- pause: the receiver's sink takes nothing
experiment 'overrun="pause"' "<bunch>1</bunch><slots>32</slots><images>60</images><rate>10</rate>" \
	"<write>$work/pipe</write>"
lead
hold_it
is_in remu paused
ok $? "pause: a buffer that is full pauses the detector" || show
read_it
wait "$manager"
is "pause-ends: the run goes on to its end, and nothing is lost or overwritten" \
	"$? $(says '[(.flows[0] | .sent, .received, .lost, .unaccounted), .parties[0].report.overruns]')" \
	"0 [60,60,0,0,0]" || show
leave_it

# --- a program that hangs while it goes on again
part "hang"
sed -i 's|<images>60</images>||' "$work/experiment.xml"
lead
hold_it
is_in remu paused
ok $? "hang-paused: it pauses" || show
hangs=$(child "$pid_remu")
kill -STOP "$hangs"
read_it
is_in remu pausing
ok $? "hang: it is to go on, and hangs" || show
kill "$manager"
is_in remu stopping
ok $? "hang-stop: it can be stopped all the same" || show
kill -CONT "$hangs"
wait "$manager"
accounted hang-account $?
leave_it

part "rules"
# --- what a pipeline finds acts on the run
experiment "" "<bunch>1</bunch><slots>32</slots><rate>10</rate>" \
	'<pipeline>{"veto": {"threshold": 1, "pixels": 1}}</pipeline>' \
	'<rule of="judge" count="kept" at-least="5"><set-rate detector="board">20</set-rate></rule>
	 <rule of="judge" count="kept" at-least="20"><stop/></rule>'
no_dataset
lead
wait "$manager"
accounted rules $?
grep -q "judge has [0-9]* kept: set-rate board" "$work/out"
ok $? "rules-rate: a rule changes the rate" || show
holds "rules-stop: it ends after its 20th hit: $(says '.parties[1].counts.kept')" "$(says '.parties[1].counts.kept') >= 20"

part "drops"
# --- a live source does not wait, and a stream that leaves stacks out is not paused
for what in live drop; do
	options="<policy>drop</policy>"
	[[ $what == drop ]] || options+="<live/>"
	experiment 'overrun="pause"' "<bunch>1</bunch><slots>4</slots><split>1</split><images>60</images><rate>200</rate>$options" \
		"<write>$work/pipe</write>"
	lead
	hold_it
	wait_for 60 grep -q "images are lost, and counted" "$work/out"
	ok $? "$what-no-pause: the manager reports that it cannot pause" || show
	read_it
	wait "$manager"
	is "$what-dropped: drops are counted, and no image is unaccounted" "$? $(says '.flows[0].unaccounted')" "4 0" || show
	leave_it
done

part "registers"
# --- a hit writes a register of the board: the role of a source that this run does not use
role=$((0x4018)) # of the first source of the software FPGA
experiment "" "<bunch>1</bunch><slots>32</slots><rate>5</rate>" "" \
	"<rule of=\"judge\" count=\"images\" at-least=\"5\">
	 <write-register at=\"board\" fpga=\"$fpga\" window=\"registers\" offset=\"$role\" value=\"4711\"/></rule>"
no_dataset
lead
rashpa-manager watch "$work/experiment.xml" >"$work/seen" 2>&1 &
watch=$!
both_run() { grep -q "^board .*running" "$work/seen" && grep -q "^judge .*running" "$work/seen"; }
wait_for 60 both_run
ok $? "watch: an observer sees it run" || sed 's/^/# /' "$work/seen"
kill "$watch"
wait "$watch"
is "watch-ends: the observer ends on a signal" $? 0
written() { [[ $(status '.sources[0].role') == 4711 ]]; }
wait_for 60 written
ok $? "register: the register has what the rule writes" || show
kill "$manager"
wait "$manager"
accounted interrupted $?

part "two receivers"
# --- two receivers, one of which dies: the other one goes on
rashpactl buffer create led2 16M >/dev/null
daemon romulu2 romulu
cat >"$work/experiment.xml" <<-END
	<experiment xmlns="urn:rashpa:1" version="1.0" name="test" failure="degrade">
		<detector name="board" at="unix:$work/remu">
			<dataset>generate:4</dataset> <bunch>2</bunch> <images>40</images>
		</detector>
		<receiver name="one" at="unix:$work/romulu"> <buffer>led</buffer> <slots>4</slots> <write>$work/pipe</write> </receiver>
		<receiver name="two" at="unix:$work/romulu2"> <buffer>led2</buffer> <check/> <dataset>generate:4</dataset> </receiver>
		<flow from="board" to="one" transport="udp" address="127.0.0.1:5001"/>
		<flow from="board" to="two" transport="udp" address="127.0.0.1:5002"/>
	</experiment>
END
sed 's|<write>.*</write>|<pipeline>{}</pipeline>|; s|<images>|<rate>100000</rate> &|' "$work/experiment.xml" >"$work/fast.xml"
file=$work/fast.xml manage plan --json="$work/plan.json"
is "plan-slow: a receiver that is slow lowers its own flow, and no other one" \
	"$(jq -c '[.[] | [.to, .limit, .images_per_second == 100000]]' "$work/plan.json")" \
	'[["one","engine",false],["two","detector",true]]' || sed 's/^/# /' "$work/out" "$work/plan.json"
lead
is_in remu running
kill -9 "$(child "$pid_romulu")"
wait "$manager"
is "degrade: one receiver dies, and the run has failed" "$? $(says '.parties[] | select(.name == "one").outcome')" '1 "killed"' || show
is "degrade-other: the other one has all" "$(says '.flows[1] | [.sent, .received + .lost, .unaccounted]')" '[40,40,0]' || show
kill "$pid_romulu2"
wait "$pid_romulu2"
rashpactl buffer remove led2 >/dev/null
ok $? "buffer2-free: no process holds the second buffer"

# --- a board that processes: check reports what it does not hold, and the remedy
part "boards"
other=$(lspci -D -d 1234:5250 | sed -n '2s/ .*//p')
if [[ $other ]]; then
	rashpactl unbind "$other" >/dev/null 2>&1
	other=$(rashpactl --json bind "$other" | jq -r .node)
	# refused ID TEXT ENGINE DETECTOR [SED]: over PCIe, from board to board
	refused() {
		experiment "" "<payload>there</payload> $4" "<engine>$3</engine> <offer>there</offer> <pipeline>{}</pipeline>"
		no_dataset
		[[ ! ${5-} ]] || sed -i "$5" "$work/experiment.xml"
		manage check
		is "board-$1: check refuses: $2" "$? $(grep -c "judge .*$2" "$work/out")" "1 1" || show
	}
	truncate -s 8M "$work/large.raw"
	refused slots "give board fewer <slots>" "$other" "<bunch>8</bunch><slots>8</slots>"
	refused unit "give board <slots>8</slots>" "$other" "<bunch>2</bunch>"
	refused gaps "give board <bunch>1</bunch>" "$other" "<bunch>3</bunch><slots>3</slots><dtp>0,0,100x10</dtp>"
	refused images "images of 8388608 bytes" "$other" "<bunch>1</bunch><slots>2</slots><geometry>2048x2048</geometry>" \
		"s|generate:4|$work/large.raw|"
	refused own "also the board of board" "fpga$fpga" "<bunch>1</bunch><slots>4</slots>"
	refused none "there is no fpga99" fpga99 ""
	# what check lets pass runs
	policy=/sys/module/rashpa/parameters/p2p_bridge
	before=$(cat "$policy")
	echo allow >"$policy"
	experiment "" "<payload>there</payload> <bunch>2</bunch><slots>8</slots><images>20</images>" \
		"<engine>$other</engine> <offer>there</offer> <pipeline>{}</pipeline>"
	no_dataset
	manage check
	ok $? "board-fits: a pipeline that fits passes" || show
	lead
	wait "$manager"
	is "board-run: it runs from board to board" "$? $(says '[.parties[1].report.processing.in_place, .flows[0].sent, .flows[0].received]')" \
		"0 [true,20,20]" || show
	echo "$before" >"$policy"
else
	skip "board-run: boards that process" "no second software FPGA in this guest"
fi

kills 1

# --- another manager takes over
# taken_over TRANSPORT [DETECTOR RECEIVER]: the one that leads dies; another one leads to the end
taken_over() {
	part "take-over, $1"
	lead
	is_in "${2:-remu}" running "${3:-romulu}"
	ok $? "$1-runs: it runs" || show
	kill -9 "$manager"
	wait "$manager" 2>/dev/null
	manage run
	is "$1-occupied: a manager that does not take over is refused" "$? $(grep -c "take it over" "$work/out")" "1 2"
	lead --take-over
	wait_for 60 grep -q "took over run" "$work/out"
	ok $? "$1-take-over: another manager takes over" || show
	kill "$manager"
	wait "$manager"
	accounted "$1-account" $?
}
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
	ok $? "rdma-buffer: a buffer for RDMA"
	daemon far remu_there
	daemon near romulu_there
	by_rdma "" "$small"
	taken_over roce far near
else
	skip "roce-account: take-over by RDMA" "$(tr '\n' ' ' <"$work/err")"
fi

# --- without a takeover, a run goes on to its end: by UDP, and at the same time by RDMA
# a run before may have had no leader for some time, too
no_leader() { cat "$work/$1.log" "$work/$2.log" | grep -c "run .* has no leader: it goes on to its end"; }
declare -A before
# orphan NAME DETECTOR RECEIVER: its manager dies
orphan() {
	before[$1]=$(no_leader "$2" "$3")
	cp "$work/experiment.xml" "$work/$1.xml"
	file=$work/$1.xml lead
	is_in "$2" running "$3"
	ok $? "orphan-$1-runs: it runs" || show
	kill -9 "$manager"
	wait "$manager" 2>/dev/null
}
# finished NAME DETECTOR RECEIVER
finished() {
	is_in "$2" ended "$3"
	ok $? "orphan-$1-ends: it ends" || sed 's/^/# /' "$work/$2.log" "$work/$3.log"
	is "orphan-$1: it ran without a leader" "$(($(no_leader "$2" "$3") - ${before[$1]}))" 2
	file=$work/$1.xml lead --take-over
	wait "$manager"
	accounted "orphan-$1-account" $? "$images"
}
part "orphans"
images=$((300 * slow)) # 30 s, longer than a busy machine takes to see it run and the daemons wait for another manager
finishes="$small<images>$images</images>"
if [[ $rdma ]]; then
	by_rdma 'orphan="finish"' "$finishes"
	orphan rdma far near
fi
experiment 'orphan="finish"' "$finishes" ""
by udp 127.0.0.1:5001
orphan udp remu romulu
finished udp remu romulu
[[ ! $rdma ]] || finished rdma far near

# --- the end of a stream is lost, which no later message can show: all packets of the last stack are
# dropped; the second byte of their number is that of the stack
part "tail"
tail='<bunch>2</bunch><rate>50</rate><images>20</images><first-immediate>0</first-immediate><dtp>0,0,1024x64</dtp><dtp>0,64,1024x64</dtp>'
modprobe -a cls_u32 act_gact sch_ingress 2>/dev/null
tc qdisc add dev lo clsact && tc filter add dev lo ingress protocol ip u32 match ip protocol 17 0xff \
	match u32 0x52535553 0xffffffff at 28 match u8 9 0xff at 41 action drop
ok $? "tail-line: a line that loses the last stack"
experiment "" "$tail" ""
by udp 127.0.0.1:5001
lead
wait "$manager"
status=$?
tc qdisc del dev lo clsact
is "tail: the images of the stack are received, and incomplete" \
	"$status $(says '[(.flows[0] | .known, .sent, .received + .lost, .unaccounted), .parties[1].report.missing_lines > 250]')" \
	"4 [true,20,20,0,true]" || { says .flows; show; }

# --- check reports a path that is too narrow: a router with an MTU of 1500 bytes after it
if [[ $rdma ]]; then
	part "ways"
	experiment "" "<images>4</images>" ""
	there
	manage check
	ok $? "way: a way carries packets of RDMA" || show
	rxe_routed >"$work/err" 2>&1 && at a ip link set va1 mtu 9000 && at r ip link set vr1 mtu 9000
	ok $? "way-router: a router" || sed 's/^/# /' "$work/err"
	sed -i 's|10.1.0.2:5001|10.3.2.1:5001|' "$work/experiment.xml"
	# rxa does not lead there, so of that nothing is known
	manage check
	is "way-other: a way by another interface is not this one" "$(grep -c "carries" "$work/out")" 0 || show
	sed -i 's|<images>4|<device>rxa1</device>&|' "$work/experiment.xml"
	manage check
	is "way-short: check finds a router that does not pass them on" "$(grep -c "carries 1500 .*give both <mtu>1024</mtu>" "$work/out")" 1 || show
	sed -i 's|<images>4|<mtu>1024</mtu>&|' "$work/experiment.xml"
	manage check
	is "way-remedy: its remedy helps" "$(grep -c "carries" "$work/out")" 0 || show
	kill "$pid_far" "$pid_near"
	wait "$pid_far" "$pid_near"
	rashpactl buffer remove net0 >/dev/null
	ok $? "rdma-buffer-free: no process holds the buffer for RDMA"
fi
leave
