#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Runs in a guest: a stream without losses, as "rashpactl top" shows it.
# guest.sh FOLDER: writes top.txt there.
set -euo pipefail

out=$1
mkdir -p "$out"
export PATH=$PWD/build/tools:$PATH RASHPA_PROFILES=$PWD/tools/data/profiles
[[ -e /dev/rashpa/memory ]] || insmod "build/modules/$RASHPA_KERNEL/rashpa.ko"
fpga=$(rashpactl --json bind "$(lspci -D -d 1234:5250 | head -n 1 | cut -d' ' -f1)" | jq -r .node)
rashpactl buffer create ring0 256M
# slow enough for an emulated machine
romulu --buffer ring0 --timeout 60 &
remu --buffer ring0 --fpga "${fpga#fpga}" --dataset generate:10:1 --bunch 1 --slots 240 --rate 5 --images 100000 --timeout 60 &
rashpactl top --count 1 --interval 5 --timeout 60 ring0 >"$out/top.txt"
kill %2
wait || true # the producer was killed
