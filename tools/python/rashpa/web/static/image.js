// SPDX-License-Identifier: LGPL-2.1-or-later
// The live image: received values become colours here, so each viewer has its own palette, scale and contrast.
import {element, shape} from "./draw.js";

// of matplotlib's maps (CC0); all but "grey" are made for everybody's eyes
export const PALETTES = {
	viridis: "440154 472d7b 3b528b 2c728e 21918c 28ae80 5ec962 addc30 fde725",
	cividis: "00224e 1a386f 434e6c 61656f 7d7c78 9b9476 bcae6c dec958 fee838",
	inferno: "000004 210c4a 57106e 8a226a bc3754 e45a31 f98e09 f9cb35 fcffa4",
	grey: "000000 ffffff",
	"grey, inverted": "ffffff 000000",
};
const KINDS = {
	u1: Uint8Array, u2: Uint16Array, u4: Uint32Array, i1: Int8Array, i2: Int16Array, i4: Int32Array,
	f4: Float32Array, f8: Float64Array,
};
export const KEYS = {l: "scale", c: "contrast", m: "mean"};		// and what they change
const STEPS = {ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1]};
const BINS = 120, SAMPLES = 1 << 16, ZOOM = 1.4, LEAST = 16;	// pixels that are shown

// A line of 256 colours, as the browser mixes them.
export function mix(name) {
	const c = element("canvas", {width: 256, height: 1}).getContext("2d"), colours = PALETTES[name].split(" ");
	c.fillStyle = c.createLinearGradient(0.5, 0, 255.5, 0);
	colours.forEach((hex, i) => c.fillStyle.addColorStop(i / (colours.length - 1), `#${hex}`));
	c.fillRect(0, 0, 256, 1);
	return c;
}

// Header and values of a message of the server.
export async function unpack(buffer) {
	const size = new DataView(buffer).getUint32(0, true);
	const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, size)));
	const values = new Blob([new Uint8Array(buffer, 4 + size)]).stream().pipeThrough(new DecompressionStream("deflate"));
	return {...header, values: new KINDS[header.kind](await new Response(values).arrayBuffer())};
}

const between = (low, value, high) => Math.max(low, Math.min(high, value));

export class Picture {
	limits = [0, 1];
	peaks = null;

	// changed("region" or "places", or a key that was pressed); palette, log, depth (images of the mean) and fixed
	// (contrast, or null) are set by others
	constructor(canvas, marks, changed) {
		Object.assign(this, {canvas, marks, changed});
		for (const name of ["pointerdown", "pointermove", "wheel", "keydown"])
			canvas.addEventListener(name, event => this.frame && this[name](event), {passive: false});
		this.clear();
	}

	clear() {
		this.frame = this.region = this.pixel = this.box = this.drag = null;
		this.canvas.width = this.canvas.height = 1;
		this.draw();
	}

	take(frame) {
		const keys = ["run", "x", "y", "bin", "rows", "columns", "width", "height"];
		const same = keys.every(key => this.frame?.[key] === frame[key]);
		this.last = [...(same ? this.last : []), frame.values].slice(-20);
		this.frame = frame;
	}

	paint() {
		if (!this.frame)
			return;
		const {rows, columns} = this.frame, images = this.last.slice(-this.depth), n = this.images = images.length;
		const values = n === 1 ? images[0] : new Float64Array(rows * columns);
		for (const image of n === 1 ? [] : images)
			image.forEach((value, i) => { values[i] += value / n; });
		this.contrast(values);
		const pixels = new ImageData(columns, rows), to = new Uint32Array(pixels.data.buffer);
		const scale = this.log ? Math.log : v => v, [low, high] = this.limits.map(scale);
		const factor = 255 / (high - low || 1);
		for (let i = 0; i < values.length; i++) {
			const v = scale(values[i]);
			// NaN, and what has no logarithm, is the darkest
			to[i] = this.palette[v > low ? v < high ? (v - low) * factor | 0 : 255 : 0];
		}
		[this.canvas.width, this.canvas.height] = [columns, rows];
		this.canvas.getContext("2d").putImageData(pixels, 0, 0);
		this.draw();
	}

	// The range without the few darkest and brightest pixels, and the histogram, of a sample of the pixels.
	contrast(values) {
		const step = Math.ceil(values.length / SAMPLES);
		const sorted = Float64Array.from(values.filter((v, i) => i % step === 0 && Number.isFinite(v))).sort();
		const good = this.log ? sorted.filter(v => v > 0) : sorted;
		const [low, high] = [0.005, 0.995].map(p => good[Math.floor(p * (good.length - 1))] ?? p);
		this.limits = this.fixed ?? [low, high > low ? high : low + 1];
		const least = sorted[0] ?? 0, width = (sorted.at(-1) - least) / BINS || 1, bins = new Array(BINS).fill(0);
		for (const v of sorted)
			bins[Math.min(BINS - 1, Math.floor((v - least) / width))] += step;
		this.histogram = bins.flatMap((n, i) => [[least + i * width, n], [least + (i + 1) * width, n]]);
	}

	// Marks are in pixels of the image, and the browser places them.
	draw() {
		const f = this.frame ?? {x: 0, y: 0, columns: 1, rows: 1, bin: 1}, {pixel, box, peaks} = this;
		this.canvas.ariaLabel = this.frame ? `image ${f.frame}, ${f.width} × ${f.height} pixels` : "no image yet";
		this.marks.setAttribute("viewBox", [f.x, f.y, f.columns * f.bin, f.rows * f.bin].join(" "));
		const one = 1 / (this.marks.getScreenCTM()?.a || 1);
		const boxes = [pixel && [...pixel, 1, 1], box].filter(Boolean).map(([x, y, w, h]) =>
			shape("rect", {x, y, width: Math.max(w, 5 * one), height: Math.max(h, 5 * one)}));
		this.marks.replaceChildren(...boxes, ...Array.from(peaks ?? [], ([x, y]) =>
			shape("circle", {cx: x + 0.5, cy: y + 0.5, r: Math.max(3, 7 * one)})));
	}

	at({clientX, clientY}) {
		const {x, y} = new DOMPoint(clientX, clientY).matrixTransform(this.marks.getScreenCTM().inverse());
		return this.inside(Math.floor(x), Math.floor(y));
	}

	inside(x, y) {
		return [between(0, x, this.frame.width - 1), between(0, y, this.frame.height - 1)];
	}

	// --- what a person does ---

	zoom(factor, centre = this.pixel) {
		const {width, height} = this.frame, region = this.region ?? [0, 0, width, height];
		const axis = (i, most) => {
			const at = region[i], old = region[i + 2], middle = centre?.[i] ?? at + old / 2;
			const size = between(Math.min(LEAST, most), Math.round(old / factor), most);
			return [between(0, Math.round(middle - (middle - at) / old * size), most - size), size];
		};
		const [x, w] = axis(0, width), [y, h] = axis(1, height);
		this.look(w === width && h === height ? null : [x, y, w, h]);
	}

	look(region) {
		this.region = region;
		this.changed("region");
	}

	mark(pixel, box) {
		[this.pixel, this.box] = [pixel, box];
		this.draw();
		this.changed("places");
	}

	// A region between two pixels.
	select(pixel, [x0, y0], [x1, y1]) {
		this.mark(pixel, [Math.min(x0, x1), Math.min(y0, y1), Math.abs(x1 - x0) + 1, Math.abs(y1 - y0) + 1]);
	}

	pointerdown(event) {
		if (event.button)
			return;
		this.canvas.setPointerCapture(event.pointerId);
		this.drag = this.at(event);
		this.mark(this.drag, null);
	}

	pointermove(event) {
		const at = this.at(event);
		if (event.buttons && this.drag && String(this.drag) !== String(at))
			this.select(at, this.drag, at);
		else
			this.mark(at, this.box);
	}

	wheel(event) {
		event.preventDefault();
		this.zoom(event.deltaY < 0 ? ZOOM : 1 / ZOOM, this.at(event));
	}

	keydown(event) {
		const {frame: f, box} = this, key = event.key.toLowerCase();
		const pixel = this.pixel ?? [f.x + (f.columns * f.bin >> 1), f.y + (f.rows * f.bin >> 1)];
		const [dx, dy] = (STEPS[event.key] ?? [0, 0]).map(n => n * (event.ctrlKey ? 10 : 1));
		const [x, y, w, h] = box ?? [...pixel, 1, 1];
		if (event.altKey || event.metaKey)
			return;
		if ((dx || dy) && event.shiftKey)
			this.select(pixel, [x, y], this.inside(x + w - 1 + dx, y + h - 1 + dy));
		else if (dx || dy)
			this.mark(this.inside(pixel[0] + dx, pixel[1] + dy), box);
		else if (key === "escape" && box)
			this.mark(pixel, null);
		else if ("+=-".includes(key))
			this.zoom(key === "-" ? 1 / ZOOM : ZOOM);
		else if (key === "0")
			this.look(null);
		else if (key in KEYS && !event.ctrlKey)
			this.changed(key);
		else
			return;
		event.preventDefault();
	}
}
