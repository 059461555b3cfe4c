// SPDX-License-Identifier: LGPL-2.1-or-later
// The view of one stream: image, numbers, histogram, rates and losses.
import {Picture, palettes} from "./image.js";
import {plot} from "./plot.js";
import {$, count, element, lost, options, pairs, real, short, state, table} from "./words.js";

const SECONDS = 300, THROTTLE = 50;	// milliseconds between questions for values
let link, picture, rows = new Map(), look = null, timer = 0, sums = [];

export const view = {buffer: "", peaks: "", given: []};

export function wants() {
	const names = view.buffer ? [...new Set([view.buffer, view.peaks || view.buffer])] : [];
	return names.map(name => [name, name === view.buffer ? picture.region : null]);
}

const KEYS = {l: "scale", c: "contrast", m: "mean"};

function changed(what) {
	const select = $(KEYS[what]);
	if (select) {
		select.selectedIndex = (select.selectedIndex + 1) % select.length;
		select.dispatchEvent(new Event("change"));
	} else if (what === "region") {
		link.want();
	} else {
		ask();
	}
}

export function begin(theLink) {
	link = theLink;
	picture = new Picture($("image"), changed);
	options($("palette"), palettes.map(name => [name, name]));
	const on = {
		palette: name => picture.setPalette(name),
		scale: word => { picture.log = word === "log"; paint(); },
		contrast: () => fix(picture.limits ?? [0, 1]),
		low: () => fix([$("low").valueAsNumber, $("high").valueAsNumber]),
		high: () => on.low(),
		mean: depth => { picture.depth = Number(depth); paint(); },
		overlay: name => { view.peaks = name; picture.peaks = null; paint(); link.want(); },
		buffer: name => { location.hash = `#stream=${encodeURIComponent(name)}`; },
	};
	for (const [id, set] of Object.entries(on))
		$(id).onchange = () => set($(id).value);
	$("in").onclick = () => picture.zoom(1.4);
	$("out").onclick = () => picture.zoom(1 / 1.4);
	$("all").onclick = () => picture.look(null);
	fix([0, 1]);
}

function fix(limits) {
	const fixed = $("contrast").value === "fixed";
	$("limits").hidden = !fixed;
	picture.fixed = fixed && limits.every(Number.isFinite) ? limits : null;
	if (picture.fixed)
		[$("low").value, $("high").value] = limits.map(v => +v.toPrecision(6));
	paint();
}

export function show(buffer) {
	if (buffer === view.buffer)
		return;
	view.buffer = buffer;
	look = null;
	sums = [];
	picture.clear();
	numbers();
	plots();
}

export function streams(list) {
	const names = [...new Set([...list.map(s => s.buffer), ...view.given])];
	options($("buffer"), [["", "choose"], ...names.map(name => [name, name])]);
	$("buffer").value = view.buffer;
	options($("overlay"), [["", "none"], ...list.filter(s => s.content === "peaks").map(s => [s.buffer, s.buffer])]);
	for (const one of list)
		add(one.buffer, [one.row]);
	if (!$("stream").hidden)
		plots(list.find(one => one.buffer === view.buffer));
}

// Rows that are newer than those already here.
export function add(buffer, more) {
	const all = history(buffer), last = all.at(-1)?.[0] ?? 0;
	rows.set(buffer, [...all, ...more.filter(row => row?.[0] > last)].slice(-SECONDS));
}

export const history = buffer => rows.get(buffer) ?? [];

function plots(stream) {
	const all = history(view.buffer), now = all.at(-1)?.[0] ?? 0;
	const of = (column, unit) => all.map(row => [row[0] - now, (row[column] ?? NaN) / unit]), settings = {unit: "s", x: [-SECONDS, 0]};
	plot($("rate"), [of(1, 1)], settings);
	plot($("data"), [of(2, 1e9)], settings);
	plot($("latency"), [of(3, 1e3), of(4, 1e3)], settings);
	const about = look?.about, f = picture.frame;
	table($("losses"), [
		["overwritten before the consumer gave it back", lost(stream?.lost), "images"],
		["left out by the producer, because no slot was free", lost(about?.dropped), "stacks"],
		["no room for a live source", lost(about?.lost), "images"],
		["not delivered by the detector", lost(about?.missed), "images"],
		["messages missing in the last stack", lost(f?.missing), "messages"],
		["left out by the stream", lost(f?.skipped), "images"],
		["not shown: overwritten before this page took it", count(f?.over), "images"],
		["not shown: overwritten while this page took it", count(f?.torn), "images"],
	], [["Cause", c => c[0]], ["Lost", c => c[1], true], ["Unit", c => c[2]]]);
}

export function state_(words) {
	if (words.buffer !== view.buffer)
		return;
	look = words;
	numbers();
}

export function image(frame) {
	if (frame.buffer === view.peaks) {
		picture.peaks = peaks(frame);
		picture.draw();
	} else if (frame.buffer === view.buffer) {
		picture.take(frame);
		paint();
		ask();
	}
}

export function peaks(frame) {
	const list = [];
	for (let at = 0; at < frame.values.length && !Number.isNaN(frame.values[at]); at += frame.columns)
		list.push(frame.values.subarray(at, at + frame.columns));
	return list;
}

function paint() {
	picture.paint();
	numbers();
	if (!picture.frame)
		return;
	plot($("histogram"), [picture.histogram], {kind: "bars", log: true});
	const canvas = element("canvas", {width: 256, height: 1}), [low, high] = picture.limits.map(short);
	canvas.getContext("2d").putImageData(new ImageData(new Uint8ClampedArray(picture.palette.buffer), 256), 0, 0);
	$("legend").replaceChildren(low, canvas, `${high} counts${picture.log ? ", logarithmic" : ""}`);
}

const size = ([x, y, w, h]) => `${w} × ${h} at ${x}, ${y}`;

function numbers() {
	const about = look?.about, f = picture.frame;
	$("state").replaceChildren(state(look?.state ?? (view.buffer ? "connecting" : "choose a buffer")), ` ${look?.why ?? ""}`);
	pairs($("numbers"), [
		...(about ? [["Image", `${about.width} × ${about.height} pixels, ${about.dtype}`], ["Stack", `${about.bunch} images`],
			["Slots", `${count(about.slots)}, policy ${about.policy}`], ["Dataset", about.dataset || "–"]] : []),
		...(f ? [["Image number", count(f.frame)], ["Role", ["signal", "dark"][f.role] ?? `role ${f.role}`],
			["Shown", f.bin > 1 ? `maximum of ${f.bin} × ${f.bin} pixels` : "each pixel"],
			["Part", picture.region ? size([f.x, f.y, f.columns * f.bin, f.rows * f.bin]) : "whole image"],
			["Mean of", `${picture.images} image${picture.images > 1 ? "s" : ""}`],
			["Age when taken", f.age_ns === null ? "–" : `${real(f.age_ns / 1e6, 2)} ms`],
			...(f.incomplete || f.wrong ? [["Attention", f.wrong ? "metadata of another stack" : "incomplete"]] : []),
			...(picture.peaks ? [["Peaks", count(picture.peaks.length)]] : [])] : []),
	]);
	values();
}

const places = () => [picture.pixel && [...picture.pixel, 1, 1], picture.box];

// The server's numbers are those of the buffer, whatever the picture shows.
function values() {
	const [pixel, box] = places();
	const of = place => (sums.find(s => String(s.at) === String(place))?.numbers ?? []).map(short);
	const [value = "–"] = of(pixel), [sum = "–", mean = "–", least = "–", most = "–"] = of(box);
	pairs($("sums"), [
		["Pixel x, y", pixel ? `${pixel[0]}, ${pixel[1]}` : "–"], ["Value", `${value} counts`],
		...(box ? [["Region", size(box)], ["Sum", `${sum} counts`], ["Mean", `${mean} counts`],
			["Least, most", `${least}, ${most} counts`]] : []),
	]);
}

function ask() {
	values();
	timer ||= setTimeout(() => {
		timer = 0;
		const wanted = places().filter(Boolean);
		if (wanted.length && picture.frame && !$("stream").hidden)
			link.send({sums: [view.buffer, ...wanted]});
	}, THROTTLE);
}

export function answer(numbers_) {
	if (numbers_.buffer === view.buffer)
		sums = numbers_.places;
	values();
}
