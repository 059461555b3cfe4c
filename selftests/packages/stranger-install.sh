#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Runs in the folder of a plain Debian root (stranger.sh), as its administrator: the commands of
# README that install. Differences: apt does not ask, and "uname -r" prints the kernel that will
# run. stranger-install.sh CHECKOUT COMMANDS
set -euo pipefail
TOP=$1
# shellcheck source-path=SCRIPTDIR source=../lab/common.sh
. "$TOP/selftests/lab/common.sh"
# shellcheck source-path=SCRIPTDIR source=../lab/root.sh
. "$TOP/selftests/lab/root.sh"
find_archive
write_access . "$main" "${security-}" >/dev/null
echo 'APT::Get::Assume-Yes "true";' >etc/apt/apt.conf.d/99stranger
kernel=$(ls lib/modules)
printf '#!/bin/sh\n[ "$*" = -r ] && echo %s || exec /usr/bin/uname "$@"\n' "$kernel" >usr/local/bin/uname
chmod 755 usr/local/bin/uname
mkdir -p root/rashpa root/test
tar -C "$TOP" -c --exclude-vcs --exclude=./build --exclude=__pycache__ . | tar -x -C root/rashpa
cp "$2/root.commands" "$2/guest.commands" "$TOP/selftests/packages/stranger-guest.sh" root/test/
mount -t proc proc proc
mount --rbind /dev dev
run() { chroot . /usr/bin/env -i HOME=/root LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive \
	PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "$@"; }
run apt-get update
run bash -exc 'cd /root/rashpa; . /root/test/root.commands' </dev/null
run apt-get clean
rm -rf usr/sbin/policy-rc.d etc/apt/apt.conf.d/99* usr/local/bin/uname var/lib/apt/lists/* root/rashpa/build
cat >etc/systemd/system/stranger.service <<-UNIT
	[Unit]
	Description=commands of README
	After=multi-user.target
	[Service]
	Type=exec
	ExecStart=/root/test/stranger-guest.sh
	[Install]
	WantedBy=multi-user.target
UNIT
run systemctl enable stranger
umount -l dev proc
