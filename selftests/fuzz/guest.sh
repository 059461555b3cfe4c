#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Inside the guest: turns of the fuzzers, a new seed and another number of threads each,
# until SECONDS are over. guest.sh SECONDS SEED
set -uo pipefail

cd "$(dirname "$0")/../.." || exit 1
bin=build/selftests/fuzz
status=0 seed=$2 end=$((SECONDS + $1))

insmod "build/modules/${RASHPA_KERNEL:?set by the lab}/rashpa.ko" || exit 1
while ((SECONDS < end)); do
	left=$((end - SECONDS))
	"$bin/regs" "$seed" 10 || status=1
	"$bin/fuzz" --seed "$seed" --seconds $((left < 60 ? left : 60)) \
		--threads $((seed % 3 + 1)) || status=1
	seed=$((seed + 1))
done
rmmod rashpa || status=1
exit "$status"
