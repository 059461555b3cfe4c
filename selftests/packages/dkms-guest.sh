#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Runs inside a guest, after dkms.sh: modprobe finds and loads what DKMS installed; a kernel
# that asks for signatures refuses it unsigned and signed by a key it does not know, with
# the words that the documentation and "rashpactl doctor" use. TAP.
# build/dkms/key.pem and key.x509 are made by install.sh.
# shellcheck source-path=SCRIPTDIR source=../lib/shell.sh
. "$(dirname "$0")/../lib/shell.sh"
export PATH=$PWD/build/tools:$PATH
release=$(uname -r)
enforce=/sys/module/module/parameters/sig_enforce

refused() { # NAME WORDS: modprobe fails with them
	! modprobe rashpa 2>"$work/said" && grep -q "$2" "$work/said" && [[ ! -d /sys/module/rashpa ]]
	ok $? "refused-not-loaded: $1: refused, and not loaded" || sed 's/^/# /' "$work/said"
}

told() { # NAME WORDS: the kernel's log has them since the last look
	dmesg -c | grep -q "$2"
	ok $? "log: $1: the log says: $2"
}

doctor_says() { # NAME WORDS REMEDY
	rashpactl doctor >"$work/doctor"
	grep -A1 "^problem *signing .*$2" "$work/doctor" | grep -q "$3"
	ok $? "doctor-why: $1: doctor tells why, and what to do" || sed 's/^/# /' "$work/doctor"
}

tar -xf build/dkms/installed.tar -C /
file=$(modinfo -n rashpa)
[[ $file == /lib/modules/$release/updates/dkms/rashpa.ko* ]]
ok $? "modprobe-take-file: modprobe would take the file of DKMS"
modprobe rashpa
ok $? "modprobe-loads: modprobe loads it"
[[ -c /dev/rashpa/memory ]]
ok $? "serves-node: and it serves its node"
is "version: its version" "$(cat /sys/module/rashpa/version)" "$(sed -n 's/^PACKAGE_VERSION="\(.*\)"/\1/p' dkms.conf)"
modprobe -r rashpa
ok $? "modprobe-r-unloads: modprobe -r unloads it"

# What the README says after "make install", with the address of this board, and fewer images.
(
	export PATH=/usr/local/bin:/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin
	tar -xf build/dkms/tools.tar -C / && ldconfig && cd "$work" || exit 1
	board=$(lspci -D -d 1234:5250 | cut -d' ' -f1)
	echo "set -e"
	sed -n '/^    groupadd/,/^    remu/{s/#.*//; s/^    //; p}' "$OLDPWD/README.md" |
		sed "s/0000:03:00.0/$board/; s/--images 10000/--images 100/"
	echo 'wait $!'
) >"$work/commands"
is "readme-commands: the README has commands" "$(grep -c "^rashpactl\|^re\|^ro\|^mod\|^gr" "$work/commands")" 7
(cd "$work" && PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin bash -x "$work/commands") \
	>"$work/said" 2>&1
ok $? "commands-run-stand: its commands run as they stand there" || sed 's/^/# /' "$work/said"
is "100-images-file: 100 images are in the file" "$(stat -c %s "$work/out.raw")" $((100 * 1024 * 512 * 2))
grep -q "^frames *100 in " "$work/said" && grep -q "^images *100 in " "$work/said"
ok $? "tools: and both tools tell so" || sed 's/^/# /' "$work/said"
rm -f "$work/out.raw"
rashpactl unbind fpga0 && rashpactl buffer remove ring0 && modprobe -r rashpa
ok $? "all-taken-back: and all of it can be taken back"

rashpactl doctor >"$work/doctor"
grep -q '^ok *signing .*not required; rashpa.ko is not signed' "$work/doctor"
ok $? "doctor: no signature is needed" || sed 's/^/# /' "$work/doctor"

# lockdown, as Debian's kernels have it with Secure Boot; there is no way back
mountpoint -q /sys/kernel/security || mount -t securityfs none /sys/kernel/security
echo integrity >/sys/kernel/security/lockdown
refused "locked down, unsigned module" "Operation not permitted"
told "locked down, unsigned module" 'unsigned module loading is restricted'
doctor_says "locked down, unsigned module" 'required; rashpa.ko is not signed' \
	'Operation not permitted'

echo 1 >$enforce
is "kernel-asks-signatures: the kernel asks for signatures now" "$(cat $enforce)" Y
refused "unsigned module" "Key was rejected by service"
told "unsigned module" 'Loading of unsigned module is rejected'
doctor_says "unsigned module" 'required; rashpa.ko is not signed' 'Key was rejected by service'

if [[ -s build/dkms/key.pem ]]; then
	xz -dc "$file" >"$work/rashpa.ko" 2>/dev/null || cp "$file" "$work/rashpa.ko"
	rm "$file"
	"/lib/modules/$release/build/scripts/sign-file" sha256 build/dkms/key.pem \
		build/dkms/key.x509 "$work/rashpa.ko" "${file%.xz}"
	ok $? "kernel-sign-file-signs: the kernel's sign-file signs it"
	depmod
	is "modinfo-signer: modinfo tells the signer" "$(modinfo -F signer rashpa)" "rashpa test key"
	refused "signed by an unknown key" "Key was rejected by service"
	told "signed by an unknown key" 'Loading of module with unavailable key is rejected'
	doctor_says "signed by an unknown key" \
		'signed by "rashpa test key", it does not know that key' \
		'Key was rejected by service.*mokutil --import'
	# a byte of the module is changed: the signature does not fit
	printf 'X' | dd of="${file%.xz}" bs=1 seek=4096 conv=notrunc status=none
	modprobe rashpa 2>/dev/null
	ok $((! $?)) "module-changed-after: a module that was changed after it was signed: refused"
else
	skip "signed-module: a signed module" "no openssl on this machine to make a key"
fi
finish
