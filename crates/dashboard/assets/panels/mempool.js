// The mempool: fee bands over time, the next blocks as they would be mined, mined blocks beside their projection, rejected
// transactions, replacements, orphans.

import { call, history } from '../api.js';
import * as live from '../live.js';
import { act, input, outcome } from './actions.js';
import { bar, button, bytes, card, clip, coins, day, facts, h, hash, icon, keyed, minute, muted, note, num, percent, plural, rowsOf, s, sats, satvb, scroll, search, second, select, set, short, table, time, to } from '../ui.js';

const BLOCK_WEIGHT = 3_992_000;
// Rows of a list in the live data.
const LIVE_ROWS = 50;
const NAMES = ['Next', '2nd', '3rd', '4th', '5th', '6th', '7th', '8th'];
// Blocks within which a transaction with the estimated feerate is expected.
const TARGETS = [2, 6, 24, 144];
const SPANS = [[3600, 'last hour'], [86400, 'last 24 hours'], [2592000, 'last 30 days']];
// Points that are drawn, and seconds that the chart shows at least.
const POINTS = 360;
const SPAN = 120;

// From violet over green to red. The table names the bands, so that nothing is said by the colour alone.
const STOPS = [[118, 78, 186], [63, 106, 196], [33, 145, 140], [94, 190, 98], [226, 190, 40], [240, 136, 48], [212, 58, 58]];
function colour(place, count) {
	const at = (count > 1 ? place / (count - 1) : 0) * (STOPS.length - 1);
	const [low, high] = [STOPS[Math.floor(at)], STOPS[Math.ceil(at)]];
	return `rgb(${low.map((value, i) => Math.round(value + (high[i] - value) * (at - Math.floor(at)))).join(',')})`;
}

const range = (rates, place) => `${rates[place] / 1000}${place + 1 < rates.length ? ` – ${rates[place + 1] / 1000}` : ' and more'}`;
const feerate = (value) => (typeof value === 'number' ? value.toFixed(value < 10 ? 2 : 1) : '–');
const sum = (list) => list.reduce((all, value) => all + (value ?? 0), 0);
const tx = (txid) => to({ tx: txid }, hash(txid));
const more = (count, shown) => count > shown && h('li.muted', `and ${num(count - shown)} more`);

export default function mempool(root, { on, every, session }) {
	const memory = bar('Memory used');
	const sums = facts({ 'Minimum fee': 'What a transaction must pay now to be accepted', 'More to replace': 'What a replacement must pay on top' });
	const estimates = facts();
	const [boxes, strip, chart, minedDetails] = [h('div.boxes'), h('ol.strip'), h('div.bands'), h('div.details', { 'aria-live': 'polite' })];
	const chartNote = muted();
	const swatch = (place, row) => icon('swatch', 10, 11,
		s('rect', { width: 10, height: 10, rx: 2, fill: colour(place, row.of) }));
	const bandTable = table('Fee bands', [
		['place', 'sat/vB', (place, row) => [swatch(place, row), ` ${row.range}`]],
		['#count', 'Transactions', num],
		['#vsize', 'Virtual bytes', num],
		['#above', 'Blocks ahead', (blocks) => blocks.toFixed(2), 'Blocks that this band and all higher ones fill'],
		['#fees', 'Fees', coins],
	], { sort: '-place', empty: 'The mempool is empty.' });
	const mined = table('Mined blocks beside their projection', [
		['#height', 'Height', (height, row) => to({ block: row.hash }, num(height))],
		['time', 'Time', time],
		['#expected', 'Expected', num],
		['#mined', 'Mined', num],
		['#missing', 'Missing', num, 'Expected, and not mined'],
		['#added', 'Added', num, 'Mined, and not expected'],
		['#unknown', 'Unknown', num, 'Mined, and not in the mempool'],
		['#match', 'As expected', percent, null, (row) => (row.expected > 0 ? 1 - row.missing / row.expected : row.mined === 0 ? 1 : 0)],
		['#expectedFees', 'Fees expected', coins],
		['#fees', 'Fees mined', coins],
	], { sort: '-height', open: showMined, empty: 'No block was mined yet while the mempool had transactions.' });
	const rejects = table('Rejected transactions', [
		['number', 'Time', (_, row) => time(row.time)],
		['txid', 'Transaction', hash],
		['wtxid', 'wtxid', hash],
		['#vsize', 'vsize', num],
		['reason', 'Reason', (reason) => h('span.reason', { title: reason }, clip(reason, 400))],
	], { sort: '-number', limit: 1000, empty: 'No transaction was rejected since the start.' });
	const replacements = table('Replacements', [
		['number', 'Time', (_, row) => time(row.time)],
		['replaced', 'Replaced', (txids, row) => [txids.slice(0, 3).map((txid) => h('div', hash(txid))), row.replacedCount > 3 && h('div.muted', `and ${num(row.replacedCount - 3)} more`)]],
		['txid', 'By', tx],
		['#replacedFees', 'Fees before', sats],
		['#fee', 'Fee now', sats],
		['#before', 'sat/vB before', feerate, null, (row) => row.replacedFees / row.replacedVsize],
		['#after', 'sat/vB now', feerate, null, (row) => row.fee / row.vsize],
	], { sort: '-number', limit: 1000, empty: 'No transaction was replaced since the start.' });
	const orphans = table('Orphans', [
		['txid', 'Transaction', hash],
		['wtxid', 'wtxid', hash],
		['#bytes', 'Bytes', num],
		['#vsize', 'vsize', num],
		['from', 'From peers', (peers) => (peers ?? []).join(', ')],
	], { sort: '-vsize', empty: 'No transaction waits for its parents.' });

	// A list of which the live data has the last rows; the others are asked for.
	function growing(kind, method, target) {
		let older = {};
		const update = () => target.update({ ...older, ...rowsOf(live.state('mempool'), kind) });
		const all = button('Show all that are kept (1,000)', async () => {
			all.disabled = true;
			try {
				older = keyed(await call(method), 'number');
				update();
				all.remove();
			} catch (error) {
				set(all, error.message);
			}
		}, { hidden: true });
		return { all, update: (now) => {
			all.hidden = Object.keys(rowsOf(now, kind)).length < LIVE_ROWS;
			update();
		} };
	}
	const lists = { reject: growing('reject', 'lydian_rejects', rejects), replacement: growing('replacement', 'lydian_replacements', replacements),
		block: { update: (now) => mined.update(rowsOf(now, 'block')) } };

	const said = outcome();
	function send() {
		const raw = input('The raw transaction, in hexadecimal');
		return act(said, ['Send a transaction', 'The node checks it, takes it into its mempool, and announces it to its peers.', 'Send', raw],
			() => ['sendrawtransaction', raw.value()], (txid) => `Sent ${txid}.`);
	}

	const matches = (row, words) => `${row.txid} ${row.wtxid} ${row.reason}`.toLowerCase().includes(words);
	let span = 3600;
	const spans = select('Time', SPANS, (value) => {
		span = Number(value);
		points = [];
		loadHistory();
	});
	root.append(
		h('div.columns', card('Now', memory, sums, session.actions && h('p.buttons', button('Send a transaction…', send)), said), card('What a transaction should pay', boxes,
			muted('From the projected blocks: the middle of the block if it is full, else the minimum fee. A guess, as blocks are found by chance.'), estimates)),
		card('Next blocks', scroll('Next blocks', strip)),
		card('Fee bands', h('div.tools', spans), chart, chartNote, bandTable),
		card('Mined blocks beside their projection', muted('Each block is compared with what the block builder would have taken from the mempool just before.'), mined, minedDetails),
		card('Rejected transactions', h('div.tools', search('Filter by txid or reason', (words) => rejects.filter(words && ((row) => matches(row, words)))), lists.reject.all), rejects),
		card('Replacements', lists.replacement.all, replacements),
		card('Orphans', muted('Transactions that wait for their parents.'), orphans),
	);

	async function showMined(row) {
		set(minedDetails, muted(`Block ${num(row.height)} ...`));
		try {
			const found = await call('lydian_minedblock', row.hash);
			const list = (title, txids, count) => h('div', h('h3', `${title}: ${num(count)}`), txids.length === 0 ? muted('none')
				: h('ul.txids', txids.map((txid) => h('li', tx(txid))), more(count, txids.length)));
			set(minedDetails, h('h3', `Block ${num(found.height)}`), h('div.columns',
				list('Expected, and not mined', found.missingTxids, found.missing), list('Mined, and not expected', found.addedTxids, found.added)));
		} catch (error) {
			set(minedDetails, note('bad', error.message));
		}
	}

	const item = (tag, ...parts) => h(tag, parts.map(([kind, words]) => h(`div.${kind}`, words)));

	function drawBoxes({ projected = [], minFee }) {
		set(boxes, [['Next block', 0], ['Third block', 2], ['Sixth block', 5]].map(([title, place]) => {
			const block = projected[place];
			const isFull = block?.weight > 0.97 * BLOCK_WEIGHT;
			return item('div.box', ['muted', title], ['big', feerate(isFull ? block.median : minFee / 1000)], ['unit', 'sat/vB'],
				['muted.small', isFull ? `${feerate(block.min)} – ${feerate(block.max)} in this block` : 'the block is not full: the minimum fee']);
		}));
	}

	function drawStrip({ projected = [], rates = [], count }) {
		if (projected.length === 0) return set(strip, h('li.muted', count > 0 ? 'The projection is being made.' : 'The mempool is empty: the next block would have no transaction but the coinbase.'));
		const left = count - sum(projected.map((block) => block.count));
		return set(strip, projected.map((block, place) => {
			const band = Math.max(0, rates.findLastIndex((bound) => bound <= block.median * 1000));
			const share = Math.min(1, block.weight / BLOCK_WEIGHT);
			const full = s('svg.fill', { viewBox: '0 0 100 12', preserveAspectRatio: 'none', 'aria-hidden': 'true' },
				s('rect.back', { width: 100, height: 12 }), s('rect', { width: share * 100, height: 12, fill: colour(band, rates.length) }));
			return item('li.next', ['muted', NAMES[place]], ['big', feerate(block.median)], ['unit', 'sat/vB, median'], ['small', `${feerate(block.min)} – ${feerate(block.max)}`],
				['fillbox', full], ['small', plural(block.count, 'transaction')], ['small', `${percent(share)} full`], ['small', coins(block.fees)]);
		}), left > 0 && item('li.next.rest', ['muted', 'Later'], ['small', plural(left, 'transaction')]));
	}

	// Points of the chart: those of the history, and since then one at each drawing.
	let [points, isLoaded] = [[], false];
	async function loadHistory() {
		const rates = live.state('mempool')?.rates;
		if (!rates) return;
		isLoaded = true;
		const now = Date.now() / 1000;
		try {
			const names = rates.map((_, place) => `mempool_band_${place}`);
			const { from, step, series } = await history(names, now - span, now);
			const lists = names.map((name) => series[name]);
			const stride = Math.ceil((lists[0]?.length ?? 0) / POINTS);
			const all = (lists[0] ?? []).map((_, at) => ({ at: from + at * step, vsize: lists.map((list) => list[at]) }));
			points = all.filter(({ vsize }, at) => at % stride === 0 && vsize.some((value) => typeof value === 'number'));
			set(chartNote, '');
		} catch (error) {
			set(chartNote, `The history cannot be read: ${error.message}`);
		}
		drawChart();
	}

	function drawChart() {
		const { bands, rates } = live.state('mempool') ?? {};
		if (!bands) return;
		points.push({ at: Date.now() / 1000, vsize: bands.vsize });
		set(chart, stacked(points, rates));
		let above = 0;
		const rows = [...rates.keys()].reverse().map((place) => {
			above += bands.vsize[place];
			return { place, of: rates.length, range: range(rates, place), count: bands.count[place], vsize: bands.vsize[place], fees: bands.fees[place], above: above * 4 / BLOCK_WEIGHT };
		});
		bandTable.update(keyed(rows.filter(({ count }) => count > 0), 'place'));
	}

	// Virtual bytes over time, the highest feerates at the bottom, as they are mined first.
	function stacked(points, rates) {
		const [width, height, left, bottom, top] = [Math.max(300, chart.clientWidth || 960), 280, 70, 26, 10];
		const end = points.at(-1).at;
		const start = Math.min(points[0].at, end - SPAN);
		const high = nice(Math.max(...points.map(({ vsize }) => sum(vsize)), 1000));
		const x = (at) => left + ((at - start) / (end - start)) * (width - left - 8);
		const y = (value) => height - bottom - (value / high) * (height - bottom - top);
		const base = points.map(() => 0);
		const corner = (point, place) => `${x(point.at).toFixed(1)},${y(base[place]).toFixed(1)}`;
		const areas = [...rates.keys()].reverse().filter((band) => points.some(({ vsize }) => vsize[band] > 0)).map((band) => {
			const low = points.map(corner);
			points.forEach(({ vsize }, place) => { base[place] += vsize[band] ?? 0; });
			return s('polygon', { points: [...low, ...points.map(corner).reverse()].join(' '), fill: colour(band, rates.length) }, s('title', `${range(rates, band)} sat/vB`));
		});
		const lines = [0, 0.25, 0.5, 0.75, 1].map((share) => [s('line.grid', { x1: left, x2: width - 8, y1: y(high * share), y2: y(high * share) }),
			s('text.axis', { x: left - 8, y: y(high * share) + 4, 'text-anchor': 'end' }, `${short(high * share)}${high * share < 1000 ? ' ' : ''}vB`)]);
		const count = width < 600 ? 2 : 4;
		const seconds = end - start;
		const clock = seconds > 2 * 86400 ? (at) => day(at).slice(5) : seconds > 600 ? minute : second;
		const marks = Array.from({ length: count + 1 }, (_, place) => start + (seconds * place) / count).map((at, place) =>
			s('text.axis', { x: x(at), y: height - 6, 'text-anchor': ['start', ...Array(count - 1).fill('middle'), 'end'][place] }, clock(at)));
		return s('svg', { viewBox: `0 0 ${width} ${height}`, role: 'img',
			'aria-label': `Virtual bytes of the mempool by fee band over ${Math.round(seconds / 60)} min; now ${num(sum(points.at(-1).vsize))}. The table below has the figures.` }, lines, areas, marks);
	}

	const nice = (value) => {
		const power = 10 ** Math.floor(Math.log10(value));
		return [1, 2, 4, 5, 8, 10].map((factor) => factor * power).find((bound) => bound >= value);
	};

	async function loadEstimates() {
		const found = await Promise.all(TARGETS.map((target) => call('estimatesmartfee', target).catch(() => ({}))));
		estimates.update(Object.fromEntries(found.map(({ feerate: fee, errors }, place) => [`Estimate for ${TARGETS[place]} blocks`,
			fee ? satvb(fee * 1e8) : errors ? 'not enough data yet' : null])));
	}
	const loadOrphans = async () => orphans.update(keyed(await call('getorphantxs', 1).catch(() => []), 'wtxid'));

	every(60000, loadHistory);
	on('mempool', (now, changed) => {
		if (now.count === undefined) {
			set(boxes, muted('The mempool is not open yet.'));
			return;
		}
		memory.update(now.usage / now.usageMax, `${bytes(now.usage)} of ${bytes(now.usageMax)}`);
		sums.update({
			Transactions: now.loaded ? num(now.count) : `${num(now.count)} (mempool.dat is being read)`,
			'Virtual bytes': num(now.vsize), Fees: coins(now.fees), Memory: `${bytes(now.usage)} of ${bytes(now.usageMax)}`,
			'Minimum fee': satvb(now.minFee), 'More to replace': satvb(now.incrementalFee), 'Not broadcast yet': num(now.unbroadcast),
		});
		drawBoxes(now);
		drawStrip(now);
		if (!isLoaded) loadHistory();
		for (const [kind, list] of Object.entries(lists)) {
			if (changed === null || Object.keys(changed).some((key) => key.startsWith(`${kind}:`))) list.update(now);
		}
	});
	every(5000, loadOrphans);
	every(30000, loadEstimates);
	every(2000, drawChart);
}
