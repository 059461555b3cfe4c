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

function lut(name) {
	const stops = PALETTES[name].split(" ").map(hex => [0, 2, 4].map(i => parseInt(hex.slice(i, i + 2), 16)));
	const table = new Uint32Array(256);
	for (let i = 0; i < 256; i++) {
		const at = i / 255 * (stops.length - 1), k = Math.min(Math.floor(at), stops.length - 2), f = at - k;
		const [r, g, b] = [0, 1, 2].map(n => Math.round(stops[k][n] * (1 - f) + stops[k + 1][n] * f));
		table[i] = 0xff000000 | b << 16 | g << 8 | r;
	}
	return table;
}

// Header and values of a message of the server.
export async function unpack(buffer) {
	const size = new DataView(buffer).getUint32(0, true);
	const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, size)));
	const stream = new Blob([new Uint8Array(buffer, 4 + size)]).stream().pipeThrough(new DecompressionStream("deflate"));
	header.values = new KINDS[header.kind](await new Response(stream).arrayBuffer());
	return header;
}

export class Picture {
	constructor(canvas, changed) {
		this.canvas = canvas;
		this.changed = changed;		// called after the region, the pixel or the selection changed
		this.palette = lut(palettes[0]);
		this.log = false;
		this.fixed = null;		// [low, high], or null: automatic
		this.depth = 1;			// images of the mean
		this.peaks = null;
		this.off = document.createElement("canvas");
		this.clear();
		for (const name of ["pointerdown", "pointermove", "pointerup", "pointercancel", "wheel", "keydown"])
			canvas.addEventListener(name, event => this[name](event), {passive: false});
		new ResizeObserver(() => this.draw()).observe(canvas);
	}

	clear() {
		this.frame = this.values = this.region = this.pixel = this.box = this.drag = null;
		this.last = [];
		this.draw();
	}

	setPalette(name) {
		this.palette = lut(name);
		this.paint();
	}

	take(frame) {
		const f = this.frame;
		const same = f && ["run", "x", "y", "bin", "rows", "columns", "width", "height"].every(key => f[key] === frame[key]);
		this.frame = frame;
		this.last = [...(same ? this.last : []), frame.values].slice(-20);
		this.paint();
	}

	paint() {
		if (!this.frame)
			return;
		this.mean();
		this.contrast();
		const {rows, columns} = this.frame, values = this.values;
		const pixels = new ImageData(columns, rows), to = new Uint32Array(pixels.data.buffer);
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

	mean() {
		const images = this.last.slice(-this.depth);
		this.images = images.length;
		if (images.length === 1) {
			this.values = images[0];
			return;
		}
		this.values = new Float64Array(images[0].length);
		for (const image of images)
			for (let i = 0; i < image.length; i++)
				this.values[i] += image[i] / images.length;
	}

	// The range without the few darkest and brightest pixels, and the histogram, of a sample of the pixels.
	contrast() {
		const step = Math.max(1, Math.floor(this.values.length / SAMPLES)), sample = [];
		for (let i = 0; i < this.values.length; i += step)
			if (Number.isFinite(this.values[i]))
				sample.push(this.values[i]);
		const sorted = Float64Array.from(sample).sort();
		const from = this.log ? sorted.findIndex(v => v > 0) : 0, good = from < 0 ? [] : sorted.subarray(from);
		const at = p => good[Math.floor(p * (good.length - 1))];
		this.range = good.length ? [at(0.005), at(0.995)] : [0, 1];
		if (this.range[0] >= this.range[1])
			this.range[1] = this.range[0] + 1;
		this.limits = this.fixed ?? this.range;
		const low = sorted[0] ?? 0, width = ((sorted.at(-1) ?? 1) - low) / BINS || 1, bins = new Array(BINS).fill(0);
		for (const v of sorted)
			bins[Math.min(BINS - 1, Math.floor((v - low) / width))] += step;
		this.histogram = bins.map((n, i) => [low + i * width, n]);
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
		return [Math.max(0, Math.min(this.frame.width - 1, x)), Math.max(0, Math.min(this.frame.height - 1, y))];
	}

	draw() {
		const [c] = prepare(this.canvas), {frame} = this;
		if (!frame || !this.off.width) {
			this.canvas.setAttribute("aria-label", "no image yet");
			return;
		}
		const {scale, left, top, w, h} = this.place();
		c.imageSmoothingEnabled = false;
		c.drawImage(this.off, left, top, w * scale, h * scale);
		const X = x => left + (x - frame.x) * scale, Y = y => top + (y - frame.y) * scale;
		const rectangle = (x, y, width, height) => {
			for (const [line, dash] of [["#000", []], ["#fff", [4, 4]]]) {
				c.strokeStyle = line;
				c.setLineDash(dash);
				c.strokeRect(X(x), Y(y), Math.max(width * scale, 5), Math.max(height * scale, 5));
			}
			c.setLineDash([]);
		};
		c.save();
		c.beginPath(), c.rect(left, top, w * scale, h * scale), c.clip();
		for (const [x, y] of this.peaks ?? [])
			for (const [line, thick] of [["#000", 3], ["#ffb000", 1.5]]) {
				c.strokeStyle = line;
				c.lineWidth = thick;
				c.beginPath(), c.arc(X(x + 0.5), Y(y + 0.5), Math.max(7, 3 * scale), 0, 7), c.stroke();
			}
		c.lineWidth = 1;
		if (this.pixel)
			rectangle(...this.pixel, 1, 1);
		if (this.box)
			rectangle(...this.box);
		c.restore();
		this.canvas.setAttribute("aria-label", `image ${frame.frame}, ${frame.width} × ${frame.height} pixels`);
	}

	// The value of a pixel that was sent as it is, or undefined.
	value([x, y]) {
		const f = this.frame;
		if (f.bin === 1 && this.images === 1 && x >= f.x && y >= f.y && x < f.x + f.columns && y < f.y + f.rows)
			return f.values[(y - f.y) * f.columns + x - f.x];
		return undefined;
	}

	// --- what a person does ---

	zoom(factor, centre = this.pixel) {
		const f = this.frame;
		if (!f)
			return;
		const [x, y, w, h] = this.region ?? [0, 0, f.width, f.height];
		const width = Math.min(f.width, Math.max(16, Math.round(w / factor))), height = Math.min(f.height, Math.max(16, Math.round(h / factor)));
		const [cx, cy] = centre ?? [x + w / 2, y + h / 2];
		this.look([Math.round(cx - (cx - x) / w * width), Math.round(cy - (cy - y) / h * height), width, height]);
	}

	look(region) {
		const f = this.frame;
		if (!f)
			return;
		let [x, y, w, h] = region ?? [0, 0, f.width, f.height];
		x = Math.max(0, Math.min(x, f.width - w));
		y = Math.max(0, Math.min(y, f.height - h));
		this.region = w >= f.width && h >= f.height ? null : [x, y, w, h];
		this.changed("region");
	}

	point(x, y) {
		this.pixel = this.inside(x, y);
		this.draw();
		this.changed("pixel");
	}

	select(x0, y0, x1, y1) {
		this.box = [Math.min(x0, x1), Math.min(y0, y1), Math.abs(x1 - x0) + 1, Math.abs(y1 - y0) + 1];
		this.draw();
		this.changed("box");
	}

	pointerdown(event) {
		if (!this.frame || event.button)
			return;
		this.canvas.setPointerCapture(event.pointerId);
		this.drag = this.at(event);
		this.moved = false;
	}

	pointermove(event) {
		if (!this.frame)
			return;
		const [x, y] = this.at(event);
		this.point(x, y);
		this.moved ||= this.drag && (Math.abs(this.drag[0] - x) > 1 || Math.abs(this.drag[1] - y) > 1);
		if (this.drag && this.moved)
			this.select(...this.drag, x, y);
	}

	pointerup() {
		if (this.drag && !this.moved) {
			this.box = null;	// a click ends the selection
			this.draw();
			this.changed("box");
		}
		this.drag = null;
	}

	pointercancel() {
		this.drag = null;
	}

	wheel(event) {
		if (!this.frame)
			return;
		event.preventDefault();
		this.zoom(event.deltaY < 0 ? 1.4 : 1 / 1.4, this.at(event));
	}

	keydown(event) {
		const move = {ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1]}[event.key];
		if (!this.frame || event.altKey || event.metaKey)
			return;
		if (move) {
			const f = this.frame, step = event.ctrlKey ? 10 : 1;
			const [x, y] = this.pixel ?? [f.x + (f.columns * f.bin >> 1), f.y + (f.rows * f.bin >> 1)];
			if (event.shiftKey) {
				const [bx, by, w, h] = this.box ?? [x, y, 1, 1];
				this.select(bx, by, ...this.inside(bx + w - 1 + move[0] * step, by + h - 1 + move[1] * step));
			} else {
				this.point(x + move[0] * step, y + move[1] * step);
			}
		} else if (event.key === "+" || event.key === "=") {
			this.zoom(1.4);
		} else if (event.key === "-") {
			this.zoom(1 / 1.4);
		} else if (event.key === "0") {
			this.look(null);
		} else if (event.key === "Escape" && this.box) {
			this.box = null;
			this.draw();
			this.changed("box");
		} else if ("lcm".includes(event.key.toLowerCase()) && !event.ctrlKey) {
			this.changed(event.key.toLowerCase());
		} else {
			return;
		}
		event.preventDefault();
	}
}
