// Charts of the history over time, drawn by uPlot, each with a table of the same values: charts(root, atEnd, list), where
// each is [title, {series of the history: label}, {format(value), range: seconds, stacked, min}].
// Keys on a chart: arrows move the cursor, Home and End go to the ends, Escape removes it.

import { history } from './api.js';
import { button, bytes, card, day, h, minute, muted, num, rate, s, scroll, second, set, short } from './ui.js';

const RANGES = [
	['1 h', 3600, 'the last hour'], ['6 h', 21600, 'the last 6 hours'], ['1 d', 86400, 'the last day'],
	['1 w', 604800, 'the last week'], ['1 m', 2678400, 'the last month'], ['1 y', 31536000, 'the last year'],
	['5 y', 157680000, 'the last 5 years'],
];

// Dashes, so that lines differ without their colours.
const DASHES = [[], [7, 4], [2, 3], [10, 3, 2, 3]];

const HEIGHT = 200;

// Whole numbers have no marks between them, and their axes at least this range.
const WHOLE = Array.from({ length: 13 }, (_, power) => [1, 2, 5].map((digit) => digit * 10 ** power)).flat();
const LEAST = new Map([[num, 4], [bytes, 1000], [rate, 1000]]);

// Rows of the table of values.
const ROWS = 60;

// The script of uPlot is in the page, and may come later.
const load = () => new Promise((resolve, reject) => {
	if (window.uPlot) return resolve(window.uPlot);
	const script = document.getElementById('uplot');
	script.addEventListener('load', () => resolve(window.uPlot));
	script.addEventListener('error', () => reject(new Error('the script of the charts was not loaded')));
});

const token = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const colour = (place) => token(`--n${place}`);
const isKnown = (value) => value !== null && value !== undefined;

// A time, with what matters at this step.
const moment = (seconds, step) => (step >= 86400 ? day(seconds) : `${day(seconds)} ${(step < 60 ? second : minute)(seconds)}`);

// A mark of the time axis, where `every` seconds are between two.
function tick(seconds, every) {
	if (every >= 86400 * 28) return day(seconds).slice(0, 7);
	if (every >= 86400 || second(seconds) === '00:00:00') return day(seconds).slice(5);
	return (every < 60 ? second : minute)(seconds);
}

export function charts(root, atEnd, list) {
	const all = h('div.charts');
	root.append(all);
	for (const [title, series, options] of list) {
		const section = card(title);
		all.append(section);
		atEnd(chart(section, title, Object.keys(series), Object.values(series), options));
	}
}

// Returns what ends the chart.
function chart(root, title, names, labels, { format = short, range = 3600, stacked = false, min = null }) {
	let plot = null;
	let data = null;
	let step = 10;
	const hidden = new Set();
	let isTable = false;
	let ended = false;
	let timer = null;

	const press = (one, is) => one.setAttribute('aria-pressed', String(is));
	const buttons = RANGES.map(([label, seconds, words]) => button(label, () => {
		range = seconds;
		buttons.forEach((one, place) => press(one, RANGES[place][1] === range));
		refresh();
	}, { 'aria-pressed': seconds === range ? 'true' : 'false', title: words }));
	const asTable = button('Table', () => {
		isTable = !isTable;
		press(asTable, isTable);
		draw();
	}, { 'aria-pressed': 'false' });
	const values = labels.map(() => h('span.value', '–'));
	const entries = labels.map((label, place) => button([sample(place), h('span', label), values[place]], () => {
		if (hidden.has(place)) hidden.delete(place);
		else if (hidden.size < labels.length - 1) hidden.add(place);
		press(entries[place], !hidden.has(place));
		draw();
	}, { 'aria-pressed': 'true', title: 'Show or hide this line' }));
	const at = h('span.at.muted');
	const canvas = h('div.canvas', { tabindex: 0, role: 'img', 'aria-label': title, onkeydown: move });
	const table = scroll(`${title}: values`);
	const note = muted();
	const box = h('div.chart', h('div.chartbar', h('div.ranges', { role: 'group', 'aria-label': 'Time range' }, buttons), asTable),
		canvas, table, note, h('div.lines', entries, at));
	root.append(box);

	function sample(place) {
		const line = s(`line.n${place}`, { x1: 0, y1: 6, x2: 22, y2: 6, 'stroke-dasharray': DASHES[place % DASHES.length].join(' ') || null });
		return s('svg', { viewBox: '0 0 22 12', width: 22, height: 12, 'aria-hidden': 'true' }, line);
	}

	function say(words = '') {
		set(note, words);
		note.hidden = words === '';
	}

	async function refresh() {
		clearTimeout(timer);
		const to = Date.now() / 1000;
		try {
			const answer = await history(names, to - range, to);
			const columns = names.map((name) => answer.series[name]);
			step = answer.step;
			data = { columns, times: Array.from({ length: Math.max(0, ...columns.map(({ length }) => length)) }, (_, place) => answer.from + place * step) };
			say();
		} catch (error) {
			say(error.message);
		}
		await draw();
		// A range is read again when it has a new point, at most every 10 seconds.
		if (!ended) timer = setTimeout(refresh, Math.max(10, Math.min(step, 300)) * 1000);
	}

	// The columns as they are drawn: stacked ones on top of those before.
	function drawn() {
		if (!stacked) return data.columns;
		let below = data.times.map(() => 0);
		return data.columns.map((column, place) => {
			if (hidden.has(place)) return data.times.map(() => null);
			below = column.map((value, at) => below[at] + (value ?? 0));
			return column.map((value, at) => (value === null ? null : below[at]));
		});
	}

	async function draw() {
		if (!data || ended) return;
		canvas.hidden = isTable;
		table.hidden = !isTable;
		if (!data.columns.some((column) => column.some(isKnown))) say('Nothing is recorded for this time yet. The node records a point every 10 seconds.');
		show(null);
		if (isTable) return fillTable();
		try {
			const uPlot = await load();
			if (ended) return;
			describe();
			plot?.destroy();
			plot = new uPlot(settings(), [data.times, ...drawn()], canvas);
		} catch (error) {
			say(`The chart cannot be drawn: ${error.message}. Its table has the values.`);
		}
	}

	function settings() {
		const axis = { stroke: token('--muted'), font: '12px system-ui, sans-serif', grid: { stroke: token('--line'), width: 1 }, ticks: { show: false } };
		const lines = labels.map((label, place) => {
			const column = data.columns[place];
			// A single point between gaps has no line.
			const isLonely = column.some((value, at) => isKnown(value) && !isKnown(column[at - 1]) && !isKnown(column[at + 1]));
			return {
				label, show: !hidden.has(place), stroke: colour(place), width: 1.75, dash: DASHES[place % DASHES.length], spanGaps: false,
				points: isLonely ? { show: true, size: 4, fill: colour(place) } : { show: false },
				fill: stacked ? `${colour(place)}55` : labels.length === 1 ? `${colour(place)}22` : undefined,
			};
		});
		return {
			width: Math.max(200, canvas.clientWidth), height: HEIGHT, legend: { show: false },
			bands: stacked ? labels.slice(1).map((_, place) => ({ series: [place + 2, place + 1] })) : undefined,
			cursor: { drag: { x: false, y: false }, points: { size: 7 }, y: false },
			select: { show: false },
			scales: { x: { time: true, range: () => [start(), data.times.at(-1) + step] }, y: { range: (_, low, high) => bounds(low, high, min, LEAST.get(format) ?? 0) } },
			axes: [{ ...axis, size: 30, space: 70, values: (_, marks, at, space, every) => marks.map((mark) => tick(mark, every)) },
				{ ...axis, size: 74, incrs: LEAST.has(format) ? WHOLE : undefined, values: (_, marks) => distinct(marks.map((mark) => format(mark))) }],
			series: [{}, ...lines],
			hooks: { setCursor: [({ cursor }) => show(cursor.idx ?? null)] },
		};
	}

	// A young history fills the chart: it begins with the first value, but shows at least ten minutes.
	function start() {
		const oldest = data.times[0];
		const first = data.times.find((_, place) => data.columns.some((column) => isKnown(column[place]))) ?? oldest;
		return Math.max(oldest, Math.min(first, data.times.at(-1) - 600) - step);
	}

	// The values below the chart: at the cursor, or the last ones.
	function show(place) {
		data.columns.forEach((column, line) => {
			const value = place === null ? column.slice(-3).findLast(isKnown) : column[place];
			set(values[line], isKnown(value) ? format(value) : '–');
		});
		set(at, isKnown(data.times[place]) ? moment(data.times[place], step) : '');
	}

	function describe() {
		const words = labels.map((label, place) => {
			const known = data.columns[place].filter(isKnown);
			if (known.length === 0) return `${label}: no values`;
			return `${label}: ${format(Math.min(...known))} to ${format(Math.max(...known))}, last ${format(known.at(-1))}`;
		});
		canvas.setAttribute('aria-label', `${title}, ${RANGES.find(([, seconds]) => seconds === range)[2]}. ${words.join('. ')}.`);
	}

	function fillTable() {
		const places = [...data.times.keys()].reverse().filter((place) => data.columns.some((column) => isKnown(column[place])));
		const rows = places.slice(0, ROWS).map((place) => h('tr', h('th', { scope: 'row' }, moment(data.times[place], step)),
			data.columns.map((column) => h('td.number', isKnown(column[place]) ? format(column[place]) : '–'))));
		set(table, h('table', h('caption', `${title}: values, the newest first`), h('thead.plain', h('tr', h('th', { scope: 'col' }, 'Time'),
			labels.map((label) => h('th.number', { scope: 'col' }, label)))), h('tbody', rows)));
	}

	function move(event) {
		if (!plot || !data.times.length) return;
		const end = data.times.length - 1;
		const now = plot.cursor.idx ?? end;
		const to = { ArrowLeft: now - 1, ArrowRight: now + 1, PageUp: now - 10, PageDown: now + 10, Home: 0, End: end }[event.key];
		if (event.key === 'Escape') plot.setCursor({ left: -10, top: -10 });
		else if (to === undefined) return;
		else plot.setCursor({ left: plot.valToPos(data.times[Math.max(0, Math.min(end, to))], 'x'), top: 10 });
		event.preventDefault();
	}

	let width = 0;
	const sizes = new ResizeObserver(() => {
		if (plot && canvas.clientWidth > 0 && canvas.clientWidth !== width) {
			width = canvas.clientWidth;
			plot.setSize({ width: Math.max(200, width), height: HEIGHT });
		}
	});
	sizes.observe(canvas);
	const scheme = matchMedia('(prefers-color-scheme: dark)');
	scheme.addEventListener('change', draw);
	table.hidden = true;
	say();
	refresh();
	return () => {
		ended = true;
		clearTimeout(timer);
		sizes.disconnect();
		scheme.removeEventListener('change', draw);
		plot?.destroy();
	};
}

// A label that is the same as the one below is left out.
const distinct = (all) => all.map((label, place) => (label === all[place - 1] ? '' : label));

// A range of values, of at least this size, that shows zero unless the values are far from it.
function bounds(low, high, min, least) {
	if (!isKnown(low) || !isKnown(high)) return [0, least || 1];
	const slack = Math.max(high - low, Math.abs(high) / 1000, least);
	const isNearZero = low >= 0 && high - low + least > high / 20;
	const bottom = min ?? (isNearZero || high === 0 ? 0 : low - slack * 0.1);
	return [bottom, Math.max(high + slack * 0.1, bottom + (least || (high === bottom ? 1 : 0)))];
}
