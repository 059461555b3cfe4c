#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# test: seconds=100
# Runs inside the lab's root: rashpa-fpga-conformance tests rashpa-fpga, with all and with fewer
# features, and a board that was written from the document alone. It must notice wrong boards, and
# end with the right status. TAP.
set -uo pipefail

# shellcheck source-path=SCRIPTDIR source=../lib/shell.sh
. "$(dirname "$0")/../lib/shell.sh"
# shellcheck source-path=SCRIPTDIR source=../lib/sanitized.sh
. selftests/lib/sanitized.sh
tools=${RASHPA_TOOLS:-build/tools}
program=rashpa-fpga board='' suites=()	# empty: all suites

end_board() {
	[[ ! $board ]] || { kill "$board"; wait "$board"; } 2>/dev/null
	board=
}
trap 'end_board; rm -rf "$work"' EXIT

appears() { # SOCKET
	local i
	for ((i = 0; i < 500; i++)); do
		[[ ! -S $1 ]] || return 0
		sleep 0.01
	done
	return 1
}

# start OPTION...: start a board with these options
start() {
	end_board
	"$tools/$program" --socket "$work/socket" --control "$work/control" --log "$work/log" "$@" &
	board=$!
	appears "$work/control"
}

# pretend SETTING...: start a false board, whose registers contain these settings
pretend() {
	end_board
	rm -f "$work/socket"
	python3 -B selftests/conformance/pretend.py "$work/socket" "$@" &
	board=$!
	appears "$work/socket"
}

conformance() {
	"$tools/rashpa-fpga-conformance" --socket "$work/socket" "$@" "${suites[@]}" >"$work/out" 2>"$work/err"
}

# Runs all suites on a board, and prints the verdicts as verdicts of this test.
all() { # NAME OPTION...
	local name=$1 line status=0
	shift
	start "$@"
	conformance || status=$?
	while IFS= read -r line; do
		if [[ $line =~ ^(not )?ok\ [0-9]+\ -\ (.*) ]]; then
			n=$((n + 1))
			[[ $line == ok* ]] || bad=1
			echo "${BASH_REMATCH[1]}ok $n - $name/${BASH_REMATCH[2]}"
		elif [[ $line == "#"* ]]; then
			echo "$line"
		fi
	done <"$work/out"
	ok "$status" "$name/end: it ends with 0"
}

# notices COMMAND TEST: a board fails TEST after COMMAND at its control socket
notices() {
	local status=0
	start --memory 16M --dtps 4 --vectors 4
	tell "$1"
	conformance "$2" || status=$?
	((status == 1)) && grep -q "^not ok 1 - $2:" "$work/out"
	ok $? "notices/${1// /-}: $2 notices \"$1\""
}

# Send a command to the control socket; the other socket always has a client.
tell() {
	python3 - "$work/control" "$1" <<'END'
import socket, sys
s = socket.socket(socket.AF_UNIX)
s.connect(sys.argv[1])
s.sendall(sys.argv[2].encode() + b"\n")
sys.exit(not s.recv(100).startswith(b"ok"))
END
}

# ends STATUS TEXT OPTION...: it ends with this status, and prints TEXT
ends() {
	local wanted=$1 text=$2 status=0
	shift 2
	timeout 60 "$tools/rashpa-fpga-conformance" "$@" >"$work/out" 2>&1 || status=$?
	((status == wanted)) && grep -q -- "$text" "$work/out"
	ok $? "ends: ${*//$work/} ends with $wanted: $text"
}

# lacks TEXT...: for the previous board, tests were skipped for reasons with this text
lacks() {
	local text
	for text; do
		grep -q "# SKIP .*$text" "$work/out"
		ok $? "lacks: a test is skipped: $text"
	done
}

# Number of skipped tests, except for a slow clock, which a busy machine can cause.
skipped() { grep "# SKIP" "$work/out" | grep -cv "times as slow as ours"; }

all plain --memory 16M --dtps 4 --vectors 4
(($(skipped) == 1)) && grep -q "# SKIP it has all features" "$work/out"
ok $? "board-all-lacking: a board with all features skips one test only"
# Boards of all kinds, without sanitizers, which cover no more code here than with the first board.
boards() {
	local tools=build/tools
	all small --memory 256K --dtps 1 --vectors 1 --entries 2
	all one-entry --memory 16M --dtps 4 --vectors 4 --entries 1
	lacks "needs 2 entries, the board has 1"
	(($(grep -c "^ok [^#]*$" "$work/out") > 50))
	ok $? "tests-need-no: most tests need no more than one entry"
	all little-memory --memory 4K --dtps 4 --vectors 4
	lacks "bytes of on-board memory, tests see 4096"
	(($(grep -c "^ok [^#]*$" "$work/out") > 70))
	ok $? "nearly-all-tests: nearly all tests need no more than 4 KiB of memory"
	all pages --memory 16M --dtps 4 --vectors 4 --align 4096
	(($(skipped) == 1))
	ok $? "tests-find-images: tests find images for a board that moves pages"
	all one-page --memory 4K --align 4096
	all no-features --without lock --without freerun --without flush \
		--without group --without drop --without meta --without verdict

	all aligned --memory 16M --dtps 4 --vectors 4 --align 64
	program=rashpa-fpga-second
	all second --memory 16M --dtps 4 --vectors 4
	# suites that depend on limits
	suites=(registers table stream pacing)
	all second-limits --memory 1M --limits 40,24,20,3
	all second-32-bits --memory 1M --dtps 4 --vectors 4 --limits 32,24,20,3
	all second-few-bits --memory 4K --limits 12,12,12,0
	lacks "needs a FIRST_STACK of 4294967294, LIMITS allow 4095"
	all second-many-bits --memory 1M --limits 63,32,31,12
	program=rashpa-fpga suites=()
}
boards

notices "ring lose 3" ring/loop
notices "ring stale" ring/stale
notices "ring full" ring/full
notices "lose lock 2" event/lock
notices "lose interrupt 2" stream/region
notices "twice interrupt 0" stream/region
notices "wild 0x101000000" stream/region
notices "linger on 1000" stop/silence
notices "early on 50000" event/order
notices "late on 50000" event/order

start --memory 16M --dtps 4 --vectors 4
ends 0 '"passed": 2,' --socket "$work/socket" --json registers/identity stream/region
ends 2 "and not that of --control" --socket "$work/control"
tell "wild 0x7000000000"
ends 1 "# DTP 0: STATUS 0x8 FAULTED, FAULT_CAUSE 2 BUS, FAULT_ADDR 0x7000000000, 0 images" \
	--socket "$work/socket" stream/last-stack
tell "dead on"
ends 2 "this board lacks the reference interface" --socket "$work/socket"
end_board

# values that a board sends are untrusted input
hostile() { # STATUS TEXT TEST SETTING...
	local wanted=$1 text=$2 test=$3
	shift 3
	pretend "$@"
	echo "# a board that says $*"
	ends "$wanted" "$text" --socket "$work/socket" "$test"
}
hostile 1 "RFPGA_LIMITS_ALIGN(limits) < 64" registers/identity 0x54=0xffffffff
hostile 1 "^not ok 1 - fault/config" fault/config 0x54=0x00ffffff
hostile 0 "ALIGN asks for multiples of 2147483648" stream/bytes 0x54=0x281f2030
hostile 1 "^not ok 1 - registers/clock" registers/clock 0x58=0
hostile 0 "needs 3 interrupt vectors, the board has 1" group 0x08=0x0008ff01 0x0c=0xff \
	0x100=0x00040001 0x120=0x00040005
hostile 2 "from 0xfffffff0 on, 0x200 apart" registers/identity 0x104=0xfffffff0
hostile 2 "has 65535 of type 1" registers/identity 0x100=0xffff0001
hostile 2 "has 17 DTPs with doorbells from 0 on" registers/identity 0x100=0x00110001
hostile 2 "doorbells from 0xfff0 on" registers/identity 0x10c=0xfff0
hostile 0 "^ok 1 - registers/identity" registers/identity 0x130=0x00010001 0x134=0xfff0
hostile 2 "list of blocks does not end" registers/identity 0x5c=0xfffffffc
hostile 2 "BAR 4 shows 0 bytes of on-board memory" registers/identity 0x18=0

# a board that goes away
pretend leave=0x28
ends 2 "^Bail out! $work/socket: registers/scratch: it hung up" --socket "$work/socket" \
	registers/identity registers/scratch
pretend leave=0x28
conformance --json registers/identity registers/scratch registers/memory
(($? == 2)) && python3 - "$work" <<'END'
import json, sys
said = json.load(open(sys.argv[1] + "/out"))
identity, scratch = said["tests"]
why = sys.argv[1] + "/socket: registers/scratch: "
assert said["target"] == sys.argv[1] + "/socket" and said["ended"].startswith(why)
assert (said["passed"], said["failed"], said["skipped"]) == (1, 0, 0)
assert (identity["name"], identity["result"]) == ("registers/identity", "passed")
assert (scratch["name"], scratch["result"]) == ("registers/scratch", "ended")
assert scratch["reason"] == said["ended"] and why in open(sys.argv[1] + "/err").read()
END
ok $? "json-known-before: --json reports earlier results, and the test in which the board went away"
conformance --json --socket "$work/nothing"
(($? == 2)) && python3 -c 'import json, sys
said = json.load(sys.stdin)
assert not said["tests"] and said["ended"].startswith(said["target"] + ": No such file")' <"$work/out"
ok $? "json-no-board: --json reports a missing board"
pretend leave=hello
ends 2 "$work/socket: it hung up at the first message: it is no vfio-user server" \
	--socket "$work/socket"
pretend leave=never
conformance &
client=$!
for ((i = 0; i < 3000; i++)); do
	! grep -q "socket: no answer yet: it has one client at a time: end the" "$work/err" || break
	sleep 0.01
done
ok $((i == 3000)) "one-not-answer: while it waits for a board that does not answer, it reports that"
kill -9 "$board"
wait "$board" "$client" 2>/dev/null
grep -q "socket: it hung up at the first message" "$work/err"
ok $? "end-noticed: it notices the end of that board"
pretend
kill -9 "$board"
wait "$board" 2>/dev/null
ends 2 "Connection refused: the simulation has ended: start" --socket "$work/socket"
end_board

ends 2 "No such file or directory: start the simulation first" --socket "$work/nothing"
ends 2 "no socket: use the one at which" --socket "$work/out"
ends 2 "the path is empty: use the socket" --socket ""
pretend
chmod 0 "$work/socket"
setpriv --reuid=65534 --clear-groups "$tools/rashpa-fpga-conformance" --socket "$work/socket" \
	>"$work/out" 2>&1
(($? == 2)) && grep -q "socket: Permission denied: run as the user that started" "$work/out"
ok $? "socket-another-user: a socket of another user ends with 2, and it names the allowed user"
end_board
ends 2 "the name is empty: use a PCI function" --vfio ""
ends 2 "there is no such PCI function" --vfio 0000:99:00.0
ends 2 "stream/nothing: there is no such test" --socket "$work/socket" stream/nothing
ends 2 "name the board" stream
ends 2 "number from 1" --list --seed 0
ends 0 "^stream/region " --list stream
finish
