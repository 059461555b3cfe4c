// SPDX-License-Identifier: LGPL-2.1-or-later
// The view of one stream: image, numbers, histogram, rates and losses.
import {Picture, palettes} from "./image.js";
import {plot} from "./plot.js";
import {$, count, element, lost, options, pairs, real, short, state, table} from "./words.js";

const MINUTES = 5;
let link, picture, rows = new Map(), look = null, pending = false, timer = 0, sums = {};

export const view = {buffer: "", peaks: "", given: []};

export function wants() {
	if (!view.buffer)
		return [];
	return [[view.buffer, picture.region], ...(view.peaks && view.peaks !== view.buffer ? [[view.peaks, null]] : [])];
}

function next(select) {
	select.selectedIndex = (select.selectedIndex + 1) % select.options.length;
	select.dispatchEvent(new Event("change"));
}

export function begin(theLink) {
	link = theLink;
	picture = new Picture($("image"), what => {
		if (what === "region")
			link.want();
		else if (what === "l")
			next($("scale"));
		else if (what === "c")
			next($("contrast"));
		else if (what === "m")
			next($("mean"));
		else
			ask();
	});
	options($("palette"), palettes);
	$("palette").onchange = () => picture.setPalette($("palette").value);
	$("scale").onchange = () => { picture.log = $("scale").value === "log"; paint(); };
	$("contrast").onchange = () => { fix(picture.limits ?? [0, 1]); };
	$("low").onchange = $("high").onchange = () => { fix([$("low").valueAsNumber, $("high").valueAsNumber]); };
	$("mean").onchange = () => { picture.depth = Number($("mean").value); paint(); };
	$("overlay").onchange = () => { view.peaks = $("overlay").value; picture.peaks = null; paint(); link.want(); };
	$("buffer").onchange = () => { location.hash = `#stream/${encodeURIComponent($("buffer").value)}`; };
	$("in").onclick = () => picture.zoom(1.4);
	$("out").onclick = () => picture.zoom(1 / 1.4);
	$("all").onclick = () => picture.look(null);
	fix([0, 1]);
}

function fix(limits) {
	const fixed = $("contrast").value === "fixed";
	$("limits").hidden = !fixed;
	picture.fixed = fixed && limits.every(Number.isFinite) ? limits : null;
	if (fixed && picture.fixed && document.activeElement !== $("low") && document.activeElement !== $("high"))
		[$("low").value, $("high").value] = limits.map(v => +v.toPrecision(6));
	paint();
}

export function show(buffer) {
	if (buffer === view.buffer)
		return;
	view.buffer = buffer;
	look = null;
	sums = {};
	picture.clear();
	numbers();
	plots();
}

export function streams(list) {
	options($("buffer"), [...new Set([...list.map(s => s.buffer), ...view.given])], "choose");
	$("buffer").value = view.buffer;
	options($("overlay"), list.filter(s => s.content === "peaks").map(s => s.buffer), "none");
	const s = list.find(one => one.buffer === view.buffer);
	for (const one of list)
		add(one.buffer, [one.row]);
	if (!$("stream").hidden)
		plots(s);
}

// Rows that are newer than those already here.
export function add(buffer, more) {
	const all = history(buffer), last = all.at(-1)?.[0] ?? 0;
	rows.set(buffer, [...all, ...more.filter(row => row?.[0] > last)].slice(-60 * MINUTES));
}

export const history = buffer => rows.get(buffer) ?? [];

function plots(stream) {
	const all = history(view.buffer), now = all.at(-1)?.[0] ?? 0;
	const of = column => all.map(row => [row[0] - now, row[column] ?? NaN]);
	const settings = {xUnit: "s", x: [-60 * MINUTES, 0]};
	plot($("rate"), [{points: of(1)}], settings);
	plot($("data"), [{points: of(2).map(([x, y]) => [x, y / 1e9])}], settings);
	plot($("latency"), [3, 4].map(column => ({points: of(column).map(([x, y]) => [x, y / 1e3])})), settings);
	const about = look?.about, f = picture.frame;
	const causes = [
		["overwritten before the consumer gave it back", stream?.lost, "images"],
		["left out by the producer, because no slot was free", about?.dropped, "stacks"],
		["no room for a live source", about?.lost, "images"],
		["not delivered by the detector", about?.missed, "images"],
		["messages missing in the last stack", f?.missing, "messages"],
		["left out by the stream", f?.skipped, "images"],
		["not shown: overwritten before this page took it", f?.over, "images"],
		["not shown: overwritten while this page took it", f?.torn, "images"],
	];
	table($("losses"), causes.filter(([, n]) => n !== undefined), [["Cause", c => c[0]],
		["Lost", c => c[0].startsWith("not shown") ? count(c[1]) : lost(c[1]), true], ["Unit", c => c[2]]], "no stream yet");
}

export function state_(words) {
	if (words.buffer !== view.buffer)
		return;
	look = words;
	numbers();
}

export function image(frame) {
	if (frame.buffer === view.buffer && frame.content !== "profile" && frame.content !== "peaks") {
		picture.take(frame);
		paint();
		ask();
	} else if (frame.buffer === view.peaks) {
		picture.peaks = peaks(frame);
		picture.draw();
	}
}

export function peaks(frame) {
	const list = [];
	for (let row = 0; row < frame.rows && !Number.isNaN(frame.values[row * frame.columns]); row++)
		list.push(frame.values.subarray(row * frame.columns, (row + 1) * frame.columns));
	return list;
}

function paint() {
	picture.paint();
	if (picture.frame) {
		plot($("histogram"), [{points: picture.histogram, kind: "bars"}], {log: true});
		legend();
	}
	numbers();
}

function legend() {
	const canvas = element("canvas", {width: 256, height: 1}), c = canvas.getContext("2d"), line = new ImageData(256, 1);
	new Uint32Array(line.data.buffer).set(picture.palette);
	c.putImageData(line, 0, 0);
	const [low, high] = picture.limits.map(short);
	$("legend").replaceChildren(low, canvas, `${high} counts${picture.log ? ", logarithmic" : ""}`);
}

function numbers() {
	const about = look?.about, f = picture.frame;
	$("state").replaceChildren(state(look?.state ?? (view.buffer ? "connecting" : "choose a buffer")));
	if (look?.why)
		$("state").append(` ${look.why}`);
	pairs($("numbers"), [
		...(about ? [["Image", `${about.width} × ${about.height} pixels, ${about.dtype}`], ["Stack", `${about.bunch} images`],
			["Slots", `${count(about.slots)}, policy ${about.policy}`], ["Dataset", about.dataset || "–"]] : []),
		...(f ? [["Image number", count(f.frame)], ["Role", f.role === 0 ? "signal" : f.role === 1 ? "dark" : `role ${f.role}`],
			["Shown", f.bin > 1 ? `maximum of ${f.bin} × ${f.bin} pixels` : "each pixel"],
			["Part", picture.region ? `${f.columns * f.bin} × ${f.rows * f.bin} at ${f.x}, ${f.y}` : "whole image"],
			["Mean of", `${picture.images} image${picture.images > 1 ? "s" : ""}`],
			["Age when taken", f.age_ns === null ? "–" : `${real(f.age_ns / 1e6, 2)} ms`],
			...(f.incomplete || f.wrong ? [["Attention", f.wrong ? "metadata of another stack" : "incomplete"]] : []),
			...(picture.peaks ? [["Peaks", count(picture.peaks.length)]] : [])] : []),
	]);
	values();
}

function values() {
	const {pixel, box} = picture, direct = pixel && picture.frame ? picture.value(pixel) : undefined;
	const point = direct ?? (sums.pixel && pixel && sums.pixel.x === pixel[0] && sums.pixel.y === pixel[1] ? sums.pixel.sum : undefined);
	const region = box && sums.box && ["x", "y", "w", "h"].every((key, i) => sums.box[key] === box[i]) ? sums.box : null;
	pairs($("sums"), [
		["Pixel x, y", pixel ? `${pixel[0]}, ${pixel[1]}` : "–"], ["Value", `${short(point)} counts`],
		...(box ? [["Region", `${box[2]} × ${box[3]} at ${box[0]}, ${box[1]}`], ["Sum", `${short(region?.sum)} counts`],
			["Mean", `${short(region?.mean)} counts`], ["Least, most", `${short(region?.least)}, ${short(region?.most)} counts`]] : []),
	]);
}

// Exact numbers come from the server, one question at a time.
function ask() {
	values();
	const {pixel, box, frame} = picture;
	if (pending || !frame || (!pixel && !box) || $("stream").hidden)
		return;
	pending = true;
	if (box && (!ask.box || !pixel || picture.value(pixel) !== undefined))
		link.send({sums: [view.buffer, ...box]});
	else if (pixel)
		link.send({sums: [view.buffer, ...pixel, 1, 1]});
	ask.box = !ask.box;
	ask.asked = JSON.stringify([pixel, box]);
	clearTimeout(timer);
	timer = setTimeout(() => { pending = false; ask(); }, 2000);
}

export function answer(numbers_) {
	if (!numbers_)
		return;		// no image yet: the timer asks again
	pending = false;
	clearTimeout(timer);
	if (numbers_.buffer === view.buffer) {
		const {box} = picture, isBox = box && ["x", "y", "w", "h"].every((key, i) => numbers_[key] === box[i]);
		sums[isBox ? "box" : "pixel"] = numbers_;
	}
	values();
	if (ask.asked !== JSON.stringify([picture.pixel, picture.box]) || (picture.box && picture.pixel && ask.box))
		setTimeout(ask, 30);
}
