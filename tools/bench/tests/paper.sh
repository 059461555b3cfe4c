#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# test: seconds=40
# Runs inside the lab's root: rashpa-bench paper with commands that answer at once, and one figure for real. TAP.
set -uo pipefail

# shellcheck source-path=SCRIPTDIR source=../../../selftests/lib/shell.sh
. "$(dirname "$0")/../../../selftests/lib/shell.sh"
tools=$PWD/${RASHPA_TOOLS:-build/tools}
paper=$tools/bench/paper
export MPLCONFIGDIR=$work

good "data: each figure has values or a reason, in its units" python3 -B tools/bench/tests/paper.py "$paper"

# --- commands that answer with the file that begins as their options, and keep their arguments
bin=$work/bin
mkdir -p "$bin/answers"
cat >"$bin/rashpa-bench" <<-'END'
	#!/bin/bash
	here=$(dirname "$0")
	echo "$*" >>"$here/asked"
	for answer in "$here/answers/"*; do
		[[ "$*" != "$(basename "$answer")"* ]] || { cat "$answer"; exit; }
	done
	echo "rashpa-bench: no such thing here" >&2
	exit 1
END
cp "$bin/rashpa-bench" "$bin/rashpa-builder"
# an MPI that starts one process
printf '#!/bin/sh\nexec "$@"\n' >"$bin/start"
chmod +x "$bin"/*
answer() { cat >"$bin/answers/$1"; }
fake() { PATH=$bin:$PATH RASHPA_BENCH=$bin/rashpa-bench python3 -B "$paper" "$@"; }
# rows FILTER: of the last JSON
rows() { jq -c ".figures[].rows | $1" "$work/json"; }

fake 000 T3.2 --json >"$work/json"
is "needs-named: the reason is named, and nothing is measured" \
	"$? $(rows 'map(.here) | unique') $(rows '.[0].needs | test("--address")')" "0 [null] true"
answer "network sweep --only=peers" <<-'END'
	{ "trials": [
	  { "name": "uc, poll", "size_bytes": 4096, "destinations": 1, "goodput_bytes_per_second": 125000000, "missing_percent": 0 },
	  { "name": "uc, poll", "size_bytes": 2048, "destinations": 1, "goodput_bytes_per_second": 250000000, "missing_percent": 0 },
	  { "name": "UD send", "size_bytes": 4096, "destinations": 1, "goodput_bytes_per_second": 500000000, "missing_percent": 0 },
	  { "name": "UD send", "size_bytes": 2048, "destinations": 1, "goodput_bytes_per_second": null, "missing_percent": null },
	  { "name": "UDP sockets", "size_bytes": 2048, "destinations": 1, "goodput_bytes_per_second": 125000000, "missing_percent": 12 },
	  { "name": "UDP sockets, without loss", "size_bytes": 2048, "destinations": 100000, "goodput_bytes_per_second": 125000000, "missing_percent": 0 }
	] }
END
fake 000 T3.2 --address 10.0.0.1 --sink-at "ssh there" --repeat 2 --json >"$work/json"
is "equal: a value is in the line of the document's, in its unit" \
	"$(rows 'map(select(.what == "WRITE" and .size_bytes == 4096) | .document.throughput_gbit_per_s, .here == 1)')" "[97.5,true]"
is "asked: the command had the options" "$(tail -n 1 "$bin/asked")" \
	"network sweep --only=peers --address=10.0.0.1 --sink-at=ssh there --repeat=2 --json"
is "trial-failed: a trial without a result takes no other with it" \
	"$(rows 'map(select(.what == "SEND") | [.size_bytes, .here == 4])')" "[[2048,false],[4096,true]]"
is "raw: a measurement that no command has is named" "$(rows 'map(select(.what == "RAW") | .needs | test("raw queue pairs")) | all')" true
fake 000 t3.1 --address 10.0.0.1 --json >"$work/json"
is "no-look-alike: a rate with losses is not in the line of one without" \
	"$(rows 'map(select(.what == "UDP, regular socket" and .size_bytes == 2048) | .here == 1)')" "[false,true]"
: >"$bin/asked"
fake 000 --address 10.0.0.1 --json >"$work/json"
is "once: a measurement runs once for all figures" "$(grep -c peers "$bin/asked")" 1

answer "gpu " <<-'END'
	{ "rows": [
	  { "name": "a launch", "backend": "llvmpipe, a program on processors: no GPU", "size_bytes": 4, "ours": 30, "theirs": null },
	  { "name": "a copy in it", "backend": "llvmpipe", "size_bytes": 16777216, "ours": 20, "theirs": null },
	  { "name": "a copy to it, of pinned memory", "backend": "llvmpipe", "size_bytes": 16777216, "ours": 10, "theirs": 5 }
	] }
END
fake 000 4.5 --json >"$work/json"
is "no-gpu: a program on processors is no GPU" "$(rows 'map(.here == null and (.needs | test("^a GPU"))) | all')" true
fake 000 4.5 --gpu vulkan --json >"$work/json"
is "gpu-asked: unless it is asked for, and then it is named" "$(rows '.[0] | [.here, (.remark | test("no GPU"))]')" "[30,true]"
answer "memory " <<-'END'
	{ "rows": [ { "name": "copy, in sequence", "backend": "contig", "peer": "hugetlbfs", "size_bytes": 2097152, "ours": 8, "theirs": 7 } ] }
END
fake 000 2.4 --plots --out "$work/plots" --json >"$work/json"
is "others: a value that the document's text lacks has its own line" "$(rows '.[1:] | map([.what, .size_bytes, .here, .document])')" \
	'[["contig",1048576,8,null],["hugetlbfs",1048576,7,null]]'
grep -q "throughput, GB/s" "$work/plots/000-2.4-throughput_gbyte_per_s.svg"
ok $? "plot: a plot has the axes of the document"
answer burst <<<'{ "rows": [ { "name": "x", "size_bytes": 4096, "ours": 3, "theirs": 4, "ratio": 0.75 } ] }'
fake 004 8.6 --mpirun start --json >"$work/json"
is "curve: a sentence about a curve has its points below" "$(rows '[.[0].remark, .[0].needs, (map(select(.here)) | length)]')" \
	'["see below",null,7]'

# --- for people
all=$(jq -s 'map(.figures | length) | add' "$paper"/00?.json)
rm "$bin/answers/"[bn]*	# fewer plots
fake --all --mpirun start --out "$work/report" --gpu vulkan >"$work/out"
is "report: all figures are in one report" \
	"$? $(grep -c '<h3 id="' "$work/report/index.html") $(grep -cE '^00[0-4] (figure|table|section|poster|equation) ' "$work/out")" "0 $all $all"
grep -q '^the host launches  *40  *30  ' "$work/out"
ok $? "columns: document, here, remark"
is "list: the list has all figures" "$(fake --list | grep -c '^  [0-9TSPBE]')" "$all"

refuses() { # PATTERN OPTION...
	fake "${@:2}" >"$work/out" 2>"$work/err"
	is "refused: rashpa-bench paper ${*:2}" "$? $(grep -cE "$1" "$work/err")" "2 1"
}
refuses "005" 005
refuses "no \"9.9\".*8.2" 004 9.9
refuses "no measurement" 000 4.4
refuses "repeat.*1 to 1000" --repeat 0
refuses "excludes \"001\"" 001 --all

# --- experiments from a file: without a network card, sockets of this machine remain
cat >"$work/small.toml" <<-'END'
	run = {time = 0.2, warm_up = 0.1, repeat = 2}
	[[sink]]
	address = "127.0.0.1"
	[[group]]
	experiment = "small"
	vary = {size = [2048, 4096]}
	trials = [{name = "zmq {size}", transport = "zmq", series = true}, {name = "card", device = "none"}]
END
sweep() { PATH=$tools:$PATH python3 -B "$paper/sweep.py" "$work/small.toml" --keep "$work/kept" --json="$work/json" "$@" >"$work/out" 2>"$work/err"; }
sweep
is "file-setting: a setting that there is not is refused by name" "$? $(grep -c 'no setting "device"' "$work/err")" "2 1"
sed -i 's/{name = "card".*}]/{name = "card", transport = "udp", size = 70000}]/' "$work/small.toml"
sweep
is "file: trials of each size have a goodput in both rounds, and samples" "$? $(jq -c \
	'[.trials[] | select(.transport == "zmq") | .name, (.goodput_bytes_per_second_rounds | length), (.series[0].time_ms | length > 0)]' \
	"$work/json")" '0 ["zmq 2048",2,true,"zmq 4096",2,true]'
is "file-failed: a trial that fails says why" "$(jq -c '[.left_out[].reason | test("65507")] | length, all' "$work/json" | xargs)" "4 true"
: >"$work/err"
sweep
is "file-resumed: rounds that succeeded are not run again" "$? $(grep -c zmq "$work/err") $(grep -c card "$work/err")" "0 0 4"

# --- validation of a board
cp "$bin/rashpa-bench" "$bin/rashpactl"
answer report <<-'END'
	{ "date": "2026-01-01T00:00:00Z", "kernel": { "release": "6.12.1", "machine": "x86_64" },
	  "doctor": { "problems": 0, "checks": [ { "check": "iommu", "verdict": "note", "text": "off", "remedy": "turn it on" } ] } }
END
answer "--json list" <<<'{ "devices": [ { "node": "fpga0", "vendor": "0x10ee" } ] }'
answer "--json board test fpga0" <<-'END'
	{ "id": "10ee:7024", "kernel": "6.12.1", "version": "0", "iommu": false,
	  "tests": [ { "test": "stop", "verdict": "passed", "text": "10 times" }, { "test": "mask", "verdict": "skipped", "text": "<root>" } ],
	  "transfers": [ { "size_bytes": 4096, "p50_ns": 8000, "max_ns": 9000 }, { "size_bytes": 65536, "p50_ns": 32768, "max_ns": 40000 } ] }
END
validate() { PATH=$bin:$PATH RASHPA_BENCH=$bin/rashpa-bench python3 -B "$paper/validate.py" --out "$work/card" "$@" >"$work/out" 2>"$work/err"; }
validate --name KC705 fpga0
is "card: a card's line has its kernel, latency and throughput, with units" "$? $(head -n 1 "$work/out")" \
	"0 | KC705 | passed | card, 6.12.1 | 8.0 us | 2.00 GB/s |"
is "card-json: all that was measured is in one file" \
	"$(jq -c '[.report.kernel.release, .test.id, .software, (.figures | map([.id, .quantities[], .rows[-1].here]))]' "$work/card/validation.json")" \
	'["6.12.1","10ee:7024",false,[["transfer","us, median",32.768],["throughput","GB/s",2.0]]]'
is "card-page: the page has the tests, the remedies and a plot of each figure" \
	"$(grep -o '&lt;root&gt;\|turn it on\|<svg\|<h2>throughput' "$work/card/index.html" | sort | xargs)" "&lt;root&gt; <h2>throughput <svg <svg turn it on"
sed -i 's/0x10ee/0x1234/' "$bin/answers/--json list"
sed -i 's/"skipped"/"failed"/; s/"transfers": .*/"transfers": [] }/' "$bin/answers/--json board test fpga0"
answer "latency " <<<'{ "rows": [], "left_out": [ { "name": "a", "reason": "no registers" }, { "name": "b", "reason": "no registers" } ] }'
validate fpga0
is "card-failed: a test that fails is named; a program is no card" "$? $(head -n 1 "$work/out")" \
	"1 | 10ee:7024 | fails: mask | lab only | - | - |"
is "card-missing: the reason of a missing measurement is on the page" \
	"$(jq -r '.missing | .latency, .throughput' "$work/card/validation.json" | xargs) $(grep -c 'Not measured: rashpa-bench: no such thing' "$work/card/index.html")" \
	"no registers rashpa-bench: no such thing here 1"
validate fpga1
is "card-none: without the board test there is no result" "$? $(<"$work/err")" "1 rashpa-bench: no such thing here"

# --- one for real
"$tools/rashpa-bench" paper 000 S4.3.2 --repeat 1 --json="$work/json" >"$work/out"
is "real: pre-processing on these processors" "$? $(rows 'map(select(.here)) | length > 0 and all(.here > 0)')" "0 true"
finish
