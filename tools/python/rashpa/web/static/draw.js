// SPDX-License-Identifier: LGPL-2.1-or-later
// Elements, numbers with units, tables and plots. Texts of others become text nodes, never HTML.
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
export const text = v => typeof v === "number" ? count(v) : {true: "yes", false: "no"}[v] ?? v ?? "–";
export const count = number(v => v.toLocaleString("en").replaceAll(",", "\u202f"));
export const fixed = (v, digits = 1) => number(n => n.toFixed(digits))(v);
export const short = number(v => Number.isInteger(v) && Math.abs(v) < 1e9 ? count(v) : `${+v.toPrecision(5)}`);
export const lost = v => v > 0 ? element("span", {class: "lost"}, v) : v;
export const share = (v, all) => v === undefined ? "–" : `${count(v)} of ${count(all)}`;
export const link = name => element("a", {href: `#stream=${encodeURIComponent(name)}`}, name);
export const mebi = number(v => `${short(v / 2 ** 20)} MiB`);

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
	const {value} = select, texts = [none, ...new Set(names)];
	if (select.textContent === texts.join(""))
		return;
	select.replaceChildren(...texts.map((one, i) => element("option", {value: i ? one : ""}, one)));
	select.value = value;
}

function ticks(low, high, most) {
	const rough = (high - low) / most, power = 10 ** Math.floor(Math.log10(rough));
	const step = [1, 2, 5, 10].map(m => m * power).find(s => s >= rough * 0.999);
	const first = Math.ceil(low / step - 1e-9), last = Math.floor(high / step + 1e-9);
	return Array.from({length: last - first + 1}, (_, i) => +((first + i) * step).toPrecision(12));
}

// A figure of this place, which is made at the first time. series: points [[x, y]]; log: y has a logarithmic scale, x: [low, high]
export function plot(place, id, title, series, {log = false, unit = "", x: range} = {}) {
	if (!$(id))
		$(place).append(element("figure", {}, element("figcaption"), shape("svg", {id, class: "plot", role: "img"})));
	const svg = $(id);
	svg.previousSibling.textContent = title;
	const good = series.map(points => points.map(([x, y]) => [x, log ? Math.log10(y) : y])
		.filter(point => point.every(Number.isFinite)));
	const all = good.flat(), label = y => short(log ? 10 ** y : y);
	const text = (x, y, anchor, word) => shape("text", {x: `${x}%`, y: `${y}%`, "text-anchor": anchor}, word);
	svg.ariaLabel = all.length ? `${all.length} points, the last one ${label(all.at(-1)[1])}` : "no data yet";
	if (!all.length) {
		svg.replaceChildren(text(5, 20, "start", svg.ariaLabel));
		return;
	}
	const extent = axis => all.reduce(([low, high], {[axis]: v}) => [Math.min(low, v), Math.max(high, v)],
		[Infinity, -Infinity]);
	const wide = ([low, high]) => [low, high > low ? high : low + 1];
	const [x0, x1] = wide(range ?? extent(0)), [least, most] = extent(1), zero = Math.min(0, least);
	const [y0, y1] = wide(log ? [Math.floor(least), Math.ceil(most)] : [zero, most + (most - zero) * 0.06]);
	// percent
	const X = x => 14 + 84 * (x - x0) / (x1 - x0), Y = y => 84 - 79 * (y - y0) / (y1 - y0);
	svg.replaceChildren(
		...ticks(y0, y1, 4).filter(y => !log || Number.isInteger(y)).flatMap(y => [
			shape("line", {x1: "14%", x2: "98%", y1: `${Y(y)}%`, y2: `${Y(y)}%`}),
			text(13, Y(y) + 2, "end", label(y))]),
		...ticks(x0, x1, 4).map(x => text(X(x), 97, "middle", `${short(x)} ${unit}`)),
		shape("svg", {viewBox: "0 0 100 100", preserveAspectRatio: "none"}, ...good.map(points =>
			shape("polyline", {points: points.map(([x, y]) => `${X(x)},${Y(y)}`).join(" ")}))));
}
