// SPDX-License-Identifier: LGPL-2.1-or-later
// The view of one stream: image, numbers, histogram, rates and losses.
import {Picture, palettes} from "./image.js";
import {figure, plot} from "./plot.js";
import {$, count, element, fixed, options, pairs, share, short, state, table} from "./words.js";

const SECONDS = 300, THROTTLE = 50;	// milliseconds between questions for values
const KEYS = {l: "scale", c: "contrast", m: "mean"};
const picture = new Picture($("image"), $("marks"), changed);
let rows = new Map(), send, want, streams = [], words = null, timer = 0, sums = [], buffer = "", overlay = "";

export function wants() {
	const names = buffer ? new Set([buffer, overlay || buffer]) : [];
	return Array.from(names, name => [name, name === buffer ? picture.region : null]);
}

// The picture's region or places, or a key of it.
function changed(what) {
	const select = $(KEYS[what]);
	if (select) {
		select.selectedIndex = (select.selectedIndex + 1) % select.length;
		select.onchange();
	} else if (what === "region") {
		want();
	} else {
		ask();
	}
}

export function begin(...link) {
	[send, want] = link;
	options($("palette"), Object.fromEntries(palettes.map(name => [name, name])));
	const on = {
		palette: name => picture.setPalette(name),
		scale: word => { picture.log = word !== "linear"; },
		contrast: () => fix(picture.limits ?? [0, 1]),
		low: () => fix([$("low").valueAsNumber, $("high").valueAsNumber]),
		high: () => on.low(),
		mean: depth => { picture.depth = Number(depth); },
		overlay: name => { overlay = name; picture.peaks = null; want(); },
		buffer: name => { location.hash = `#stream=${encodeURIComponent(name)}`; },
	};
	for (const [id, set] of Object.entries(on))
		$(id).onchange = () => { set($(id).value); paint(); };
	$("in").onclick = () => picture.zoom(1.4);
	$("out").onclick = () => picture.zoom(1 / 1.4);
	$("all").onclick = () => picture.look(null);
	fix([0, 1]);
}

function fix(limits) {
	$("limits").hidden = $("contrast").value !== "fixed";
	picture.fixed = !$("limits").hidden && limits.every(Number.isFinite) ? limits : null;
	if (picture.fixed)
		[$("low").value, $("high").value] = limits.map(v => +v.toPrecision(6));
}

export function show(name) {
	if (name === buffer)
		return;
	[buffer, words, sums] = [name, null, []];
	$("buffer").value = buffer;
	picture.clear();
}

export function list(value, given) {
	const names = list => Object.fromEntries(list.map(name => [name, name]));
	streams = value;
	options($("buffer"), {"": "choose", ...names([...streams.map(s => s.buffer), ...given])});
	$("buffer").value = buffer;
	options($("overlay"), {"": "none", ...names(streams.filter(s => s.content === "peaks").map(s => s.buffer))});
	rows = new Map(streams.map(s => [s.buffer, [...(rows.get(s.buffer) ?? []).slice(1 - SECONDS),
		{...s, ...s.processing, ...s.latency_ns, time: Date.now()}]]));
}

// Rows of five minutes, as far as this page was open; times are seconds, now is 0.
export const history = name => (rows.get(name) ?? []).map(row => ({...row, time: (row.time - Date.now()) / 1e3}));
export const AXIS = {unit: "s", x: [-SECONDS, 0]};

export function draw() {
	const all = history(buffer), about = words?.about, f = picture.frame;
	const lines = (id, title, unit, ...keys) =>
		figure("rates", id, title, keys.map(key => all.map(row => [row.time, row[key] / unit])), AXIS);
	lines("rate", "Rate, images/s", 1, "images_per_second");
	lines("data", "Data, GB/s", 1e9, "bytes_per_second");
	lines("latency", "Latency of events, µs: 50 % and 99 %", 1e3, "p50", "p99");
	table("stream", "losses", "Losses", [
		["overwritten before the consumer gave it back", streams.find(s => s.buffer === buffer)?.lost, "images"],
		["left out by the producer, because no slot was free", about?.dropped, "stacks"],
		["no room for a live source", about?.lost, "images"],
		["not delivered by the detector", about?.missed, "images"],
		["messages missing in the last stack", f?.missing, "messages"],
		["left out by the stream", f?.skipped, "images"],
		["not shown: overwritten before this page took it", f?.over, "images"],
		["not shown: overwritten while this page took it", f?.torn, "images"],
	].map(([cause, lost, unit]) => ({cause, lost, unit})), "cause lost unit");
	numbers();
}

export function look(value) {
	if (value.buffer === buffer)
		words = value, numbers();
}

export function image(frame) {
	if (frame.buffer === overlay) {
		const {rows, columns, values} = frame;
		picture.peaks = Array.from({length: rows}, (_, i) => values.subarray(i * columns, (i + 1) * columns))
			.filter(([x]) => !Number.isNaN(x));
		picture.draw();
	} else if (frame.buffer === buffer) {
		picture.take(frame);
		paint();
		ask();
	}
}

function paint() {
	picture.paint();
	numbers();
	if (!picture.frame)
		return;
	plot($("histogram"), [picture.histogram], {log: true});
	const canvas = element("canvas", {width: 256, height: 1}), [low, high] = picture.limits.map(short);
	const colours = new Uint8ClampedArray(picture.palette.buffer);
	canvas.getContext("2d").putImageData(new ImageData(colours, 256), 0, 0);
	$("legend").replaceChildren(low, canvas, `${high} counts${picture.log ? ", logarithmic" : ""}`);
}

const size = ([x, y, w, h]) => `${w} × ${h} at ${x}, ${y}`;
const places = () => [picture.pixel && [...picture.pixel, 1, 1], picture.box];

function numbers() {
	const about = words?.about, f = picture.frame;
	$("state").replaceChildren(state(words?.state ?? (buffer ? "connecting" : "choose a buffer")), ` ${words?.why ?? ""}`);
	pairs($("numbers"), {
		...about && {
			Image: `${about.width} × ${about.height} pixels, ${about.dtype}`, Stack: `${about.bunch} images`,
			Slots: `${count(about.slots)}, policy ${about.policy}`, Dataset: about.dataset || "–"},
		...f && {
			"Image number": f.frame, Role: ["signal", "dark"][f.role] ?? `role ${f.role}`,
			Shown: f.bin > 1 ? `maximum of ${f.bin} × ${f.bin} pixels` : "each pixel",
			Part: picture.region ? size([f.x, f.y, f.columns * f.bin, f.rows * f.bin]) : "whole image",
			"Mean of": `${picture.images} image${picture.images > 1 ? "s" : ""}`,
			"Age when taken": f.age_ns === null ? "–" : `${fixed(2)(f.age_ns / 1e6)} ms`,
			Attention: f.wrong ? "metadata of another stack" : f.incomplete ? "incomplete" : null,
			Peaks: picture.peaks?.length ?? null},
	});
	values();
}

// The server's numbers are those of the buffer, whatever the picture shows.
function values() {
	const [pixel, box] = places();
	const of = place => (sums.find(s => String(s.at) === String(place))?.numbers ?? []).map(short);
	const [value = "–"] = of(pixel), [sum = "–", mean = "–", least = "–", most = "–"] = of(box);
	pairs($("sums"), {
		"Pixel x, y": pixel ? `${pixel[0]}, ${pixel[1]}` : "–", Value: `${value} counts`,
		...box && {Region: size(box), Sum: `${sum} counts`, Mean: `${mean} counts`,
			"Least, most": `${least}, ${most} counts`},
	});
}

function ask() {
	values();
	timer ||= setTimeout(() => {
		timer = 0;
		const wanted = places().filter(Boolean);
		if (wanted.length && picture.frame && !$("stream").hidden)
			send({sums: [buffer, ...wanted]});
	}, THROTTLE);
}

export function answer(value) {
	if (value.buffer === buffer)
		sums = value.places;
	values();
}
