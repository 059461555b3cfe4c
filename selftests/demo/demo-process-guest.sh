#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# The second part of the demonstration, in the guest: romulu converts raw frames of serial
# crystallography to photons and drops frames without peaks. It integrates the others and writes
# them as NeXus. demo-process-guest.sh JSON SVG [FRAMES]: FRAMES must fit into the board's memory
set -euo pipefail

cd "$(dirname "$0")/../.."
top=$PWD
export PATH=$PWD/build/tools:$PATH RASHPA_PROFILES=$PWD/tools/data/profiles PYTHONDONTWRITEBYTECODE=1
export PYTHONPATH=$PWD/build/tools/python RASHPA_LIBRARY=$PWD/build/tools/librashpa.so.0 OPENBLAS_NUM_THREADS=1
export RASHPA_PROCESSING_LIBRARY=$PWD/build/tools/librashpa-processing.so.0
json=$1 svg=$2 frames=${3:-64}
work=$(mktemp -d)
export MPLCONFIGDIR=$work
cp build/matplotlib/fontlist* "$work" # avoids a slow search for fonts
[[ -e /dev/rashpa/memory ]] || insmod "build/modules/$RASHPA_KERNEL/rashpa.ko"
bdf=$(lspci -D -d 1234:5250 | head -n 1 | cut -d' ' -f1)
fpga=$(rashpactl --json bind "$bdf" | jq -r .node)
rashpactl buffer create raw 64M >/dev/null

cd "$work"
echo "   python3 -m rashpa.dataset: raw frames of a JUNGFRAU, three of ten with peaks"
python3 -m rashpa.dataset jungfrau ssx.h5 --images $((frames * 3 / 4)) --darks 4 --hit-rate 0.3 | sed 's/^/   | /'
cat >geometry.poni <<END
poni_version: 2.1
Detector: Detector
Detector_config: {"pixel1": 7.5e-05, "pixel2": 7.5e-05, "orientation": 3}
Distance: 0.1
Poni1: 0.0192
Poni2: 0.0384
Rot1: 0
Rot2: 0
Rot3: 0
Wavelength: 1e-10
END
cat >pipeline.json <<END
{"pretreat": {"detector": "jungfrau", "pedestal": "ssx.h5:/calibration/pedestal",
	"gain": "ssx.h5:/calibration/gain", "mask": "ssx.h5:/calibration/mask", "dark_images": 16},
 "peaks": {"finder": "peakfinder8", "centre": [512, 256], "threshold": 10, "snr": 6},
 "veto": {"peaks": 10},
 "compress": {"threshold": 2.5},
 "integrate": {"poni": "geometry.poni", "bins": 300},
 "sinks": {"nexus": {"file": "hits.h5", "what": ["images", "compressed"], "compression": "bitshuffle-lz4"}}}
END
echo "   remu: a dark frame after every three; romulu --engine cpu: photons, peaks, veto, NeXus"
status=0
romulu --buffer raw --engine cpu --pipeline pipeline.json --tune progress --timeout 120 --json=romulu.json &
receiver=$!
remu --buffer raw --fpga "${fpga#fpga}" --bunch 4 --slots 4 --images "$frames" --dataset ssx.h5 \
	--tune darks=ssx.h5:/darks/data --tune dark-every=4 --timeout 120 --json=remu.json || { status=$?; kill "$receiver"; }
wait "$receiver" || status=$?
((!status)) || exit "$status"
rashpactl buffer remove raw >/dev/null
echo "   h5py: reads hits.h5"
python3 "$top/selftests/demo/demo_process.py" "$RASHPA_IOMMU" "$top/$json" "$top/$svg" || status=$?
rm -rf "$work"
exit "$status"
