// SPDX-License-Identifier: LGPL-2.1-or-later
// The live image: received values become colours here, so each viewer has a palette, a scale and a contrast of its own.
import {prepare} from "./plot.js";

// 9 colours each, of matplotlib's maps (CC0); all but "grey" are made for everybody's eyes
const PALETTES = {
	viridis: "440154 472d7b 3b528b 2c728e 21918c 28ae80 5ec962 addc30 fde725",
	cividis: "00224e 1a386f 434e6c 61656f 7d7c78 9b9476 bcae6c dec958 fee838",
	inferno: "000004 210c4a 57106e 8a226a bc3754 e45a31 f98e09 f9cb35 fcffa4",
	grey: "000000 ffffff", "grey, inverted": "ffffff 000000",
};
export const palettes = Object.keys(PALETTES);
const KINDS = {u1: Uint8Array, u2: Uint16Array, u4: Uint32Array, i1: Int8Array, i2: Int16Array, i4: Int32Array, f4: Float32Array, f8: Float64Array};
const BINS = 120, SAMPLES = 1 << 16;

const STEPS = {ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1]};

// 256 colours, as the browser mixes them.
function lut(name) {
	const c = new OffscreenCanvas(256, 1).getContext("2d"), colours = PALETTES[name].split(" ");
	c.fillStyle = c.createLinearGradient(0.5, 0, 255.5, 0);
	colours.forEach((hex, i) => c.fillStyle.addColorStop(i / (colours.length - 1), `#${hex}`));
	c.fillRect(0, 0, 256, 1);
	return new Uint32Array(c.getImageData(0, 0, 256, 1).data.buffer);
}

// Header and values of a message of the server.
export async function unpack(buffer) {
	const size = new DataView(buffer).getUint32(0, true);
	const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, size)));
	const stream = new Blob([new Uint8Array(buffer, 4 + size)]).stream().pipeThrough(new DecompressionStream("deflate"));
	header.values = new KINDS[header.kind](await new Response(stream).arrayBuffer());
	return header;
}

const between = (low, value, high) => Math.max(low, Math.min(high, value));

export class Picture {
	constructor(canvas, changed) {
		this.canvas = canvas;
		this.changed = changed;		// called after the region, the pixel or the box changed
		this.palette = lut(palettes[0]);
		this.log = false;
		this.fixed = null;		// [low, high], or null: automatic
		this.depth = 1;			// images of the mean
		this.peaks = null;
		this.off = new OffscreenCanvas(1, 1);
		this.clear();
		for (const name of ["pointerdown", "pointermove", "pointerup", "pointercancel", "wheel", "keydown"])
			canvas.addEventListener(name, event => this.frame && this[name](event), {passive: false});
		new ResizeObserver(() => this.draw()).observe(canvas);
	}

	clear() {
		this.frame = this.region = this.pixel = this.box = this.drag = null;
		this.last = [];
		this.draw();
	}

	setPalette(name) {
		this.palette = lut(name);
		this.paint();
	}

	take(frame) {
		const same = ["run", "x", "y", "bin", "rows", "columns", "width", "height"].every(key => this.frame?.[key] === frame[key]);
		this.frame = frame;
		this.last = [...(same ? this.last : []), frame.values].slice(-20);
	}

	paint() {
		if (!this.frame)
			return;
		const images = this.last.slice(-this.depth), n = this.images = images.length;
		const values = n === 1 ? images[0] : new Float64Array(images[0].length);
		for (const image of n === 1 ? [] : images)
			for (let i = 0; i < image.length; i++)
				values[i] += image[i] / n;
		this.contrast(values);
		const {rows, columns} = this.frame, pixels = new ImageData(columns, rows), to = new Uint32Array(pixels.data.buffer);
		const scale = this.log ? Math.log : v => v, [low, high] = this.limits.map(scale), factor = 255 / (high - low || 1);
		for (let i = 0; i < values.length; i++) {
			const v = scale(values[i]);
			// NaN, and what has no logarithm, is the darkest
			to[i] = this.palette[v > low ? v < high ? (v - low) * factor | 0 : 255 : 0];
		}
		this.off.width = columns;
		this.off.height = rows;
		this.off.getContext("2d").putImageData(pixels, 0, 0);
		this.draw();
	}

	// The range without the few darkest and brightest pixels, and the histogram, of a sample of the pixels.
	contrast(values) {
		const step = Math.ceil(values.length / SAMPLES);
		const sorted = Float64Array.from(values.filter((v, i) => i % step === 0 && Number.isFinite(v))).sort();
		const good = this.log ? sorted.filter(v => v > 0) : sorted, at = p => good[Math.floor(p * (good.length - 1))] ?? p;
		const [low, high] = [at(0.005), at(0.995)];
		this.limits = this.fixed ?? [low, high > low ? high : low + 1];
		const least = sorted[0] ?? 0, width = (sorted.at(-1) - least) / BINS || 1, bins = new Array(BINS).fill(0);
		for (const v of sorted)
			bins[Math.min(BINS - 1, Math.floor((v - least) / width))] += step;
		this.histogram = bins.map((n, i) => [least + i * width, n]);
	}

	// --- places: pixels of the image, and points of the canvas ---

	place() {
		const {canvas, frame} = this, w = frame.columns * frame.bin, h = frame.rows * frame.bin;
		const scale = Math.min(canvas.clientWidth / w, canvas.clientHeight / h);
		return {scale, left: (canvas.clientWidth - w * scale) / 2, top: (canvas.clientHeight - h * scale) / 2, w, h};
	}

	at(event) {
		const {scale, left, top} = this.place(), {frame} = this;
		return this.inside(frame.x + Math.floor((event.offsetX - left) / scale), frame.y + Math.floor((event.offsetY - top) / scale));
	}

	inside(x, y) {
		return [between(0, x, this.frame.width - 1), between(0, y, this.frame.height - 1)];
	}

	draw() {
		const [c] = prepare(this.canvas), {frame} = this;
		this.canvas.setAttribute("aria-label", frame ? `image ${frame.frame}, ${frame.width} × ${frame.height} pixels` : "no image yet");
		if (!frame)
			return;
		const {scale, left, top, w, h} = this.place();
		c.imageSmoothingEnabled = false;
		c.drawImage(this.off, left, top, w * scale, h * scale);
		c.beginPath(), c.rect(left, top, w * scale, h * scale), c.clip();
		const X = x => left + (x - frame.x) * scale, Y = y => top + (y - frame.y) * scale;
		// bright on dark: visible on each colour
		const twice = (path, ...lines) => {
			for (const [colour, width, dash] of lines) {
				c.strokeStyle = colour;
				c.lineWidth = width;
				c.setLineDash(dash);
				c.beginPath(), path(), c.stroke();
			}
		};
		for (const [x, y] of this.peaks ?? [])
			twice(() => c.arc(X(x + 0.5), Y(y + 0.5), Math.max(7, 3 * scale), 0, 7), ["#000", 3, []], ["#ffb000", 1.5, []]);
		for (const [x, y, width, height] of [this.pixel && [...this.pixel, 1, 1], this.box].filter(Boolean))
			twice(() => c.rect(X(x), Y(y), Math.max(width * scale, 5), Math.max(height * scale, 5)), ["#000", 1, []], ["#fff", 1, [4, 4]]);
	}

	// --- what a person does ---

	zoom(factor, centre = this.pixel) {
		const f = this.frame;
		if (!f)
			return;
		const [x, y, w, h] = this.region ?? [0, 0, f.width, f.height], [cx, cy] = centre ?? [x + w / 2, y + h / 2];
		const width = Math.min(f.width, Math.max(16, Math.round(w / factor))), height = Math.min(f.height, Math.max(16, Math.round(h / factor)));
		this.look([between(0, Math.round(cx - (cx - x) / w * width), f.width - width),
			between(0, Math.round(cy - (cy - y) / h * height), f.height - height), width, height]);
	}

	look(region) {
		const whole = !region || (region[2] === this.frame.width && region[3] === this.frame.height);
		this.region = whole ? null : region;
		this.changed("region");
	}

	mark(pixel, box) {
		[this.pixel, this.box] = [pixel, box];
		this.draw();
		this.changed("places");
	}

	select([x0, y0], [x1, y1]) {
		this.mark(this.pixel, [Math.min(x0, x1), Math.min(y0, y1), Math.abs(x1 - x0) + 1, Math.abs(y1 - y0) + 1]);
	}

	pointerdown(event) {
		if (event.button)
			return;
		this.canvas.setPointerCapture(event.pointerId);
		this.drag = this.at(event);
		this.moved = false;
	}

	pointermove(event) {
		const at = this.at(event);
		this.mark(at, this.box);
		this.moved ||= this.drag?.some((start, axis) => Math.abs(start - at[axis]) > 1);
		if (this.drag && this.moved)
			this.select(this.drag, at);
	}

	pointerup() {
		if (this.drag && !this.moved)
			this.mark(this.pixel, null);	// a click ends the selection
		this.drag = null;
	}

	pointercancel() {
		this.drag = null;
	}

	wheel(event) {
		event.preventDefault();
		this.zoom(event.deltaY < 0 ? 1.4 : 1 / 1.4, this.at(event));
	}

	keydown(event) {
		const move = STEPS[event.key]?.map(n => n * (event.ctrlKey ? 10 : 1)), f = this.frame, key = event.key.toLowerCase();
		const pixel = this.pixel ?? [f.x + (f.columns * f.bin >> 1), f.y + (f.rows * f.bin >> 1)];
		if (event.altKey || event.metaKey)
			return;
		if (move && event.shiftKey) {
			const [x, y, w, h] = this.box ?? [...pixel, 1, 1];
			this.select([x, y], this.inside(x + w - 1 + move[0], y + h - 1 + move[1]));
		} else if (move) {
			this.mark(this.inside(pixel[0] + move[0], pixel[1] + move[1]), this.box);
		} else if (key === "escape" && this.box) {
			this.mark(this.pixel, null);
		} else if ("+=-".includes(key)) {
			this.zoom(key === "-" ? 1 / 1.4 : 1.4);
		} else if (key === "0") {
			this.look(null);
		} else if ("lcm".includes(key) && !event.ctrlKey) {
			this.changed(key);
		} else {
			return;
		}
		event.preventDefault();
	}
}
