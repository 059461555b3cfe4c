#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# test: tier=all where=guest kernel=any iommu=off seconds=50
# Packets of UDP that arrive by AF_XDP: packets that are taken, packets left to the kernel, and
# resources left at the end.
. "$(dirname "$0")/../lib/shell.sh"
. "$(dirname "$0")/../lib/rxe-pair.sh"
. "$(dirname "$0")/../lib/rxe-stream.sh"

romulu_at() { at b "${@:2}" romulu --buffer net0 --check --transport udp --tune xdp --listen "$1" >"$work/err" 2>&1; }
attached() { at b ip -j link show dev vd | jq -e '.[0].xdp' >/dev/null; }
# says ID WORDS: check the output of romulu_at
says() { grep -q "$2" "$work/err"; ok $? "$1: romulu refuses: $2" || sed 's/^/# /' "$work/err"; }

need_rxe_pair
# two queues at each end, with a thread each
way=10.5.0.2 line=(a vc egress)
ip link add vc netns a mtu 9000 numtxqueues 2 numrxqueues 2 type veth \
	peer name vd netns b mtu 9000 numtxqueues 2 numrxqueues 2 &&
	at a ip addr add 10.5.0.1/24 dev vc && at b ip addr add 10.5.0.2/24 dev vd &&
	at a ip link set vc up && at b ip link set vd up
ok $? "interfaces: two interfaces of two queues"
romulu_at $way:5001 setpriv --reuid 65534 --clear-groups
if grep -q "built without\|CONFIG_XDP_SOCKETS" "$work/err"; then
	skip "xdp: AF_XDP" "$(tr '\n' ' ' <"$work/err")"
	finish
fi
says privilege "CAP_NET_RAW and CAP_BPF"
romulu_at 5001
says interface "not the address of an interface"
rashpactl buffer create --backend contig net0 64M >/dev/null
ok $? "buffer: a buffer is made"
# a sender that is too fast waits
at a tc qdisc add dev vc root pfifo limit 20000

# --- with checksums, which packets between such interfaces lack
at a tc qdisc add dev vc clsact &&
	at a tc filter add dev vc egress protocol ip u32 match ip protocol 17 0xff action csum udp
ok $? "checksums: packets have checksums"
part=xdp
receive --transport udp --tune xdp --tune threads=2
attached
ok $? "xdp-attached: the program is there"
ip netns exec b timeout 60 python3 -c '
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("10.5.0.2", 6001))
s.sendto(*s.recvfrom(99))' &
echo=$!
wait_for 20 grep -qi ":1771 " "/proc/$echo/net/udp"
at a python3 -c '
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.settimeout(20)
s.sendto(b"x", ("10.5.0.2", 6001))
s.recv(1)'
ok $? "xdp-others: other ports are the kernel's"
wait "$echo"
send --transport udp --split 4 --images 16 --tune linked=1
sent $? "by UDP"
received 0/4
heal
adds_up 16
how='[.network.strange_packets, .network.xdp, .network.packets - .network.xdp_packets]'
is "xdp: packets come by AF_XDP" "$(romulu_says "$how")" '[0,"copy",0]'
! attached
ok $? "xdp-detached: the program went with romulu"

# --- packets that are longer than a frame of AF_XDP, and some lost
part=long
dropping 40 match u32 0x52535553 0xffffffff at 28
receive --transport udp --tune xdp --tune threads=2
send --transport udp --split 4 --images 32 --tune message=8K --tune linked=1
sent $? "long packets"
received 4
lost=$(dropped)
heal
adds_up 32
holds "long: no less is missing ($(romulu_says .network.missing_messages)) than was dropped ($lost)" \
	"$lost > 20 && $(romulu_says .network.missing_messages) >= $lost"

# --- a receiver that sleeps, and has no frames left
part=asleep
has_sent() { at a ip -s -j link show dev vc | jq '.[].stats64.tx.packets'; }
have_sent() { (($(has_sent) >= $1)); }
receive --transport udp --tune xdp
before=$(has_sent)
send --transport udp --split 1 --images 32 --rate 8 --tune linked=1 &
sender=$!
wait_for 20 have_sent $((before + 1000))
kill -STOP "${receiver[0]}"
wait_for 60 have_sent $((before + 32 * 720))
kill -CONT "${receiver[0]}"
wait "$sender"
sent $? "to one that sleeps"
# its status depends on what comes last
wait "${receiver[0]}"
holds "asleep: packets that found no frame are missing ($(romulu_says '[.network.missing_messages, .corrupt]'))" \
	"$(romulu_says .network.missing_messages) >= $(romulu_says .network.socket_drops) && $(romulu_says .corrupt) == 0"
holds "asleep-some: there were such ($(romulu_says .network.socket_drops))" "$(romulu_says '.network.socket_drops') > 1000"

# --- a bit that is wrong
part=bits
at a tc qdisc replace dev vc root netem limit 20000 corrupt 5%
receive --transport udp --tune xdp --tune threads=2
send --transport udp --split 2 --images 8
sent $? "on a line that changes bits"
received 4
at a tc qdisc replace dev vc root pfifo limit 20000
holds "bits-some: such packets ($(romulu_says .network.strange_packets)) are missing ($(romulu_says .network.missing_messages))" \
	"$(romulu_says '.network.strange_packets') > 50 &&
	$(romulu_says .network.missing_messages) >= $(romulu_says .network.strange_packets)"
is "bits: nothing wrong is called right" "$(romulu_says '[.corrupt, .frames]')" "[0,8]"

# --- a JUNGFRAU, IPv6, an interface that runs no program itself
part=generic
rm -f "$work/romulu0.json"
head -c 4M /dev/urandom >"$work/module.raw"
ip netns exec b romulu --buffer net0 --check --transport jungfrau --tune xdp --listen '[::1]:5001' --images 16 --tune settle=10000 \
	--dataset "$work/module.raw" --geometry 1024x512,u16 --timeout 30 --json="$work/romulu0.json" \
	>"$work/out0" 2>&1 &
receiver[0]=$!
wait_for 20 grep -qsi ":1389 " "/proc/${receiver[0]}/net/udp6"
at b remu --transport jungfrau --to '[::1]:5001' --dataset "$work/module.raw" --geometry 1024x512,u16 \
	--split 1 --images 16 --rate 20 --bunch 8 --tune linked=1 --json="$work/remu.json" >"$work/err" 2>&1
sent $? "as a JUNGFRAU"
received 0/4
adds_up 16
is "generic: packets come in generic mode" "$(romulu_says "$how")" '[0,"generic",0]'

# --- killed
receive --transport udp --tune xdp --tune threads=2
romulu_at 10.5.0.2:5002
says two "another XDP program"
attached
ok $? "two-first: the first one stays"
kill -9 "${receiver[0]}"
wait "${receiver[0]}" 2>/dev/null
! attached
ok $? "killed: it goes when romulu is killed"
rashpactl buffer remove net0
ok $? "buffer-free: no process holds the buffer"
finish
