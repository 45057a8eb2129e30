// The sync by phase: what is done, how fast, what is left, what limits it; and a map of the blocks around the tip.

import { charts } from '../charts.js';
import { bar, bytes, card, duration, facts, h, icon, meters, muted, num, percent, rate, s, set, short, spent } from '../ui.js';

const CELLS = { d: 'durable', v: 'validated', h: 'here', r: 'requested', '.': 'only its header' };

// Cells in a row of the map, and the side of a cell.
const ACROSS = 64;
const SIZE = 10;

export default function sync(root, { on, atEnd }) {
	const progress = bar('Work done');
	const left = muted();
	const phases = facts();
	const [stages, indexes, map] = [h('div.stages'), h('div.stages'), h('div.map')];
	const legend = h('ul.legend', Object.entries(CELLS).map(([letter, words]) =>
		h('li', icon('', 10, 12, cell(letter, 0, 0)), words)));
	root.append(card('Progress', progress, left, phases), card('Indexes', indexes), card('Blocks around the tip', map, legend), card('Stages', stages));
	charts(root, atEnd, [
		['Rate', { inputs: 'inputs', signatures: 'signatures' }, { format: (value) => `${short(value)}/s`, min: 0 }],
		['Bandwidth', { bytes_received: 'received', bytes_sent: 'sent' }, { format: rate, min: 0 }],
		['Height', { height: 'validated', headers: 'headers' }, { format: num, range: 86400 }],
	]);

	on('sync', (now) => {
		progress.update(now.share);
		const words = [
			typeof now.share === 'number' && `${percent(now.share)} of the work`,
			typeof now.secondsLeft === 'number' && `about ${duration(now.secondsLeft)} left`,
			now.guess?.replace(/\s+/g, ' '),
		];
		set(left, words.filter(Boolean).join('; ') || 'nothing to validate');
		phases.update({
			Headers: now.presync ? `${num(now.presync.height)} (their work is counted${now.presync.again ? ', second pass' : ''})` : num(now.target),
			Download: now.received === undefined ? null : `${rate(now.received)}, ${bytes(now.requestedBytes)} requested`,
			'Waiting for validation': now.waitingBlocks === undefined ? null : `${num(now.waitingBlocks)} blocks, ${bytes(now.waitingBytes)}`,
			Validation: `height ${num(now.height)}: ${short(now.blocksPerSecond)} blocks/s, ${short(now.inputsPerSecond)} inputs/s, ${short(now.signaturesPerSecond)} signatures/s`,
			Commit: now.durable === undefined ? null : `durable to height ${num(now.durable)}`,
			'Limited by': now.inputsPerSecond > 0 || now.blocksPerSecond > 0 ? now.bottleneck : null,
			'Workers busy': now.workers ? `${percent(now.busy, 0)} of ${now.workers}` : null,
		});
		drawStages((now.stages ?? []).filter(({ wall }) => wall > 0));
		meters(indexes, (now.indexes ?? []).map(({ name, height, target, error, done }) => [
			name, target > 0 ? Math.min(1, (height ?? 0) / target) : 1,
			error ?? (done ? `complete, height ${num(height)}` : `height ${num(height ?? 0)} of ${num(target)}`), null, error ? 'bad' : 'number',
		]), 'No index is built. -addressindex, -txindex, -blockfilterindex and -coinstatsindex add them.');
	});
	on('map', drawMap);

	function drawStages(list) {
		const total = list.reduce((sum, { wall }) => sum + wall, 0);
		meters(stages, list.sort((a, b) => b.wall - a.wall).map(({ name, wall, what }) => [
			name, wall / total, `${percent(wall / total)} · ${spent(wall)}`, what]), 'No block was validated since the start.');
	}

	function drawMap({ from, cells }) {
		if (!cells) return set(map, muted('The blocks are not known yet.'));
		const down = Math.ceil(cells.length / ACROSS);
		const counts = {};
		for (const letter of cells) counts[letter] = (counts[letter] ?? 0) + 1;
		const words = Object.entries(counts).map(([letter, count]) => `${num(count)} ${CELLS[letter]}`).join(', ');
		set(map, s('svg', { viewBox: `0 0 ${ACROSS * SIZE} ${down * SIZE}`, role: 'img', 'aria-label': `Blocks from height ${from}: ${words}` },
			[...cells].map((letter, place) => cell(letter, (place % ACROSS) * SIZE, Math.floor(place / ACROSS) * SIZE))),
		muted(`Heights ${num(from)} to ${num(from + cells.length - 1)}: ${words}.`));
	}
}

// Each kind differs by shape too, for readers who cannot tell the colours apart.
function cell(letter, x, y) {
	const rect = (name, left, top, width, height, rx) => s(`rect.cell.${name}`, { x: x + left, y: y + top, width, height, rx });
	switch (letter) {
		case 'd': return rect('durable', 1, 1, 8, 8, 0);
		case 'v': return rect('validated', 1, 1, 8, 8, 3);
		case 'h': return rect('here', 1, 5, 8, 4, 2);
		case 'r': return rect('requested', 2, 2, 6, 6, 0);
		default: return s('circle.cell.none', { cx: x + SIZE / 2, cy: y + SIZE / 2, r: SIZE / 7 });
	}
}
