# shellcheck shell=bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# The lab's GPU as a receiver, at the buffer $buffer. Sourced after shell.sh and pipeline.sh.
# shellcheck disable=SC2154 # bdf, buffer, data, romulu, work

# have_gpu NAME: a GPU, and a software FPGA; else the test is skipped
have_gpu() {
	((${RASHPA_GPUS:-0})) || { skip "$1" "no GPU in this guest (lab run --gpu)"; finish; }
	have_fpga || { skip "$1" "no software FPGA in this guest"; finish; }
	modprobe virtio-gpu
	wait_for 20 compgen -G "/dev/dri/renderD*" >"$work/node"
	ok $? "gpu-render-node: the GPU has a render node" || finish
	# only this driver: others search for their devices first
	export VK_DRIVER_FILES=/usr/share/vulkan/icd.d/virtio_icd.json RASHPA_RUN=$work
	# newer kernels do not know that QEMU's host bridge routes
	echo allow >/sys/module/rashpa/parameters/p2p_bridge
	rashpactl buffer create "$buffer" 64M >/dev/null
	ok $? "buffer: a buffer is created"
}

offered() { [[ -S $work/gpu ]] || gone "$romulu"; }
# on_gpu PIPELINE [SIZE [OPTION...]]: attach with memory of the GPU; wait until it is offered
on_gpu() {
	local pipeline=$1
	rm -f "$work/gpu"
	attach "$pipeline" --engine vulkan --offer "gpu${2+:$2}" "${@:3}"
	wait_for 60 offered
}
says() { jq -c "$1" "$work/romulu.json"; }

# path_class: class of the path from board to GPU: peer below the lab's switch, else bridge; all
# traffic goes up to an IOMMU
path_class() {
	local above
	above=$(<"/sys/bus/pci/devices/$bdf/../device")
	if [[ $above == 0x8233 && $RASHPA_IOMMU == off ]]; then
		echo peer
	else
		echo bridge
	fi
}

# as_reference NAME: dark images, a veto and compression in memory of the GPU. The results match
# those of the engine reference, which processes the same stream in the host's memory
as_reference() {
	local engine more pipeline='{"pretreat": {"dark": "move", "dark_images": 4, "gain": 64, "saturated": 30000},
		"veto": {"threshold": 100, "pixels": 60}, "compress": {"threshold": 200, "capacity": 32768},
		"sinks": {"nexus": {"file": "WHERE", "overwrite": true}}}'
	for engine in reference vulkan; do
		if [[ $engine == vulkan ]]; then
			on_gpu "${pipeline/WHERE/$work/$engine.h5}"
			more=(--payload gpu)
		else
			attach "${pipeline/WHERE/$work/$engine.h5}" --engine "$engine"
			more=()
		fi
		start generate:4 --images 12 --bunch 1 --slots 5 --tune darks=generate:2:7 --tune dark-every=3 "${more[@]}"
		both 0 "dark-images-engine/$engine: $1, dark images, engine $engine"
		says '.processing | [.images, .dark, .vetoed, .overflow, .lost]' >"$work/$engine.counts"
	done
	is "path: $1: the path has the expected class" "$(says .class)" "\"$(path_class)\""
	is "gpu-counts-reference: $1: counts of the GPU match the reference" \
		"$(<"$work/vulkan.counts")" "$(<"$work/reference.counts")"
	python3 -B - "$work/reference.h5" "$work/vulkan.h5" >"$work/err" 2>&1 <<-END
		import sys
		import h5py
		import numpy as np
		def arrays(name):
		    found = {}
		    with h5py.File(name) as f:
		        f.visititems(lambda at, o: found.update({at: o[()]}) if isinstance(o, h5py.Dataset) and
		                     o.dtype.kind in "fiu" else None)
		    return found
		a, b = map(arrays, sys.argv[1:])
		assert a.keys() == b.keys() and a["entry/compressed/value"].size > 60, a
		for k in a:
		    if "time" not in k:
		        np.testing.assert_allclose(b[k], a[k], rtol=1e-5, atol=1e-5, err_msg=k)
	END
	ok $? "keeps-same-pixels: $1: pixels match" || tail -n 20 "$work/err" | sed 's/^/# /'
}

# jungfrau NAME: ten real frames of a JUNGFRAU
jungfrau() {
	if [[ ! -d ${RASHPA_DATA-}/jungfrau ]]; then
		skip "ten-real-frames: $1, ten real frames" "there is no RASHPA_DATA/jungfrau"
		return
	fi
	real_frames
	on_gpu "$work/photons.json" 8M
	start "$data" --images 10 --bunch 1 --slots 4 --payload gpu
	both 0 "ten/ten-real-frames: $1, ten real frames"
	is "all-memory-gpu: $1: all images were in memory of the GPU" "$(says '.processing | [.engine, .in_place, .images, .lost]')" \
		'["vulkan",true,10,0]'
	is "all/path: $1: the path has the expected class" "$(says .class)" "\"$(path_class)\""
	right "file-expected-photons: $1: the file has the expected photons, within 1e-3"
}
