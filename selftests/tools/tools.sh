#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# test: iommu=on seconds=90
# The tools' answers to wrong input: an exit status, a sentence that names the thing and
# the remedy, and no change. Output is correct, as text and as JSON.
. "$(dirname "$0")/../lib/shell.sh"

# Buffers, functions and their holders; for a bound function also its maps and the number of
# stops. Programs start slowly in an emulated machine: few are used.
state() {
	echo /dev/rashpa/* /dev/rashpa/buffer/* "$(</sys/module/rashpa/refcnt)"
	# without sanitizers, where others have them
	[[ ! ${fpga:-} ]] || build/tools/rashpactl --json list
}

# refuses STATUS PATTERN COMMAND...: "refused" gives one verdict for all of these, which must change nothing
wrong=0 before=
refuses() {
	local want=$1 pattern=$2 got
	shift 2
	[[ $before ]] || before=$(state)
	timeout 20 "$@" >"$work/out" 2>"$work/err"
	got=$?
	((got == want)) && [[ $(<"$work/err") =~ $pattern ]] && return
	wrong=1
	echo "# $*: exit status $got, expected $want; expected a message like \"$pattern\", got:"
	sed 's/^/#   /' "$work/err" "$work/out"
}
refused() {
	[[ $before == "$(state)" ]] || { wrong=1; echo "# there was: $before"; echo "# there is: $(state)"; }
	ok "$wrong" "$1"
	wrong=0 before=
}

rashpactl buffer create here 4M >/dev/null
refuses 1 "fpga99" rashpactl buffer create near 4M --for fpga99
refuses 1 "a/b.*letters" rashpactl buffer create a/b 4M
refuses 1 "\.hidden" rashpactl buffer create .hidden 4M
refuses 1 "longer than 63" rashpactl buffer create "$(printf 'x%.0s' {1..80})" 4M
refuses 1 "here.*exists" rashpactl buffer create here 4M
refuses 1 "large.*(MiB|GiB)" rashpactl buffer create large 512G
refuses 1 "node.*7" rashpactl buffer create node7 4M --node 7
refuses 1 "nosuch.*rashpactl buffer create" rashpactl buffer remove nosuch
refuses 1 "nosuch.*rashpactl buffer create" rashpactl buffer info nosuch
refuses 1 "fpga77" rashpactl map make here fpga77
refuses 1 "0000:7f:1f.7" rashpactl bind 0000:7f:1f.7
refuses 1 "dead:beef" rashpactl bind dead:beef
refuses 1 "fpga77" rashpactl event watch fpga77
refuses 1 "nosuch.*rashpactl buffer create" remu --buffer nosuch --images 1
refuses 1 "nosuch.*rashpactl buffer create" romulu --buffer nosuch
refuses 1 "nosuch" romulu --buffer nosuch --write "$work/frames"
refused "refused/names: missing objects, and invalid names"
[[ ! -e $work/frames ]]
ok $? "no-file-frames: no file is made of the frames of no buffer"
refuses 1 "nosuch" rashpactl buffer permit nosuch --mode 0600
refuses 1 "node 7" rashpactl buffer query --node 7
refuses 1 "fpga77" rashpactl map explain here --for fpga77
refuses 1 "nosuch.*rashpactl buffer create" rashpactl map explain nosuch --for fpga77
refuses 1 "fpga77" rashpactl map make fpga77:memory fpga77
refuses 1 "fpga77" rashpactl window list fpga77
refuses 1 "what:ever.*fpgaN:WINDOW" rashpactl window info what:ever
refuses 1 "nosuch.*rashpactl buffer create" rashpactl top --count 1 nosuch
refuses 3 "remu" rashpactl top --count 1 here --timeout 0.1
refused "refused/places: nodes, functions and windows that are not there"

rashpactl --json doctor >"$work/json"
jq -e '([.checks[].check] | contains(["kernel", "module", "signing", "iommu", "memory",
	"contig", "cma", "register", "huge", "limits", "udev", "nodes", "function", "p2pdma"]))
	and all(.checks[]; .verdict | IN("ok", "note", "problem"))
	and .problems == ([.checks[] | select(.verdict == "problem")] | length)' \
	"$work/json" >/dev/null
ok $? "doctor-json-looks: doctor --json checks everything"
json '.[] | select(.name == "here" and .length_bytes == 4194304 and .kind == "buffer" and
	.owner == "root" and .leases == 0 and .unknown == null and
	.registrable == (.backend == "contig") and .page_bytes >= 4096)' \
	rashpactl --json buffer list
ok $? "buffer-list-json: buffer list --json has properties and owner"
json '.streams == [] and .skipped == [{buffer: "here", why: "there is no stream in it"}]' \
	rashpactl --json top --count 1 --interval 0.01
ok $? "top-json-no-stream: top --json lists buffers without a stream"
mkdir -p "$work/dev/buffer" && touch "$work/dev/buffer/b"{1..130}
json '.skipped | length == 130' env RASHPA_DEV="$work/dev" rashpactl --json top --count 1 --interval 0.01
ok $? "top-leaves-no: top leaves no buffer out, however many there are"
# A terminal: the picture has its own screen, q ends it, and the other screen is as before.
on_terminal() { # INPUT COMMAND
	printf '%s' "$1" | TERM=xterm timeout 60 script -qec "$2" "$work/typescript" >/dev/null
}
on_terminal q "rashpactl top --interval 0.1"
is "top-terminal-ends: top on a terminal ends with q" $? 0
grep -q "BUFFER.*STATE" "$work/typescript" && grep -q "arrows scroll" "$work/typescript" &&
	grep -q "here: there is no stream in it" "$work/typescript"
ok $? "top-terminal-draws: top on a terminal draws the table"
grep -q $'\e\[?1049h.*' "$work/typescript" && tail -n 2 "$work/typescript" | grep -q $'\e\[?1049l'
ok $? "gives-terminal-back: and gives the terminal back"
TERM=nosuch timeout 60 script -qec "rashpactl top --interval 0.1 --count 2" /dev/null >"$work/out" </dev/null
is "top-terminal-nobody: top on an unknown terminal writes lines" "$? $(grep -c "BUFFER" "$work/out")" "0 2"
rashpactl --json="$work/file" buffer info here >"$work/out" && rashpactl buffer info here -j >"$work/json"
is "json-file-writes: --json=FILE writes the same there, and nothing here" \
	"$(cmp "$work/file" "$work/json" && stat -c %s "$work/out")" 0
text=$(rashpactl buffer info here)
ok $? "buffer-info: buffer info"
for line in "owner +root:" "mode +0[0-7]{3}" "leases +0" "by address +can" "page size"; do
	[[ $text =~ (^|$'\n')$line ]]
	ok $? "and-tells: and tells: $line"
done

# Output that cannot be written is a failure, reported once.
for command in "rashpactl --help" "rashpactl buffer list" "rashpactl --json buffer list" \
	"rashpactl top --count 1 --interval 0.01"; do
	read -ra words <<<"$command"
	"${words[@]}" >/dev/full 2>"$work/err"
	is "full-device: $command: to a full device" \
		"$? $(grep -c "cannot write standard output: No space" "$work/err")" "1 1"
done

# --- owners of buffers ---

node=/dev/rashpa/buffer/owned
as_nobody() { setpriv --reuid nobody --regid nogroup --clear-groups "$@"; }

rashpactl buffer create owned 4M --owner daemon:mail --mode 0640 --cache uc --align 1M >/dev/null
ok $? "create-owner-mode: create with owner, mode, cache and alignment"
is "node-theirs: the node is theirs" "$(stat -c %U:%G:%a "$node")" daemon:mail:640
json '.owner == "daemon" and .group == "mail" and .mode == "0640" and .cache == "uc"' \
	rashpactl --json buffer info owned
ok $? "buffer: and the buffer"
as_nobody head -c 1 "$node" 2>"$work/err"
grep -q "Permission denied" "$work/err"
ok $? "not-others: it is not for others"
json '.[] | select(.name == "owned" and .unknown == "not for you" and .owner == "daemon" and
	(has("length_bytes") | not))' as_nobody rashpactl --json buffer list
ok $? "see-owner-mode: other users see owner and mode only"
as_nobody rashpactl buffer list | grep -q "owned.*daemon:mail.*0640.*not for you"
ok $? "text: also as text"
rashpactl buffer permit owned --mode 0644 --owner :nogroup
ok $? "permit: permit"
is "sets-node-well: sets the node as well" "$(stat -c %U:%G:%a "$node")" daemon:nogroup:644
as_nobody rashpactl buffer info owned | grep -q "^mode *0644"
ok $? "others-open: and others can open it"
as_nobody rashpactl buffer permit owned --mode 0666 2>"$work/err"
ok $((! $?)) "not-permit: but they cannot change the mode"

coproc holder { exec python3 -c "import os
os.open('$node', os.O_RDWR | os.O_EXCL)
print('held', flush=True)
input()"; }
holder_pid=$!
read -r _ <&"${holder[0]}"
json '.[] | select(.name == "owned" and .exclusive and .lease_pid == '"$holder_pid"' and .mode == "0644")' \
	rashpactl --json buffer list
ok $? "list-exclusive-lease: list names the holder of an exclusive lease"
rashpactl buffer info owned | grep -q "exclusive: process $holder_pid of root"
ok $? "info: and info"
echo >&"${holder[1]}"
wait "$holder_pid"
exec {held}<"$node"
json '.leases == 1' rashpactl --json buffer info owned
ok $? "leases-others-counted: leases of others are counted"
exec {held}<&-
rashpactl buffer remove owned
ok $? "owned-buffer-removed: an owned buffer is removed"

# --- what fits ---

limits=/sys/module/rashpa/parameters
json '.fits_bytes > 0 and (.text | length > 0) and (.backends | length == 2) and
	.user_allocated_bytes >= 4194304 and .limit_bytes == 0' rashpactl --json buffer query
ok $? "buffer-query-json: buffer query --json"
total=$(awk '/MemTotal/ { print $4 * 1024 }' /sys/devices/system/node/node0/meminfo)
json ".fits_bytes > 0 and .fits_bytes < $total and .backends[0].backend == \"contig\"" \
	rashpactl --json buffer query --backend contig --node 0
ok $? "query-node: buffer query of one backend and node finds some, and less than all memory"
rashpactl buffer query | grep -q "^would fit: .* at most"
ok $? "buffer-query-words: buffer query says so in words"
echo 8 >$limits/limit_mib
refuses 1 "hold.*limit_mib" rashpactl buffer create more 8M
refused "refused/limit: more than a user may hold"
json '.limit_bytes == 8388608 and .fits_bytes <= 4194304' rashpactl --json buffer query
ok $? "limit-fits: a limit is what fits"
echo 0 >$limits/limit_mib
refuses 1 "contig: the machine has only .*B" rashpactl buffer create large 512G --node 0
refused "refused/too-large: more than there is"

# a terminal, so that there is progress from the third second on
seconds=$SECONDS
script -qec "rashpactl buffer create slow 512M --backend contig" "$work/typescript" >/dev/null
slow=$?
if ((SECONDS - seconds < 4)); then
	skip "progress: progress" "512 MiB are made in less than two seconds here"
else
	grep -Eq "slow of 512.*: [0-9]+ s" "$work/typescript"
	ok $? "takes-long: an allocation that takes long shows its size and the time"
fi
((slow)) || rashpactl buffer remove slow

if have_fpga; then
	refuses 1 "$bdf.*(already|bound|fpga$fpga)" rashpactl bind "$bdf"
	refuses 1 "nosuch" rashpactl map make nosuch "fpga$fpga"
	refuses 1 "here.*slots of [0-9]+ KiB fit.*larger buffer" remu --buffer here --fpga "$fpga" --images 10
	refuses 1 "/nowhere" remu --buffer here --fpga "$fpga" --dataset /nowhere
	refuses 1 "vector 999" rashpactl event watch "fpga$fpga" --vector 999
	refuses 1 "here:4194304 .*outside" rashpactl event watch "fpga$fpga" --lock here:4194304
	refused "refused/bound: refusals of a bound function"
	json '.device.state == "ready" and (.sources | length == 3) and
		.sources[1].label == "lock here:64 changed" and .sources[1].looks > 0 and
		.sources[2].kind == "group" and .sources[2].acknowledged == 0 and
		(.sources[2].members | map(.source) == [1, 2])' rashpactl --json event stat \
		"fpga$fpga" --lock here:0 --lock here:64,poll=1000 --group 1,2 --time 0.1
	ok $? "event-stat-json: event stat --json"
	rashpactl --json map make here "fpga$fpga" >"$work/json"
	is "map-json/one-segment: map --json: one segment" "$(jq .segments "$work/json")" 1
	refuses 3 "no stream" romulu --buffer here --timeout 1
	refuses 1 "nosuch" rashpactl window info "fpga$fpga:nosuch"
	refuses 1 "\"\" is not the name of a window" rashpactl window info "fpga$fpga:"
	refuses 1 "here.*lies in the host" rashpactl map make here "fpga$fpga" --device-memory
	refuses 1 "boundary must be a power of two" rashpactl map make here "fpga$fpga" --boundary 5000
	refuses 2 "not fpgaN" rashpactl map explain here --for "fpga$fpga:1"
	refused "refused/maps: maps and windows that cannot be"
	json 'length == 20 and all(.[]; .state == "ok") and
		(.[] | select(.name == "memory" and .cache == "wc" and .bar == 4))' \
		rashpactl --json window list "fpga$fpga"
	ok $? "window-list-json: window list --json"
	rashpactl window list "fpga$fpga" | grep -Eq "^doorbell3 +2 +0x3000 +4 KiB .*yes +ok"
	ok $? "window-list: window list"
	json '.kind == "window" and .bdf == "'"$bdf"'" and .bar == 4 and .cache == "wc" and
		.revoked == false and .importers == 0' \
		rashpactl --json window info "fpga$fpga:memory"
	ok $? "window-info-json: window info --json"
	rashpactl window info "fpga$fpga:memory" | grep -q "^function *$bdf BAR 4"
	ok $? "window-info: window info"
	json '.segments == 4 and .direction == "to-memory" and (.addresses | length == 4) and
		all(.addresses[]; .length_bytes == 1048576)' rashpactl --json map make here "fpga$fpga" \
		--direction to-memory --max-segment 1M --boundary 2M --alignment 4K
	ok $? "map-segments-asked: a map has the segments that were asked for"
	class=host
	[[ $RASHPA_IOMMU == on ]] && class=iova
	json '.memory.kind == "buffer" and .path.up[0] == "'"$bdf"'" and .path.meets == "memory" and
		.path.distance == "same-node" and .path.down == null and (.costs | length > 0) and
		.iommu == ("'$class'" == "iova") and .checked.class == "'$class'" and
		.checked.segments == 1 and (.refused | not) and .reason == null' \
		rashpactl --json map explain here --for "fpga$fpga"
	ok $? "map-explain-json: map explain --json"
	text=$(rashpactl map explain here --for "fpga$fpga")
	for line in "memory +4 MiB of host memory" "function +fpga$fpga, $bdf" \
		"path +$bdf .*host bridge > memory" "cost " "checked +class $class"; do
		[[ $text =~ (^|$'\n')$line ]]
		ok $? "map-explain: map explain prints: $line"
	done
	rashpactl --json map make here "fpga$fpga" --hold >"$work/json" &
	held_by=$!
	until gone "$held_by" || jq -e .class "$work/json" >/dev/null 2>&1; do :; done
	is "map-held: a map is held" "$(rashpactl --json list |
		jq ".devices[] | select(.number == $fpga) | .maps")" 1
	json '.checked == null and (.refused | not) and (.reason | test("1 maps"))' \
		rashpactl --json map explain here --for "fpga$fpga"
	ok $? "map-explain-not: map explain does not stop what runs"
	refuses 1 "fpga$fpga.*stop the producer" rashpactl map make here "fpga$fpga"
	refused "refused/held-map: a second map, where releasing it would stop the first one"
	kill "$held_by"
	wait "$held_by"
	is "map-released: a signal ends it" "$(rashpactl --json list |
		jq ".devices[] | select(.number == $fpga) | .maps")" 0
	watch_quiesce() { # FILE: one event, into it
		local watcher
		rashpactl event watch "fpga$fpga" --device --count 1 --timeout 20 --json \
			>"$1" 2>"$work/err" &
		watcher=$!
		# the watcher's channel turns bus mastering on; until then there is nothing to stop
		until gone "$watcher" || [[ -s $1 ]]; do
			rashpactl fpga quiesce "fpga$fpga" >/dev/null
		done
		wait "$watcher"
	}
	watch_quiesce "$work/event"
	ok $? "event-watch-sees: event watch sees a quiesce"
	jq -e . "$work/event" >/dev/null
	ok $? "prints-json: and prints it as JSON"
	watch_quiesce /dev/full
	is "event-watch-ends: event watch ends if its output cannot be written" \
		"$? $(grep -c "cannot write standard output" "$work/err")" "1 1"

	# The claim of a producer, although there is no map yet: as while remu loads
	# its dataset.
	rashpactl buffer create roomy 16M >/dev/null
	brief=(remu --buffer roomy --fpga "$fpga" --bunch 1 --dataset generate:1 --images 4
		--policy overwrite --timeout 60)
	exec {claim}<>"/dev/rashpa/fpga$fpga"
	flock -n "$claim"
	refuses 1 "fpga$fpga.*stop the producer" rashpactl map make here "fpga$fpga"
	refuses 1 "fpga$fpga.*stop the producer" "${brief[@]}"
	refused "refused/claimed: a map and a producer, where another producer begins"
	json '.checked == null and (.refused | not) and (.reason | test("stop the producer"))' \
		rashpactl --json map explain here --for "fpga$fpga"
	ok $? "map-explain-not-stop: map explain does not stop what begins"
	exec {claim}<&-
	# a lock, a reader, a map that writes nothing: none of them is a producer
	exec {claim}</dev/rashpa/buffer/roomy
	flock -n "$claim"
	"${brief[@]}" >/dev/null
	ok $? "stranger-lock-buffer: a stranger's lock of a buffer keeps no producer out"
	exec {claim}<&-

	# A reader of our output may be slow: nothing is held meanwhile.
	writes() { [[ $(<"/proc/$1/syscall") == "1 0x1 "* ]]; }
	for command in "map make here fpga$fpga" "map explain here --for fpga$fpga"; do
		read -ra words <<<"$command"
		rm -f "$work/pipe"
		mkfifo "$work/pipe"
		exec {pipe}<>"$work/pipe"
		head -c 65536 /dev/zero >&"$pipe"
		rashpactl --json "${words[@]}" >&"$pipe" &
		printer=$!
		wait_for 20 writes "$printer"
		is "nobody-reads-no: $command: without a reader of the output there is no map" "$? $(rashpactl --json list |
			jq ".devices[] | select(.number == $fpga) | .maps")" "0 0"
		"${brief[@]}" >/dev/null
		ok $? "stream-not-wait: $command: a stream does not wait for its reader"
		head -c 65536 <&"$pipe" >/dev/null
		wait "$printer"
		ok $? "ends: $command: and it ends"
		exec {pipe}>&-
	done
	rashpactl buffer remove roomy

	# the blocks of the board, by its list; none of them is running
	rashpactl --json fpga status "fpga$fpga" >"$work/status"
	json '[.blocks[].name] as $b |
		(["dtp", "table", "source", "sensor", "mailbox"] - $b == []) and
		(.blocks[] | select(.name == "dtp").count) == (.dtps | length) and
		(.build_id | test("^[0-9a-f]{40}$")) and (.build_id | test("[1-9a-f]")) and
		.align == 1' cat "$work/status"
	ok $? "fpga-status/blocks-identity: fpga status: blocks, identity"
	json 'all(.dtps[];
		has("stall_ticks") and has("stall_bus_ticks") and has("stall_source_ticks") and
		has("dropped") and has("lost") and has("fifo_peak"))' \
		cat "$work/status"
	ok $? "fpga-status/process-stalled-dropped: fpga status: stalls, drops and losses of a process"
	json '.sources == [.sources[0]] and
		(.sources[0] | .running == false and .source == 0 and .fifo == 16 and
		 (has("frames") and has("missed") and has("rate")))' \
		cat "$work/status"
	ok $? "fpga-status/live-source-stands: fpga status: a live source that stands"
	json '.units == [{"unit": 0, "kind": "pretreat", "running": false, "waiting": false,
		"faulted": false, "images": 0, "results": 0, "dark": 0, "invalid_pixels": 0}]' \
		cat "$work/status"
	ok $? "fpga-status/processing-unit-stands: fpga status: a processing unit that stands"
	if selftests/lab/host fpga 0 sensor 0 -5500 >/dev/null; then
		json '[.sensors[] |
			"\(.name) \(.kind) \(.value) \(.unit)"] == ["die temperature -5.5 °C",
			"vccint voltage 0.85 V", "12v current 2.4 A"]' \
			rashpactl --json fpga status "fpga$fpga"
		ok $? "fpga-status/sensors-units: fpga status: sensors with units"
		rashpactl fpga status "fpga$fpga" | grep -q "^sensor 0 .*temperature -5.500 °C, die$"
		ok $? "fpga-status/people: fpga status: and for people"
		selftests/lab/host fpga 0 sensor 0 41250 >/dev/null
	else
		skip "sensors: sensors" "no way to reach the FPGA's control socket"
	fi
	json '(.engines | length == 20 and .[0].name == "dtp0" and .[0].entries == 512 and
		.[1].first == 512 and .[16].name == "ring0") and
		all(.engines[]; .failures == 0 and .maps == 0) and (.engine_stops | type == "number")' \
		rashpactl --json fpga status "fpga$fpga"
	ok $? "fpga-status/stopped-without-rest: fpga status: engines that can be stopped alone"
	rashpactl fpga status "fpga$fpga" | grep -Eq "^engines +[0-9]+, stopped without the rest"
	ok $? "fpga/text: also as text"
	is "reg-read: reg read" "$(rashpactl fpga read "fpga$fpga" 0:0)" 0x50485352
	is "reg-write: reg write prints the value read back" "$(rashpactl fpga write "fpga$fpga" 0:0x28 0x1234)" 0x00001234
	rashpactl fpga write "fpga$fpga" 0:0x28 0 >/dev/null
	json 'length == 3 and .[0] == {bar: 0, offset: "0x0", value: "0x50485352"} and .[2].offset == "0x8"' \
		rashpactl --json fpga dump "fpga$fpga" 0:0 12
	ok $? "reg-dump-json: reg dump --json"
	is "reg-dump-begins: reg dump begins a line each 16 bytes" "$(rashpactl fpga dump "fpga$fpga" 0:0xff0 32 | cut -d: -f1 | xargs)" \
		"0x0ff0 0x1000"
	refuses 2 "not BAR:OFFSET" rashpactl fpga read "fpga$fpga" 0:2
	refuses 2 "not BAR:OFFSET" rashpactl fpga read "fpga$fpga" 6:0
	refuses 2 "not a length" rashpactl fpga dump "fpga$fpga" 0:0 2M
	refuses 1 "BAR 0" rashpactl fpga read "fpga$fpga" 0:0x10000
	refuses 1 "bounds of engines" rashpactl fpga read "fpga$fpga" 0:0x7000
	refused "refused/registers: invalid places, and those of the driver"

	# A terminal that is not read blocks it between two registers, and the function goes.
	python3 - "fpga$fpga" >"$work/out" 2>&1 <<'P'
import os, subprocess, sys, time
terminal, output = os.openpty()
end = time.monotonic() + 60
def start():
    os.set_blocking(output, False)
    try:
        while True:
            os.write(output, b"x")
    except BlockingIOError:
        os.set_blocking(output, True)
    return subprocess.Popen(["rashpactl", "fpga", "status", sys.argv[1]], stdout=output,
                            stderr=subprocess.PIPE)
p = start()
while not open(f"/proc/{p.pid}/syscall").read().startswith("1 0x1 "):
    if time.monotonic() > end:
        sys.exit("it was not held: " + p.stderr.read().decode())
    if p.poll() is not None: # the terminal has taken it after all: fill what it has made room
        p = start()
subprocess.run(["rashpactl", "unbind", sys.argv[1]], check=True)
os.close(output)
try:
    while os.read(terminal, 4096):
        pass
except OSError:
    pass
print(p.wait(), p.stderr.read().decode())
P
	[[ $(<"$work/out") == "1 "*"the function was removed"* ]] || ! sed 's/^/#   /' "$work/out"
	ok $? "fpga-status-function: fpga status says that the function was removed"
	have_fpga
	ok $? "bound-again: and is bound again"

	# A profile that the board refuses, and one that differs from what is installed.
	modprobe -q pci-stub
	drivers=/sys/bus/pci/drivers override=/sys/bus/pci/devices/$bdf/driver_override
	rashpactl unbind "$bdf"
	if [[ -e $drivers/pci-stub ]]; then
		jq '.windows[0].offset = 1073741824' tools/data/profiles/rashpa-fpga.json \
			>"$work/beyond.json"
		echo pci-stub >"$override"
		echo "$bdf" >$drivers/pci-stub/bind
		refuses 1 "beyond.json" rashpactl bind --force --profile "$work/beyond.json" "$bdf"
		refused "refused/profile-force: a profile that the board has no room for"
		is "function-driver-driver-override: the function has its driver and its driver_override again" \
			"$(readlink "${override%/*}/driver" | sed 's,.*/,,') $(<"$override")" \
			"pci-stub pci-stub"
		echo "$bdf" >$drivers/pci-stub/unbind
		echo >"$override"
	else
		skip "bind-force-gives: bind --force gives back" "a kernel without pci-stub"
	fi
	# A profile of another board; and files that are broken, before the one that is right.
	jq '.match[0].device = "0x5251"' tools/data/profiles/rashpa-fpga.json >"$work/stranger.json"
	refuses 1 "stranger.json.*is for 1234:5251, but $bdf is 1234:5250" \
		rashpactl bind --profile "$work/stranger.json" "$bdf"
	refused "refused/profile-other: a profile of another board"
	mkdir "$work/profiles"
	echo "{" >"$work/profiles/1.json"
	jq '.match[0].device = "0x5251" | .dma_bits = 7' tools/data/profiles/rashpa-fpga.json \
		>"$work/profiles/2.json"
	json '.candidates | any(.bdf == "'"$bdf"'" and .profile == "rashpa-fpga")' \
		env RASHPA_PROFILES="$work/profiles:$PWD/tools/data/profiles" rashpactl --json list 2>"$work/err"
	ok $? "broken-profiles-not: broken profiles do not hide those of others"
	is "named-once: and are named, once" "$(grep -o "$work/profiles/[12].json" "$work/err" | xargs)" \
		"$work/profiles/1.json $work/profiles/2.json"
	jq '.dma_bits = 7' tools/data/profiles/rashpa-fpga.json >"$work/profiles/2.json"
	refuses 1 "2.json: dma_bits" env RASHPA_PROFILES="$work/profiles:$PWD/tools/data/profiles" \
		rashpactl bind "$bdf"
	refused "refused/profile-broken: a broken profile of this board"
	# A node that belongs to another user at first: the device manager takes its time.
	attributes=("$drivers/rashpa/bind" "$override")
	chown daemon "${attributes[@]}"
	setpriv --reuid daemon --regid daemon --clear-groups --inh-caps +sys_admin,+sys_rawio \
		--ambient-caps +sys_admin,+sys_rawio rashpactl bind "$bdf" >"$work/out" 2>&1 &
	binder=$!
	# until poll() waits for it
	waits_or_ends() { [[ $(cat "/proc/$1/syscall" 2>/dev/null || echo 7) == "7"* ]]; }
	wait_for 20 waits_or_ends "$binder"
	chown daemon /dev/rashpa/fpga*
	wait "$binder"
	ok $? "bind-waits-until: bind waits until the node is its own" || sed 's/^/# /' "$work/out"
	chown root "${attributes[@]}" /dev/rashpa/fpga*
	rashpactl unbind "$bdf"
	jq '(.windows[] | select(.name == "memory")).length = 8192' \
		tools/data/profiles/rashpa-fpga.json >"$work/other.json"
	json '.table.sum == {offset_bytes: 24, bits: 64}' \
		rashpactl --json bind --profile "$work/other.json" "$bdf"
	ok $? "bind-json-table: bind --json has the table and its sums"
	fpga=$(jq -r .number "$work/json")
	json 'all(.[]; (.state == "ok") == (.name != "memory")) and (.[] |
		select(.name == "memory") | .state == "differs" and .length_bytes == 8192 and
		.offset_bytes == null and .user == null and .bar == 4)' rashpactl --json window list "fpga$fpga"
	ok $? "window-list-window: window list reports a window of another profile"
	rashpactl window list "fpga$fpga" | grep -Eq "^memory +4 +- +8 KiB +wc +- +differs"
	ok $? "window/text: also as text"
	have_fpga
	ok $? "installed-profile-back: the installed profile is back"
else
	skip "bound-functions: bound functions" "no software FPGA in this guest"
fi

peer_bdf=$(lspci -D -d 1234:5250 | sed -n '2s/ .*//p')
if [[ $peer_bdf ]]; then
	rashpactl unbind "$peer_bdf" >/dev/null 2>&1
	mkdir "$work/nodes"
	touch "$work/nodes/fpga$fpga"
	RASHPA_DEV="$work/nodes" rashpactl --json list >"$work/json" 2>"$work/err"
	is "list/function-cannot-asked: list: a function that cannot be asked is a failure" \
		"$? $(grep -c "^rashpactl.*: $bdf: " "$work/err")" "1 1"
	is "list/hides-no-other: list: and hides no other one" "$(jq -r '.candidates[] | select(.bdf == "'"$peer_bdf"'").profile' "$work/json")" \
		rashpa-fpga
	peer=$(rashpactl --json bind "$peer_bdf" | jq -r .node)
	rashpactl --json map explain "$peer:memory" --for "fpga$fpga" >"$work/json"
	explained=$?
	is "map-explain-peer: map explain of a peer: refused is exit status 1" $explained "$(jq 'if .refused then 1 else 0 end' "$work/json")"
	rashpactl map make "$peer:memory" "fpga$fpga" >"$work/out" 2>&1
	is "map: and so it is to map it" $? $explained
	jq -e '.memory.kind == "window" and .memory.bdf == "'"$peer_bdf"'" and
		.memory.bar == 4 and .path.up[0] == "'"$bdf"'" and
		.path.down[0] == "'"$peer_bdf"'" and
		(.path.meets | IN("switch", "host-bridge")) and
		(.refused or .checked == null or .checked.peer == "'"$peer_bdf"'")' "$work/json" >/dev/null
	ok $? "meet: and prints its location, and the meeting point"
	rashpactl unbind "$peer_bdf"
else
	skip "peers: peers" "fewer than two software FPGAs in this guest"
fi

# --- completion of what there is ---

. tools/data/completion/rashpactl
complete_line() { # WORD...: as readline has torn them; the last one is being written
	COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
	_rashpa
	echo "${COMPREPLY[*]}"
}
first=$(printf '%s\n' /sys/bus/pci/devices/0000:00:00.* | sed -n '1s,.*/0000:,,p')
[[ " $(complete_line rashpactl bind 0000 :) " == *" $first "* ]]
ok $? "colons-functions-not: colons of functions do not confuse the completion"
[[ ! ${fpga:-} || " $(complete_line rashpactl bind "") " != *" $bdf "* ]]
ok $? "function-bound-not: a function that is bound is not offered to bind"
is "second-argument-one: nor a second argument where there is one" "$(complete_line rashpactl buffer remove here "")" --help
is "groups-completed: the groups are completed" "$(complete_line rashpactl buffer "")" "create info list permit query remove"

# --- librashpa ---

librashpa-selftest ${fpga:+"$fpga"} >"$work/tap"
ok $? "librashpa-selftest: librashpa-selftest"
grep -v "^ok\|^TAP\|^1\.\." "$work/tap" | sed 's/^/# /'
rashpactl buffer remove here
ok $? "remove: remove"
finish
