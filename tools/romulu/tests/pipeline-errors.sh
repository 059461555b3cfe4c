#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# test: tier=check seconds=4
# romulu --pipeline where something fails: each error is a sentence, and images that were not written stay
# the next receiver's. The driver is files (librashpa-fake.so). TAP.
set -uo pipefail

# shellcheck source-path=SCRIPTDIR source=../../../selftests/lib/shell.sh
. "$(dirname "$0")/../../../selftests/lib/shell.sh"
tools=$PWD/${RASHPA_TOOLS:-build/tools}
export LD_LIBRARY_PATH=$tools RASHPA_DEV

begin() { # a stream of 20 stacks that has ended
	coproc program {
		PYTHONPATH=$tools/python RASHPA_LIBRARY=$tools/librashpa-fake.so \
			python3 -B tools/processing/tests/program.py many 2>&1
	}
	input=${program[1]}
	read -r RASHPA_DEV <&"${program[0]}"
	header=$RASHPA_DEV/buffer/frames
}
end() {
	exec {input}>&-
	wait
}
# prints of the first place the stacks released, and those that are done
consumed() { od -An -t u4 -j 4288 -N 16 "$header" | awk '{ print ($1 > $3 ? $1 : $3) }'; }
process() { # FILE [VARIABLE=VALUE]...: into FILE, and what it says into $work/out
	env "${@:2}" timeout -s KILL 60 "$tools/romulu-fake" --buffer frames --tune from-start --timeout 30 \
		--json="$work/report" --engine reference --pipeline "{\"pretreat\": {\"gain\": 2}, \"sinks\": {\"raw\": {\"file\": \"$1\"}}}" >"$work/out" 2>&1
}
# fails NAME STATUS PATTERN: the last run did
fails() {
	is "$1" "$2 $(grep -c "$3" "$work/out")" "1 1" || sed 's/^/# /' "$work/out"
}

begin
cat >"$work/threads.c" <<-'C'
	#include <errno.h>
	int pthread_create(void) { return EAGAIN; }
C
gcc -w -fno-builtin -shared -fPIC -o "$work/threads.so" "$work/threads.c"
process "$work/none" LD_PRELOAD="$work/threads.so"
fails "thread: no thread can be made" $? "cannot make a thread"
process /dev/full
fails "sink: a sink that has no room" $? "/dev/full.*No space"
is "sink-kept: no stack was given back" "$(consumed)" 0
printf '\1' | dd of="$header" bs=1 seek=56 conv=notrunc status=none
process "$work/none"
fails "big-endian: pixels that no engine takes" $? "big-endian"
end

# another stream begins while the sink takes nothing; it has room for two images
begin
mkfifo "$work/pipe"
python3 -B - "$work/pipe" "$header" >"$work/reader" 2>&1 <<'PYTHON' &
import array, fcntl, os, sys, termios, time
pipe = os.open(sys.argv[1], os.O_RDONLY | os.O_NONBLOCK)
full, end = array.array("i", [0]), time.monotonic() + 50
while full[0] <= 2 * 64 * 96 * 4:
    assert time.monotonic() < end, f"{full[0]} bytes came"
    fcntl.ioctl(pipe, termios.FIONREAD, full)
    time.sleep(0.01)
with open(sys.argv[2], "r+b") as header:
    header.seek(16)
    header.write(b"\xff")
os.set_blocking(pipe, True)
while os.read(pipe, 65536):
    pass
PYTHON
process "$work/pipe"
fails "stale: another stream begins meanwhile" $? "another stream"
wait $!
is "stale-read: and the sink took what was written" "$? $(<"$work/reader")" "0 "
end

# a signal while the sink takes nothing; it has room for two images, which are a stack
begin
mkfifo "$work/stuck"
exec {stuck}<>"$work/stuck"
process "$work/stuck" &
python3 -B - "$stuck" $! <<'PYTHON'
import array, fcntl, os, signal, sys, termios, time
full, end = array.array("i", [0]), time.monotonic() + 50
while full[0] <= 2 * 64 * 96 * 4:
    assert time.monotonic() < end, f"{full[0]} bytes came"
    fcntl.ioctl(int(sys.argv[1]), termios.FIONREAD, full)
    time.sleep(0.01)
for child in open(f"/proc/{sys.argv[2]}/task/{sys.argv[2]}/children").read().split():
    os.kill(int(child), signal.SIGTERM)
PYTHON
wait $!
fails "stuck: a signal ends romulu while its sink takes nothing" $? "$work/stuck: .*no process read"
is "stuck-report: the report counts one lost result" \
	"$(jq -c '[.interrupted, .processing.lost, .processing.sinks[0].bytes_out]' "$work/report")" '[true,1,49152]'
is "stuck-kept: the stack that was not written is the next receiver's" "$(consumed)" 1
exec {stuck}>&-
end
finish
