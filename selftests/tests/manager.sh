#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# rashpa-manager leads detectors and receivers that are daemons.
# shellcheck disable=SC2154 # pid_ with a name is set by daemon
. "$(dirname "$0")/../lib/shell.sh"

have_fpga || { skip "manager" "no software FPGA in this guest"; finish; }
client=selftests/python/telegram.py
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
# is_in NAME STATE: wait for it
is_in() { timeout 60 python3 -B "$client" "$work/$1" until "$2"; }
# says FILTER: of the report
says() { jq -c "$1" "$work/report.json"; }

daemon remu remu
ok $? "a detector listens" || sed 's/^/# /' "$work/remu.log"
daemon romulu romulu
ok $? "a receiver listens" || sed 's/^/# /' "$work/romulu.log"

# --- before anything begins
experiment "" "<bunch>4</bunch><images>200</images>" ""
manager check >"$work/out" 2>&1
ok $? "nothing is in the way" || sed 's/^/# /' "$work/out"
manager plan >"$work/out" 2>&1
ok $? "a plan" || sed 's/^/# /' "$work/out"
sed 's/^/# /' "$work/out"

# --- a run
manager run --json="$work/report.json" >"$work/out" 2>&1
is "a run" $? 0 || sed 's/^/# /' "$work/out"
is "what was sent came" "$(says '.flows[0] | [.sent, .received, .lost, .unaccounted]')" "[200,200,0,0]"
is "both are done" "$(says '[.parties[].outcome]')" '["done","done"]'
manager run --json="$work/report.json" >"$work/out" 2>&1
is "and again" $? 0 || sed 's/^/# /' "$work/out"

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

# --- the same file, over a network and not
experiment "" "<bunch>4</bunch><images>100</images>" ""
sed -i 's|transport="pcie"|transport="udp" address="127.0.0.1:5001"|' "$work/experiment.xml"
manager run --json="$work/report.json" >"$work/out" 2>&1
is "a run over a network" $? 0 || sed 's/^/# /' "$work/out"
is "what was sent came" "$(says '.flows[0] | [.transport, .sent, .received, .lost, .unaccounted]')" \
	'["udp",100,100,0,0]'
sed -i 's|transport="udp" address="127.0.0.1:5001"|transport="pcie"|' "$work/experiment.xml"
manager run --json="$work/report.json" >"$work/out" 2>&1
is "the same over PCIe" $? 0 || sed 's/^/# /' "$work/out"
is "what was sent came" "$(says '.flows[0] | [.transport, .sent, .received, .lost, .unaccounted]')" \
	'["pcie",100,100,0,0]'

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

# --- a hit writes a register of the board: the role of a source that this run does not use
role=$((0x4018)) # of the first source of the software FPGA
experiment "" "<bunch>1</bunch><slots>32</slots><rate>20</rate>" "<no-check/>" \
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
kill "$manager"
wait "$manager"
is "a run that is interrupted, and adds up" $? 0 || sed 's/^/# /' "$work/out"

# --- two receivers, one of which dies: the other one goes on
rashpactl buffer create led2 16M >/dev/null
daemon romulu2 romulu
cat >"$work/experiment.xml" <<-END
	<experiment xmlns="urn:rashpa:1" version="1.0" name="test" failure="degrade">
		<detector name="board" at="unix:$work/remu">
			<dataset>generate:4</dataset> <bunch>2</bunch> <images>100</images>
		</detector>
		<receiver name="one" at="unix:$work/romulu"> <buffer>led</buffer> <write>$work/slow</write> </receiver>
		<receiver name="two" at="unix:$work/romulu2"> <buffer>led2</buffer> <dataset>generate:4</dataset> </receiver>
		<flow from="board" to="one" transport="udp" address="127.0.0.1:5001"/>
		<flow from="board" to="two" transport="udp" address="127.0.0.1:5002"/>
	</experiment>
END
child() { ps -o pid= --ppid "$1" | tr -d ' '; }
rashpa-manager run --json="$work/report.json" "$work/experiment.xml" >"$work/out" 2>&1 &
manager=$!
is_in remu running
kill -9 "$(child "$pid_romulu")"
wait "$manager"
is "one dies: the run has failed" $? 1 || sed 's/^/# /' "$work/out"
is "and the other one has all" "$(says '[(.parties[] | select(.name == "one").outcome), (.flows[1] | .received, .lost)]')" \
	'["killed",100,0]' || sed 's/^/# /' "$work/out"
kill "$pid_romulu2"
wait "$pid_romulu2"
rashpactl buffer remove led2 >/dev/null
ok $? "the second buffer is not held"

# --- killed at any time: RASHPA_KILLS of each
still() { rashpactl --json fpga status "fpga$fpga" | jq -e 'all(.dtps[]; .running | not)' >/dev/null; }
experiment 'orphan="stop"' "<bunch>2</bunch><slots>16</slots><rate>500</rate>" ""
wrong=0
for ((i = 0; i < ${RASHPA_KILLS:-1}; i++)); do
	for victim in manager pid_remu pid_romulu child_remu child_romulu; do
		rashpa-manager run --json="$work/report.json" "$work/experiment.xml" >"$work/out" 2>&1 &
		manager=$!
		if ! { is_in romulu running && is_in remu running; }; then
			echo "# $victim: it does not run"
			wrong=1
			break 2
		fi
		child_remu=$(child "$pid_remu") child_romulu=$(child "$pid_romulu")
		sleep "0.$((RANDOM % 10))" # at any time
		kill -9 "${!victim}"
		wait "$manager" 2>/dev/null
		code=$?
		case $victim in
		manager)
			# nobody comes: it is stopped
			is_in remu ended || wrong=1
			is_in romulu ended || wrong=1
			;;
		pid_*)
			((code == 1)) || { echo "# $victim: the manager ends with $code"; wrong=1; }
			wait "${!victim}" 2>/dev/null
			daemon "${victim#pid_}" "${victim#pid_}" || wrong=1
			;;
		child_*)
			((code == 1)) || { echo "# $victim: the manager ends with $code"; wrong=1; }
			[[ $(says '[.parties[].outcome] | index("killed") != null') == true ]] ||
				{ echo "# $victim: it is not told"; wrong=1; }
			;;
		esac
		for left in "$child_remu" "$child_romulu"; do
			wait_for 30 test ! -e "/proc/$left" || { echo "# $victim: $left runs on"; wrong=1; }
		done
		wait_for 30 still || { echo "# $victim: the board runs on"; wrong=1; }
		[[ -e /dev/rashpa/buffer/led ]] || { echo "# $victim: the buffer has gone"; wrong=1; }
	done
done
ok "$wrong" "killed ${RASHPA_KILLS:-1} times each: manager, daemons, children" || sed 's/^/# /' "$work/out"

# --- another manager takes over
experiment 'orphan="finish"' "<bunch>2</bunch><slots>24</slots><rate>20</rate><images>400</images>" ""
rashpa-manager run "$work/experiment.xml" >"$work/out" 2>&1 &
manager=$!
is_in remu running
kill -9 "$manager"
wait "$manager" 2>/dev/null
manager run >"$work/out" 2>&1
is "who does not take over is told to" "$? $(grep -c "take it over" "$work/out")" "1 2"
manager run --take-over --json="$work/report.json" >"$work/out" 2>&1
is "another manager takes over" $? 0 || sed 's/^/# /' "$work/out"
is "and has all of the account" "$(says '.flows[0] | [.sent, .received, .lost, .unaccounted]')" "[400,400,0,0]"

kill "$pid_remu" "$pid_romulu"
wait "$pid_remu"
ok $? "the detector's daemon ends"
wait "$pid_romulu"
ok $? "the receiver's daemon ends"
rashpactl buffer remove led >/dev/null
ok $? "buffer removed"
finish
