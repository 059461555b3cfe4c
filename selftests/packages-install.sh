#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Runs in the folder of a plain Debian root (packages.sh), as its administrator: installs the packages, says what
# shall be there after a boot, and who may use it. packages-install.sh CHECKOUT
set -eu
mkdir -p root/test/debs
cp "$1"/build/deb/*.deb root/test/debs
rm -f root/test/debs/*-dbgsym_*
cp "$1"/selftests/packages-guest.sh root/test/
echo first >root/test/stage
mount -t proc proc proc
mount --rbind /dev dev
run() { chroot . /usr/bin/env -i HOME=/root LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive PATH=/usr/sbin:/usr/bin:/sbin:/bin "$@"; }
printf '#!/bin/sh\nexit 101\n' >usr/sbin/policy-rc.d
chmod 755 usr/sbin/policy-rc.d
run sh -c 'apt-get install -y /root/test/debs/*.deb'
rm usr/sbin/policy-rc.d
run useradd --create-home --groups rashpa daq
echo '{ "buffers": [ { "name": "ring0", "size": "64M" } ] }' >etc/rashpa/buffers.d/one.conf
echo '{ "boards": [ { "function": "1234:5250" } ] }' >etc/rashpa/boards.d/one.conf
for tool in remu romulu; do
	echo OPTIONS=--leader=group:rashpa >etc/rashpa/$tool-one.conf
done
cat >etc/systemd/system/packages-test.service <<-UNIT
	[Unit]
	Description=test of packages
	After=multi-user.target
	[Service]
	Type=exec
	ExecStart=/root/test/packages-guest.sh
	[Install]
	WantedBy=multi-user.target
UNIT
run systemctl enable packages-test
run dkms status rashpa
umount -l dev proc
