// SPDX-License-Identifier: LGPL-2.1-or-later
// The link to the server, and the views.
import {KEYS, PALETTES, Picture, mix, unpack} from "./image.js";
import {
	$, count, element, fixed, link, lost, mebi, options, pairs, plot, share, short, state, table,
} from "./draw.js";

const VIEWS = {overview, stream, processing, events, experiment};
const SECONDS = 300, AXIS = {unit: "s", x: [-SECONDS, 0]};
const AGAIN = 2000, THROTTLE = 50;	// milliseconds between attempts to connect, and questions for values
const now = {hello: {}, streams: {streams: []}, machine: {}, events: [], experiment: null, look: {}, sums: {}};
const picture = new Picture($("image"), $("marks"), changed);
let socket = null, rows = new Map(), timer = 0, buffer = "";

const current = () => Object.keys(VIEWS).find(view => !$(view).hidden);
const streams = content => now.streams.streams.filter(s => s.content === content).map(s => s.buffer);

// --- link ---

function send(request) {
	if (socket?.readyState === WebSocket.OPEN)
		socket.send(JSON.stringify(request));
}

function want() {
	const wanted = {stream: [...new Set([buffer, $("overlay").value])], processing: streams("profile")}[current()] ?? [];
	const part = name => current() === "stream" && name === buffer ? picture.region : null;
	send({want: wanted.filter(Boolean).map(name => [name, part(name)])});
}

function say(word, text = "") {
	$("link").replaceChildren(state(word), text);
}

function connect() {
	const token = sessionStorage.getItem("rashpa-token");
	$("enter").hidden = !!token;
	say(token ? "connecting" : "not connected");
	if (!token)
		return;
	socket = new WebSocket(`${location.origin.replace("http", "ws")}/link`);
	socket.binaryType = "arraybuffer";
	socket.onopen = () => socket.send(token);
	socket.onmessage = async ({data}) => typeof data === "string" ?
		Object.entries(JSON.parse(data)).forEach(hear) : image(await unpack(data));
	socket.onclose = ({code, reason}) => {
		say("gone", `: ${reason || "rashpa-web does not answer"}`);
		if (code === 4403)
			sessionStorage.removeItem("rashpa-token");
		setTimeout(connect, AGAIN);
	};
}

function hear([name, value]) {
	now[name] = name === "look" ? {...now.look, [value.buffer]: value} : value;
	if (name === "refused") {
		say("connected", value && `, but: ${value}`);
	} else if (name === "hello") {
		say("connected");
		$("machine").textContent = value.machine_name;
		document.title = `rashpa ${value.machine_name}`;
		$("views").lastChild.hidden = !value.experiment;
		if (value.streams.length && !location.hash)
			location.hash = `#stream=${encodeURIComponent(value.streams[0])}`;
		route();
	} else if (name === "streams") {
		// of five minutes, as far as this page was open
		const last = s => (rows.get(s.buffer) ?? []).filter(row => Date.now() - row.at < 1e3 * SECONDS);
		rows = new Map(value.streams.map(s => [s.buffer, [...last(s), {...s, ...s.processing, ...s.latency_ns, at: Date.now()}]]));
		if (current() === "processing")
			want();
	}
	VIEWS[current()]();
}

function image(frame) {
	const {rows, columns, values} = frame;
	const row = i => values.subarray(i * columns, (i + 1) * columns);
	if (current() === "processing" && frame.content === "profile") {
		plot("results", `profile-${frame.buffer}`, `Profile of image ${count(frame.frame)}, ${frame.buffer}: ` +
			`counts over ${frame.dataset.replaceAll("_", " ")}`, [Array.from(row(0), (x, i) => [x, row(1)[i]])]);
	} else if (frame.buffer === $("overlay").value) {
		picture.peaks = Array.from({length: rows}, (_, i) => row(i)).filter(([x]) => !Number.isNaN(x));
		picture.draw();
	} else if (frame.buffer === buffer) {
		picture.take(frame);
		paint();
		ask();
	}
}

// --- views ---

function route() {
	const given = new URLSearchParams(location.hash.slice(1));
	const wanted = Object.keys(VIEWS).find(view => given.has(view)) ?? "overview";
	for (const view of Object.keys(VIEWS))
		$(view).hidden = view !== wanted;
	for (const a of $("views").children)
		a.toggleAttribute("aria-current", a.hash === `#${wanted}`);
	const name = given.get("stream") || buffer || now.streams.streams.find(s => s.state !== "ended")?.buffer;
	if (wanted === "stream" && name && name !== buffer) {
		buffer = name;
		picture.clear();
	}
	$("results").replaceChildren();
	VIEWS[wanted]();
	want();
}

function overview() {
	const {list, buffers, why} = now.machine, none = now.streams.why ?? why;
	table("overview", "streams", "Streams", now.streams.streams.map(s => ({
		Buffer: link(s.buffer), State: state(s.state), Content: s.content, "Images/s": fixed(s.images_per_second),
		"GB/s": fixed(s.bytes_per_second / 1e9, 3), Stacks: s.stacks, "Lag, stacks": share(s.lag_stacks, s.slots),
		"Lost, images": lost(s.lost), "Latency 50 %, µs": fixed(s.latency_ns?.p50 / 1e3),
		"Latency 99 %, µs": fixed(s.latency_ns?.p99 / 1e3), Board: s.fpga === null ? "a program" : `fpga${s.fpga}`,
	})), now.streams.why ?? "there is no stream: start a producer (remu)");
	table("overview", "boards", "Boards", list?.devices.map(d => ({
		Board: d.node, State: state(d.state), Function: d.bdf, Name: d.name ?? `${d.vendor}:${d.device}`,
		Profile: d.profile, "Bus master": d.master, IOMMU: d.iommu, "NUMA node": d.numa_node, Interrupts: d.interrupts,
		Maps: d.maps, Windows: d.windows,
	})), none ?? "no board is bound: rashpactl bind");
	table("overview", "buffers", "Buffers", buffers?.map(b => ({
		Buffer: link(b.name), Size: mebi(b.length_bytes), Memory: b.unknown ?? b.backend, "NUMA node": b.numa_node,
		Owner: `${b.owner ?? b.uid}:${b.group ?? b.gid}`, Mode: b.mode, "Boards that map it": b.importers,
		"Processes that map it": b.mappings, Leases: b.leases,
	})), none ?? "there is no buffer: rashpactl buffer create");
	table("overview", "holdings", "Who holds what", list?.holdings.map(h => ({
		What: h.resource, Name: h.name ?? h.node, User: h.user ?? h.uid,
		Process: h.orphan ? "ended" : `${h.command} (${h.pid})`, Memory: mebi(h.memory_bytes), Amount: h.amount,
	})), none ?? "nothing is held");
}

function processing() {
	const work = now.streams.streams.filter(s => s.processing).map(s => ({...s.processing, buffer: s.buffer}));
	table("processing", "work", "Work of consumers", work.map(p => ({
		Buffer: link(p.buffer), Engine: p.engine, Images: p.images, "Kept, %": fixed(100 * (1 - p.vetoed / p.images)),
		Dark: p.dark, "Late results": lost(p.late), "Lost results": lost(p.lost), Overflows: lost(p.overflow),
		"Queue, stacks": share(p.queue.fill, p.queue.stacks), "Queue was full, times": p.queue.full,
	})), now.streams.why ?? "no consumer reports its work: romulu --pipeline");
	table("processing", "stages", "Stages and sinks", work.flatMap(p => [...p.stages, ...p.sinks].map(one => ({
		Buffer: p.buffer, Stage: one.name, Images: one.images, "ms per image": fixed(1e3 * one.seconds / one.images, 3),
		"GB/s": fixed(one.bytes_in / one.seconds / 1e9, 3), Lost: lost(one.lost)}))), "no stage yet");
	for (const {buffer} of work) {
		const kept = (row, last) => 100 * (1 - (row.vetoed - last.vetoed) / (row.images - last.images));
		plot("results", `hits-${buffer}`, `Hit rate of ${buffer}, % of images that were kept`,
			[recent(buffer).map((row, i, all) => [row.time, i ? kept(row, all[i - 1]) : NaN])], AXIS);
	}
}

function events() {
	const time = at => `${at.toLocaleTimeString("en-GB")}.${String(at.getMilliseconds()).padStart(3, "0")}`;
	const list = now.events.filter(e => e.bad || $("which").value === "all").reverse();
	table("events", "list", "Events, the newest first", list.map(e => ({
		Time: time(new Date(e.time * 1000)), Kind: state(e.bad ? "error" : "note"), Of: e.source, Event: e.text,
	})), "no event yet");
}

function experiment() {
	const it = now.experiment ?? {parties: []};
	$("control").hidden = !it.control;
	$("manager").replaceChildren(state(it.manager ? "running" : "idle"));
	table("experiment", "parties", `Experiment ${it.name}`, it.parties.map(p => ({
		Name: p.name, Role: p.role, State: state(p.state), Images: p.images, "Images/s": fixed(p.images_per_second),
		"Lag, stacks": p.lag, "Lost, images": lost(p.lost), "Missing lines": lost(p.missing), Reason: p.why,
	})), "the experiment has no part");
	table("experiment", "said", "Output of rashpa-manager", it.said && [{Text: element("pre", {}, it.said)}], "none");
	table("experiment", "plan", "Plan", [{File: element("pre", {}, it.plan)}]);
}

// --- the view of one stream ---

// Times are seconds, now is 0.
const recent = name => (rows.get(name) ?? []).map(row => ({...row, time: (row.at - Date.now()) / 1e3}));
const places = () => [picture.pixel && [...picture.pixel, 1, 1], picture.box];
const size = ([x, y, w, h]) => `${w} × ${h} at ${x}, ${y}`;

function stream() {
	const list = now.streams.streams, [pixel, box] = places(), f = picture.frame;
	const {about, state: word, why} = now.look[buffer] ?? {};
	options($("buffer"), "choose", [...list.map(s => s.buffer), ...now.hello.streams]);
	options($("overlay"), "none", streams("peaks"));
	$("buffer").value = buffer;
	$("state").replaceChildren(state(word ?? (buffer ? "connecting" : "choose a buffer")), ` ${why ?? ""}`);
	pairs($("numbers"), {
		...about && {
			Image: `${about.width} × ${about.height} pixels, ${about.dtype}`, Stack: `${about.bunch} images`,
			Slots: `${count(about.slots)}, policy ${about.policy}`, Dataset: about.dataset || "–"},
		...f && {
			"Image number": f.frame, Role: ["signal", "dark"][f.role] ?? `role ${f.role}`,
			Shown: f.bin > 1 ? `maximum of ${f.bin} × ${f.bin} pixels` : "each pixel",
			Part: picture.region ? size([f.x, f.y, f.columns * f.bin, f.rows * f.bin]) : "whole image",
			"Mean of": `${picture.images} image${picture.images > 1 ? "s" : ""}`,
			"Age when taken": f.age_ns === null ? "–" : `${fixed(f.age_ns / 1e6, 2)} ms`,
			Attention: f.wrong ? "metadata of another stack" : f.incomplete ? "incomplete" : null,
			Peaks: picture.peaks?.length ?? null},
	});
	// the server's numbers are those of the buffer, whatever the picture shows
	const sums = now.sums.buffer === buffer ? now.sums.places : [];
	const of = place => sums.find(s => String(s.at) === String(place))?.numbers ?? [];
	const [value] = of(pixel).map(short), [sum, mean, least, most] = of(box).map(short);
	pairs($("sums"), {
		"Pixel x, y": pixel ? `${pixel[0]}, ${pixel[1]}` : "–", Value: `${value ?? "–"} counts`,
		...box && {Region: size(box), Sum: `${sum ?? "–"} counts`, Mean: `${mean ?? "–"} counts`,
			"Least, most": `${least ?? "–"}, ${most ?? "–"} counts`},
	});
	const plots = (id, title, unit, ...keys) =>
		plot("rates", id, title, keys.map(key => recent(buffer).map(row => [row.time, row[key] / unit])), AXIS);
	plots("rate", "Rate, images/s", 1, "images_per_second");
	plots("data", "Data, GB/s", 1e9, "bytes_per_second");
	plots("latency", "Latency of events, µs: 50 % and 99 %", 1e3, "p50", "p99");
	table("stream", "losses", "Losses", [
		["overwritten before the consumer gave it back", list.find(s => s.buffer === buffer)?.lost, "images"],
		["left out by the producer, because no slot was free", about?.dropped, "stacks"],
		["no room for a live source", about?.lost, "images"], ["not delivered by the detector", about?.missed, "images"],
		["messages missing in the last stack", f?.missing, "messages"], ["left out by the stream", f?.skipped, "images"],
		["not shown: overwritten before this page took it", f?.over, "images"],
		["not shown: overwritten while this page took it", f?.torn, "images"],
	].map(([cause, n, unit]) => ({Cause: cause, Lost: lost(n), Unit: unit})));
}

// As the controls want it.
function paint() {
	const limits = [$("low").valueAsNumber, $("high").valueAsNumber], colours = mix($("palette").value);
	picture.palette = new Uint32Array(colours.getImageData(0, 0, 256, 1).data.buffer);
	picture.log = $("scale").value !== "linear";
	picture.depth = Number($("mean").value);
	picture.fixed = $("contrast").value === "fixed" && limits.every(Number.isFinite) ? limits : null;
	picture.paint();
	if (picture.frame) {
		plot("side", "histogram", "Histogram, pixels", [picture.histogram], {log: true});
		const [low, high] = picture.limits.map(short);
		$("legend").replaceChildren(low, colours.canvas, `${high} counts${picture.log ? ", logarithmic" : ""}`);
	}
	stream();
}

// The picture's region or its places, or a key that was pressed.
function changed(what) {
	const select = $(KEYS[what]);
	if (select) {
		select.selectedIndex = (select.selectedIndex + 1) % select.length;
		select.onchange();
	} else if (what === "region") {
		want();
	} else {
		ask();
		stream();
	}
}

function ask() {
	timer ||= setTimeout(() => {
		timer = 0;
		const wanted = places().filter(Boolean);
		if (wanted.length && picture.frame && current() === "stream")
			send({sums: [buffer, ...wanted]});
	}, THROTTLE);
}

// --- begin ---

const token = new URLSearchParams(location.hash.slice(1)).get("token");
if (token) {
	sessionStorage.setItem("rashpa-token", token);
	history.replaceState(null, "", location.pathname);
}
for (const id of ["palette", "scale", "contrast", "low", "high", "mean", "overlay"])
	$(id).onchange = () => {
		$("limits").hidden = $("contrast").value !== "fixed";
		if (id === "contrast")
			[$("low").value, $("high").value] = picture.limits.map(v => +v.toPrecision(6));
		if (id === "overlay") {
			picture.peaks = null;
			want();
		}
		paint();
	};
$("buffer").onchange = () => { location.hash = `#stream=${encodeURIComponent($("buffer").value)}`; };
$("palette").append(...Object.keys(PALETTES).map(name => element("option", {}, name)));
for (const button of document.querySelectorAll(".bar button"))
	button.onclick = () => $("image").dispatchEvent(new KeyboardEvent("keydown", {key: button.value}));
$("which").onchange = events;
$("enter").onsubmit = event => {
	event.preventDefault();
	sessionStorage.setItem("rashpa-token", $("enter").token.value.trim());
	connect();
};
for (const button of $("control").querySelectorAll("button"))
	button.onclick = () => send({control: button.id});
$("views").append(...Object.keys(VIEWS).map(view => element("a", {href: `#${view}`}, view)));
window.onhashchange = route;
document.onkeydown = event => {
	const a = /^[1-5]$/.test(event.key) && $("views").children[event.key - 1];
	if (a && !a.hidden && !event.ctrlKey && !event.altKey && !event.metaKey && !event.target.matches("input, select"))
		location.hash = a.hash;
};
connect();
