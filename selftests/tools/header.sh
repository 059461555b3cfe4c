#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# test: seconds=55
# A member of a group writes names of root's memory and of a board into the header of a stream. The
# consumer of root uses none of them, unless it accepts the name.
. "$(dirname "$0")/../lib/shell.sh"
export PYTHONPATH=$PWD/build/tools/python PYTHONDONTWRITEBYTECODE=1
export RASHPA_LIBRARY=$PWD/${RASHPA_TOOLS:-build/tools}/librashpa.so.0

group=users
chmod 0777 "$work"
modes=$(stat -c "%g %a" /dev/rashpa/memory)
chgrp "$group" /dev/rashpa/memory && chmod 0660 /dev/rashpa/memory
member() { setpriv --reuid daemon --regid daemon --groups "$(getent group "$group" | cut -d: -f3)" "$@"; }
sum_of() { python3 -c "import rashpa, zlib; print(zlib.crc32(rashpa.Buffer('$1').array))"; }
rashpactl buffer create --mode 0660 shared 1M >/dev/null &&
	rashpactl buffer create --mode 0660 slots 1M >/dev/null &&
	rashpactl buffer create --mode 0600 secret 1M >/dev/null &&
	chgrp "$group" /dev/rashpa/buffer/{shared,slots}
ok $? "buffers: two buffers of the group, and one of root"
python3 -c "import rashpa
with rashpa.Buffer('secret', write=True) as b: b.array[:] = 0x42"
secret=$(sum_of secret)

# forge FIELD VALUE: a member streams 3 images, and writes this into the header; until it reads a line
forge() {
	coproc forger { member python3 -c "import os, mmap, sys, rashpa
from rashpa._abi import ffi
p = rashpa.Producer('shared', (16, 16), images=3, slots=4)
for i in range(3):
    s = p.slot(); s.images[:] = i; s.publish()
node = os.open('/dev/rashpa/buffer/shared', os.O_RDWR)
at = lambda field, of='header': ffi.offsetof('struct rashpa_stream_' + of, field)
page = mmap.mmap(node, 1 << 20)
exec(sys.argv[1])
print('ready', flush=True)
sys.stdin.readline()" "$1"; } 2>"$work/forger"
	forger_pid=$!
	read -r -u "${forger[0]}" line
	[[ $line == ready ]] || sed 's/^/# /' "$work/forger"
}
over() {
	echo >&"${forger[1]}"
	wait "$forger_pid"
}
put_name() { echo "page[at('payload_name'):at('payload_name') + 7] = b'$1'.ljust(7, bytes(1)); page[at('data_offset'):at('data_offset') + 8] = bytes(8)"; }

forge "$(put_name secret)"
romulu --buffer shared --write "$work/words" --timeout 10 >"$work/out" 2>&1
is "write: romulu --write refuses the memory of root, and names it" "$? $(grep -c "secret.*--accept" "$work/out")" "1 1" ||
	sed 's/^/# /' "$work/out"
[[ ! -s $work/words ]]
ok $? "write-file: its file has no word of it"
romulu --buffer shared --check --dataset generate:3 --geometry 16x16 --timeout 10 >"$work/out" 2>&1
is "check: romulu --check refuses it" "$? $(grep -c "secret.*--accept" "$work/out")" "1 1" || sed 's/^/# /' "$work/out"
python3 -c "import rashpa, sys
for options in {}, {'observe': True}:
    try:
        print(next(iter(rashpa.Stream('shared', timeout=10, from_start=True, **options))))
    except rashpa.Error as error:
        print(error.errno, 'secret' in str(error))" >"$work/out" 2>&1
is "python: so does Python, as a consumer and as an observer" "$(cat "$work/out")" $'1 True\n1 True'
is "untouched: secret is unchanged" "$(sum_of secret)" "$secret"
romulu --buffer shared --accept secret --write "$work/words" --timeout 10 >"$work/out" 2>&1
is "accept: root can accept it" "$? $(stat -c %s "$work/words")" "0 1536" || sed 's/^/# /' "$work/out"
over

# what all writers of the header may open needs no option
forge "$(put_name slots)"
romulu --buffer shared --timeout 10 --json="$work/json" >"$work/out" 2>&1
is "same: a memory of the same owner, group and mode is used" "$? $(jq -c '[.frames, .lost]' "$work/json")" "0 [3,0]" ||
	sed 's/^/# /' "$work/out"
over

# a consumer reads, and needs no more; only --check writes there
chmod 0640 /dev/rashpa/buffer/slots
forge "$(put_name slots)"
member romulu --buffer shared --images 1 --timeout 10 --write /dev/null --json >"$work/json" 2>"$work/out"
is "reads: a member that may only read the slots is a consumer" "$? $(jq -c '[.frames, .lost]' "$work/json")" "0 [1,0]" ||
	sed 's/^/# /' "$work/out"
member romulu --buffer shared --check --dataset generate:3 --geometry 16x16 --timeout 10 >"$work/out" 2>&1
is "writes: romulu --check is refused there" "$? $(grep -c "\"slots\" may not be opened" "$work/out")" "1 1" || sed 's/^/# /' "$work/out"
over

# a doorbell of a board that no member may open
if have_fpga; then
	mode=$(stat -c %a "/dev/rashpa/fpga$fpga")
	chmod 0600 "/dev/rashpa/fpga$fpga"
	forge "
first = int.from_bytes(page[at('process_offset'):at('process_offset') + 8], 'little')
page[first + at('function', 'process')] = 1
page[first + at('fpga', 'process')] = $fpga"
	romulu --buffer shared --timeout 10 >"$work/out" 2>&1
	is "board: romulu rings no doorbell of it" "$? $(grep -c "fpga$fpga.*--accept" "$work/out")" "1 1" ||
		sed 's/^/# /' "$work/out"
	python3 -c "import json, rashpa, subprocess
stream = rashpa.Stream('shared', timeout=10, from_start=True, observe=True)
next(iter(stream))
boards = json.loads(subprocess.check_output(['rashpactl', '--json', 'list']))['devices']
print([board['master'] for board in boards if board['number'] == $fpga])" >"$work/out" 2>&1
	is "board-observer: an observer does not listen to it" "$(cat "$work/out")" "[False]"
	over
	chmod "$mode" "/dev/rashpa/fpga$fpga"
else
	skip "board: romulu rings no doorbell of it" "no software FPGA in this guest"
	skip "board-observer: an observer does not listen to it" "no software FPGA in this guest"
fi
chgrp "${modes% *}" /dev/rashpa/memory && chmod "${modes#* }" /dev/rashpa/memory
rashpactl buffer remove shared && rashpactl buffer remove slots && rashpactl buffer remove secret
ok $? "free: no process holds a buffer"
finish
