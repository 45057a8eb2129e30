// The last 2,016 blocks: what they contain, who sent them, and what each step took beside the budget of the benchmark.

import { button, bytes, card, clip, duration, h, hash, keyed, muted, num, plural, s, select, set, short, table, time, to } from '../ui.js';

// The steps in their order, each with what it is; those with a budget are those of the benchmark.
const STEPS = [
	['download', 'Download', 'from the request to the last byte'],
	['queue', 'Queue', 'all bytes were here, and other blocks were parsed'],
	['read', 'Read', 'read from its file'],
	['parse', 'Parse', 'put together and parsed, txids and merkle root hashed'],
	['check', 'Check', 'rules that need no coins'],
	['store', 'Store', 'written to its file'],
	['wait', 'Wait', 'stored, and blocks below it were validated'],
	['fund', 'Fund', 'coins found, rules of coins'],
	['verify', 'Verify', 'scripts run, signatures verified'],
	['commit', 'Commit', 'made part of the chain'],
	['apply', 'Apply', 'coins and indexes changed'],
];

// The steps of the small bar in a row.
const SHARES = ['parse', 'check', 'fund', 'verify', 'commit', 'apply'];

const CHARTS = [
	['avgfeerate', 'Fee rate, sat/vB'], ['size', 'Size, bytes'], ['txs', 'Transactions'], ['weight', 'Weight'], ['totalfee', 'Fees, satoshis'],
	['total', 'Validation, ms'],
];

// Rows of the table at first.
const FIRST = 50;

// A budget says little about a block with fewer inputs than this: each step has fixed costs.
const INPUTS_MIN = 1000;

const SPANS = [[144, 'last 144 (a day)'], [504, 'last 504'], [2016, 'last 2,016']];

const ms = (value) => (typeof value === 'number' ? value.toFixed(value < 0.1 ? 3 : value < 10 ? 2 : 1) : null);
const from = (row) => row.address ?? (row.source === 'peer' ? `peer ${row.peer}` : row.source);
const miner = (row) => row.pool ?? row.text;
const titled = (text, length, title = text) => text && h('span', { title: clip(title, 100) }, clip(text, length));
const step = (key) => [`#${key}`, `${key[0].toUpperCase()}${key.slice(1)}, ms`, ms, null, (row) => row.ms?.[key]];

export default function blocks(root, { on, atEnd }) {
	let [budgets, rows, chosen, shown, span, isWhole] = [{}, [], null, CHARTS[0], 144, false];
	let list = null;
	const choose = (row) => {
		chosen = row.hash;
		drawSteps();
	};
	const chart = barChart(choose);
	atEnd(chart.stop);
	const rebuild = () => {
		buildTable();
		draw();
	};
	const tools = h('div.tools',
		select('Chart', CHARTS, (key) => {
			shown = CHARTS.find(([one]) => one === key);
			drawChart();
		}),
		select('Blocks', SPANS, (value) => {
			span = Number(value);
			rebuild();
		}));
	const [steps, about, place] = [h('div.steps'), muted(), h('div')];
	const more = button('', () => {
		isWhole = !isWhole;
		rebuild();
	});
	root.append(card('Blocks', tools, chart), card('Steps of a block', about, steps), card('Table', place, h('p.more', more)));

	function buildTable() {
		list = table('The last blocks', [
			['#height', 'Height', (height, row) => to({ q: row.hash }, num(height))],
			['time', 'Time', time, 'of the header'],
			['received', 'Received', (at, row) => at && `${duration(Math.abs(at - row.time))} ${at < row.time ? 'before' : 'after'}`, 'after the time of the header'],
			['address', 'From', (text, row) => titled(text, 40, row.agent ?? text), 'the peer that sent it first', from],
			['agent', 'User agent', (text) => text && clip(text, 40)],
			['#txs', 'Transactions', num],
			['#size', 'Size', (size) => bytes(size, 2)],
			['#weight', 'Weight', num],
			['#totalfee', 'Fees, BTC', (fee) => (typeof fee === 'number' ? (fee / 1e8).toFixed(4) : null)],
			['#avgfeerate', 'sat/vB', null, 'average fee rate'],
			['#missing', 'Missing', null, 'transactions that its compact block lacked'],
			['#copies', 'Copies', null, 'further copies received'],
			step('download'),
			step('queue'),
			['bar', 'Steps', (_, row) => row.ms && shares(row.ms), SHARES.join(', '), (row) => row.ms?.total],
			['#total', 'All, ms', ms, 'from the last byte to the end', (row) => row.ms?.total],
			['#budget', 'Budget, ms', ms, 'of the benchmark, for its inputs and signatures', (row) => (row.ms ? budget(row) : undefined)],
			['pool', 'Miner', (text, row) => titled(text, 28, row.text), 'as the coinbase says', miner],
			['hash', 'Hash', (id) => to({ q: id }, hash(id))],
		], { sort: '-height', limit: isWhole ? span : FIRST, empty: 'No block yet.', open: choose });
		set(place, list);
		set(more, isWhole ? `Show the last ${FIRST} only` : `Show all ${num(span)}`);
	}

	// The budget of a step, or of all.
	function budget(row, key) {
		if (typeof row.ins !== 'number') return undefined;
		if (!key) return STEPS.reduce((sum, [one]) => sum + (budget(row, one) ?? 0), 0);
		if (!(key in budgets)) return undefined;
		return (budgets[key] * row.ins + (key === 'verify' ? (row.checks ?? 0) * (budgets.signature ?? 0) : 0)) / 1e6;
	}

	function drawChart() {
		const [key, title] = shown;
		chart.update(rows.slice(-span), title, key === 'total' ? (row) => row.ms?.total : (row) => row[key]);
	}

	function drawSteps() {
		const timed = rows.filter((row) => row.ms);
		const row = rows.find((one) => one.hash === chosen) ?? timed.findLast((one) => one.ins >= INPUTS_MIN) ?? timed.at(-1);
		if (!row?.ms) {
			set(about, row ? `Block ${num(row.height)} was connected before this start: the times of its steps were not kept.` : 'No block was connected since the start.');
			return set(steps);
		}
		const isLarge = row.ins >= INPUTS_MIN;
		set(about, 'Block ', to({ q: row.hash }, num(row.height)), `, ${plural(row.ins, 'input')}, ${plural(row.checks, 'signature check')}, `,
			row.tip ? 'connected at the tip. ' : 'connected while the node caught up. ',
			'The mark is the budget of the benchmark: CPU time for the inputs and signatures of this block, which several threads share. ',
			isLarge ? '' : 'It means little for so few inputs. ', 'A row of the table shows another block.');
		const most = Math.max(...STEPS.map(([key]) => Math.max(row.ms[key] ?? 0, budget(row, key) ?? 0)), 1e-9);
		return set(steps, STEPS.filter(([key]) => typeof row.ms[key] === 'number').map(([key, title, help]) => {
			const [took, allowed] = [row.ms[key], budget(row, key)];
			const words = `${ms(took)} ms${allowed === undefined ? '' : ` of ${ms(allowed)}`}`;
			return h('div.stage', { title: help }, h('span', title), stepBar(took / most, allowed / most, isLarge && took > allowed, words), h('span.number', words));
		}));
	}

	function draw() {
		drawChart();
		drawSteps();
		// By hash, since another block may come at the same height.
		list.update(keyed(rows.slice(-span), 'hash'));
	}

	buildTable();
	on('blocks', ({ budget: known, ...all }) => {
		budgets = known ?? {};
		rows = Object.values(all).sort((a, b) => a.height - b.height);
		draw();
	});
}

// The steps of a block as one small bar; the legend is the card above.
function shares(took) {
	const total = SHARES.reduce((sum, key) => sum + (took[key] ?? 0), 0) || 1;
	const words = SHARES.map((key) => `${key} ${(took[key] ?? 0).toFixed(2)} ms`).join(', ');
	let at = 0;
	return s('svg.smallbar', { viewBox: '0 0 120 12', width: 120, height: 12, role: 'img', 'aria-label': words }, s('title', words),
		SHARES.map((key, place) => {
			const [x, width] = [at, (took[key] ?? 0) / total * 120];
			at += width;
			return s(`rect.n${place}`, { x, y: place % 2, width: Math.max(0, width - 0.5), height: 12 - 2 * (place % 2) });
		}));
}

// What a step took, and its budget as a mark: shares of the width.
function stepBar(took, allowed, isOver, words) {
	return s(`svg.stepbar${isOver ? '.over' : ''}`, { viewBox: '0 0 200 12', preserveAspectRatio: 'none', role: 'img', 'aria-label': words },
		s('rect.ground', { y: 2, width: 200, height: 8 }), s('rect.took', { y: 2, width: took * 200, height: 8 }),
		Number.isFinite(allowed) && s('rect.mark', { x: Math.min(199.4, allowed * 200), width: 0.6, height: 12 }));
}

// A bar for each block; a pointer shows its values, a click opens it in the explorer, with Shift it is chosen below.
function barChart(choose) {
	const [height, left, low] = [220, 48, 22];
	const axis = (value) => short(value).replace('.0', '');
	let [rows, title, value, at, width] = [[], '', null, null, 960];
	const bars = s('path.bars');
	const mark = s('rect.hover', { y: 6, height: height - low - 6, width: 1, visibility: 'hidden' });
	const lines = s('g.axis');
	const svg = s('svg.plot', {
		height, role: 'img', tabindex: 0,
		onpointermove: (event) => point(placeOf(event)),
		onpointerleave: () => point(null),
		onclick: (event) => (event.shiftKey ? choose : go)(rows[placeOf(event)]),
		onkeydown: (event) => {
			const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
			if (event.key === 'Enter') go(rows[at]);
			if (!by || rows.length === 0) return;
			event.preventDefault();
			point(Math.max(0, Math.min(rows.length - 1, (at ?? rows.length) + by)));
			choose(rows[at]);
		},
	}, lines, bars, mark);
	const words = h('p.muted.readout');
	const element = h('div.barchart', svg, words);

	const step = () => (width - left) / Math.max(1, rows.length);
	const go = (row) => row && location.assign(to({ q: row.hash }).href);
	function placeOf(event) {
		const box = svg.getBoundingClientRect();
		return Math.floor(((event.clientX - box.left) / box.width * width - left) / step());
	}
	function point(place) {
		const row = rows[place];
		at = row ? place : null;
		mark.setAttribute('visibility', row ? 'visible' : 'hidden');
		if (!row) return set(words, 'Point at a bar.');
		mark.setAttribute('x', left + place * step());
		mark.setAttribute('width', Math.max(1, step()));
		return set(words, `Block ${num(row.height)}, ${time(row.time)}: ${title} ${num(value(row))}; ${plural(row.txs, 'transaction')}${miner(row) ? `, ${clip(miner(row), 40)}` : ''}.`);
	}

	element.update = (newRows, newTitle, newValue) => {
		const pointed = rows[at]?.hash;
		[rows, title, value] = [newRows, newTitle, newValue];
		point(pointed ? rows.findIndex((row) => row.hash === pointed) : null);
		draw();
	};
	const resized = new ResizeObserver(draw);
	resized.observe(svg);
	element.stop = () => resized.disconnect();

	function draw() {
		width = Math.max(240, svg.clientWidth);
		svg.setAttribute('viewBox', `0 0 ${width} ${height}`);
		const known = rows.map((row) => value(row)).filter((one) => typeof one === 'number');
		const most = Math.max(...known, 1);
		const y = (one) => (height - low - 6) * one / most;
		const wide = Math.max(0.4, step() * (rows.length > 500 ? 1 : 0.82)).toFixed(2);
		const path = rows.map((row, place) => (value(row) > 0
			? `M${(left + place * step()).toFixed(2)} ${height - low}v${(-Math.max(1, y(value(row)))).toFixed(2)}h${wide}V${height - low}z` : ''));
		bars.setAttribute('d', path.join(''));
		const label = (x, at, text, anchor) => s('text', { x, y: at, 'text-anchor': anchor }, text);
		set(lines, [0, 0.5, 1].map((part) => {
			const at = height - low - y(most * part);
			return [s('line', { x1: left, x2: width, y1: at, y2: at }), label(left - 6, at + 4, axis(most * part), 'end')];
		}), rows.length > 0 && [label(left, height - 4, num(rows[0].height), 'start'), label(width, height - 4, num(rows.at(-1).height), 'end')]);
		svg.setAttribute('aria-label', `${title} of ${num(rows.length)} blocks: ${known.length ? `${axis(Math.min(...known))} to ${axis(most)}` : 'not known'}. The arrow keys move from block to block, Enter opens one.`);
		if (at !== null) point(at);
	}
	return element;
}
