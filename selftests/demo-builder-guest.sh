#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# The part of the demonstration of event building that runs in the guests.
# demo-builder-guest.sh near|far FOLDER FRAMES. The folder is shared: what one end waits for of the
# other is a file there. mpirun, which has no ssh to go by here, leaves the command for the other end in one.
set -euo pipefail

cd "$(dirname "$0")/.."
export PATH=$PWD/build/tools:$PATH RASHPA_PROFILES=$PWD/tools/profiles
side=$1 out=$2 frames=${3:-300}
images=16 width=256 height=128
declare -A number=([near]=1 [far]=2)
i=$((number[$side] - 1))

hostname "$side"
. selftests/lib/wire.sh
wire_up "${number[$side]}"
ip link set lo up
insmod "build/modules/$RASHPA_KERNEL/rashpa.ko"
work=$(mktemp -d)
trap 'touch "$out/over"; rm -rf "$work"' EXIT
until_file() { until [[ -e $1 ]]; do [[ ! -e $out/over ]] || exit 1; sleep 0.2; done; }

# both know both halves
for half in 0 1; do
	python3 -B -c 'import sys, numpy
numpy.random.default_rng(int(sys.argv[1])).integers(0, 65536, int(sys.argv[2]), numpy.uint16).tofile(sys.argv[3])' \
		"$half" "$((images * width * height))" "$work/half$half.raw"
done
bdf=$(lspci -D -d 1234:5250 | head -n 1 | cut -d' ' -f1)
fpga=$(rashpactl --json list | jq -r ".devices[] | select(.bdf == \"$bdf\").node")
[[ $fpga ]] || fpga=$(rashpactl --json bind "$bdf" | jq -r .node)
rashpactl buffer create "part$i" 16M >/dev/null
rashpactl buffer create "whole$i" 32M >/dev/null
PYTHONPATH=tools/python RASHPA_LIBRARY=build/tools/librashpa.so.0 python3 -B selftests/python/whole.py \
	"whole$i" "$width" "$height" "$work"/half{0,1}.raw >"$out/$side.part" &
compares=$!
remu --buffer "part$i" --fpga "${fpga#fpga}" --dataset "$work/half$i.raw" --geometry "${width}x$height" \
	--bunch 4 --images "$frames" --timeout 300 --json="$out/$side-remu.json" &
streams=$!
touch "$out/$side.ready"

status=0
if [[ $side == near ]]; then
	until_file "$out/far.ready"
	export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
	cat >"$work/agent" <<END
#!/bin/bash
shift
printf '%s\n' "\$*" >"$PWD/$out/command.part"
mv "$PWD/$out/command.part" "$PWD/$out/command"
until [[ -e "$PWD/$out/command.over" ]]; do sleep 0.2; done
END
	chmod +x "$work/agent"
	# the manager, two readouts, two builders
	printf '%s\n' 10.2.0.1 10.2.0.1 10.2.0.2 10.2.0.1 10.2.0.2 >"$work/hosts"
	timeout 400 mpirun --prtemca plm_ssh_agent "$work/agent" --prtemca prte_if_include "$device" \
		--hostfile "$work/hosts" --map-by seq --bind-to none \
		"$PWD/build/tools/rashpa-builder" build --transport verbs --device rxe0 --readouts 2 --from part \
		--geometry "${width}x$height" --to whole --timeout 120 --json >"$out/run.json" 2>"$out/mpirun.txt" || status=1
else
	until_file "$out/command"
	bash -c "$(<"$out/command")" >"$out/prted.txt" 2>&1 || status=1
	touch "$out/command.over"
fi
if ((status)); then
	# nobody ends the stream that is compared
	kill "$streams" "$compares" 2>/dev/null || :
	cat "$out"/{mpirun,prted}.txt 2>/dev/null || :
	exit 1
fi
wait "$streams" || status=1
wait "$compares" || status=1
mv "$out/$side.part" "$out/$side.json"
# the wire is there until both are done
touch "$out/$side.over"
until [[ -e $out/near.over && -e $out/far.over ]] || [[ -e $out/over ]]; do sleep 0.2; done
exit "$status"
