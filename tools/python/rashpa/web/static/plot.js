// SPDX-License-Identifier: LGPL-2.1-or-later
// Plots on a canvas: lines, bars.
export function prepare(canvas) {
	const ratio = window.devicePixelRatio || 1, {clientWidth: width, clientHeight: height} = canvas;
	canvas.width = Math.round(width * ratio);	// this clears it, too
	canvas.height = Math.round(height * ratio);
	const c = canvas.getContext("2d");
	c.scale(ratio, ratio);
	c.font = "12px system-ui, 'DejaVu Sans', sans-serif";
	return [c, width, height];
}

function ticks(low, high, most) {
	const rough = (high - low) / most, power = 10 ** Math.floor(Math.log10(rough));
	const step = [1, 2, 5, 10].map(m => m * power).find(s => s >= rough * 0.999), first = Math.ceil(low / step - 1e-9);
	return Array.from({length: Math.floor(high / step + 1e-9) - first + 1}, (_, i) => +((first + i) * step).toPrecision(12));
}

const digits = value => Math.abs(value) >= 1e4 || (value && Math.abs(value) < 1e-3) ? value.toExponential(0) : String(+value.toPrecision(4));

// series: points [[x, y]]; options: kind ("line" or "bars"), unit of x, log, x: [low, high]
export function plot(canvas, series, {kind = "line", unit = "", log = false, x: range} = {}) {
	const [c, width, height] = prepare(canvas), style = getComputedStyle(document.documentElement);
	// of a logarithm: powers of ten
	const good = series.map(points => points.map(([x, y]) => [x, log ? Math.log10(y) : y]).filter(p => p.every(Number.isFinite)));
	const all = good.flat(), left = 52, bottom = 20, top = 8, right = 10;
	const label = y => digits(log ? 10 ** y : y);
	canvas.setAttribute("aria-label", all.length ? `${all.length} points, the last one ${label(all.at(-1)[1])}` : "no data yet");
	c.fillStyle = style.getPropertyValue("--faint");
	if (!all.length) {
		c.fillText("no data yet", 12, 22);
		return;
	}
	const extent = axis => all.reduce(([low, high], p) => [Math.min(low, p[axis]), Math.max(high, p[axis])], [Infinity, -Infinity]);
	let [x0, x1] = range ?? extent(0), [y0, y1] = extent(1);
	[y0, y1] = log ? [Math.floor(y0), Math.ceil(y1 + 1e-9)] : [Math.min(0, y0), y1 + (y1 - Math.min(0, y0)) * 0.06];
	x1 = x0 === x1 ? x0 + 1 : x1;
	y1 = y0 === y1 ? y0 + 1 : y1;
	const X = x => left + (x - x0) / (x1 - x0) * (width - left - right);
	const Y = y => height - bottom - (y - y0) / (y1 - y0) * (height - bottom - top);
	c.strokeStyle = style.getPropertyValue("--line");
	c.textAlign = "right";
	for (const y of ticks(y0, y1, 4).filter(y => !log || Number.isInteger(y))) {
		c.strokeRect(left, Y(y), width - left - right, 0);
		c.fillText(label(y), left - 6, Y(y) + 4);
	}
	c.textAlign = "center";
	for (const x of ticks(x0, x1, Math.max(3, Math.floor(width / 90))))
		c.fillText(`${digits(x)} ${unit}`, Math.min(X(x), width - right - 16), height - 5);
	c.beginPath(), c.rect(left, 0, width - left - right + 1, height - bottom + 1), c.clip();
	good.forEach((points, i) => {
		c.strokeStyle = c.fillStyle = style.getPropertyValue(i ? "--two" : "--one");
		c.lineWidth = 1.4;
		c.setLineDash(i ? [5, 3] : []);
		c.beginPath();
		for (const [x, y] of points) {
			if (kind === "bars")
				c.rect(X(x), Y(y), Math.max(1, (width - left - right) / points.length - 0.5), height - bottom - Y(y));
			else
				c.lineTo(X(x), Y(y));
		}
		kind === "line" ? c.stroke() : c.fill();
	});
}
