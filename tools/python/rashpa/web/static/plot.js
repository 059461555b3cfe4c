// SPDX-License-Identifier: LGPL-2.1-or-later
// Plots on a canvas: lines, points, bars.
const colour = name => getComputedStyle(document.documentElement).getPropertyValue(name);

export function prepare(canvas) {
	const ratio = window.devicePixelRatio || 1;
	const width = canvas.clientWidth, height = canvas.clientHeight;
	if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
		canvas.width = Math.round(width * ratio);
		canvas.height = Math.round(height * ratio);
	}
	const c = canvas.getContext("2d");
	c.setTransform(ratio, 0, 0, ratio, 0, 0);
	c.clearRect(0, 0, width, height);
	c.font = "12px system-ui, 'DejaVu Sans', sans-serif";
	return [c, width, height];
}

function ticks(low, high, most) {
	const rough = (high - low) / most, power = 10 ** Math.floor(Math.log10(rough));
	const step = [1, 2, 5, 10].map(m => m * power).find(s => s >= rough * 0.999);
	const list = [];
	for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; i++)
		list.push(+(i * step).toPrecision(12));
	return list;
}

const digits = value => Math.abs(value) >= 1e4 || (value && Math.abs(value) < 1e-3) ? value.toExponential(0) : String(+value.toPrecision(4));

// series: [{points: [[x, y]], kind: "line", "points" or "bars", colour}]; options: xUnit, log, zero, x: [low, high]
export function plot(canvas, series, {xUnit = "", log = false, zero = true, x: range} = {}) {
	const [c, width, height] = prepare(canvas);
	const good = series.map(s => s.points.filter(([x, y]) => Number.isFinite(x) && Number.isFinite(y) && (!log || y > 0)));
	const all = good.flat();
	const left = 52, bottom = 20, top = 8, right = 10;
	canvas.setAttribute("aria-label", all.length ? `${all.length} points, the last one ${digits(all.at(-1)[1])}` : "no data yet");
	c.fillStyle = colour("--faint");
	if (!all.length) {
		c.fillText("no data yet", 12, 22);
		return;
	}
	const extent = axis => all.reduce(([low, high], p) => [Math.min(low, p[axis]), Math.max(high, p[axis])], [Infinity, -Infinity]);
	let [x0, x1] = range ?? extent(0), [y0, y1] = extent(1);
	if (log)
		[y0, y1] = [Math.floor(Math.log10(y0)), Math.ceil(Math.log10(y1) + 1e-9)];
	else if (zero)
		y0 = Math.min(0, y0);
	if (x0 === x1)
		x1 = x0 + 1;
	if (y0 === y1)
		y1 = y0 + (Math.abs(y0) || 1);
	if (!log)
		y1 += (y1 - y0) * 0.06;
	if (series[0].kind === "points")
		[x0, x1] = [x0 - (x1 - x0) * 0.05, x1 + (x1 - x0) * 0.05];
	const X = x => left + (x - x0) / (x1 - x0) * (width - left - right);
	const Y = y => height - bottom - ((log ? Math.log10(y) : y) - y0) / (y1 - y0) * (height - bottom - top);
	c.strokeStyle = colour("--line");
	c.lineWidth = 1;
	for (const t of ticks(y0, y1, 4)) {
		if (log && !Number.isInteger(t))
			continue;
		const y = Y(log ? 10 ** t : t);
		c.beginPath(), c.moveTo(left, y), c.lineTo(width - right, y), c.stroke();
		c.textAlign = "right";
		c.fillText(digits(log ? 10 ** t : t), left - 6, y + 4);
	}
	c.textAlign = "center";
	for (const t of ticks(x0, x1, Math.max(3, Math.floor(width / 90))))
		c.fillText(digits(t) + (xUnit && ` ${xUnit}`), Math.min(X(t), width - right - 16), height - 5);
	c.save();
	c.beginPath(), c.rect(left, 0, width - left - right + 1, height - bottom + 1), c.clip();
	series.forEach((s, i) => {
		c.strokeStyle = c.fillStyle = colour(s.colour ?? (i ? "--two" : "--one"));
		c.lineWidth = 1.4;
		if (s.kind === "points") {
			for (const [x, y] of good[i])
				c.fillRect(X(x) - 1.5, Y(y) - 1.5, 3, 3);
		} else if (s.kind === "bars") {
			const w = Math.max(1, (width - left - right) / good[i].length - 0.5);
			for (const [x, y] of good[i])
				c.fillRect(X(x), Y(y), w, height - bottom - Y(y));
		} else {
			c.setLineDash(i ? [5, 3] : []);
			c.beginPath();
			good[i].forEach(([x, y], k) => k ? c.lineTo(X(x), Y(y)) : c.moveTo(X(x), Y(y)));
			c.stroke();
			c.setLineDash([]);
		}
	});
	c.restore();
}
