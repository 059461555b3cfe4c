// SPDX-License-Identifier: LGPL-2.1-or-later
// The link to the server, and the views of tables.
import {unpack} from "./image.js";
import {figure} from "./plot.js";
import * as stream from "./stream.js";
import {$, count, element, share, state, table} from "./words.js";

const VIEWS = {overview, stream: stream.draw, processing, events, experiment};
const current = () => Object.keys(VIEWS).find(view => !$(view).hidden);
let socket = null, retry = 1000, before = new Map();
// the last message of each name
const now = {hello: {}, streams: {streams: []}, machine: {}, events: [], experiment: null};

// --- link ---

function send(request) {
	if (socket?.readyState === WebSocket.OPEN)
		socket.send(JSON.stringify(request));
}

function want() {
	send({want: {stream: stream.wants, processing: () => profiles().map(name => [name, null])}[current()]?.() ?? []});
}

function say(word, text = "") {
	$("link").replaceChildren(state(word), text);
}

function refused(text) {
	$("refused").textContent = text;
	$("refused").hidden = !text;
}

function connect() {
	const token = sessionStorage.getItem("rashpa-token");
	let right = false;
	$("enter").hidden = !!token;
	if (!token) {
		say("not connected");
		$("enter").token.focus();
		return;
	}
	say("connecting");
	socket = new WebSocket(`${location.origin.replace("http", "ws")}/link`);
	socket.binaryType = "arraybuffer";
	socket.onopen = () => socket.send(token);
	socket.onmessage = async ({data}) => {
		right = true;
		retry = 1000;
		if (typeof data !== "string")
			image(await unpack(data));
		else
			Object.entries(JSON.parse(data)).forEach(hear);
	};
	socket.onclose = ({code, reason}) => {
		if (code === 4403) {
			sessionStorage.removeItem("rashpa-token");
			refused("the token is wrong: rashpa-web prints the right one");
			connect();
			return;
		}
		say("gone", `: ${right ? "the page shows the last state" : reason || "rashpa-web does not answer"}`);
		setTimeout(connect, retry);
		retry = Math.min(10000, retry * 1.5);
	};
}

function hear([name, value]) {
	if (name === "streams")
		before = new Map(now.streams.streams.map(s => [s.buffer, s.processing]));
	if (name in now)
		now[name] = value;
	HEAR[name]?.(value);
	if (name in now)
		VIEWS[current()]();
}

const HEAR = {
	hello({machine_name, experiment, streams}) {
		say("connected");
		refused("");
		$("machine").textContent = machine_name;
		document.title = `rashpa ${machine_name}`;
		document.querySelector('nav a[href="#experiment"]').hidden = !experiment;
		if (streams.length && !location.hash)
			location.hash = `#stream=${encodeURIComponent(streams[0])}`;
		route();
	},
	streams: ({streams}) => stream.list(streams, now.hello.streams),
	look: stream.look,
	sums: stream.answer,
	refused,
};

function image(frame) {
	if (current() === "stream")
		stream.image(frame);
	else if (frame.content === "profile") {
		const [x, y] = [0, 1].map(row => frame.values.subarray(row * frame.columns, (row + 1) * frame.columns));
		figure("results", `profile-${frame.buffer}`, `Profile of image ${count(frame.frame)}, ${frame.buffer}: ` +
			`counts over ${frame.dataset.replaceAll("_", " ")}`, [Array.from(x, (value, i) => [value, y[i]])]);
	}
}

// --- views ---

function route() {
	const given = new URLSearchParams(location.hash.slice(1)), list = now.streams.streams;
	const wanted = Object.keys(VIEWS).find(view => given.has(view)) ?? "overview";
	for (const view of Object.keys(VIEWS))
		$(view).hidden = view !== wanted;
	for (const a of $("views").children)
		a.toggleAttribute("aria-current", a.hash === `#${wanted}`);
	if (wanted === "stream")
		stream.show(given.get("stream") || $("buffer").value || (list.find(s => s.state !== "ended") ?? list[0])?.buffer || "");
	VIEWS[wanted]();
	want();
}

function overview() {
	const {list, buffers, why} = now.machine, none = now.streams.why ?? why;
	table("overview", "streams", "Streams", now.streams.streams.map(s => ({
		...s, ...s.latency_ns, lag: share(s.lag_stacks, s.slots), lost_images: s.lost,
		board: s.fpga === null ? "a program" : `fpga${s.fpga}`})),
	"buffer state content images_per_second bytes_per_second stacks lag lost_images p50 p99 board",
	now.streams.why ?? "there is no stream: start a producer (remu)");
	table("overview", "boards", "Boards", list?.devices.map(d => ({
		...d, board: d.node, name: d.name ?? `${d.vendor}:${d.device}`, bus_master: d.master})),
	"board state bdf name profile bus_master iommu numa_node interrupts maps windows",
	none ?? "no board is bound: rashpactl bind");
	table("overview", "buffers", "Buffers", buffers?.map(b => ({
		...b, buffer: b.name, memory: b.unknown ?? b.backend, owner: `${b.owner ?? b.uid}:${b.group ?? b.gid}`})),
	"buffer length_bytes memory numa_node owner mode importers mappings leases",
	none ?? "there is no buffer: rashpactl buffer create");
	table("overview", "holdings", "Who holds what", list?.holdings.map(h => ({
		...h, name: h.name ?? h.node, user: h.user ?? h.uid,
		process: h.orphan ? "ended" : `${h.command} (${h.pid})`})),
	"resource name user process memory_bytes amount", none ?? "nothing is held");
}

const profiles = () => now.streams.streams.filter(s => s.content === "profile").slice(0, 4).map(s => s.buffer);

function processing() {
	const work = now.streams.streams.filter(s => s.processing).map(({buffer, processing: p}) => ({
		...p, buffer, kept: 100 * (1 - p.vetoed / p.images), lost_results: p.lost,
		queue: share(p.queue.fill, p.queue.stacks), full: p.queue.full}));
	table("processing", "work", "Work of consumers", work,
		"buffer engine images kept dark late lost_results overflow queue full",
		now.streams.why ?? "no consumer reports its work: romulu --pipeline");
	table("processing", "stages", "Stages and sinks", work.flatMap(stages),
		"buffer stage kind images ms bytes_per_second lost", "no stage yet");
	for (const {buffer} of work) {
		const rows = stream.history(buffer), kept = (row, last) =>
			100 * (1 - (row.vetoed - last.vetoed) / (row.images - last.images));
		figure("results", `hits-${buffer}`, `Hit rate of ${buffer}, % of images that were kept`,
			[rows.slice(1).map((row, i) => [row.time, kept(row, rows[i])])], stream.AXIS);
	}
	const wanted = profiles(), shown = [...wanted.map(name => `profile-${name}`), ...work.map(p => `hits-${p.buffer}`)];
	for (const svg of $("results").querySelectorAll("svg.plot"))
		if (!shown.includes(svg.id))
			svg.parentNode.remove();
	if (String(wanted) !== processing.wanted) {
		processing.wanted = String(wanted);
		want();
	}
}

// Rates are those since the last message, or of all before the first one.
function stages(work) {
	return ["stage", "sink"].flatMap(kind => work[`${kind}s`].map(one => {
		const last = before.get(work.buffer)?.[`${kind}s`].find(b => b.name === one.name) ?? {};
		const [images, seconds, input] = ["images", "seconds", "bytes_in"].map(key => one[key] - (last[key] ?? 0));
		return {...one, buffer: work.buffer, stage: one.name, kind, ms: 1e3 * seconds / images,
			bytes_per_second: input / seconds};
	}));
}

function events() {
	const time = at => `${at.toLocaleTimeString("en-GB")}.${String(at.getMilliseconds()).padStart(3, "0")}`;
	const list = now.events.filter(e => e.bad || $("which").value === "all").reverse();
	table("events", "list", "Events, the newest first", list.map(e => ({
		...e, time: time(new Date(e.time * 1000)), state: e.bad ? "error" : "note", event: e.text})),
	"time state source event", "no event yet");
}

function experiment() {
	const it = now.experiment;
	if (!it)
		return;
	const some = word => it.manager && it.parties.some(p => p.role === "detector" && p.state === word);
	const can = {start: !it.manager, pause: some("running"), resume: some("paused"), stop: it.manager};
	for (const [word, possible] of Object.entries(can))
		$(word).disabled = !possible;
	$("name").textContent = it.name;
	$("control").hidden = !it.control;
	$("manager").replaceChildren(state(it.manager ? "running" : "idle"));
	table("experiment", "parties", "State", it.parties.map(p => ({
		...p, outcome: p.why ?? p.outcome, lag: share(p.lag, p.slots), lost_images: p.lost, kept_images: p.kept})),
	"name role state outcome images images_per_second lag lost_images missing kept_images",
	"the experiment has no part");
	table("experiment", "flows", "Flows", it.flows, "from to transport address", "no flow");
	table("experiment", "settings", "Settings", it.parties.flatMap(({name, at, settings}) =>
		[["at", at], ...settings].map(([setting, value]) => ({name, setting, value: value || "yes"}))),
	"name setting value", "no setting");
	table("experiment", "said", "rashpa-manager", it.said && [{output: element("pre", {}, it.said)}],
		"output", "no output yet");
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
$("which").onchange = events;
for (const button of $("control").querySelectorAll("button"))
	button.onclick = () => send({control: button.id});
$("views").append(...Object.keys(VIEWS).map(view => element("a", {href: `#${view}`}, view)));
window.onhashchange = route;
document.onkeydown = event => {
	const a = /^[1-5]$/.test(event.key) && $("views").children[event.key - 1];
	if (a && !a.hidden && !event.ctrlKey && !event.altKey && !event.metaKey && !event.target.matches("input, select"))
		location.hash = a.hash;
};
stream.begin(send, want);
connect();
