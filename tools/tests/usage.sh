#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# test: seconds=30
# Runs inside the lab's root: behaviour of the tools without a driver. Wrong usage: exit status 2 and a
# sentence that names the thing and the remedy. Help, manual and completion list the same options.
# RASHPA_TOOLS: folder of the tools. TAP.
set -uo pipefail

# shellcheck source-path=SCRIPTDIR source=../../selftests/lib/shell.sh
. "$(dirname "$0")/../../selftests/lib/shell.sh"
# shellcheck source-path=SCRIPTDIR source=../../selftests/lib/sanitized.sh
. selftests/lib/sanitized.sh
PATH=$PWD/${RASHPA_TOOLS:-build/tools}:$PATH

# --- wrong usage

# refuses PATTERN COMMAND...: "refused" gives one verdict for all of these
wrong=0
refuses() {
	local pattern=$1 got
	shift
	RASHPA_DEV="$work/none" timeout 20 "$@" >"$work/out" 2>"$work/err"
	got=$?
	((got == 2)) && [[ $(<"$work/err") =~ $pattern ]] && return
	wrong=1
	echo "# $*: exit status $got; expected 2, and a message like \"$pattern\", got:"
	sed 's/^/#   /' "$work/err" "$work/out"
}
refused() { ok "$wrong" "$1"; wrong=0; }
# expects WHAT ACTUAL EXPECTED: the same for any comparison
expects() { [[ $2 == "$3" ]] || { wrong=1; echo "# $1: got \"$2\", expected \"$3\""; }; }

refuses "name.*empty" rashpactl buffer create "" 4M
refuses "name.*empty" rashpactl lock create fpga77 "" 4
refuses "\"0\" is not a size" rashpactl buffer create zero 0
refuses "\"4Q\" is not a size" rashpactl buffer create unit 4Q
refuses "\"99999999T\" is not a size" rashpactl buffer create huge 99999999T
refuses "-4M|option" rashpactl buffer create negative -4M
refuses "magic.*auto.cma.contig" rashpactl buffer create odd 4M --backend magic
refuses "give NAME and SIZE" rashpactl buffer create
refuses "unknown command.*nonsense" rashpactl nonsense
refuses "unknown command.*nonsense" rashpactl -j"$work/none/report" nonsense
refuses "\"quiesce\".*\"fpga quiesce\"" rashpactl quiesce fpga77
refuses "\"creat\".*\"buffer create\"" rashpactl buffer creat here 4M
refuses "\"buffers\".*\"buffer\"" rashpactl buffers list
refuses "buffer permit" rashpactl buffer
refuses "fpgax.*is not fpgaN" rashpactl apply fpgax
refuses "0777.*0666" rashpactl buffer create odd 4M --mode 0777
refuses "no user.*nosuchuser" rashpactl buffer create odd 4M --owner nosuchuser
refuses "no group.*nosuchgroup" rashpactl buffer create odd 4M --owner root:nosuchgroup
refuses "hot.*cached.*wc.*uc" rashpactl buffer create odd 4M --cache hot
refuses "align.*power of two" rashpactl buffer create odd 4M --align 3K
refuses "--owner, --mode" rashpactl buffer permit here
refuses "rw.*octal" rashpactl buffer permit here --mode u+rw
refuses "neither a user nor a group" rashpactl buffer permit here --owner :
refuses "--node.*x" rashpactl buffer query --node x
refuses "magic" rashpactl buffer query --backend magic
refuses "--for" rashpactl map explain here
refuses "BUFFER" rashpactl map explain --for fpga77
refuses "sideways.*both.*to-memory" rashpactl map make here fpga77 --direction sideways
refuses "--boundary.*x" rashpactl map make here fpga77 --boundary x
refuses "fpgaN:WINDOW" rashpactl window info fpga77
refuses "BUFFER:OFFSET" rashpactl event watch fpga77 --lock here
refuses "what=3.*changed.*poll" rashpactl event watch fpga77 --lock here:0,what=3
refuses "2 is not the place.*there are 2" rashpactl event stat fpga77 --vector 0 --group 1,2
refuses "json and --prometheus exclude each other" rashpactl top --json --prometheus
refuses "give FILE, or --schema" rashpactl profile
refuses "give FILE, or --schema" rashpactl profile --schema board.json
refuses "engine and --first exclude" rashpactl map program here fpga77 --engine e --first 0
refuses "huge.*omit --backend" rashpactl buffer create odd 4M --huge 2M --backend contig
refuses "for excludes --huge" rashpactl buffer create odd 4M --huge 2M --for fpga77
refuses "memory has no vectors" rashpactl event watch memory
refused "usage-rashpactl: wrong usage is refused"
refuses "stray.*--json=FILE" remu --buffer here --json stray
refuses "--buffer" remu
refuses "udp: a receiver is missing: give --to HOST:PORT" remu --transport udp
refuses "pcie, memory, roce, udp or jungfrau" remu --buffer here --transport tcp
refuses "need --transport pcie" remu --buffer here --transport roce --to a:1
refuses "give --transport roce, udp or jungfrau" remu --buffer here --to a:1
refuses "does not wait" remu --transport jungfrau --to a:1
refuses "2,x.*is not a list" remu --transport udp --to a:1 --tune cpus=2,x
refuses "1000,500,100x100 is outside" remu --buffer here --dtp 1000,500,100x100
refuses "1e-12.*1e-06 to 250000000 images" remu --buffer here --rate 1e-12
refuses "images per second" remu --buffer here --rate 0
refuses "live.*--rate" remu --buffer here --fpga 77 --live
refuses "drop.*--rate" remu --buffer here --fpga 77 --policy drop
refuses "drop.*--split 1" remu --buffer here --fpga 77 --policy drop --rate 5 --split 2
refuses "wait.*memory" remu --buffer here --fpga 77 --policy wait --rate 5
refuses "nonsense.*--tune help" remu --buffer here --tune nonsense=1
refuses "needs a value" remu --buffer here --tune vector
refuses "takes no value" remu --buffer here --tune resume=1
refuses "there.*unexpected" remu here there
refuses "\"some\" is not wait" remu --buffer here --fpga 77 --policy some
refuses "phase.*3" remu --buffer here --fpga 77 --tune sampling=3,3
refuses "somebody.*user:NAME.*cert:NAME.*anyone" remu --daemon "unix:$work/socket" --leader somebody
refuses "leader.*--daemon" remu --buffer here --leader anyone
refuses "CERTIFICATE,KEY,CA" remu --daemon tls:6001 --tls here.pem
refused "usage-remu: wrong usage is refused"
refuses "stray.*--json=FILE" romulu --buffer here --json stray
refuses "3-.*is not a list" romulu --buffer here --listen 1 --tune cpus=3-
refuses "processor 1000 does not exist" romulu --buffer here --listen 1 --tune cpus=0,1000
refuses "vulkan:N" romulu --buffer here --pipeline '{}' --engine vulkan:x
refuses "cuda:N" romulu --buffer here --pipeline '{}' --engine cuda:1x
refuses "--offer requires" romulu --buffer here --pipeline '{}' --offer gpu
refuses "\"1Q\" is not a size" romulu --buffer here --pipeline '{}' --engine vulkan --offer gpu:1Q
refuses "\"later\" is not launch, ahead or persistent" romulu --buffer here --pipeline '{}' --engine vulkan --drive later
refuses "--drive requires --engine vulkan or cuda" romulu --buffer here --pipeline '{}' --engine reference --drive ahead
refuses "give no size" romulu --buffer here --pipeline '{}' --engine fpga7 --offer board:1M
refuses "--tune receive-only requires" romulu --buffer here --tune receive-only
refuses "pcie.*is not roce, udp or jungfrau" romulu --buffer here --listen 1 --transport pcie
refuses "udp requires --listen" romulu --buffer here --transport udp
refuses "xdp requires --transport udp or jungfrau" romulu --buffer here --listen 1 --tune xdp
refuses "event.poll" romulu --buffer here --listen 1 --tune wait=long
refuses "somebody.*user:NAME.*cert:NAME.*anyone" romulu --daemon "unix:$work/socket" --leader somebody
refuses "leader.*--daemon" romulu --buffer here --leader anyone
refuses "CERTIFICATE,KEY,CA" romulu --daemon tls:6001 --tls here.pem
refuses "write excludes --check and --pipeline" romulu --buffer here --write "$work/frames" --check
refuses "write excludes --check and --pipeline" romulu --buffer here --pipeline '{}' --write "$work/frames"
refuses "pipeline excludes --check" romulu --buffer here --pipeline '{}' --check
refuses "sync.*require --write DIR" romulu --buffer here --write "$work/frames" --sync each
refuses "deadline requires --pipeline" romulu --buffer here --tune deadline=1
refused "usage-romulu: wrong usage is refused"
refuses "12:34.*BDF" rashpa-bench latency --fpga fpga77 --vfio 12:34
refuses "unknown command.*nosuch" rashpa-bench nosuch
refuses "\"writer\".*\"network write\"" rashpa-bench network writer
refuses "--fpga is missing" rashpa-bench loop
refuses "window 8 exceeds the 4 descriptors" rashpa-bench loop --fpga fpga77 --window 8 --ring 4
refuses "excludes --buffer" rashpa-bench loop --fpga fpga77 --memory vulkan --buffer one
refuses "needs --gpu" rashpa-bench loop --fpga fpga77 --memory gpu
refuses "needs --gpu" rashpa-bench loop --fpga fpga77 --only launches
refuses "--rings needs" rashpa-bench loop --fpga fpga77 --rings --size 32
refuses "\"12\" is not a power of two" rashpa-bench loop --fpga fpga77 --queue 12
refuses "\"6\" is not a multiple of 4" rashpa-bench loop --fpga fpga77 --size 6
refuses "3M.*multiple of 2M" rashpa-bench memory --sizes 3M
refuses "\"12Q\" is not a size" rashpa-bench memory --sizes 2M,12Q
refuses "\"0\".*1 to 1000" rashpa-bench memory --repeat 0
refuses "magic.*contig" rashpa-bench memory --backend magic
refuses "--fpga is missing" rashpa-bench latency
refuses "--fpga is missing" rashpa-bench roundtrip
refuses "\"5\".*20 to 1000000" rashpa-bench latency --fpga fpga77 --period 5
refuses "\"0\".*1 to 1000" rashpa-bench latency --fpga fpga77 --repeat 0
refuses "\"3M\".*power of two" rashpa-bench process --sizes 3M
refuses "\"0\".*1 to 4096" rashpa-bench process --threads 0
refuses "\"3M\".*power of two" rashpa-bench sizing --sizes 3M
refuses "give one size" rashpa-bench sizing --sizes 1M,2M
refuses "\"0\".*0.001 to 1000" rashpa-bench stream --rates 1,0
refuses "\"5000\".*multiple of 4096" rashpa-bench stream --sizes 5000
refuses "\"3M\".*power of two" rashpa-bench gpu --sizes 3M
refuses "rocm.*vulkan:N" rashpa-bench gpu --gpu rocm
refuses "yes.*on.off" rashpa-bench loop --fpga fpga77 --flush yes
refuses "yes.*on.off" rashpa-bench roundtrip --fpga fpga77 --flush yes
refuses "2G.*1K to 1G" rashpa-bench gpu --copies 2G
refuses "\"3\".*multiple of 8" rashpa-bench roundtrip --fpga fpga77 --sizes 1K,3
refused "usage-rashpa-bench: wrong usage is refused"
refuses "experiment.*run.*watch" rashpa-manager
refuses "experiment" rashpa-manager run
refuses "\"go\".*run, check, plan or watch" rashpa-manager go experiment.xml
refuses "argument.*more" rashpa-manager run experiment.xml more
refuses "\"0\".*0.1 to 86400" rashpa-manager run --timeout 0 experiment.xml
refuses "take-over.*run" rashpa-manager check --take-over experiment.xml
refuses "CERTIFICATE,KEY,CA" rashpa-manager run --tls here.pem experiment.xml
refused "usage-rashpa-manager: wrong usage is refused"
refuses "nton.*nxn.*build" rashpa-builder
refuses "\"sideways\".*--help" rashpa-builder sideways
refuses "events" rashpa-builder nton --events 5
refuses "messages" rashpa-builder build --messages 5
refuses "builders" rashpa-builder model nxn --builders 5
refuses "unexpected argument \"nton\"" rashpa-builder nxn nton
refuses "\"pigeon\" is not shm, mpi or verbs" rashpa-builder nxn --transport pigeon
refuses "\"65\".*1 to 64" rashpa-builder nxn --depth 65
refuses "\"0\".*1 to 536870912" rashpa-builder nxn --size 0
refuses "\"101\".*0 to 100" rashpa-builder nxn --jitter 101
refuses "test.testsome.testall" rashpa-builder nxn --poll waitsome
refuses "leave --one-buffer out" rashpa-builder nxn --one-buffer --verify
refuses "requires --transport mpi" rashpa-builder nxn --buffered
refuses "\"0\".*1 to 281474976710656" rashpa-builder build --events 0
refuses "\"65\".*1 to 64" rashpa-builder build --credit 65
refuses "torn.*missing.duplicate.late.corrupt" rashpa-builder build --fault torn:0:1
refuses "late:x:1.*missing.duplicate.late.corrupt" rashpa-builder build --fault late:x:1
refuses "require --geometry" rashpa-builder build --from here
refuses "exclude each other" rashpa-builder build --geometry 8x8 --to here --files .
refuses "a/b.*buffer name" rashpa-builder build --from a/b
refuses "0x8.*WxH" rashpa-builder build --geometry 0x8
refuses "\"0\".*1 to 1000" rashpa-builder burst --rounds 0
refuses "unknown variant.*pigeon" rashpa-builder burst --way pigeon
refuses "--readouts is missing" rashpa-builder model build
refuses "--builders and --folded" rashpa-builder model build --readouts 4 --folded --builders 4
refuses "sideways" rashpa-builder model sideways
refuses "gbps: .x. is not 1e-06 to 1000000" rashpa-builder model build --readouts 4 --network gbps=x
refuses "speed=1.*is not gbps" rashpa-builder model build --readouts 4 --network speed=1
refuses "packet=1048576 is above buffer=65536" rashpa-builder model build --readouts 4 --network packet=1M
refuses "spines: .0. is not 1 to 1024" rashpa-builder model build --readouts 4 --network leaves=2,spines=0
refuses "ranks: .4294967295. is not 1 to 1024" rashpa-builder model build --readouts 4 --network ranks=4294967295
refuses "leaves: .4294967295. is not 0 to 1024" rashpa-builder model build --readouts 4 --network leaves=4294967295
refuses "64 cables to each of 1024 spines exceed the limit of 1024" rashpa-builder model build --readouts 4 --network leaves=4,spines=1024,cables=64
refuses "copy: .1e7. is not 0 to 1000000" rashpa-builder model build --readouts 4 --network copy=1e7
refuses "latency: .1e30. is not 0 to 1000000000" rashpa-builder model build --readouts 4 --network latency=1e30
refuses "there is no event 77 with --events 77" rashpa-builder build --events 77 --fault corrupt:0:77
refused "usage-rashpa-builder: wrong usage is refused"

# remu refuses options that its transport does not have. Those that it has fail later, without driver and receiver.
# takes TRANSPORT: one word of each
takes() {
	local option words got=() to=(--to 127.0.0.1:9)
	[[ $1 != pcie && $1 != memory ]] || to=(--buffer here)
	for option in "--policy wait" "--policy drop --rate 1" "--buffer here" "--policy overwrite --tune immediate=stack" "--policy overwrite --tune message=512"; do
		read -ra words <<<"$option"
		RASHPA_DEV="$work/none" timeout 20 remu --transport "$1" "${to[@]}" --dataset generate:1 --images 1 "${words[@]}" >"$work/out" 2>&1
		(($? == 2)) || got+=("${words[-1]#*=}")
	done
	echo "${got[*]-}"
}
declare -A taken=([pcie]="wait 1 here stack 512" [memory]="wait 1 here stack 512" [roce]="wait stack 512" [udp]="wait 512" [jungfrau]="")
for transport in $(remu --help | sed -nE 's/.*--transport=([a-z|]+).*/\1/p' | tr '|' ' '); do
	is "transports/$transport: remu takes the options of its transport, and no others" "$(takes "$transport")" \
		"${taken[$transport]-this test does not know it}"
done
good "transports-modules: a JUNGFRAU is split into its modules" remu --transport jungfrau --to 127.0.0.1:9 --policy overwrite \
	--dataset generate:1 --images 1

# The name of a dataset reaches a receiver as a text: a long one ends before a character that does not fit.
name=$(printf 'ä%.0s' {1..40})
truncate -s 1M "$work/$name"
is "dataset-long: a long name of a dataset is cut between characters" \
	"$(cd "$work" && timeout 60 python3 -c '
import json, socket, struct, subprocess, sys
server = socket.create_server(("127.0.0.1", 0))
remu = subprocess.Popen(["remu", "--transport", "udp", "--to", "127.0.0.1:%d" % server.getsockname()[1], "--dataset", sys.argv[1]])
link = server.accept()[0].makefile("rb")
hello = link.read(struct.unpack(">I", link.read(4))[0])
remu.kill()
print(json.loads(hello.decode())["dataset"])' "$name")" "$(printf 'ä%.0s' {1..31})"

# A message of sockets begins with its number, so that it cannot be shorter.
is "bench-sink-short: a sink refuses messages that are too short for their number" \
	"$(timeout 60 python3 -c '
import json, socket, struct, subprocess
with socket.create_server(("127.0.0.1", 0)) as free:
    at = free.getsockname()
sink = subprocess.Popen(["rashpa-bench", "network", "sink", "--listen", "%s:%d" % at], stderr=subprocess.DEVNULL)
link = socket.socket()
while sink.poll() is None and link.connect_ex(at):
    pass
hello = dict(kind="hello", bench="network", version=1, way="udp", service=0, size=3, pairs=1, linked=1, solicited=0,
             destinations=1, repeats=1, mtu=4096, messages=0)
text = json.dumps(hello).encode()
link.sendall(struct.pack(">I", len(text)) + text)
reply = link.makefile("rb")
reply = json.loads(reply.read(struct.unpack(">I", reply.read(4))[0]))
sink.kill()
print(reply["kind"], "size" in reply.get("text", ""))')" "error True"

# Without the driver, each command names the driver as the reason.
for command in "rashpactl buffer list" "rashpactl buffer info here" "rashpactl limits" "rashpactl list" \
	"rashpactl top --count 1" "rashpactl top --count 1 --prometheus" "rashpactl event watch memory --lock here:0" "rashpactl fpga quiesce fpga0" \
	"remu --buffer here" "romulu --buffer here"; do
	read -ra words <<<"$command"
	RASHPA_DEV="$work/none" "${words[@]}" >"$work/out" 2>"$work/err"
	expects "$command" "$? $(grep -o "load the driver (modprobe rashpa)" "$work/err" | sort -u)" \
		"1 load the driver (modprobe rashpa)"
done
refused "no-driver: without the driver, each command says so"

# Output that cannot be written is a failure, reported once.
for command in rashpactl "rashpactl list" remu romulu rashpa-bench rashpa-builder rashpa-manager; do
	read -ra words <<<"$command"
	"${words[@]}" --help >/dev/full 2>"$work/err"
	expects "$command --help" "$? $(grep -c "cannot write standard output: " "$work/err")" "1 1"
done
refused "full-device: output that cannot be written is a failure, reported once"

# --- the libraries without an installation

export PKG_CONFIG_PATH=${RASHPA_TOOLS:-build/tools}/meson-uninstalled
printf '#include <rashpa-%s.h>\n' stream processing >"$work/program.c"
# shellcheck disable=SC2046 # these are words
gcc -fsyntax-only $(pkg-config --cflags rashpa rashpa-processing) "$work/program.c"
ok $? "uninstalled: pkg-config knows the headers of libraries that are built"

# --- profiles

# The layout of table entries is printed, with the sums in them.
reference=tools/data/profiles/rashpa-fpga.json
json '.table == {window: "table", offset_bytes: 0, length_bytes: 32768, stride_bytes: 32,
	segment_bytes: 0, address: {offset_bytes: 0, bits: 64}, length: {offset_bytes: 8, bits: 64},
	control: {offset_bytes: 16, bits: 32, set: 1, clear: 0}, sum: {offset_bytes: 24, bits: 64}} and
	.name == "rashpa-fpga" and .windows == 20 and .engines == 20 and .quiesce_steps == 2' \
	rashpactl profile --json "$reference"
ok $? "profile-json-layout: profile --json has the layout of the table"
is "profile-text: profile prints the layout as text" "$(rashpactl profile "$reference" | tail -n 1)" \
	"table: 1024 entries of 32 bytes, address 64 bits at 0, length 64 bits at 8, control 32 bits at 16, running sum 64 bits at 24"
jq 'del(.table.sum, .table.length_field) | .table.segment_size = 4096' "$reference" >"$work/plain.json"
json '.table | .sum == null and .length == null and .segment_bytes == 4096' \
	rashpactl profile --json "$work/plain.json"
ok $? "not: absent fields are null"
is "text: the text names absent fields, too" "$(rashpactl profile "$work/plain.json" | tail -n 1)" \
	"table: 1024 entries of 32 bytes, address 64 bits at 0, no length, control 32 bits at 16, no running sum, segments of 4096 bytes"
jq 'del(.table, .engines)' "$reference" >"$work/plain.json"
json 'has("table") and .table == null' rashpactl profile --json "$work/plain.json"
ok $? "without-table-well: a profile without a table has a null table"

# notes ID WORDS FILTER: words of the notes on the reference profile as changed by this filter
notes() {
	jq "$3" "$reference" >"$work/plain.json"
	is "notes/$1: notes on probable mistakes" \
		"$(rashpactl profile --json "$work/plain.json" | jq -c '[.notes[] | match("no [a-z_]+|quiesce_ms|^push").string]')" "$2"
}
notes none '[]' .
notes silent '["no quiesce","no dma_bits"]' 'del(.quiesce, .engines, .dma_bits)'
notes late '["quiesce_ms"]' '.quiesce[1].wait.timeout_ms = 1001'
notes long-enough '[]' '.quiesce[1].wait.timeout_ms = 5000 | .quiesce_ms = 5000'
notes engine '["quiesce_ms"]' '.engines[3].quiesce[1].wait.timeout_ms = 1001'
push='.table |= ({window, offset, length, stride} + {push: {words: [{kind: "address", offset: 0, bits: 64}, {kind: "length", offset: 8}]}})'
notes push '["push"]' "$push"
notes spread '[]' "$push | .table.push.spread = true"
notes max '[]' "$push | .table.push.max = 1"
notes fifo '[]' "$push | .table.length = .table.stride | del(.engines)"
is "notes-text: as text, too" "$(rashpactl profile <(jq 'del(.dma_bits)' "$reference") | grep -c "^note: no dma_bits")" 1
is "notes-ours: and none on our profiles" \
	"$(for file in tools/data/profiles/{rashpa-*,untried/*}.json; do rashpactl profile "$file"; done | grep -c "^note: ")" 0

# --- a loaded driver, and no buffer yet
mkdir -p "$work/empty/buffer"
: >"$work/empty/memory"
for format in "" --json --prometheus; do
	RASHPA_DEV=$work/empty rashpactl top --count 1 --interval 0.01 $format >"$work/out" 2>&1
	is "no-buffer/top$format: the list is empty, and the command succeeds" $? 0
done
RASHPA_DEV=$work/empty rashpactl report >"$work/out" 2>&1
is "no-buffer/report: report succeeds, too" $? 0

# --- configuration that is applied at every boot

export RASHPA_CONFIG=$work/etc
mkdir -p "$RASHPA_CONFIG"/{buffers,boards}.d
cat >"$RASHPA_CONFIG/buffers.d/one.conf" <<-END
	{ "buffers": [ { "name": "ring0", "size": "1G", "node": 0, "backend": "contig", "align": "2M",
		"cache": "cached", "owner": "root:rashpa", "mode": "0640", "description": "frames" } ] }
END
echo '{ "boards": [ { "function": "1234:5250" }, { "function": "03:00.0", "take": true } ] }' \
	>"$RASHPA_CONFIG/boards.d/one.conf"
json '. == {buffers: [{name: "ring0", length_bytes: 1073741824}], boards: [{function: "1234:5250", take: false},
	{function: "03:00.0", take: true}]}' rashpactl --json apply --check
ok $? "apply-check: apply --check lists the buffers and boards to make"
wrong_file() { # PATTERN TEXT: of a file of buffers
	local pattern=$1
	echo "$2" >"$RASHPA_CONFIG/buffers.d/two.conf"
	rashpactl apply --check >"$work/out" 2>"$work/err"
	expects "$pattern" "$? $(grep -c "two.conf:.*$pattern" "$work/err") $(grep -c ring0 "$work/out")" "1 1 1"
	rm "$RASHPA_CONFIG/buffers.d/two.conf"
}
wrong_file 'buffers: is missing' '{ }'
wrong_file 'buffers\[0\].size: is missing' '{ "buffers": [ { "name": "a" } ] }'
wrong_file 'buffers\[0\].size: must not be 0' '{ "buffers": [ { "name": "a", "size": 0 } ] }'
wrong_file 'buffers\[0\].name: must be letters' '{ "buffers": [ { "name": "../a", "size": 1 } ] }'
wrong_file 'buffers\[1\].cache: "hot" is not one of cached, wc, uc' \
	'{ "buffers": [ { "name": "a", "size": 1 }, { "name": "b", "size": 1, "cache": "hot" } ] }'
wrong_file 'buffers\[0\].mode: must be a string' '{ "buffers": [ { "name": "a", "size": 1, "mode": 660 } ] }'
wrong_file 'buffers\[0\].owner: there is no user "nosuchuser"' \
	'{ "buffers": [ { "name": "a", "size": 1, "owner": "nosuchuser" } ] }'
wrong_file '1: not JSON' 'buffers = ring0'
wrong_file 'the buffer a is in .*two.conf already' '{ "buffers": [ { "name": "a", "size": 1 }, { "name": "a", "size": 1 } ] }'
refused "apply-check-wrong: an error names the file, the place and the reason; other files are used"
unset RASHPA_CONFIG

# exposure of services, from 0 (none) to 10
for unit in build/tools/*.service; do
	good "security/$(basename "${unit/@/}" .service): the service has little to reach" systemd-analyze security --offline=yes --threshold=40 "$unit"
done
good "rules-udev-well-formed: the rules of udev are well-formed" udevadm verify --resolve-names=never tools/data/udev/70-rashpa.rules

# --- help, manual, completion

commands=("doctor" "report" "cdi" "list" "limits" "apply" "bind" "unbind" "profile" "buffer create" "buffer list" "buffer info"
	"buffer permit" "buffer query" "buffer remove" "lock create" "window list" "window info" "map make" "map explain"
	"map list" "map program" "map release" "board test" "event watch" "event stat" "top" "fpga "{status,quiesce,reset,read,write,dump})

is "help-names-all: the help names all commands" \
	"$(rashpactl --help | grep '^  ' | cut -c3-20 | sed 's/ *$//' | sort)" "$(printf '%s\n' "${commands[@]}" | sort)"
is "help-group: the help of a group names its commands" "$(rashpactl help map | grep -c '^  map ') $(rashpactl map --help | grep -c '^  ')" "5 5"
is "help-command: help before a command prints its options" "$(rashpactl help map make)" "$(rashpactl map make --help)"
measures="event gpu latency loop memory network paper process roundtrip sizing stream validate"
is "rashpa-bench: the help of rashpa-bench names all its commands" "$(rashpa-bench --help | awk '/^  / { print $1 }' | sort -u | xargs)" "$measures"
completion=${RASHPA_TOOLS:-build/tools}/data/completion
for tool in rashpa{ctl,-bench,-builder,-manager}; do
	# shellcheck source=/dev/null
	. "$completion/$tool"
done
complete_words() { # WORD...: the last one is being written
	local name
	COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
	read -r _ _ name _ < <(complete -p "$1")
	"$name"
}
completed() { # TOOL: what may be its first word, but for options
	complete_words "$1" ""
	printf '%s\n' "${COMPREPLY[@]}" | grep -v ^- | sort | xargs
}
is "completed: commands of rashpa-bench are completed" "$(completed rashpa-bench)" "$measures"
is "commands-rashpa-manager-completed: commands of rashpa-manager are completed" "$(completed rashpa-manager)" "check plan run watch"
is "commands-rashpa-builder-completed: commands of rashpa-builder are completed" "$(completed rashpa-builder)" "build burst model nton nxn"
mkdir "$work/a folder"
: >"$work/a folder/b c.json"
cd "$work" || exit
complete_words rashpactl profile 'a\ fol'
completed=${COMPREPLY[*]}
complete_words rashpactl profile '"a folder/b'
cd - >/dev/null || exit
is "names-space-completed: names with spaces are completed" "$completed, ${COMPREPLY[*]}" "a folder, a folder/b c.json"
# Headlines of a manual as text; for rashpactl only those of one command.
headlines() { # FILE [COMMAND]
	sed -n '/^\.TP/{n;s/\\f[A-Z]//g;s/\\-/-/g;s/\\~/ /g;s/^\.[A-Z]* //;s/[" ]\{1,\}/ /g;s/^ //;p}' "$1" |
		awk -v command="${2-}" '!/^-/ { inside = index($0 " ", command " ") == 1 } !command || inside || /^-j .*--json/ { print " " $0 " " }' |
		tr -c 'a-z0-9\n-' ' '
}
# Options whose help lists all words of their argument: "option word..."
choices() { sed -nE 's/^ *(-., )?(--[a-z-]+)=([a-z-]+(\|[a-z-]+)+)( .*)?$/\2 \3/p' | tr '|' ' '; }
# options_known COMMAND: compare the options of the help. Sets missing.
options_known() {
	local option manual words usage known want
	missing=
	read -ra words <<<"$1"
	# shellcheck source=/dev/null
	. "$completion/${words[0]}"
	manual=$(headlines "$manuals/${words[0]}.1" "$([[ $1 != rashpactl\ * ]] || sed 's/^[^ ]* //; s/^event .*/event/' <<<"$1")")
	complete_words "${words[@]}" -
	usage=$("${words[@]}" --help)
	[[ $1 == rashpa-[!bm]* || $1 == *network* ]] || letters+=$(sed -nE 's/^ +(-[a-zA-Z?]), (--[a-z-]+).*/\1 \2/p' <<<"$usage")$'\n'
	known=" $(grep -oE '^ .*--[a-z-]+' <<<"$usage" | grep -oE -- '--[a-z-]+' | xargs) "
	for option in "${COMPREPLY[@]}"; do
		[[ $option != --* || $known == *" $option "* ]] || missing+=" $option (is refused)"
	done
	for option in $known; do
		[[ $option == --usage || $option == --version ]] && continue
		[[ " ${COMPREPLY[*]} " == *" $option "* ]] || missing+=" $option (completion)"
		[[ $manual == *" $option "* || $option == --help ]] || missing+=" $option (manual)"
	done
	if [[ $known == *" --tune "* ]]; then
		complete_words "${words[@]}" --tune ""
		for option in "${COMPREPLY[@]%=}"; do
			[[ $manual == *" $option "* ]] || missing+=" --tune $option (manual)"
		done
		((${#COMPREPLY[@]})) || missing+=" --tune (completion)"
	fi
	while read -r option want; do
		complete_words "${words[@]}" "$option" ""
		[[ ${COMPREPLY[*]} == "$want" ]] || missing+=" $option $want (completion: ${COMPREPLY[*]})"
		for want in $want; do
			headlines "$manuals/${words[0]}.1" | grep -q -- " $option .*\<$want\>" || missing+=" $option=$want (manual)"
		done
	done < <(choices <<<"$usage")
}
manuals=Documentation/man
# Each letter means one option, whatever the tool; boards and frames have their own.
letters=
for command in "${commands[@]/#/rashpactl }" remu romulu rashpa-bench\ {memory,latency,roundtrip,loop,process,sizing,stream,gpu,paper,validate} \
	rashpa-bench\ network\ {sink,write} rashpa-builder\ {nton,nxn,burst,build} rashpa-builder\ model\ {nton,nxn,build} \
	rashpa-{manager,fpga,fpga-conformance,inject,capture-check}; do
	options_known "$command"
	is "options/${command// /-}: completion and manual list the options and their words" "$missing" ""
done
for command in rashpactl "rashpactl map" remu romulu rashpa-bench rashpa-builder rashpa-manager; do
	read -ra words <<<"$command"
	expects "$command" "$("${words[@]}" -h)" "$("${words[@]}" --help)"
done
refused "short-help: -h is --help"
# The check detects a removed headline and a removed word of the manual.
mkdir "$work/gone"
for gone in "/policy =/d" "/policy =/s/|drop//"; do
	sed "$gone" Documentation/man/remu.1 >"$work/gone/remu.1"
	manuals=$work/gone options_known remu
	expects "$gone" "$(grep -c -- " --policy" <<<"$missing")" 1
done
refused "planted: a removal from the manual is detected"
is "letter-means-same: a letter means the same everywhere" \
	"$(sort -u <<<"$letters" | cut -d' ' -f1 | uniq -d | xargs)" ""

finish
