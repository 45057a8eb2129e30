// Where the servers of this node answer: addresses, QR codes, the fingerprint of the certificate; and the steps for
// wallets and Lightning nodes. The node makes the words, with its values.

import { button, card, h, muted, note, s, set } from '../ui.js';

// White around a code, in modules: readers need four.
const BORDER = 4;

const code = (text) => h('code', text);

// A code as a picture: one path for all dark modules.
function picture(rows, text) {
	const size = rows.length + 2 * BORDER;
	const runs = rows.flatMap((row, y) => [...row.matchAll(/1+/g)].map(({ 0: run, index }) => `M${index + BORDER} ${y + BORDER}h${run.length}v1h-${run.length}z`));
	return s('svg.qr', { viewBox: `0 0 ${size} ${size}`, role: 'img', 'aria-label': `QR code of ${text}`, 'shape-rendering': 'crispEdges' },
		s('rect', { width: size, height: size, fill: '#fff' }), s('path', { d: runs.join(''), fill: '#000' }));
}

// A code opens below its button: a camera must see one only.
function scan(state, text, open) {
	const rows = state[`qr:${text}`];
	return rows && h('details', { open }, h('summary', 'QR code'), h('figure', picture(rows, text), h('figcaption', code(text))));
}

// A value with a button that copies it.
function copied(text) {
	const value = code(text);
	const copy = button('Copy', async () => {
		try {
			await navigator.clipboard.writeText(text);
			set(copy, 'Copied');
		} catch {
			// No clipboard without a secure context: the text is selected instead.
			getSelection().selectAllChildren(value);
			set(copy, 'Selected');
		}
		setTimeout(() => set(copy, 'Copy'), 2000);
	}, { class: 'small', 'aria-label': `Copy ${text}` });
	return h('span.copied', value, ' ', copy);
}

const inline = (words) => words.map((word) => (word.copy ? copied(word.copy) : word.code ? code(word.code) : word.strong ? h('strong', word.strong) : word));

// How each part of a card is drawn.
const PARTS = {
	text: (words) => h('p', inline(words)),
	muted: (words) => muted(inline(words)),
	warn: (words) => note('warn', words),
	heading: (words) => h('h3', words),
	steps: (list) => h('ol', list.map((words) => h('li', inline(words)))),
	lines: (list) => h('pre', { tabindex: 0 }, list.join('\n')),
	qr: (text, state, { open }) => scan(state, text, open),
	addresses: (list, state) => h('ul.addresses', list.map(({ url, qr, kind }) => h('li', copied(url), h('div.muted', kind), scan(state, qr)))),
	fold: (words, state, { parts }) => h('details', h('summary', words), draw(parts, state)),
};

function draw(parts, state) {
	return parts.map((part) => {
		const kind = Object.keys(PARTS).find((key) => key in part);
		return PARTS[kind](part[kind], state, part);
	});
}

export default function connect(root, { on }) {
	let shown = '';
	on('connect', (state) => {
		// Drawn anew only if something changed, so that an open code stays open.
		const text = JSON.stringify(state);
		if (text === shown) return;
		shown = text;
		set(root, [state.services, state.guides].map((cards) => h('div.pairs', (cards ?? []).map(({ title, parts }) => card(title, draw(parts, state))))));
	});
}
