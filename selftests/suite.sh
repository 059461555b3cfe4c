#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Runs inside the guest: loads the module, runs every test, prints one TAP stream.
# suite.sh [--without NAME]... [TEST...]: not these; only these.
# RASHPA_TOOLS: folder of the tools, where others than build/tools are to be tested. What
# sanitizers say of programs fails the run, also of those that are expected to fail.
set -uo pipefail

cd "$(dirname "$0")/.." || exit 1
export PATH=$PWD/${RASHPA_TOOLS:-build/tools}:$PATH RASHPA_PROFILES=$PWD/tools/profiles
# no leaks: libpci and argp have some, and finding out whose they are takes a guest too long
export ASAN_OPTIONS=log_path=/tmp/sanitizer:detect_leaks=0
export UBSAN_OPTIONS=log_path=/tmp/sanitizer:print_stacktrace=1
series=${RASHPA_KERNEL:?set by the lab}
total=0 failed=0
without=()
while [[ ${1-} == --without ]]; do
	without+=("${2:?--without NAME}")
	shift 2
done

# TAP numbers start again in every program: count on, and name the program. Without
# processes: where they start slowly, one for each line takes longer than the tests.
renumber() {
	local line plan='' first=$total
	while IFS= read -r line; do
		# what the lab has given must not be missed: then something is wrong with it
		if [[ $line =~ ^ok.*\#\ SKIP\ the\ module\ rashpa\ is ]] ||
			{ ((${RASHPA_FPGAS:-0})) && [[ $line =~ ^ok.*\#\ SKIP\ (no software FPGA|no way to reach) ]]; }; then
			line="not $line"
		fi
		case $line in
		"ok "* | "not ok "*)
			total=$((total + 1))
			[[ $line == "not ok "* ]] && failed=$((failed + 1))
			[[ $line =~ ^(not\ )?ok\ *[0-9]*\ *-?\ *(.*) ]]
			echo "${BASH_REMATCH[1]}ok $total - $1: ${BASH_REMATCH[2]}"
			;;
		[0-9]*..[0-9]*) plan=${line#*..} ;;
		"TAP version"*) ;;
		"Bail out!"*)
			total=$((total + 1)) failed=$((failed + 1))
			echo "not ok $total - $1: $line"
			;;
		*) echo "$line" ;;
		esac
	done
	[[ $plan == $((total - first)) ]] || ((failed > $2)) ||
		verdict "$1: ${plan:-no} tests announced, $((total - first)) made" 1
}

verdict() { # NAME STATUS
	total=$((total + 1))
	if (($2)); then
		failed=$((failed + 1))
		echo "not ok $total - $1"
	else
		echo "ok $total - $1"
	fi
}

# Where everybody is who belongs to a test that does not end.
where_it_hangs() { # SESSION
	local pid
	ps -s "$1" -o pid,stat,time,wchan:24,args | sed 's/^/#   /'
	for pid in $(ps -s "$1" -o pid=); do
		sed "s/^/#   $pid: /" /proc/"$pid"/stack
	done 2>/dev/null
}

# A crash in the middle must not look like a short, good test.
run_test() {
	local name status=0 before=$failed start=$SECONDS limit=$((900 * ${RASHPA_SLOW:-1})) test timer ended
	name=$(basename "$1")
	# what a shell begins beside itself is deaf to Control-C
	setsid env --default-signal=INT,QUIT "$@" >/tmp/out 2>&1 &
	test=$!
	sleep "$limit" &
	timer=$!
	wait -n -p ended "$test" "$timer" || status=$?
	if [[ $ended == "$timer" ]]; then
		status=124
		where_it_hangs "$test" >/tmp/where
		cat /tmp/where >>/tmp/out
		pkill -KILL -s "$test"
		wait "$test" 2>/dev/null
	else
		kill "$timer"
		wait "$timer" 2>/dev/null
	fi
	renumber "$name" "$before" </tmp/out
	echo "# $name: $((SECONDS - start)) s"
	if ((status == 124)); then
		verdict "$name: not at its end after $limit s" 1
	elif ((status != 0 && status != 4 && failed == before)); then
		verdict "$name: exit status $status" 1
	fi
}

insmod "build/modules/$series/rashpa.ko"
verdict "module loads on $(uname -r)" $?
if (($#)); then
	tests=("$@")
else
	tests=(build/selftests/*_test selftests/tools/*.sh)
fi
for t in "${tests[@]}"; do
	[[ " ${without[*]} " == *" $(basename "$t") "* ]] && continue
	[[ -x $t ]] || { verdict "$t: no such test" 1; continue; }
	run_test "$t"
done
for b in /dev/rashpa/buffer/*; do
	[[ -e $b ]] && rashpactl buffer remove "$(basename "$b")"
done
rmmod rashpa
verdict "module unloads" $?
if compgen -G "/tmp/sanitizer.*" >/dev/null; then
	head -n 40 /tmp/sanitizer.* | sed 's/^/# /'
	verdict "sanitizers: nothing to say" 1
fi
echo "1..$total"
((failed == 0))
