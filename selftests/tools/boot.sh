#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# test: iommu=any seconds=25
# Setup at every boot: rashpactl apply, --exist-ok, boards of other drivers, and boards that the kernel
# bound by their ids.
. "$(dirname "$0")/../lib/shell.sh"

have_fpga || { skip "boot: boot" "no software FPGA in this guest"; finish; }
groupadd -rf rashpa
export RASHPA_CONFIG=$work/etc
mkdir -p "$RASHPA_CONFIG"/{buffers,boards}.d
driver=/sys/bus/pci/drivers/rashpa

buffers() { echo "{ \"buffers\": [ $* ] }" >"$RASHPA_CONFIG/buffers.d/$file.conf"; }
boards() { echo "{ \"boards\": [ $* ] }" >"$RASHPA_CONFIG/boards.d/$file.conf"; }
# a property of the board, as list prints it
board() { rashpactl --json list | jq -r "[.. | objects | select(.bdf? == \"$bdf\")][0].$1"; }
served_by() { basename "$(readlink "/sys/bus/pci/devices/$1/driver")"; }
says() { # NAME STATUS PATTERN COMMAND...
	local name=$1 status=$2 pattern=$3
	shift 3
	"$@" >"$work/out" 2>&1
	(($? == status)) && grep -q "$pattern" "$work/out"
	ok $? "$name" || sed 's/^/# /' "$work/out"
}

# --- create --exist-ok
says "made: made" 0 "^kept: 2 MiB" rashpactl buffer create --exist-ok kept 2M
says "left: left" 0 "existed$" rashpactl buffer create --exist-ok kept 2M
says "without-option: without the option" 1 "a buffer named kept exists" rashpactl buffer create kept 2M
says "another-size: a buffer of another size" 1 "differs .*: size: remove it first" rashpactl buffer create --exist-ok kept 4M
says "another-cache: a buffer with another cache mode" 1 "differs .*: cache" rashpactl buffer create --exist-ok --cache uc kept 2M
json '.existed and .length_bytes == 2097152' rashpactl buffer create --exist-ok --json kept 2M
ok $? "json: JSON tells"
rashpactl buffer remove kept
says "for: for a function" 0 "^near: 4 MiB" rashpactl buffer create near 4M --for "fpga$fpga"
rashpactl buffer remove near

# --- huge pages
pool=/sys/kernel/mm/hugepages/hugepages-2048kB
pages=$(<$pool/nr_hugepages)
echo $((pages + 3)) >$pool/nr_hugepages	# those that it has may be damaged
says "huge: a buffer has huge pages" 0 "^giant: 4 MiB, huge, node 0" rashpactl buffer create giant 3M --huge 2M
is "huge-taken: they are of the pool" "$(<$pool/free_hugepages)" 1
says "huge-info: info says so" 0 "^backend *huge" rashpactl buffer info giant
says "huge-again: again" 0 "existed$" rashpactl buffer create giant 4M --huge 2M --exist-ok
says "huge-differs: a buffer with other pages is refused" 1 "differs .*: backend" \
	rashpactl buffer create giant 4M --backend contig --exist-ok
says "huge-map: a function maps it" 0 "" rashpactl map make giant "fpga$fpga"
says "huge-too-many: too few are free" 1 "2 huge pages of 2048 KiB wanted, 1 of [0-9]* are free: reserve" \
	rashpactl buffer create more 4M --huge 2M
says "huge-node: a node without enough huge pages is named" 1 "wanted, 1 of [0-9]* of node 0 are free" rashpactl buffer create more 4M --huge 2M --node 0
says "huge-no-node: a node that does not exist" 1 "22\|Invalid" rashpactl buffer create more 2M --huge 2M --node 99
says "huge-size: a size without a pool" 1 "no huge pages of 8 KiB" rashpactl buffer create more 2M --huge 8K
says "huge-for: not for a function" 2 "give .-node" rashpactl buffer create more 2M --huge 2M --for "fpga$fpga"
rashpactl buffer remove giant
is "huge-back: they are back" "$(<$pool/free_hugepages)" 3
file=a
buffers '{ "name": "giant", "size": "2M", "huge": "2M", "node": 0 }'
says "huge-apply: apply" 0 "^giant: 2 MiB, huge" rashpactl apply
buffers '{ "name": "giant", "size": "2M", "huge": "2M", "backend": "cma" }'
says "huge-backend: not with a backend" 1 "backend and huge" rashpactl apply
rashpactl buffer remove giant
rm "$RASHPA_CONFIG"/buffers.d/*
echo "$pages" >$pool/nr_hugepages

# --- buffers
file=a
buffers '{ "name": "one", "size": "4M", "mode": "0640", "dma_bits": 32 }, { "name": "two", "size": 4096, "owner": "nobody:rashpa" }'
says "apply: apply" 0 "^one: 4 MiB" rashpactl apply
is "group: the group has them" "$(stat -c '%U:%G %a' /dev/rashpa/buffer/one /dev/rashpa/buffer/two | xargs)" \
	"root:rashpa 640 nobody:rashpa 660"
chmod 600 /dev/rashpa/buffer/two
says "again: again" 0 "^two: .*existed" rashpactl apply
is "changed-since-stays: later changes stay" "$(stat -c %a /dev/rashpa/buffer/two)" 600
file=b
buffers '{ "name": "three", "size": "9000T" }, { "name": "four", "size": "2M" }'
says "one-not-fit: one does not fit" 1 "b.conf: the buffer three is not there" rashpactl apply
[[ -c /dev/rashpa/buffer/four ]]
ok $? "behind: the buffers after it are made"
buffers '{ "name": "one", "size": "4M" }'
says "name-two-files: a name in two files" 1 "b.conf: the buffer one is in .*a.conf already" rashpactl apply
buffers '{ "title": "one", "size": "4M" }'
says "wrong-key: a wrong key" 1 "b.conf: buffers\[0\].title: unknown key" rashpactl apply
rm "$RASHPA_CONFIG"/buffers.d/*
for name in one two four; do
	rashpactl buffer remove "$name"
done

# --- boards
rashpactl unbind "$bdf"
file=a
boards "{ \"function\": \"$bdf\" }"
says "board-place: a board by its place" 0 "^$bdf: fpga[0-9]" rashpactl apply
says "board/again: again" 0 "^$bdf: fpga[0-9]" rashpactl apply
is "profile: it has its profile" "$(board profile)" true
rashpactl unbind "$bdf"
modprobe pci-stub
echo pci-stub >"/sys/bus/pci/devices/$bdf/driver_override"
echo "$bdf" >/sys/bus/pci/drivers/pci-stub/bind
is "another-driver: another driver has it" "$(served_by "$bdf")" pci-stub
says "left-alone: another driver keeps it" 1 "served by the driver pci-stub" rashpactl apply
is "it-is-still-there: it is still there" "$(served_by "$bdf")" pci-stub
boards "{ \"function\": \"$bdf\", \"take\": true }"
says "unless: unless told" 0 "^$bdf: fpga" rashpactl apply
is "then-it-is-ours: then it is ours" "$(served_by "$bdf")" rashpa
rashpactl unbind "$bdf"

# by their kind: the kernel gives them, also those that come later, without a profile
boards '{ "function": "1234:5250" }'
says "boards-ids: boards by their ids" 0 "^$bdf: fpga" rashpactl apply
echo "$bdf" >"$driver/unbind"
echo "$bdf" >/sys/bus/pci/drivers_probe
node=$(board node)
[[ $node == fpga* ]]
ok $? "one-later-driver: one that comes later is the driver's: $node"
is "no-profile: and has no profile yet" "$(board profile)" false
says "udev-asks: which udev asks for" 0 "^$bdf: $node" rashpactl apply "$node"
is "now-it-has-it: now it has it" "$(board profile)" true
says "second-bind: a second bind" 1 "bound already" rashpactl bind "$bdf"
says "no-harm: is no harm where it may be there" 0 "^$node" rashpactl bind --exist-ok "$bdf"
boards '{ "function": "0000:77:00.0" }'
says "place-without-board: a place without a board" 1 "there is no PCI function 0000:77:00.0" rashpactl apply
boards '{ "function": "here" }'
says "no-place: no place" 1 "neither BDF" rashpactl apply
# the ids go with the driver's memory of them
echo "1234 5250" >"$driver/remove_id"
finish
