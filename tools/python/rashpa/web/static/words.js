// SPDX-License-Identifier: LGPL-2.1-or-later
// Numbers with units, and elements. Texts of others become text nodes, never HTML.
export const $ = id => document.getElementById(id);

export function element(name, attributes = {}, ...children) {
	const e = document.createElement(name);
	for (const [key, value] of Object.entries(attributes))
		e.setAttribute(key, value);
	e.append(...children.map(child => child instanceof Node ? child : String(child ?? "–")));
	return e;
}

const known = value => typeof value === "number" && Number.isFinite(value);
export const count = value => known(value) ? value.toLocaleString("en").replaceAll(",", "\u202f") : "–";
export const real = (value, digits = 1) => known(value) ? value.toFixed(digits) : "–";
export const short = value => Number.isInteger(value) && Math.abs(value) < 1e9 ? count(value) : known(value) ? String(+value.toPrecision(5)) : "–";
export const gigabytes = value => real(value / 1e9, 3);
export const micro = value => known(value) ? real(value / 1e3) : "–";

export function bytes(value) {
	const power = Math.min(4, Math.floor(Math.log2(value || 1) / 10));
	return known(value) ? `${+(value / 1024 ** power).toPrecision(4)} ${["B", "KiB", "MiB", "GiB", "TiB"][power]}` : "–";
}

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

export const lost = value => value > 0 ? element("span", {class: "lost"}, count(value)) : count(value);

// A table in place of the last one; columns: [title, function of the row, is a number].
export function table(place, rows, columns, none) {
	const focus = place.contains(document.activeElement) && document.activeElement.textContent;
	const cell = (name, number, attributes, text) => element(name, {class: number ? "number" : "", ...attributes}, text);
	place.replaceChildren(!rows.length ? element("p", {class: "none"}, none) : element("table", {},
		element("thead", {}, element("tr", {}, ...columns.map(([title, , number]) => cell("th", number, {scope: "col"}, title)))),
		element("tbody", {}, ...rows.map(row => element("tr", {}, ...columns.map(([title, of, number]) =>
			cell("td", number, {"data-label": title}, of(row))))))));
	// the focus of the keyboard stays
	if (focus)
		[...place.querySelectorAll("td a")].find(a => a.textContent === focus)?.focus();
}

export function pairs(place, rows) {
	place.replaceChildren(...rows.flatMap(([name, value]) => [element("dt", {}, name), element("dd", {}, value)]));
}

// Options of a select: [value, text]; the choice stays where it still exists.
export function options(select, wanted) {
	const chosen = select.value, made = wanted.map(([value, text]) => element("option", {value}, text));
	// an open list is left alone
	if (made.length === select.length && made.every((one, i) => one.isEqualNode(select[i])))
		return;
	select.replaceChildren(...made);
	if (made.some(one => one.value === chosen))
		select.value = chosen;
}
