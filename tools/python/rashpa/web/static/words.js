// SPDX-License-Identifier: LGPL-2.1-or-later
// Elements, and values with the unit of their key. Texts of others become text nodes, never HTML.
export const $ = id => document.getElementById(id);

const make = space => (name, attributes = {}, ...children) => {
	const e = document.createElementNS(`http://www.w3.org/${space}`, name);
	for (const [key, value] of Object.entries(attributes))
		e.setAttribute(key, value);
	e.append(...children.map(child => child instanceof Node ? child : text(child)));
	return e;
};
export const element = make("1999/xhtml"), shape = make("2000/svg");

const known = Number.isFinite;	// false for what is no number
const number = write => value => known(value) ? write(value) : "–";
export const count = number(v => v.toLocaleString("en").replaceAll(",", "\u202f"));
export const fixed = digits => number(v => v.toFixed(digits));
export const short = number(v => Number.isInteger(v) && Math.abs(v) < 1e9 ? count(v) : `${+v.toPrecision(5)}`);
export const text = v => known(v) ? count(v) : typeof v === "boolean" ? v ? "yes" : "no" : v ?? "–";
export const lost = v => v > 0 ? element("span", {class: "lost"}, count(v)) : count(v);
export const share = (v, all) => v === undefined ? "–" : `${count(v)} of ${count(all)}`;
const micro = number(v => fixed(1)(v / 1e3)), giga = number(v => fixed(3)(v / 1e9));
const link = name => element("a", {href: `#stream=${encodeURIComponent(name)}`}, name);
const bytes = number(v => {
	const power = Math.min(4, Math.floor(Math.log2(v || 1) / 10));
	return `${+(v / 1024 ** power).toPrecision(4)} ${["B", "KiB", "MiB", "GiB", "TiB"][power]}`;
});

const KINDS = {
	good: ["running", "ready", "connected", "bound"],
	wait: ["waiting", "paused", "draining", "pausing", "stopping", "configuring", "arming", "connecting"],
	bad: ["dead", "gone", "stopped", "stuck", "error", "unavailable", "replaced", "failed"],
};

// A state has a word, a colour and a shape.
export function state(word) {
	const kind = Object.keys(KINDS).find(one => KINDS[one].includes(word)) ?? "rest";
	return element("span", {class: `state ${kind}`}, word);
}

// Title and text of a key; others are their own title, and plain numbers or texts.
const KEYS = {
	buffer: ["Buffer", link], state: ["State", state], bdf: ["Function"], iommu: ["IOMMU"],
	images_per_second: ["Images/s", fixed(1)], bytes_per_second: ["GB/s", giga], numa_node: ["NUMA node"],
	p50: ["Latency 50 %, µs", micro], p99: ["Latency 99 %, µs", micro], lag: ["Lag, stacks"],
	length_bytes: ["Size", bytes], memory_bytes: ["Memory", bytes], importers: ["Boards that map it"],
	mappings: ["Processes that map it"], lost: ["Lost", lost], lost_images: ["Lost, images", lost],
	late: ["Late results", lost], lost_results: ["Lost results", lost], overflow: ["Overflows", lost],
	missing: ["Missing lines", lost], kept: ["Kept, %", fixed(1)], queue: ["Queue, stacks"],
	full: ["Queue was full, times"], ms: ["ms per image", fixed(3)],
};

// A table in place of the last one: these keys of the rows.
export function table(view, id, title, rows, keys, none) {
	const last = $(id), focus = last?.contains(document.activeElement) && document.activeElement.textContent;
	const columns = keys.split(" ").map(key => [key, ...(KEYS[key] ?? [key[0].toUpperCase() + key.slice(1).replaceAll("_", " ")])]);
	const cell = (row, [key, name, write = text]) =>
		element("td", {"data-label": name, class: typeof row[key]}, write(row[key]));
	const made = element("div", {id}, element("h2", {}, title), !rows?.length ? element("p", {class: "none"}, none) :
		element("table", {}, element("thead", {}, element("tr", {}, ...columns.map(([key, name]) =>
			element("th", {scope: "col", class: typeof rows[0][key]}, name)))),
		element("tbody", {}, ...rows.map(row => element("tr", {}, ...columns.map(one => cell(row, one)))))));
	last ? last.replaceWith(made) : $(view).append(made);
	// the focus of the keyboard stays
	if (focus)
		[...made.querySelectorAll("td a")].find(a => a.textContent === focus)?.focus();
}

// Names and values; null leaves a name out.
export function pairs(place, values) {
	place.replaceChildren(...Object.entries(values).filter(([, value]) => value !== null).flatMap(
		([name, value]) => [element("dt", {}, name), element("dd", {}, value)]));
}

// Options of a select, by their values; the choice stays where it still exists.
export function options(select, texts) {
	const chosen = select.value, made = Object.entries(texts).map(([value, text]) => element("option", {value}, text));
	// an open list is left alone
	if (made.length === select.length && made.every((one, i) => one.isEqualNode(select[i])))
		return;
	select.replaceChildren(...made);
	if (chosen in texts)
		select.value = chosen;
}
