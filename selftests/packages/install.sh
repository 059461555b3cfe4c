#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Installs as users do, with DKMS (dkms.sh, in the lab's root), and loads the installed
# module in a guest, unsigned and signed (dkms-guest.sh). TAP of both.
# Needs build/tools: make lab-build.
set -uo pipefail

cd "$(dirname "$0")/../.." || exit 1
lab=selftests/lab/lab
status=0
"$lab" exec --full --scratch -- selftests/packages/dkms.sh || status=1
# a key that no kernel knows
if command -v openssl >/dev/null; then
	openssl req -new -x509 -newkey rsa:2048 -nodes -days 2 -subj "/CN=rashpa test key" \
		-outform DER -keyout build/dkms/key.pem -out build/dkms/key.x509 2>/dev/null
fi
"$lab" run --kernel newest --smp 1 --memory 3G --fpga 1 --timeout 300 --log build/dkms/guest.log -- \
	selftests/packages/dkms-guest.sh || status=1
rm -f build/dkms/key.pem
exit "$status"
