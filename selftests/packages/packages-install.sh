#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Runs in the folder of a plain Debian root (packages.sh), as its administrator: installs the
# packages of a version. Configures buffers, boards and a user for the next boot. Copies the next
# version, for an upgrade. packages-install.sh CHECKOUT PACKAGES NEXT KEY
set -eu
mkdir -p root/test/debs root/test/new
cp "$2"/*.deb root/test/debs
cp "$3"/*.deb root/test/new
rm -f root/test/*/*-dbgsym_*
cp "$1"/selftests/{packages/packages-guest,lib/rxe}.sh root/test/
echo first >root/test/stage
# versions: before; tools and driver after
version() { dpkg-deb -f "$(echo "$1"/rashpa-tools_*.deb)" Version; }
echo "$(version "$2") $(version "$3") $(version "$3")" >root/test/versions
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
# the key for the firmware
cp var/lib/dkms/mok.pub "$4"
umount -l dev proc
