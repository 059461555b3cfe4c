#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# test: tier=check seconds=20
# Names chosen by other users: a process has a map and claims a board; its name contains colours, a line
# end and invalid UTF-8, and so does a stream's dataset. Tools print such names as UTF-8 without control
# characters, line by line, and as valid JSON.
. "$(dirname "$0")/../lib/shell.sh"

export PYTHONPATH=$PWD/build/tools/python PYTHONDONTWRITEBYTECODE=1
RASHPA_LIBRARY=$PWD/${RASHPA_TOOLS:-build/tools}/librashpa.so.0
export RASHPA_LIBRARY

have_fpga
rashpactl buffer create names 8M >/dev/null
cat >"$work/holder.py" <<-'P'
	import ctypes, fcntl, os, signal, struct, sys
	import rashpa
	lib = ctypes.CDLL(os.environ["RASHPA_LIBRARY"])
	if ctypes.CDLL(None).prctl(15, b"\x1b[31m\"}\n\xff\xc2\x9b", 0, 0, 0):
	    sys.exit("it keeps its name")
	producer = rashpa.Producer("names", (16, 16), dataset=b"M\xfcnchen\xc2\x9b2J")
	device = lib.rashpa_device_open(int(sys.argv[1]))
	memory = lib.rashpa_buffer_dmabuf(lib.rashpa_buffer_open(b"names", os.O_RDWR))
	# RASHPA_IOC_MAP_MAKE: struct rashpa_map_make is zeros but for fd
	call = ctypes.create_string_buffer(struct.pack("24xi", memory), 120)
	if lib.rashpa_ioctl(device, ctypes.c_ulong(0xe724), call, ctypes.c_size_t(120)):
	    lib.rashpa_reason.restype = ctypes.c_char_p
	    sys.exit(lib.rashpa_reason())
	fcntl.flock(device, fcntl.LOCK_EX)
	print("held", flush=True)
	signal.pause()
P
coproc holder { exec python3 -B "$work/holder.py" "$fpga" 2>&1; }
holder_pid=$!
read -rt $((30 * ${RASHPA_SLOW:-1})) said <&"${holder[0]}"
is "held: a process of such a name holds a map and a board" "$said" held
is "name: its name is what it is" "$(tr -d '\0' <"/proc/$holder_pid/comm" | od -An -tx1 | tr -d ' \n')" \
	1b5b33316d227d0affc29b0a

# harmless NAME FILE LINES: UTF-8, no control characters, and so many lines with the process
harmless() {
	python3 - "$2" >"$work/said" <<-'P'
		import sys
		text = open(sys.argv[1], "rb").read().decode()
		print(sorted({hex(ord(c)) for c in text if c != "\n" and not c.isprintable()}))
	P
	is "$1: UTF-8 without control characters" "$(<"$work/said")" "[]" || od -c "$2" | sed 's/^/# /'
	# shellcheck disable=SC1003 # a backslash
	is "$1-shown: the name stands there, in one line" \
		"$(grep -F 'pid '"$holder_pid" "$2" | grep -vcF '(\x1b[31m"}\x0a\xff\xc2\x9b)')" 0
}
rashpactl list >"$work/list"
harmless list "$work/list"
rashpactl map list >"$work/maps"
harmless maps "$work/maps"
is "maps-lines: a line for a map" "$(wc -l <"$work/maps")" 1 || sed 's/^/# /' "$work/maps"
for command in list "map list"; do
	# shellcheck disable=SC2086 # words
	rashpactl --json $command >"$work/json"
	# Python decodes the name; a byte that is no UTF-8 is the text \xff in it
	is "json-${command% list}: any program can read the JSON of $command" "$(python3 - "$work/json" "$holder_pid" <<-'P'
		import json, sys
		text = open(sys.argv[1], "rb").read().decode()
		def names(of):
		    if isinstance(of, dict):
		        yield from [of["command"]] if of.get("pid") == int(sys.argv[2]) else []
		        of = list(of.values())
		    for one in of if isinstance(of, list) else []:
		        yield from names(one)
		print(ascii(sorted(set(names(json.loads(text))))), [c for c in text if c != "\n" and not c.isprintable()])
	P
	)" "['\\x1b[31m\"}\\n\\\\xff\\x9b'] []"
done
rashpactl buffer create other 8M >/dev/null
remu --buffer other --fpga "$fpga" --images 1 >"$work/remu" 2>&1
is "remu-refused: remu does not take the board" $? 1
# it prints the first line of the name
is "remu-line: its sentence is one line" "$(grep -cF "process $holder_pid (\x1b[31m\"}) has claimed it" "$work/remu") $(wc -l <"$work/remu")" \
	"1 1" || cat -v "$work/remu" | sed 's/^/# /'
is "python: Python reads the header all the same, and shows it as the tools do" "$(python3 -c 'import rashpa
with rashpa.Stream("names", observe=True) as stream: print(stream.begin(10).dataset)' 2>&1)" 'M\xfcnchen\xc2\x9b2J'
rashpactl top --count 1 --interval 0.1 >"$work/top" 2>&1
is "top: no control characters in top" "$(LC_ALL=C grep -c $'[\x01-\x08\x0b-\x1f\x7f]' "$work/top")" 0

kill "$holder_pid"
wait "$holder_pid"
rashpactl buffer remove names && rashpactl buffer remove other
ok $? "removed: the buffers can be removed"
finish
