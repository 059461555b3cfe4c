// SPDX-License-Identifier: LGPL-2.1-or-later
// The link to the server, and the views of tables.
import {unpack} from "./image.js";
import {plot} from "./plot.js";
import * as stream from "./stream.js";
import {$, bytes, count, element, gigabytes, lost, micro, real, state, table} from "./words.js";

const VIEWS = ["overview", "stream", "processing", "events", "experiment"];
let socket = null, now = {streams: []}, before = new Map(), machine = {}, events = [], experiment = null, retry = 1000;
let results = new Map();

// --- link ---

const link = {
	send(request) {
		if (socket?.readyState === WebSocket.OPEN)
			socket.send(JSON.stringify(request));
	},
	want() {
		const view = current();
		this.send({want: view === "stream" ? stream.wants() : view === "processing" ? shown().map(s => [s.buffer, null]) : []});
	},
};

function say(word, text = "") {
	$("link").replaceChildren(state(word), text);
}

function connect() {
	const token = sessionStorage.getItem("rashpa-token");
	$("enter").hidden = !!token;
	if (!token) {
		say("not connected");
		$("enter").token.focus();
		return;
	}
	let right = false;
	say("connecting");
	socket = new WebSocket(`${location.protocol === "https:" ? "wss" : "ws"}://${location.host}/link`);
	socket.binaryType = "arraybuffer";
	socket.onopen = () => socket.send(token);
	socket.onmessage = async ({data}) => {
		right = true;
		retry = 1000;
		if (typeof data !== "string") {
			image(await unpack(data));
			return;
		}
		for (const [name, value] of Object.entries(JSON.parse(data)))
			HEAR[name]?.(value);
	};
	socket.onclose = ({code, reason}) => {
		if (code === 4403) {
			sessionStorage.removeItem("rashpa-token");
			refused("the token is wrong: rashpa-web prints the right one");
			connect();
			return;
		}
		say("gone", right ? ": the page shows the last state" : reason ? `: ${reason}` : ": rashpa-web does not answer");
		setTimeout(connect, retry);
		retry = Math.min(10000, retry * 1.5);
	};
}

function refused(text) {
	$("refused").textContent = text;
	$("refused").hidden = !text;
}

const HEAR = {
	hello(hello) {
		say("connected");
		refused("");
		$("machine").textContent = hello.machine_name;
		document.title = `rashpa ${hello.machine_name}`;
		for (const [buffer, rows] of hello.history)
			stream.add(buffer, rows);
		document.querySelector('nav a[href="#experiment"]').hidden = !hello.experiment;
		stream.view.given = hello.streams;
		if (hello.streams.length && !location.hash)
			location.hash = `#stream=${encodeURIComponent(hello.streams[0])}`;
		route();
	},
	streams(value) {
		before = new Map(now.streams.map(s => [s.buffer, s]));
		now = value;
		stream.streams(now.streams);
		draw("overview", "processing");
	},
	machine: value => { machine = value; draw("overview"); },
	events: value => { events = value; draw("events"); },
	experiment: value => { experiment = value; draw("experiment"); },
	look: value => stream.state_(value),
	sums: value => stream.answer(value),
	refused,
};

function image(frame) {
	if (current() === "stream")
		stream.image(frame);
	else if (frame.content === "profile")
		profile(frame);
}

// --- views ---

const current = () => VIEWS.find(view => !$(view).hidden);

function route() {
	const given = new URLSearchParams(location.hash.slice(1)), wanted = VIEWS.find(view => given.has(view)) ?? "overview";
	for (const one of VIEWS)
		$(one).hidden = one !== wanted;
	for (const a of document.querySelectorAll("nav a"))
		a.toggleAttribute("aria-current", a.hash === `#${wanted}`);
	if (wanted === "stream")
		stream.show(given.get("stream") || stream.view.buffer || (now.streams.find(s => s.state !== "ended") ?? now.streams[0])?.buffer || "");
	stream.streams(now.streams);
	draw(wanted);
	link.want();
}

const DRAW = {overview, processing, events: listEvents, experiment: showExperiment};

// Draw the view again, if it is one of these.
function draw(...views) {
	if (views.includes(current()))
		DRAW[current()]?.();
}

const to = buffer => element("a", {href: `#stream=${encodeURIComponent(buffer)}`}, buffer);

function overview() {
	const why = now.why ?? machine.why;
	table($("streams"), now.streams, [
		["Buffer", s => to(s.buffer)], ["State", s => state(s.state)], ["Content", s => s.content],
		["Images/s", s => real(s.images_per_second), true], ["GB/s", s => gigabytes(s.bytes_per_second), true],
		["Stacks", s => count(s.stacks), true],
		["Lag, stacks", s => s.lag_stacks === undefined ? "–" : `${count(s.lag_stacks)} of ${count(s.slots)}`, true],
		["Lost, images", s => lost(s.lost), true],
		["Latency 50 %, µs", s => micro(s.latency_ns?.p50), true], ["Latency 99 %, µs", s => micro(s.latency_ns?.p99), true],
		["Board", s => s.fpga === null ? "a program" : `fpga${s.fpga}`],
	], now.why ?? "there is no stream: start a producer (remu)");
	table($("boards"), machine.list?.devices ?? [], [
		["Board", d => d.node], ["State", d => state(d.state)], ["Function", d => d.bdf],
		["Name", d => d.name ?? `${d.vendor}:${d.device}`], ["Profile", d => d.profile ? "applied" : "missing"],
		["Bus master", d => d.master ? "on" : "off"], ["IOMMU", d => d.iommu ? "on" : "off"],
		["NUMA node", d => count(d.numa_node), true], ["Interrupts", d => count(d.interrupts), true],
		["Maps", d => count(d.maps), true], ["Windows", d => count(d.windows), true],
	], why ?? "no board is bound: rashpactl bind");
	table($("buffers"), machine.buffers ?? [], [
		["Buffer", b => to(b.name)], ["Size", b => bytes(b.length_bytes), true], ["Memory", b => b.unknown ?? b.backend],
		["NUMA node", b => count(b.numa_node), true], ["Owner", b => `${b.owner ?? b.uid}:${b.group ?? b.gid}`], ["Mode", b => b.mode],
		["Boards that map it", b => count(b.importers), true], ["Processes that map it", b => count(b.mappings), true], ["Leases", b => count(b.leases), true],
	], why ?? "there is no buffer: rashpactl buffer create");
	table($("holdings"), machine.list?.holdings ?? [], [
		["What", h => h.resource], ["Name", h => h.name ?? h.node], ["User", h => h.user ?? h.uid],
		["Process", h => h.orphan ? "ended" : `${h.command} (${h.pid})`], ["Memory", h => h.memory_bytes ? bytes(h.memory_bytes) : "–", true],
		["Amount", h => count(h.amount), true],
	], why ?? "nothing is held");
}

const shown = () => now.streams.filter(s => s.content === "profile").slice(0, 4);

function processing() {
	const work = now.streams.filter(s => s.processing);
	table($("work"), work, [
		["Buffer", s => to(s.buffer)], ["Engine", s => s.processing.engine], ["Images", s => count(s.processing.images), true],
		["Kept, %", s => s.processing.images ? real(100 * (1 - s.processing.vetoed / s.processing.images)) : "–", true],
		["Dark", s => count(s.processing.dark), true], ["Late results", s => lost(s.processing.late), true],
		["Lost results", s => lost(s.processing.lost), true], ["Overflows", s => lost(s.processing.overflow), true],
		["Queue, stacks", s => `${count(s.processing.queue.fill)} of ${count(s.processing.queue.stacks)}`, true],
		["Queue was full, times", s => count(s.processing.queue.full), true],
	], now.why ?? "no consumer reports its work: romulu --pipeline");
	table($("stages"), work.flatMap(s => ["stages", "sinks"].flatMap(kind => s.processing[kind].map(one => ({s, kind, one,
		last: before.get(s.buffer)?.processing?.[kind].find(b => b.name === one.name)})))), [
		["Buffer", r => r.s.buffer], ["Stage", r => r.one.name], ["Kind", r => r.kind === "sinks" ? "sink" : "process"],
		["Images", r => count(r.one.images), true], ["ms per image", r => real(1e3 * rate(r, "seconds", "images"), 3), true],
		["GB/s", r => gigabytes(rate(r, "bytes_in", "seconds")), true], ["Lost", r => lost(r.one.lost), true],
	], "no stage yet");
	for (const s of work) {
		const rows = stream.history(s.buffer), end = rows.at(-1)?.[0];
		const points = rows.slice(1).map((row, i) => [row[0] - end, 100 * (1 - (row[6] - rows[i][6]) / (row[5] - rows[i][5]))]);
		plot(figure(s.buffer, `Hit rate of ${s.buffer}, % of images that were kept`), [points], {unit: "s", x: [-300, 0]});
	}
	const wanted = JSON.stringify(shown().map(s => s.buffer));
	if (wanted !== processing.wanted) {
		processing.wanted = wanted;
		link.want();
	}
	for (const [key, place] of results)
		if (![...work, ...shown()].some(s => s.buffer === key))
			place.remove(), results.delete(key);
}

// Since the last look, or of all before the first one.
function rate({one, last}, top, bottom) {
	const below = one[bottom] - (last?.[bottom] ?? 0);
	return below > 0 ? (one[top] - (last?.[top] ?? 0)) / below : NaN;
}

function figure(key, title) {
	let place = results.get(key);
	if (!place) {
		place = element("figure", {}, element("figcaption"), element("canvas", {class: "plot", role: "img"}));
		results.set(key, place);
		$("results").append(place);
	}
	place.firstChild.textContent = title;
	return place.lastChild;
}

function profile(frame) {
	const [x, y] = [0, 1].map(row => frame.values.subarray(row * frame.columns, (row + 1) * frame.columns));
	plot(figure(frame.buffer, `Profile of image ${count(frame.frame)}, ${frame.buffer}: counts over ${frame.dataset.replaceAll("_", " ")}`),
		[Array.from(x, (value, i) => [value, y[i]])]);
}

function listEvents() {
	const list = events.filter(e => e.bad || $("which").value === "all").reverse();
	table($("list"), list, [
		["Time", e => new Date(e.time * 1000).toLocaleTimeString("en-GB", {hour: "2-digit", minute: "2-digit", second: "2-digit", fractionalSecondDigits: 3})],
		["Kind", e => state(e.bad ? "error" : "note")], ["Of", e => e.source], ["Event", e => e.text],
	], "no event yet");
}

function showExperiment() {
	if (!experiment)
		return;
	$("name").textContent = experiment.name;
	$("control").hidden = !experiment.control;
	const some = word => experiment.manager && experiment.parties.some(p => p.role === "detector" && p.state === word);
	const can = {start: !experiment.manager, pause: some("running"), resume: some("paused"), stop: experiment.manager};
	for (const [word, possible] of Object.entries(can))
		$(word).disabled = !possible;
	$("manager").replaceChildren(state(experiment.manager ? "running" : "idle"));
	table($("parties"), experiment.parties, [
		["Name", p => p.name], ["Role", p => p.role], ["State", p => state(p.state)], ["Outcome", p => p.why ?? p.outcome],
		["Images", p => count(p.counts.images), true], ["Images/s", p => real(p.rate), true],
		["Lag, stacks", p => p.counts.lag === undefined ? "–" : `${count(p.counts.lag)} of ${count(p.counts.slots)}`, true],
		["Lost, images", p => lost(p.counts.lost), true], ["Missing lines", p => lost(p.counts.missing), true],
		["Kept, images", p => count(p.counts.kept), true],
	], "the experiment has no part");
	table($("flows"), experiment.flows, [["From", f => f.from], ["To", f => f.to], ["Transport", f => f.transport], ["Address", f => f.address]], "no flow");
	table($("settings"), experiment.parties.flatMap(p => [["at", p.at], ...p.settings].map(([name, value]) => ({p, name, value}))),
		[["Name", r => r.p.name], ["Setting", r => r.name], ["Value", r => r.value || "yes"]], "no setting");
	$("said").textContent = experiment.said || "–";
}

// --- begin ---

const token = new URLSearchParams(location.hash.slice(1)).get("token");
if (token) {
	sessionStorage.setItem("rashpa-token", token);
	history.replaceState(null, "", location.pathname);
}
$("enter").onsubmit = event => {
	event.preventDefault();
	sessionStorage.setItem("rashpa-token", $("enter").token.value.trim());
	connect();
};
$("which").onchange = listEvents;
for (const button of document.querySelectorAll("#control button"))
	button.onclick = () => link.send({control: button.id});
window.onhashchange = route;
document.addEventListener("keydown", event => {
	const n = "12345".indexOf(event.key);
	if (n >= 0 && !event.ctrlKey && !event.altKey && !event.metaKey && !/^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)) {
		const a = document.querySelectorAll("nav a")[n];
		if (!a.hidden)
			location.hash = a.hash;
	}
});
stream.begin(link);
connect();
