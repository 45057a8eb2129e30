// The header tree: its tips and where they part, reorganisations, invalid blocks with the rule that each breaks.

import { badge, blockLink, card, clip, h, icon, keyed, muted, num, plural, s, scroll, set, table, time, to } from '../ui.js';

// What `getchaintips` means by each word; each status has its own shape.
const STATUS = {
	active: 'the chain of this node',
	'valid-fork': 'validated before, then left',
	'valid-headers': 'all blocks are here; they were not validated',
	'headers-only': 'not all blocks are here',
	invalid: 'breaks a rule',
};

const atHeight = (height, row, key) => h('span', num(row[key].height), ' ', blockLink(row[key].hash));

export default function chain(root, { on }) {
	const tree = scroll('The tree of tips');
	tree.classList.add('chaintree');
	const legend = h('ul.legend', Object.entries(STATUS).map(([name, words]) => h('li', icon('', 16, 16, sign(name, 8, 8)), `${name}: ${words}`)));
	const left = muted();
	const tips = table('Tips', [
		['#height', 'Height', num],
		['hash', 'Hash', blockLink],
		['#branchlen', 'Branch, blocks', null, 'above the active chain'],
		['#fork', 'Leaves at', (height) => height && num(height), 'the last block that it shares', (row) => row.fork?.height],
		['status', 'Status', (status) => badge({ active: 'good', invalid: 'bad' }[status] ?? 'calm', status)],
	], { sort: '-height', empty: 'The chain is not known yet.' });
	const reorganisations = table('Reorganisations', [
		['#number', 'No.'],
		['time', 'Time', time],
		['#depth', 'Depth', null, 'blocks that were disconnected'],
		['#fork', 'Parts at', num, null, (row) => row.fork.height],
		['old', 'Old tip', (height, row) => atHeight(height, row, 'old'), null, (row) => row.old.height],
		['new', 'New tip', (height, row) => atHeight(height, row, 'new'), null, (row) => row.new.height],
		['undone', 'Outcome', null, null, (row) => (row.undone ? 'back on the old tip' : row.new.height < row.old.height ? 'the tip is lower' : 'new chain')],
	], { sort: '-number', empty: 'No reorganisation so far.' });
	const invalid = table('Invalid blocks', [
		['#height', 'Height', num],
		['hash', 'Hash', blockLink],
		['time', 'Found', (at) => (at ? time(at) : 'before this start')],
		['rule', 'Rule', (rule) => rule ?? 'not known'],
		['sentence', 'What the rule says', (words) => h('span.wrapped', words), null, (row) => row.sentence
			?? (row.time ? 'It was marked as invalid by a call (invalidateblock).' : 'It was found or marked before this start; the reason was not kept.')],
		['reason', 'Reason', (words) => clip(words ?? '–', 80), 'in the words of Bitcoin Core'],
		['#tx', 'Transaction', null, 'its place in the block'],
	], { sort: '-height', empty: 'No invalid block is known.' });
	root.append(card('Tips', tree, legend, left, tips), card('Reorganisations', reorganisations), card('Invalid blocks', invalid));

	let drawn = '';
	on('chain', (now) => {
		const known = now.tips ?? [];
		// The tree is drawn anew only if a tip moved, so that the focus stays.
		const shape = JSON.stringify(known);
		if (shape !== drawn) {
			drawn = shape;
			set(tree, known.length ? drawTree(known) : muted('The chain is not known yet.'));
		}
		set(left, now.leftOut ? `${num(now.leftOut)} lower tips are left out.` : '');
		left.hidden = !now.leftOut;
		tips.update(keyed(known, 'hash'));
		reorganisations.update(keyed(now.reorganisations, 'number'));
		invalid.update(keyed(now.invalid, 'hash'));
	});
}

// The end of a branch. The shape says the status, not only the colour.
function sign(status, x, y) {
	switch (status) {
		case 'active': return s('circle.tip.active', { cx: x, cy: y, r: 6 });
		case 'valid-fork': return s('rect.tip.fork', { x: x - 5, y: y - 5, width: 10, height: 10 });
		case 'valid-headers': return s('path.tip.headers', { d: `M${x} ${y - 6}l6 11h-12z` });
		case 'invalid': return s('path.tip.invalid', { d: `M${x - 5} ${y - 5}l10 10M${x + 5} ${y - 5}l-10 10` });
		default: return s('circle.tip.only', { cx: x, cy: y, r: 5 });
	}
}

// A line for each branch, from the block at which it leaves another. Only heights at which something happens have a
// place, so that long chains fit.
function drawTree(tips) {
	const heights = [...new Set(tips.flatMap((tip) => [tip.height, tip.fork?.height ?? tip.height]))].sort((a, b) => a - b);
	const [row, gap, before] = [34, 96, 40];
	const x = (height) => before + heights.indexOf(height) * gap;
	const y = (place) => 46 + place * row;
	const places = new Map(tips.map((tip, place) => [tip.hash, place]));
	const [width, height, top] = [x(heights.at(-1)) + 330, y(tips.length), num(tips[0].height)];
	const label = tips.length === 1 ? `One chain, up to height ${top}.` : `${tips.length} branches; the chain of this node ends at height ${top}.`;
	const branch = (tip, place) => {
		const [end, here] = [x(tip.height), y(place)];
		if (!tip.fork) return `M0 ${here}H${end}`;
		const start = x(tip.fork.height);
		return `M${start} ${y(places.get(tip.fork.of) ?? 0)}V${here - 10}q0 10 10 10H${Math.max(end, start + 10)}`;
	};
	return s('svg.tree', { viewBox: `0 0 ${width} ${height}`, width, height, role: 'group', 'aria-label': label },
		heights.map((one) => [s('line.grid', { x1: x(one), x2: x(one), y1: 26, y2: height - row / 2 }),
			s('text.label', { x: x(one), y: 16, 'text-anchor': 'middle' }, num(one))]),
		tips.map((tip, place) => s(`path.branch.${tip.status}`, { d: branch(tip, place) })),
		tips.map((tip, place) => {
			const title = `${tip.status}, height ${num(tip.height)}${tip.branchlen ? `, ${plural(tip.branchlen, 'block')}` : ''}`;
			return s('a', { href: to({ q: tip.hash }).hash }, s('title', `${title}\n${tip.hash}`), sign(tip.status, x(tip.height), y(place)),
				s('text.name', { x: x(tip.height) + 14, y: y(place) + 5 }, `${title} · ${tip.hash.slice(-8)}`));
		}));
}
