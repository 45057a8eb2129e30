// Who mined the last 2,016 blocks, as far as the blocks say it; version bits; hash rate; pace; the next halving.

import { bytes, card, clip, coins, day, duration, facts, h, hashRate, keyed, muted, num, percent, s, set, table } from '../ui.js';

const amount = (value) => (typeof value === 'number' ? coins(value).replace(/\.?0+ BTC$/, ' BTC') : null);
const date = (seconds) => seconds && day(seconds);
const counted = (key) => (count, row) => `${num(count)} (${percent(row.of[key] ? count / row.of[key] : 0, 0)})`;

// The share as a bar beside its number.
const share = (of) => h('span.sharebox',
	s('svg.share', { viewBox: '0 0 100 10', width: 120, height: 10, preserveAspectRatio: 'none', 'aria-hidden': 'true' },
		s('rect.ground', { width: 100, height: 10 }), s('rect.took', { width: of * 100, height: 10 })), h('span', percent(of)));

export default function miners(root, { on }) {
	const pace = facts({ 'Hash rate, 120 blocks': 'as getnetworkhashps', 'Hash rate, this period': 'since the last change of difficulty' });
	const halving = facts({ 'At 10 minutes a block': 'the target spacing of the chain' });
	const pools = table('Pools', [
		['name', 'Pool', (name) => clip(name, 40)],
		['#blocks', 'Blocks', num],
		['share', 'Share', share],
		['#empty', 'Empty', num, 'blocks with the coinbase alone'],
		['#fees', 'Fees, BTC', (fees) => (fees / 1e8).toFixed(3)],
		['#weight', 'Average weight', num],
		['#last', 'Last block', num],
		['text', 'Text of that coinbase', (text) => clip(text, 60)],
	], { sort: '-blocks', empty: 'No block was read yet.' });
	const bits = table('Version bits', [
		['#order', 'Bit', (order, row) => row.name],
		['#day', 'Last 144', counted('day')],
		['#period', 'This period', counted('period')],
		['#all', 'Last 2,016', counted('all')],
	], { sort: 'order', empty: 'No block signals any bit.' });
	const about = muted();
	root.append(h('div.columns', card('Pace', pace), card('Next halving', halving)),
		card('Pools', muted('By the text that the miner wrote into the coinbase. Anyone can write any text; a block that names no known pool is "unknown".'), pools),
		card('Version bits', about, bits));

	on('miners', (now) => {
		const { hashRate: rates = {}, halving: next = {}, versions } = now;
		const reward = now.fees + (now.subsidy ?? 0) * now.known;
		pace.update({
			'Blocks looked at': now.to === undefined ? null : `${num(now.known)}, heights ${num(now.from)} to ${num(now.to)}`,
			'Blocks an hour': now.perHour?.toPrecision(3),
			'Mean interval': now.interval && duration(now.interval),
			'Hash rate, 120 blocks': hashRate(rates.recent), 'Hash rate, this period': hashRate(rates.period), 'Hash rate, 2,016 blocks': hashRate(rates.all),
			'Fees in all': amount(now.fees), 'Fees of the reward': reward > 0 ? percent(now.fees / reward) : null,
			'Average size': bytes(now.size, 2), 'Average weight': num(now.weight), 'Average transactions': num(now.txs),
		});
		halving.update({
			'Height of the next halving': num(next.height), 'Blocks left': num(next.left), 'Subsidy after it': amount(next.subsidy),
			'At 10 minutes a block': date(next.byTarget), 'At the pace of these blocks': date(next.byPace),
		});
		pools.update(keyed(now.pools, 'name'));
		if (!versions) return;
		set(about, `The period has ${num(versions.interval)} blocks, ${num(versions.left)} are left. A version signals if its three highest bits are 001 (BIP-0009).`);
		bits.update(keyed([...versions.bits.map((row) => ({ ...row, name: row.bit, order: row.bit, of: versions.blocks })),
			{ ...versions.others, name: 'other versions', order: 99, of: versions.blocks }], 'order'));
	});
}
