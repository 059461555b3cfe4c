#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Runs inside a guest, after dkms.sh: modprobe finds and loads what DKMS installed; a kernel
# that asks for signatures refuses it unsigned and signed by a key it does not know, with
# the words that the documentation and "rashpactl doctor" use. TAP.
# build/dkms/key.pem and key.x509 are made by install.sh.
# shellcheck source-path=SCRIPTDIR source=lib/shell.sh
. "$(dirname "$0")/lib/shell.sh"
export PATH=$PWD/build/tools:$PATH
release=$(uname -r)
enforce=/sys/module/module/parameters/sig_enforce

refused() { # NAME WORDS: modprobe fails with them
	modprobe rashpa 2>"$work/said"
	ok $((! $?)) "$1: refused"
	grep -q "$2" "$work/said"
	ok $? "$1: $2" || sed 's/^/# /' "$work/said"
	[[ ! -d /sys/module/rashpa ]]
	ok $? "$1: not loaded"
}

tar -xf build/dkms/installed.tar -C /
file=$(modinfo -n rashpa)
[[ $file == /lib/modules/$release/updates/dkms/rashpa.ko* ]]
ok $? "modprobe would take the file of DKMS"
modprobe rashpa
ok $? "modprobe loads it"
[[ -c /dev/rashpa/memory ]]
ok $? "and it serves its node"
is "its version" "$(cat /sys/module/rashpa/version)" "$(sed -n 's/^VERSION := //p' Makefile)"
modprobe -r rashpa
ok $? "modprobe -r unloads it"

rashpactl doctor >"$work/doctor"
grep -q '^ok *signing .*not required; rashpa.ko is not signed' "$work/doctor"
ok $? "doctor: no signature is needed" || sed 's/^/# /' "$work/doctor"

echo 1 >$enforce
is "the kernel asks for signatures now" "$(cat $enforce)" Y
refused "unsigned module" "Key was rejected by service"
rashpactl doctor >"$work/doctor"
grep -A1 '^problem *signing .*required; rashpa.ko is not signed' "$work/doctor" |
	grep -q 'Key was rejected by service'
ok $? "doctor: tells why, and what to do" || sed 's/^/# /' "$work/doctor"

if [[ -s build/dkms/key.pem ]]; then
	xz -dc "$file" >"$work/rashpa.ko" 2>/dev/null || cp "$file" "$work/rashpa.ko"
	rm "$file"
	"/lib/modules/$release/build/scripts/sign-file" sha256 build/dkms/key.pem \
		build/dkms/key.x509 "$work/rashpa.ko" "${file%.xz}"
	ok $? "the kernel's sign-file signs it"
	depmod
	is "modinfo tells the signer" "$(modinfo -F signer rashpa)" "rashpa test key"
	refused "signed by an unknown key" "Required key not available"
	rashpactl doctor >"$work/doctor"
	grep -A1 '^problem *signing .*signed by "rashpa test key", it does not know that key' \
		"$work/doctor" | grep -q 'Required key not available.*mokutil --import'
	ok $? "doctor: tells why, and what to do" || sed 's/^/# /' "$work/doctor"
	# a byte of the module is changed: the signature does not fit
	printf 'X' | dd of="${file%.xz}" bs=1 seek=4096 conv=notrunc status=none
	modprobe rashpa 2>/dev/null
	ok $((! $?)) "a module that was changed after it was signed: refused"
else
	skip "a signed module" "no openssl on this machine to make a key"
fi
finish
