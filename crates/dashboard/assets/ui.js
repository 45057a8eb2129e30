// Building blocks of the panels. Text from outside only ever becomes a text node.

const SVG = 'http://www.w3.org/2000/svg';

// h('p.note.bad', {title: 'x'}, 'text', node, [more]) makes an element; the attributes may be left out.
export const h = (tag, ...rest) => make((name) => document.createElement(name), tag, rest);

// The same for SVG.
export const s = (tag, ...rest) => make((name) => document.createElementNS(SVG, name), tag, rest);

function make(create, tag, rest) {
	const [name, ...classes] = tag.split('.');
	const element = create(name);
	if (classes.length > 0) element.setAttribute('class', classes.join(' '));
	const attributes = rest[0]?.constructor === Object ? rest.shift() : {};
	for (const [key, value] of Object.entries(attributes)) {
		if (value === null || value === undefined || value === false) continue;
		if (key.startsWith('on')) element.addEventListener(key.slice(2), value);
		else element.setAttribute(key, value === true ? '' : String(value));
	}
	put(element, rest);
	return element;
}

function put(element, children) {
	for (const child of children.flat(Infinity)) {
		if (child === null || child === undefined || child === false) continue;
		element.append(child instanceof Node ? child : String(child));
	}
}

// Replaces the children of an element, unless its text is the same already.
export function set(element, ...children) {
	const only = children.length === 1 && !(children[0] instanceof Node) && !Array.isArray(children[0]);
	if (only) {
		const text = String(children[0] ?? '');
		if (element.childElementCount > 0 || element.textContent !== text) element.textContent = text;
		return element;
	}
	element.replaceChildren();
	put(element, children);
	return element;
}

export const muted = (...words) => h('p.muted', words);
export const mono = (...words) => h('span.mono', words);
export const card = (title, ...children) => h('section.card', h('h2', title), children);
export const button = (words, onclick, attributes) => h('button', { type: 'button', onclick, ...attributes }, words);

// A sign with words: kind is good, warn, bad or calm. Never the colour alone.
export const badge = (kind, words) => h(`span.badge.${kind}`, words);
export const note = (kind, ...words) => h(`p.note.${kind}`, { role: kind === 'bad' ? 'alert' : null }, words);

// A place for what went wrong: say(words), or say() if nothing did.
export function problem(kind = 'bad') {
	const line = h(`p.note.${kind}`, { role: 'alert', hidden: true });
	line.say = (words) => {
		set(line, words);
		line.hidden = !words;
	};
	return line;
}

// A small picture beside words.
export const icon = (kind, size, width, ...parts) => s(`svg.${kind}`, { viewBox: `0 0 ${size} ${size}`, width, height: width, 'aria-hidden': 'true' }, parts);

// A box that scrolls by itself, also by keyboard.
export const scroll = (label, ...children) => h('div.scroll', { tabindex: 0, role: 'region', 'aria-label': label }, children);

// A link to the explorer, such as to({ q: 'what is searched' }, 'words').
export const to = (query, ...words) => h('a', { href: `#/explorer?${new URLSearchParams(query)}` }, words);

// The ends of a hash, with the whole in the title.
export const hash = (text, keep = 8) => (typeof text === 'string' && text.length > 2 * keep + 1
	? h('span.hash', { title: text }, `${text.slice(0, keep)}…${text.slice(-keep)}`) : text ?? '–');
export const blockLink = (id) => to({ q: id }, hash(id));

// A list of labelled values with update({label: value}); `helps` has explanations by label.
export function facts(helps = {}) {
	const values = new Map();
	const element = h('dl.facts');
	element.update = (of) => {
		for (const [label, value] of Object.entries(of)) {
			if (!values.has(label)) {
				values.set(label, h('dd'));
				element.append(h('div', { title: helps[label] }, h('dt', label), values.get(label)));
			}
			set(values.get(label), value ?? '–');
		}
		return element;
	};
	return element;
}

// A progress bar; update(share, words) with a share from zero to one, or null.
export function bar(label) {
	const inner = h('span');
	const element = h('div.bar', { role: 'progressbar', 'aria-label': label, 'aria-valuemin': 0, 'aria-valuemax': 100 }, inner);
	element.update = (share, words) => {
		const known = Number.isFinite(share);
		const full = known ? Math.max(0, Math.min(100, share * 100)) : 0;
		inner.style.width = `${full}%`;
		if (known) element.setAttribute('aria-valuenow', full.toFixed(1));
		else element.removeAttribute('aria-valuenow');
		if (words) element.setAttribute('aria-valuetext', words);
		return element;
	};
	return element;
}

// Rows with a bar each, [name, share, words, help, class], or a sentence if there are none.
export const meters = (box, rows, empty) => set(box, rows.length === 0 ? muted(empty)
	: rows.map(([name, share, words, help, kind = 'number']) => h('div.stage', { title: help },
		h('span', name), bar(name).update(share, words), h(`span.${kind}`, words))));

// A table with sortable columns; returns an element with update({key: row}) and filter(f(row, key)).
// A column is [name, title, show(value, row), help, value(row, key)], of numbers if `#` is before its name.
// `sort`: a name, with `-` before it for the largest first. `open(row)`: rows can be clicked.
// Cells are updated in place, so that the focus and the scroll position stay.
export function table(caption, columns, { empty = 'nothing yet', sort, limit = 500, open } = {}) {
	const all = columns.filter(Boolean).map(([name, title, show, help, value]) => {
		const key = name.replace('#', '');
		return { key, title, help, number: key === name ? '' : '.number', show: show ?? ((plain) => plain), value: value ?? ((row) => row[key]) };
	});
	let rows = {};
	let order = { key: sort?.replace('-', '') ?? all[0].key, descending: sort?.startsWith('-') };
	let filter = null;
	const lines = new Map();
	const body = h('tbody');
	const heads = all.map(({ key, title, help, number }) => h(`th${number}`, { scope: 'col' }, button(title, () => {
		order = { key, descending: order.key === key ? !order.descending : number !== '' };
		draw();
	}, { title: help })));
	const words = h('p.muted', { hidden: true });
	const whole = h('div.tablebox', scroll(caption, h('table', h('caption', caption), h('thead', h('tr', heads)), body)), words);

	function line(key, row) {
		let known = lines.get(key);
		if (!known) {
			const cells = all.map(({ number }, place) => (place === 0 ? h(`th${number}`, { scope: 'row' }) : h(`td${number}`)));
			const click = open && { onclick: () => open(rows[key]) };
			known = { tr: h(open ? 'tr.opens' : 'tr', { ...click }, cells), cells, shown: [] };
			lines.set(key, known);
		}
		all.forEach(({ show, value }, place) => {
			const plain = value(row, key);
			// The further parameters of a format are not the row.
			const shown = (show.length > 1 ? show(plain, row) : show(plain)) ?? '–';
			const isNode = shown instanceof Node || Array.isArray(shown);
			const mark = isNode ? JSON.stringify(plain) : shown;
			if (known.shown[place] === mark) return;
			known.shown[place] = mark;
			set(known.cells[place], isNode ? [shown] : shown);
		});
		return known.tr;
	}

	function compare([one, a], [other, b]) {
		const { value } = all.find(({ key }) => key === order.key) ?? all[0];
		const [x, y] = [value(a, one), value(b, other)];
		const [isX, isY] = [x, y].map((known) => known !== null && known !== undefined && known !== '');
		if (!isX || !isY) return isY - isX;
		const result = typeof x === 'number' && typeof y === 'number' ? x - y : String(x).localeCompare(String(y), 'en', { numeric: true });
		return order.descending ? -result : result;
	}

	function draw() {
		all.forEach(({ key }, place) => heads[place].setAttribute('aria-sort',
			key !== order.key ? 'none' : order.descending ? 'descending' : 'ascending'));
		const found = Object.entries(rows).filter(([key, row]) => !filter || filter(row, key));
		const shown = found.sort(compare).slice(0, limit);
		const keep = new Set(shown.map(([key]) => key));
		for (const [key, { tr }] of lines) {
			if (keep.has(key)) continue;
			tr.remove();
			lines.delete(key);
		}
		let place = body.firstChild;
		for (const [key, row] of shown) {
			const tr = line(key, row);
			if (tr === place) place = place.nextSibling;
			else body.insertBefore(tr, place);
		}
		words.hidden = found.length > 0 && found.length <= limit;
		set(words, found.length === 0 ? empty : `${num(limit)} of ${num(found.length)} rows are shown.`);
	}

	whole.update = (of) => {
		rows = of ?? {};
		draw();
		return whole;
	};
	whole.filter = (f) => {
		filter = f;
		draw();
	};
	draw();
	return whole;
}

// A table of rows that have this key.
export const keyed = (rows, key) => Object.fromEntries((rows ?? []).map((row) => [row[key], row]));

// The rows of a kind in a topic: {7: row} for the keys peer:7.
export const rowsOf = (state, kind) => Object.fromEntries(Object.entries(state ?? {})
	.filter(([key]) => key.startsWith(`${kind}:`)).map(([key, row]) => [key.slice(kind.length + 1), row]));

// A search field that calls back while the user types.
export const search = (label, onchange) => h('label.search', h('span', label), h('input', {
	type: 'search', autocomplete: 'off', spellcheck: 'false', oninput: (event) => onchange(event.target.value.trim().toLowerCase()) }));

// A labelled choice of [value, words].
export const select = (label, options, onchange) => h('label.search', h('span', label),
	h('select', { onchange: (event) => onchange(event.target.value) }, options.map(([value, words]) => h('option', { value }, words))));

export const check = (words, checked, onchange, attributes) => h('label.check',
	h('input', { type: 'checkbox', checked, onchange: (event) => onchange(event.target.checked, event.target), ...attributes }), words);

// A line through recent values, without axes.
export function spark(values, label, width, height) {
	const [low, high] = [Math.min(...values, 0), Math.max(...values, 1e-9)];
	const x = (place) => (place / (values.length - 1)) * (width - 2) + 1;
	const y = (value) => height - 2 - ((value - low) / (high - low)) * (height - 4);
	const points = values.flatMap((value, place) => (typeof value === 'number' ? `${x(place).toFixed(1)},${y(value).toFixed(1)}` : []));
	return s('svg.spark', { viewBox: `0 0 ${width} ${height}`, width, height, role: 'img', 'aria-label': label },
		s('polyline', { points: points.join(' '), fill: 'none' }));
}

// Formats.

const group = new Intl.NumberFormat('en-US', { maximumFractionDigits: 0 });
export const num = (value) => (typeof value === 'number' ? group.format(value) : '–');
export const plural = (count, word) => `${num(count)} ${word}${count === 1 ? '' : 's'}`;

// A value in the largest unit that it fills.
function scaled(value, units, digits) {
	const [size, unit] = units.find(([least]) => Math.abs(value) >= least);
	return `${(value / size).toFixed(digits)}${unit}`;
}

export function short(value, digits = 1) {
	if (!Number.isFinite(value)) return '–';
	if (Math.abs(value) < 1000) return value.toFixed(Number.isInteger(value) ? 0 : digits);
	return scaled(value, [[1e12, ' T'], [1e9, ' G'], [1e6, ' M'], [1e3, ' k']], digits);
}

export const bytes = (value, digits = 1) => (!Number.isFinite(value) ? '–' : value < 1000 ? `${Math.round(value)} B`
	: scaled(value, [[1e12, ' TB'], [1e9, ' GB'], [1e6, ' MB'], [1e3, ' kB']], digits));
export const hashRate = (value) => (!Number.isFinite(value) ? null : value < 1 ? `${value.toPrecision(3)} H/s`
	: scaled(value, [[1e18, ' EH/s'], [1e15, ' PH/s'], [1e12, ' TH/s'], [1e9, ' GH/s'], [1e6, ' MH/s'], [1e3, ' kH/s'], [1, ' H/s']], 2));
export const rate = (value) => (typeof value === 'number' ? `${bytes(value)}/s` : '–');
export const percent = (share, digits = 1) => (typeof share === 'number' ? `${(share * 100).toFixed(digits)} %` : '–');
export const sats = (value) => (typeof value === 'number' ? `${num(value)} sat` : '–');
// From satoshis.
export const coins = (value, digits = 8) => (typeof value === 'number' ? `${(value / 1e8).toFixed(digits)} BTC` : '–');
export const signed = (value, format) => `${value < 0 ? '−' : '+'}${format(Math.abs(value))}`;
// Satoshi per virtual byte, from satoshi per 1,000 virtual bytes.
export const satvb = (perKvb) => (typeof perKvb === 'number' ? `${(perKvb / 1000).toFixed(perKvb < 10000 ? 3 : 1)} sat/vB` : '–');
export const millis = (value) => (typeof value !== 'number' ? null
	: value < 1000 ? `${value.toFixed(value < 1 ? 2 : value < 10 ? 1 : 0)} ms` : `${(value / 1000).toFixed(1)} s`);

export function duration(seconds) {
	if (!Number.isFinite(seconds)) return '–';
	const whole = Math.max(0, Math.round(seconds));
	const [d, hours, m] = [Math.floor(whole / 86400), Math.floor(whole / 3600) % 24, Math.floor(whole / 60) % 60];
	if (d) return `${d} d ${hours} h`;
	if (hours) return `${hours} h ${m} min`;
	return m ? `${m} min ${whole % 60} s` : `${whole} s`;
}

// Time that work took: short ones in milliseconds.
export const spent = (seconds) => (seconds < 60 ? millis(seconds * 1000) : duration(seconds));

export const ago = (seconds, now = Date.now() / 1000) => (seconds > 0 ? `${duration(now - seconds)} ago` : '–');

// Times are those of the browser's zone: the day, the minute, the second of a time in seconds since 1970.
const two = (number) => String(number).padStart(2, '0');
const part = (of) => (seconds) => of(new Date(seconds * 1000));
export const day = part((date) => `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`);
export const minute = part((date) => `${two(date.getHours())}:${two(date.getMinutes())}`);
export const second = (seconds) => `${minute(seconds)}:${two(new Date(seconds * 1000).getSeconds())}`;
export const time = (seconds) => (seconds > 0 ? `${day(seconds)} ${second(seconds)}` : '–');

// Text from outside, shortened.
export function clip(text, length = 80) {
	const plain = String(text ?? '');
	return plain.length > length ? `${plain.slice(0, length - 1)}…` : plain;
}
