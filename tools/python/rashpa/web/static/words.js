// SPDX-License-Identifier: LGPL-2.1-or-later
// Numbers with units, and elements. Texts of others become text nodes, never HTML.
export const $ = id => document.getElementById(id);

export function element(name, attributes = {}, ...children) {
	const e = document.createElement(name);
	for (const [key, value] of Object.entries(attributes))
		if (value !== undefined && value !== null)
			e.setAttribute(key, value);
	e.append(...children.map(child => child instanceof Node ? child : String(child ?? "–")));
	return e;
}

const known = value => typeof value === "number" && Number.isFinite(value);
export const count = value => known(value) ? value.toLocaleString("en").replaceAll(",", "\u202f") : "–";
export const real = (value, digits = 1) => known(value) ? value.toFixed(digits) : "–";
export const short = value => !known(value) ? "–" : Number.isInteger(value) && Math.abs(value) < 1e9 ? count(value) : String(+value.toPrecision(5));
export const gigabytes = value => real(value / 1e9, 3);
export const micro = value => known(value) ? real(value / 1e3) : "–";

export function bytes(value) {
	const units = ["B", "KiB", "MiB", "GiB", "TiB"];
	let i = 0;
	if (!known(value))
		return "–";
	for (; value >= 1024 && i < units.length - 1; i++)
		value /= 1024;
	return `${+value.toPrecision(4)} ${units[i]}`;
}

const GOOD = ["running", "ready", "connected", "bound"], WAIT = ["waiting", "paused", "draining", "pausing", "stopping", "configuring", "arming", "connecting"];
const BAD = ["dead", "gone", "stopped", "stuck", "error", "unavailable", "replaced", "failed"];

// A state has a word, a colour and a shape.
export function state(word) {
	const kind = GOOD.includes(word) ? "good" : WAIT.includes(word) ? "wait" : BAD.includes(word) ? "bad" : "rest";
	return element("span", {class: `state ${kind}`}, word);
}

export const lost = value => value > 0 ? element("span", {class: "lost"}, count(value)) : count(value);

// A table in place of the last one; columns: [title, function of the row, is a number].
export function table(place, rows, columns, none) {
	if (!rows.length) {
		place.replaceChildren(element("p", {class: "none"}, none));
		return;
	}
	const kind = number => number ? "number" : undefined;
	const focus = place.contains(document.activeElement) ? document.activeElement.textContent : undefined;
	place.replaceChildren(element("table", {},
		element("thead", {}, element("tr", {}, ...columns.map(([title, , number]) => element("th", {scope: "col", class: kind(number)}, title)))),
		element("tbody", {}, ...rows.map(row => element("tr", {}, ...columns.map(([title, of, number]) =>
			element("td", {class: kind(number), "data-label": title}, of(row))))))));
	// the focus of the keyboard stays
	if (focus !== undefined)
		[...place.querySelectorAll("td a")].find(a => a.textContent === focus)?.focus();
}

export function pairs(place, rows) {
	place.replaceChildren(...rows.flatMap(([name, value]) => [element("dt", {}, name), element("dd", {}, value)]));
}

// Options of a select; the choice stays where it still exists.
export function options(select, names, first) {
	const wanted = [...(first === undefined ? [] : [["", first]]), ...names.map(name => [name, name])];
	const now = [...select.options].map(o => [o.value, o.textContent]);
	if (JSON.stringify(wanted) === JSON.stringify(now))
		return;
	const chosen = select.value;
	select.replaceChildren(...wanted.map(([value, text]) => element("option", {value}, text)));
	if (wanted.some(([value]) => value === chosen))
		select.value = chosen;
}
