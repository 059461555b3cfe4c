#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Runs inside the guest: loads the module, runs programs one after the other, and checks what each
# of them left behind. guest.sh "NAME SECONDS PROGRAM ARGUMENT..."...
# Output: lines "@@ begin NAME" and "@@ end NAME STATUS", and between them the program's output.
# RASHPA_MODULE: folder of the module under build/modules. RASHPA_TOOLS: folder of other tools.
set -uo pipefail

cd "$(dirname "$0")/.." || exit 1
export PATH=$PWD/${RASHPA_TOOLS:-build/tools}:$PATH RASHPA_PROFILES=$PWD/tools/data/profiles
# No leak detection: libpci and argp leak, and a guest takes too long to attribute leaks.
export ASAN_OPTIONS=log_path=/tmp/sanitizer:detect_leaks=0
export UBSAN_OPTIONS=log_path=/tmp/sanitizer:print_stacktrace=1
module=rashpa bad=0

begin() {
	printf '@@ begin %s\n' "$1"
	echo "rashpa-test: begin $1" >/dev/kmsg
}

end() { # NAME STATUS
	printf '@@ end %s %s\n' "$1" "$2"
	((!$2 || $2 == 4)) || bad=1
}

# Processes of user space; functions that are bound; software FPGAs, which should be bound. Boards
# that fetch descriptors are left out: tests bind them with their own profiles.
processes() { ps -N --ppid 2 -o pid= | tr -s '\n' ' '; }
bound() { grep -sLx '0x525[1-6]' /sys/bus/pci/drivers/rashpa/0000:*/device | cut -d/ -f7; }
boards() { grep -lx 0x5250 /sys/bus/pci/devices/*/device | cut -d/ -f6; }

# Before each program the software FPGAs are bound, and nothing else.
bind_boards() {
	local function

	for function in $(comm -13 <(boards) <(bound)); do
		rashpactl unbind "$function"
	done
	for function in $(comm -23 <(boards) <(bound)); do
		rashpactl bind "$function" >/dev/null
	done
}

# Print where the processes of a test are that does not end.
where_it_hangs() { # SESSION
	local pid
	ps -s "$1" -o pid,stat,time,wchan:24,args | sed 's/^/# /'
	for pid in $(ps -s "$1" -o pid=); do
		sed "s/^/# $pid: /" /proc/"$pid"/stack
	done 2>/dev/null
}

# leftovers NAME: prints and removes what a program left behind; fails if it finds anything.
leftovers() {
	local found=0 pid buffer

	for pid in $(processes); do # the processes of this list itself have ended
		[[ " $processes_before " != *" $pid "* && -e /proc/$pid ]] || continue
		echo "# $1 left a process behind: $(ps -o pid=,args= -p "$pid")"
		kill -KILL "$pid" 2>/dev/null
		found=1
	done
	for buffer in /dev/rashpa/buffer/*; do
		[[ -e $buffer ]] || continue
		echo "# $1 left a buffer behind: ${buffer##*/}"
		rashpactl buffer remove "${buffer##*/}"
		found=1
	done
	if [[ $(bound) != "$(boards)" ]]; then
		echo "# $1 left the wrong functions bound: $(bound | tr '\n' ' ')"
		bind_boards
		found=1
	fi
	if compgen -G "/tmp/sanitizer.*" >/dev/null; then
		echo "# a sanitizer reports:"
		head -n 40 /tmp/sanitizer.* | sed 's/^/# /'
		rm -f /tmp/sanitizer.*
		found=1
	fi
	return "$found"
}

# run NAME SECONDS PROGRAM ARGUMENT...
run() {
	local name=$1 limit=$(($2 * ${RASHPA_SLOW:-1})) status=0 test timer ended
	shift 2

	processes_before=$(processes)
	begin "$name"
	# background processes of a shell ignore Control-C
	setsid env --default-signal=INT,QUIT "$@" 2>&1 &
	test=$!
	sleep "$limit" &
	timer=$!
	wait -n -p ended "$test" "$timer" || status=$?
	if [[ $ended == "$timer" ]]; then
		status=124
		where_it_hangs "$test"
		echo "Bail out! $name has not ended after $limit s"
		pkill -KILL -s "$test"
	else
		kill "$timer"
	fi
	wait "$test" "$timer" 2>/dev/null
	leftovers "$name" || status=$((status && status != 4 ? status : 9))
	end "$name" "$status"
}

# verdict NAME ID SENTENCE COMMAND...: run the command as a program with one test
verdict() {
	local status=0
	begin "$1"
	"${@:4}" || status=1
	((status)) && printf 'not '
	printf 'ok 1 - %s: %s\n1..1\n' "$2" "$3"
	end "$1" "$status"
}

verdict module load "the module loads on $(uname -r)" insmod "build/modules/${RASHPA_MODULE:?}/$module.ko"
bind_boards
for line; do
	eval "run $line"
done
verdict module unload "the module unloads" rmmod "$module"
# the kernel keeps counters of covered lines of an unloaded module; they are not plain files
if [[ ${RASHPA_COUNTERS-} ]]; then
	mkdir -p "$RASHPA_COUNTERS"
	find /sys/kernel/debug/gcov -path '*/drivers/*.gcda' |
		while IFS= read -r counters; do
			cat "$counters" >"$RASHPA_COUNTERS/${counters##*/}"
		done
fi
exit "$bad"
