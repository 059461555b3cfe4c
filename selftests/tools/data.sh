#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# test: iommu=on seconds=50
# Data that remu sends: datasets of HDF5 and raw files, images of any size and in any number, and
# refusals.
. "$(dirname "$0")/../lib/shell.sh"

have_fpga || { skip "data: data" "no software FPGA in this guest"; finish; }
mkdir "$work/bad"
python3 -B tools/dataset/tests/datasets.py "$work" >"$work/log" 2>&1
ok $? "datasets: datasets are made" || { sed 's/^/# /' "$work/log"; finish; }
rashpactl buffer create ring3 192M >/dev/null
ok $? "buffer: buffer"

# produce OPTION...: to the end; its report is in remu.json
produce() {
	remu --buffer ring3 --fpga "$fpga" --timeout 60 --json="$work/remu.json" "$@" \
		>"$work/remu.out" 2>&1 || { sed 's/^/# /' "$work/remu.out"; false; }
}
# receive OPTION...: all that was sent, from its beginning
receive() {
	romulu --buffer ring3 --check --timeout 60 --tune from-start --json="$work/romulu.json" "$@" \
		>"$work/romulu.out" 2>&1 || { sed 's/^/# /' "$work/romulu.out"; false; }
}
remu_says() { jq -c "$1" "$work/remu.json"; }
romulu_says() { jq -c "$1" "$work/romulu.json"; }
notes() { grep -c "note: " "$work/remu.out"; }

# --- files of all formats, to the last byte
for file in "$work"/*.*.*; do
	name=${file##*/}
	raw=$work/${name%%.*}
	images=5
	[[ $name != one.* ]] || images=1
	rm -f "$work/got"
	produce --dataset "$file" --bunch 2 --images $images && receive --write "$work/got" &&
		cmp "$work/got" "$raw.raw"
	ok $? "$name/bytes: the received data equal the file"
	is "$name/all: all of it" "$(remu_says '[.dataset_images, .loaded_images]') $(notes)" \
		"[$images,$images] 0"
done
geometry=$(<"$work/u16.geometry")
rm -f "$work/got"
produce --dataset "$work/u16.raw" --geometry "$geometry" --images 5 && receive --write "$work/got" &&
	cmp "$work/got" "$work/u16.raw"
ok $? "raw-images-geometry: raw images have the geometry that is said"
! receive --dataset "$work/u16.nexus.nxs:/entry/instrument/flat/data" >/dev/null
ok $? "other-images-not: other images are not the dataset"
receive --dataset "$work/u16.nexus.nxs"
ok $? "same-ones-another: the same ones of another format are"
rm -f "$work/got"
produce --dataset "$work/u16.nexus.nxs:/entry/instrument/flat/data" --images 1 &&
	receive --write "$work/got" && cmp "$work/got" <(tail -c 13534 "$work/u16.raw")
ok $? "dataset-named: a dataset that is named"
for type in u8 u32; do
	produce --dataset "$work/$type.plain.h5" --split 3 --bunch 3 --images 20 &&
		receive --dataset "$work/$type.packed.h5"
	ok $? "$type/compared: compared, of three processes, round and round"
	is "$type/frames: every frame is right" "$(romulu_says '[.frames, .corrupt]')" "[20,0]"
done
produce --dataset "$work/u32.plain.h5" --dtp 50,10,40x50@1,2 --images 5 &&
	receive --dataset "$work/u32.plain.h5"
ok $? "region-images: a region of such images"

# --- units of depth
produce --dataset "$work/u16.plain.h5" --bunch 3 --slots 10images --images 2stacks &&
	receive --dataset "$work/u16.plain.h5" --images 1stack
ok $? "stacks-number-alone: stacks where a number alone means images, and images where it means stacks"
is "understood: both were understood" "$(remu_says '[.slots, .images]') $(romulu_says .frames)" "[4,6] 3"

# --- a dark image after every two others; the shorter dataset is repeated
darks=(--dataset "$work/u16.plain.h5" --tune darks="$work/u16.nexus.nxs:/entry/instrument/flat/data"
	--tune dark-every=3)
rm -f "$work/got"
produce "${darks[@]}" --bunch 4 --images 20 && receive --write "$work/got"
ok $? "images-dark-ones: images and dark ones"
is "third-dark: a third of them is dark" "$(remu_says '[.dataset_images, .images]') $(romulu_says '[.frames, .dark]')" \
	"[15,20] [20,6]"
image=13534
for i in 0 1 4 2 3 3 4 0 2 1 2 1 3 4 0 0 1 4 2 3; do
	tail -c +$((i * image + 1)) "$work/u16.raw" | head -c $image
done | cmp - "$work/got"
ok $? "place: each is in its place"
receive "${darks[@]}"
ok $? "compared: they are compared"
is "right: and right" "$(romulu_says '[.frames, .corrupt, .dark]')" "[20,0,6]"
! receive --dataset "$work/u16.plain.h5" >/dev/null
ok $? "not-images-without: they are not the images without darks"

# --- what is refused, and why; refused STATUS PATTERN OPTION...; the verdict is that of all
wrong=0
refused() {
	local status=$1 pattern=$2
	shift 2
	remu --buffer ring3 --fpga "$fpga" --images 1 --timeout 60 "$@" >"$work/out" 2>&1
	(($? == status)) && grep -Eq -- "$pattern" "$work/out" && return
	wrong=1
	echo "# remu $*: not refused because of $pattern"
	sed 's/^/# /' "$work/out"
}
while read -r name pattern; do
	refused 1 "${pattern:?}" --dataset "$work/bad/$name"
done <<-'E'
	circle.h5 no 2-D or 3-D dataset
	empty.h5 has no images
	filter.h5 filter 32099.*not here: install its plugin.*HDF5_PLUGIN_PATH
	float.h5 no 2-D or 3-D dataset of integers
	float.h5:/a floating-point.*u8, u16 and u32
	four.h5:/data 4 dimensions
	magic.h5 cannot be opened
	several.h5 12 3-D integer datasets: name one, as FILE:/PATH: /entry/again, /entry/data_000001,
	several.h5:/circle cannot be opened as a dataset
	several.h5:/gone cannot be opened as a dataset
	short.h5 cannot be opened: .*truncated
	signed.h5 i32: u8, u16 and u32
	text.h5 no 2-D or 3-D dataset
	virtual.h5 gone.h5 cannot be read
	wide.h5 u64: u8, u16 and u32
	page.raw:/page only HDF5 files
E
HDF5_PLUGIN_PATH=/nowhere refused 1 "filter 32004.*not here" --dataset "$work/u16.lz4.h5"
refused 1 "101 x 67 u16, and --geometry says 101 x 67 u32" --dataset "$work/u16.plain.h5" \
	--geometry 101x67,u32
refused 1 "101 x 67 u8, and --geometry says 10 x 10 u16" --dataset "$work/u8.plain.h5" \
	--geometry 10x10
refused 1 "67670 bytes are not raw images of 1024 x 512 u16" --dataset "$work/u16.raw"
refused 1 "need dark ones of that size and type, not 101 x 67 u8" --dataset "$work/u16.plain.h5" \
	--tune darks="$work/u8.plain.h5"
refused 2 "sampling would leave out" --tune darks=generate:1 --tune sampling=2
refused 2 "darks" --tune dark-every=2
refused 2 "\"1\" is not a number from 2" --tune darks=generate:1 --tune dark-every=1
refused 2 "\"2cubes\" is not a number of images, or of stacks" --images 2cubes
refused 2 "\"2cubes\" is not a number of stacks, or of images" --slots 2cubes
refused 2 "more than 2\^48 images" --images $((1 << 47))stacks --bunch 3
refused 2 "90,0,20x20 is outside the image of 101 x 67 pixels" --dataset "$work/u16.plain.h5" \
	--dtp 90,0,20x20
ok "$wrong" "refused: datasets and options that cannot be"
wrong=0
rashpactl buffer remove ring3
ok $? "buffer-removed-nobody: the buffer can be removed: no process holds it"

# --- more images than there is room for on the board
size=$((16 << 20))
head -c $((6 * size)) /dev/urandom >"$work/many.raw"
rashpactl buffer create ring3 192M >/dev/null
many=(--dataset "$work/many.raw" --geometry 4096x4096,u8)
produce "${many[@]}" --bunch 1 --slots 11 --images 11
ok $? "dataset-larger-on-board: a dataset larger than on-board memory"
grep -q "note: 4 of the 6 images of $work/many.raw fit into on-board memory of 64 MiB" "$work/remu.out"
ok $? "note: with a note" || sed 's/^/# /' "$work/remu.out"
is "numbers: and in numbers" "$(remu_says '[.dataset_images, .loaded_images, .load_bytes, .images]')" \
	"[6,4,$((4 * size)),11]"
receive "${many[@]}"
ok $? "fits-round-round: the images that fit are repeated"
is "all-images-right: all images are right" "$(romulu_says '[.frames, .corrupt]')" "[11,0]"
produce "${many[@]}" --tune darks="$work/many.raw" --tune dark-every=3 --bunch 3 --slots 3 --images 9
ok $? "darks-not-fit: darks that do not fit"
is "last-one-dark: the last one is dark, too" "$(remu_says '[.dataset_images, .loaded_images]')" "[18,3]"
refused 1 "keeps 4 images: too few for a dark one of every 5" "${many[@]}" \
	--tune darks="$work/many.raw" --tune dark-every=5
ok "$wrong" "refused-darks: too few of them have room"
rashpactl buffer remove ring3

# --- images of a real detector
if [[ -d ${RASHPA_DATA-}/jungfrau ]]; then
	for i in {0..9}; do zstd -dcq "$RASHPA_DATA/jungfrau/raw$i.bin.zst"; done >"$work/real.raw"
	python3 -B tools/dataset/tests/datasets.py "$work" "$work/real.raw" 1024 512 >"$work/log" 2>&1
	rashpactl buffer create ring3 64M >/dev/null
	rm -f "$work/got"
	# written first, because the comparison overwrites it
	produce --dataset "$work/real.h5" --images 40 --bunch 4 --slots 10 &&
		receive --write "$work/got" && head -c $((10 << 20)) "$work/got" | cmp - "$work/real.raw"
	ok $? "real-images-hdf5: real images, of HDF5, byte for byte"
	receive --dataset "$RASHPA_DATA/jungfrau"
	ok $? "files: are those of the files"
	rashpactl buffer remove ring3
else
	skip "real-images: real images" "no RASHPA_DATA"
fi
finish
