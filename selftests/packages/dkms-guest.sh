#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Runs inside a guest, after dkms.sh: modprobe finds and loads the module that DKMS installed. A
# kernel that requires signatures refuses it unsigned, and signed by an unknown key. Its words are
# those of the documentation and of "rashpactl doctor". TAP.
# install.sh makes build/dkms/key.pem and key.x509.
# shellcheck source-path=SCRIPTDIR source=../lib/shell.sh
. "$(dirname "$0")/../lib/shell.sh"
export PATH=$PWD/build/tools:$PATH
release=$(uname -r)
enforce=/sys/module/module/parameters/sig_enforce

refused() { # NAME WORDS: modprobe fails with them
	! modprobe rashpa 2>"$work/said" && grep -q "$2" "$work/said" && [[ ! -d /sys/module/rashpa ]]
	ok $? "refused-not-loaded: $1: the kernel refuses it and does not load it" || sed 's/^/# /' "$work/said"
}

told() { # NAME WORDS: the kernel's log contains them since the last check
	dmesg -c | grep -q "$2"
	ok $? "log: $1: the log contains: $2"
}

doctor_says() { # NAME WORDS REMEDY
	rashpactl doctor >"$work/doctor"
	grep -A1 "^problem *signing .*$2" "$work/doctor" | grep -q "$3"
	ok $? "doctor-why: $1: doctor prints the reason and the remedy" || sed 's/^/# /' "$work/doctor"
}

tar -xf build/dkms/installed.tar -C /
file=$(modinfo -n rashpa)
[[ $file == /lib/modules/$release/updates/dkms/rashpa.ko* ]]
ok $? "modprobe-take-file: modprobe would take the file of DKMS"
modprobe rashpa
ok $? "modprobe-loads: modprobe loads the module"
[[ -c /dev/rashpa/memory ]]
ok $? "serves-node: the module serves its node"
is "version: it has the expected version" "$(cat /sys/module/rashpa/version)" "$(sed -n 's/^PACKAGE_VERSION="\(.*\)"/\1/p' dkms.conf)"
modprobe -r rashpa
ok $? "modprobe-r-unloads: modprobe -r unloads it"

# Commands of the README after "make install", with the address of this board, and fewer images.
(
	export PATH=/usr/local/bin:/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin
	tar -xf build/dkms/tools.tar -C / && ldconfig && cd "$work" || exit 1
	board=$(lspci -D -d 1234:5250 | cut -d' ' -f1)
	echo "set -e"
	sed -n '/^    modprobe rashpa/,/^    remu/{s/#.*//; s/^    //; p}' "$OLDPWD/README.md" |
		sed "s/0000:03:00.0/$board/; s/--images 1000$/--images 100/"
	echo 'wait $!'
) >"$work/commands"
is "readme-commands: the README contains the commands" "$(grep -c "^rashpactl\|^re\|^ro\|^mod" "$work/commands")" 5
(cd "$work" && PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin bash -x "$work/commands") \
	>"$work/said" 2>&1
ok $? "commands-run-stand: its commands run unchanged" || sed 's/^/# /' "$work/said"
is "100-images-file: the file contains 100 images" "$(stat -c %s "$work/out.raw")" $((100 * 1024 * 512 * 2))
grep -q "^frames *100 in " "$work/said" && grep -q "^images *100 in " "$work/said"
ok $? "tools: both tools report 100 images" || sed 's/^/# /' "$work/said"
rm -f "$work/out.raw"
rashpactl unbind fpga0 && rashpactl buffer remove ring0 && modprobe -r rashpa
ok $? "all-taken-back: all of it can be undone"

rashpactl doctor >"$work/doctor"
grep -q '^ok *signing .*not required; rashpa.ko is not signed' "$work/doctor"
ok $? "doctor: no signature is needed" || sed 's/^/# /' "$work/doctor"

# lockdown, as in Debian's kernels with Secure Boot; it cannot be undone
mountpoint -q /sys/kernel/security || mount -t securityfs none /sys/kernel/security
echo integrity >/sys/kernel/security/lockdown
refused "locked down, unsigned module" "Operation not permitted"
told "locked down, unsigned module" 'unsigned module loading is restricted'
doctor_says "locked down, unsigned module" 'required; rashpa.ko is not signed' \
	'Operation not permitted'

echo 1 >$enforce
is "kernel-asks-signatures: the kernel requires signatures now" "$(cat $enforce)" Y
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
	is "modinfo-signer: modinfo prints the signer" "$(modinfo -F signer rashpa)" "rashpa test key"
	refused "signed by an unknown key" "Key was rejected by service"
	told "signed by an unknown key" 'Loading of module with unavailable key is rejected'
	doctor_says "signed by an unknown key" \
		'signed by "rashpa test key", it does not know that key' \
		'Key was rejected by service.*mokutil --import'
	# change a byte of the module: the signature does not fit
	printf 'X' | dd of="${file%.xz}" bs=1 seek=4096 conv=notrunc status=none
	modprobe rashpa 2>/dev/null
	ok $((! $?)) "module-changed-after: a module that was changed after it was signed is refused"
else
	skip "signed-module: the kernel refuses an unknown key" "no openssl on this machine to make a key"
fi
finish
