// SPDX-License-Identifier: LGPL-2.1-or-later
// Plots of lines.
import {$, element, shape} from "./words.js";

function ticks(low, high, most) {
	const rough = (high - low) / most, power = 10 ** Math.floor(Math.log10(rough));
	const step = [1, 2, 5, 10].map(m => m * power).find(s => s >= rough * 0.999);
	const first = Math.ceil(low / step - 1e-9), last = Math.floor(high / step + 1e-9);
	return Array.from({length: last - first + 1}, (_, i) => +((first + i) * step).toPrecision(12));
}

const far = v => Math.abs(v) >= 1e4 || (v && Math.abs(v) < 1e-3);
const digits = v => far(v) ? v.toExponential(0) : `${+v.toPrecision(4)}`;

// series: points [[x, y]]; log: y has a logarithmic scale, x: [low, high]
export function plot(svg, series, {log = false, unit = "", x: range} = {}) {
	const good = series.map(points => points.map(([x, y]) => [x, log ? Math.log10(y) : y])
		.filter(point => point.every(Number.isFinite)));
	const all = good.flat(), label = y => digits(log ? 10 ** y : y);
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
		...ticks(x0, x1, 4).map(x => text(X(x), 97, "middle", `${digits(x)} ${unit}`)),
		shape("svg", {viewBox: "0 0 100 100", preserveAspectRatio: "none"}, ...good.map(points =>
			shape("polyline", {points: points.map(([x, y]) => `${X(x)},${Y(y)}`).join(" ")}))));
}

// The same in a figure of this place, which is made at the first time.
export function figure(place, id, title, series, options) {
	if (!$(id))
		$(place).append(element("figure", {}, element("figcaption"), shape("svg", {id, class: "plot", role: "img"})));
	$(id).previousSibling.textContent = title;
	plot($(id), series, options);
}
