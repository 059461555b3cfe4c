#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Runs inside the lab's root: rashpa-fpga-conformance against rashpa-fpga, as it is and with
# less, and against a board that was written from the document alone; that it notices boards that
# are wrong; how it ends. TAP.
set -uo pipefail

cd "$(dirname "$0")/.." || exit 1
tools=${RASHPA_TOOLS:-build/tools}
work=$(mktemp -d)
n=0 bad=0 program=rashpa-fpga board=

verdict() { # STATUS NAME
	n=$((n + 1))
	if (($1)); then
		bad=1
		echo "not ok $n - $2"
	else
		echo "ok $n - $2"
	fi
}

end_board() {
	[[ ! $board ]] || { kill "$board"; wait "$board"; } 2>/dev/null
	board=
}
trap 'end_board; rm -rf "$work"' EXIT

# start OPTION...: a board with these
start() {
	local i
	end_board
	"$tools/$program" --socket "$work/socket" --control "$work/control" --log "$work/log" "$@" &
	board=$!
	for ((i = 0; i < 500; i++)); do
		[[ ! -S $work/control ]] || return 0
		sleep 0.01
	done
	return 1
}

conformance() {
	"$tools/rashpa-fpga-conformance" --socket "$work/socket" "$@" >"$work/out" 2>"$work/err"
}

# All that it says of a board becomes lines of ours.
all() { # NAME OPTION...
	local name=$1 line status=0
	shift
	start "$@"
	conformance || status=$?
	while IFS= read -r line; do
		if [[ $line =~ ^(not )?ok\ [0-9]+\ -\ (.*) ]]; then
			n=$((n + 1))
			[[ $line == ok* ]] || bad=1
			echo "${BASH_REMATCH[1]}ok $n - $name: ${BASH_REMATCH[2]}"
		elif [[ $line == "#"* ]]; then
			echo "$line"
		fi
	done <"$work/out"
	verdict "$status" "$name: it ends with 0"
}

# notices COMMAND TEST: a board that was told this fails this test
notices() {
	local status=0
	start --memory 16M --dtps 4 --vectors 4
	tell "$1"
	conformance "$2" || status=$?
	((status == 1)) && grep -q "^not ok 1 - $2:" "$work/out"
	verdict $? "\"$1\" is noticed by $2"
}

# Told to the control socket; there is always somebody else at the other one.
tell() {
	python3 - "$work/control" "$1" <<'END'
import socket, sys
s = socket.socket(socket.AF_UNIX)
s.connect(sys.argv[1])
s.sendall(sys.argv[2].encode() + b"\n")
sys.exit(not s.recv(100).startswith(b"ok"))
END
}

# ends STATUS TEXT OPTION...: with this status, saying this
ends() {
	local wanted=$1 text=$2 status=0
	shift 2
	timeout 60 "$tools/rashpa-fpga-conformance" "$@" >"$work/out" 2>&1 || status=$?
	((status == wanted)) && grep -q -- "$text" "$work/out"
	verdict $? "${*//$work/} ends with $wanted: $text"
}

all "a board" --memory 16M --dtps 4 --vectors 4
all "a small board" --memory 256K --dtps 1 --vectors 1 --entries 2
all "a board without features" --without lock --without freerun --without flush \
	--without group --without drop --without meta

all "an aligned board" --memory 16M --dtps 4 --vectors 4 --align 64
program=rashpa-fpga-second
all "a second board" --memory 16M --dtps 4 --vectors 4
all "a second board with other limits" --memory 1M --limits 40,24,20,3
program=rashpa-fpga

notices "lose lock 2" event/lock
notices "lose interrupt 2" stream/region
notices "twice interrupt 0" stream/region
notices "wild 0x101000000" stream/region
notices "linger on 1000" stop/silence
notices "early on 50000" event/order
notices "late on 50000" event/order

start --memory 16M --dtps 4 --vectors 4
ends 0 '"passed": 2,' --socket "$work/socket" --json registers/identity stream/region
tell "dead on"
ends 2 "no board with the reference interface" --socket "$work/socket"
end_board
ends 2 "start the simulation first" --socket "$work/nothing"
ends 2 "there is no such PCI function" --vfio 0000:99:00.0
ends 2 "stream/nothing: there is no such test" --socket "$work/socket" stream/nothing
ends 2 "say what is to be tested" stream
ends 2 "give a number" --list --seed 0
ends 0 "^stream/region " --list stream
echo "1..$n"
exit "$bad"
