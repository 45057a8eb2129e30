// One sentence about the node, what needs attention, the figures that people look for first, and what happened last.

import * as live from '../live.js';
import { ago, badge, bar, blockLink, bytes, card, duration, facts, h, millis, muted, note, num, plural, satvb, set, time, to } from '../ui.js';

const EVENTS_SHOWN = 10;

const SIGNS = { waiting: 'warn', offline: 'bad', 'in sync': 'good' };

export default function overview(root, { on }) {
	const sentence = h('p.sentence');
	const progress = bar('Work done');
	const warnings = h('div.warnings');
	const events = h('div.events');
	const [chain, node] = [facts(), facts()];
	let [shown, warned] = ['', ''];
	root.append(warnings, h('section.card.hero', sentence, progress),
		h('div.columns', card('Chain', chain), card('Node', node)), card('Recent events', events));

	// The last blocks, reorganisations and invalid blocks, by time.
	function draw() {
		const blocks = Object.values(live.state('blocks') ?? {}).filter((row) => row.hash && row.received);
		const { reorganisations = [], invalid = [] } = live.state('chain') ?? {};
		const all = [
			...blocks.sort((a, b) => b.height - a.height).slice(0, EVENTS_SHOWN).map((row) => [row.received, 'calm', 'block', row.hash,
				`Block ${num(row.height)}${row.txs ? ` with ${plural(row.txs, 'transaction')}` : ''}${row.ms?.total ? `, connected in ${millis(row.ms.total)}` : ''}`]),
			...reorganisations.map((row) => [row.time, 'warn', 'reorganisation', row.new.hash,
				`${plural(row.depth, 'block')} ${row.depth === 1 ? 'was' : 'were'} replaced, from height ${num(row.fork.height + 1)} on`]),
			...invalid.filter((row) => row.time).map((row) => [row.time, 'bad', 'invalid block', row.hash,
				`Block at height ${num(row.height)}: ${row.reason ?? 'invalid'}`]),
		].sort((a, b) => b[0] - a[0]).slice(0, EVENTS_SHOWN);
		const shape = JSON.stringify(all);
		if (shape === shown) return;
		shown = shape;
		set(events, all.length === 0 ? muted('Nothing happened since the start.') : h('ol', all.map(([at, kind, sign, id, words]) =>
			h('li', h('span.muted', time(at)), badge(kind, sign), to({ q: id }, words)))));
	}

	on('blocks', draw);
	on('chain', draw);
	on('overview', (now) => {
		set(sentence, h(`span.sign.${SIGNS[now.state] ?? 'calm'}`, { 'aria-hidden': 'true' }), h('span', now.sentence ?? ''));
		progress.hidden = typeof now.share !== 'number' || now.share >= 1;
		progress.update(now.share, now.sentence);
		// Only a change is announced to a screen reader.
		const all = (now.warnings ?? []).map(({ text, advice }) => (advice ? `${text} ${advice}` : text));
		if (warned !== all.join('\n')) {
			warned = all.join('\n');
			set(warnings, all.map((text) => note('bad', text)));
		}
		chain.update({ Height: num(now.height), 'Headers known': num(now.headers), 'Last block': now.hash && blockLink(now.hash), 'Its time': ago(now.time, now.now), Chain: now.chain });
		node.update({
			Peers: now.outbound === undefined ? null : `${now.outbound} out, ${now.inbound} in`,
			Mempool: now.mempool && `${plural(now.mempool.transactions, 'transaction')}, ${bytes(now.mempool.usage)} of memory`,
			'Minimum fee': satvb(now.mempool?.minFee),
			'Running for': duration(now.uptime),
			Version: now.version,
		});
	});
	draw();
}
