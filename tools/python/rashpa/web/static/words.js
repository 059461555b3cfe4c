// SPDX-License-Identifier: LGPL-2.1-or-later
// Elements, and numbers with units. Texts of others become text nodes, never HTML.
export const $ = id => document.getElementById(id);

const make = space => (name, attributes = {}, ...children) => {
	const e = document.createElementNS(`http://www.w3.org/${space}`, name);
	for (const [key, value] of Object.entries(attributes))
		e.setAttribute(key, value);
	e.append(...children.map(child => child instanceof Node ? child : text(child)));
	return e;
};
export const element = make("1999/xhtml"), shape = make("2000/svg");

// of what is no number: –
const number = write => value => Number.isFinite(value) ? write(value) : "–";
const yes = {true: "yes", false: "no"};
export const text = v => typeof v === "number" ? count(v) : yes[v] ?? v ?? "–";
export const count = number(v => v.toLocaleString("en").replaceAll(",", "\u202f"));
export const fixed = (v, digits = 1) => number(n => n.toFixed(digits))(v);
export const short = number(v => Number.isInteger(v) && Math.abs(v) < 1e9 ? count(v) : `${+v.toPrecision(5)}`);
export const lost = v => v > 0 ? element("span", {class: "lost"}, v) : v;
export const share = (v, all) => v === undefined ? "–" : `${count(v)} of ${count(all)}`;
export const link = name => element("a", {href: `#stream=${encodeURIComponent(name)}`}, name);
export const bytes = number(v => {
	const power = Math.min(4, Math.floor(Math.log2(v || 1) / 10));
	return `${+(v / 1024 ** power).toPrecision(4)} ${["B", "KiB", "MiB", "GiB", "TiB"][power]}`;
});

const KINDS = {
	good: "running ready connected bound",
	wait: "waiting paused draining pausing stopping configuring arming connecting",
	bad: "dead gone stopped stuck error unavailable replaced failed",
};

// A state has a word, a colour and a shape.
export function state(word) {
	const kind = Object.keys(KINDS).find(one => KINDS[one].split(" ").includes(word));
	return element("span", {class: `state ${kind}`}, word);
}

// A table in place of the last one: rows are objects, whose keys are titles.
export function table(view, id, title, rows, none) {
	const last = $(id), focus = last?.contains(document.activeElement) && document.activeElement.textContent;
	const line = (name, cells) => element("tr", {}, ...Object.entries(cells).map(([key, value]) =>
		element(name, {"data-label": key, class: /^[\d\u202f.]+$/.test(value?.textContent ?? text(value)) ? "number" : ""}, value)));
	const made = element("div", {id}, element("h2", {}, title), rows?.length ? element("table", {},
		element("thead", {}, line("th", Object.fromEntries(Object.keys(rows[0]).map(key => [key, key])))),
		element("tbody", {}, ...rows.map(row => line("td", row)))) : element("p", {class: "none"}, none));
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

// Options of a select: the first one is of no value; the choice stays. An open list is left alone.
export function options(select, none, names) {
	const made = [element("option", {value: ""}, none), ...[...new Set(names)].map(name => element("option", {}, name))];
	const {value} = select;
	if (made.length !== select.length || made.some((one, i) => !one.isEqualNode(select[i])))
		select.replaceChildren(...made), select.value = value;
}
