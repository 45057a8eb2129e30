// The explorer: one search field for heights, hashes, txids, outputs, addresses, scripts and descriptors; blocks,
// transactions with what they spend and who spends them, scripts with their history and coins.

import { call } from '../api.js';
import * as live from '../live.js';
import { ago, badge, button, bytes, card, clip, coins, facts, h, hash, keyed, mono, muted, note, num, plural, problem, sats, set, short, signed, table, time, to } from '../ui.js';

const PAGE = 25;
const ROWS = 40;

// The answer of a route of Esplora.
const explore = async (path) => (await call('lydian_explore', path)).value;
const quiet = (promise) => promise.catch(() => null);

const blockOf = (status) => (status.confirmed ? to({ block: status.block_hash }, num(status.block_height)) : 'mempool');
const txLink = (txid, status, keep) => to(status?.block_hash ? { tx: txid, block: status.block_hash } : { tx: txid }, hash(txid, keep));
const outputLink = (txid, vout) => to({ tx: txid, vout }, hash(txid, 10), `:${vout}`);
const amount = (output) => h('span.value', coins(output?.value));
const pre = (text) => h('pre', { tabindex: 0 }, text);
const feerate = (tx) => (typeof tx.fee === 'number' ? `${(tx.fee / (tx.weight / 4)).toFixed(2)} sat/vB` : '–');
const sum = (list, value) => list.reduce((all, one) => all + value(one), 0);
const balance = (stats) => stats.funded_txo_sum - stats.spent_txo_sum;
const pager = (...parts) => h('p.pager', parts);

function scriptLink(output) {
	if (!output) return h('span.muted', 'unknown');
	const { scriptpubkey: script, scriptpubkey_type: type, scriptpubkey_asm: asm, scriptpubkey_address: address } = output;
	if (script === '') return 'empty script';
	if (type === 'op_return') return h('span.mono', { title: asm }, clip(asm, 40));
	return to({ script }, address ? hash(address, 14) : type);
}

// Content that is loaded; until then a word, and then perhaps an error.
async function fill(element, words, load) {
	set(element, muted(`${words} ...`));
	set(element, await load().catch((error) => note('bad', error.message)));
	return element;
}

// Something long that is loaded when it is opened.
function fold(title, load) {
	const body = h('div');
	return h('details', { ontoggle: (event) => event.target.open && body.childElementCount === 0 && fill(body, 'loading', load) }, h('summary', title), body);
}

// A long list, of which the first rows are shown.
function long(items, row) {
	const list = h('ol.io', items.slice(0, ROWS).map(row));
	const all = items.length > ROWS && button(`Show all ${num(items.length)}`, () => {
		items.slice(ROWS).forEach((item, place) => list.append(row(item, place + ROWS)));
		all.remove();
	});
	return [list, all];
}

// Blocks.

async function latest() {
	const blocks = await explore('/blocks');
	const list = table('The newest blocks', [
		['#height', 'Height', (height, row) => to({ block: row.id }, num(height))],
		['timestamp', 'Time', time],
		['#tx_count', 'Transactions', num],
		['#size', 'Size', bytes],
		['#weight', 'Weight', num],
		['id', 'Hash', (id) => hash(id, 12)],
	], { sort: '-height' });
	return card('The newest blocks', list.update(keyed(blocks, 'id')));
}

async function block(id, start) {
	const [of, status, header, stats] = await Promise.all([explore(`/block/${id}`), explore(`/block/${id}/status`), quiet(call('getblockheader', id, true)),
		quiet(call('getblockstats', id, ['totalfee', 'subsidy', 'feerate_percentiles', 'avgfeerate', 'total_out', 'ins', 'outs']))]);
	const rates = stats?.feerate_percentiles;
	const overview = facts().update({
		Hash: mono(of.id), Height: num(of.height), Time: time(of.timestamp), Confirmations: header && (header.confirmations < 0 ? 'not in the active chain' : num(header.confirmations)),
		Transactions: num(of.tx_count), Size: bytes(of.size), Weight: `${num(of.weight)} of 4,000,000`, Fees: coins(stats?.totalfee), Subsidy: coins(stats?.subsidy),
		'sat/vB: 10 %, median, 90 %': rates && `${rates[0]}, ${rates[2]}, ${rates[4]}`, 'Inputs, outputs': stats && `${num(stats.ins)}, ${num(stats.outs)}`, 'Value without coinbase': coins(stats?.total_out),
		'Median time past': time(of.mediantime), Version: `0x${of.version.toString(16).padStart(8, '0')}`, 'Merkle root': mono(of.merkle_root), Bits: of.bits.toString(16), Nonce: num(of.nonce),
		Difficulty: short(of.difficulty, 3), 'Chain work': header && mono(header.chainwork.replace(/^0+/, '')), Target: header && mono(header.target),
	});
	const list = h('div');
	fill(list, 'reading the transactions', () => blockTxs(id, start, of.tx_count));
	return [card(h('span', `Block ${num(of.height)} `, status.in_best_chain ? badge('good', 'in the active chain') : badge('warn', 'beside the active chain')),
		pager(of.previousblockhash && to({ block: of.previousblockhash }, '← previous block'), status.next_best && to({ block: status.next_best }, 'next block →')),
		overview, fold('Raw header', async () => pre(await explore(`/block/${id}/header`)))),
	card(`Transactions (${num(of.tx_count)})`, list)];
}

async function blockTxs(id, start, total) {
	const last = Math.floor((total - 1) / PAGE) * PAGE;
	const first = Math.min(Math.max(0, Math.floor(start / PAGE) * PAGE), last);
	const txs = await explore(`/block/${id}/txs/${first}`);
	const step = (place, words) => (place < 0 || place > last || place === first ? h('span.muted', words) : to({ block: id, start: place }, words));
	const turn = () => pager(step(0, '« first'), step(first - PAGE, '‹ previous'), `${num(first + 1)} – ${num(Math.min(first + PAGE, total))} of ${num(total)}`,
		step(first + PAGE, 'next ›'), step(last, 'last »'));
	return [turn(), txs.map((tx, place) => summary(tx, h('span.muted', `${num(first + place)} · `))), turn()];
}

// A transaction in a list, beside its place, or with the change to the balance of a script.
function summary(tx, place, script) {
	const own = (output) => (script && output?.scriptpubkey === script ? output.value : 0);
	const change = sum(tx.vout, own) - sum(tx.vin, ({ prevout }) => own(prevout));
	const few = (items, one) => h('ul', items.slice(0, 3).map((item) => h('li', one(item))), items.length > 3 && h('li.muted', `and ${num(items.length - 3)} more`));
	return h('article.tx',
		h('div.txhead', h('span', place, txLink(tx.txid, tx.status, 16)),
			h('span.muted', tx.status.confirmed ? ['block ', blockOf(tx.status), ` · ${time(tx.status.block_time)}`] : 'in the mempool')),
		h('div.sides', few(tx.vin, ({ is_coinbase: isCoinbase, prevout }) => (isCoinbase ? 'coinbase' : [scriptLink(prevout), amount(prevout)])),
			few(tx.vout, (output) => [scriptLink(output), amount(output)])),
		h('div.txfoot.muted', `${num(Math.ceil(tx.weight / 4))} vB`, !tx.vin[0]?.is_coinbase && h('span', `fee ${sats(tx.fee)}, ${feerate(tx)}`),
			h('span', `outputs ${coins(sum(tx.vout, (output) => output.value))}`), script && h(change < 0 ? 'strong.bad' : 'strong.good', signed(change, coins))));
}

// Transactions.

// A transaction in Esplora's form: by its txid, or from its block, which is given or known to -txindex.
async function findTx(txid, block) {
	const tx = await explore(`/tx/${txid}`).catch((error) => error);
	if (!(tx instanceof Error)) return tx;
	const known = block ? null : await quiet(call('getrawtransaction', txid, 1));
	const at = block ?? known?.blockhash;
	if (known && !at) return poolTx(known);
	const place = at ? (await explore(`/block/${at}/txids`)).indexOf(txid) : -1;
	if (place < 0) throw new Error(`The transaction is not found: ${tx.message}.`);
	return (await explore(`/block/${at}/txs/${Math.floor(place / PAGE) * PAGE}`))[place % PAGE];
}

// A transaction of the mempool as RPC knows it, in Esplora's form.
async function poolTx(known) {
	const output = ({ value, scriptPubKey: of }) => ({ value: Math.round(value * 1e8), scriptpubkey: of.hex, scriptpubkey_asm: of.asm,
		scriptpubkey_type: of.type === 'nulldata' ? 'op_return' : of.type, scriptpubkey_address: of.address });
	const spent = await Promise.all(known.vin.slice(0, ROWS).map(({ txid, vout }) => quiet(call('gettxout', txid, vout, false))));
	const { fees } = await call('getmempoolentry', known.txid);
	const vin = known.vin.map((input, place) => ({ ...input, prevout: spent[place] && output(spent[place]) }));
	return { ...known, vin, vout: known.vout.map(output), fee: Math.round(fees.base * 1e8), status: { confirmed: false } };
}

// Who spends the first outputs, as far as the node knows without an index of scripts.
async function spendsByRpc({ txid, vout }) {
	const outputs = vout.slice(0, ROWS).map((_, place) => ({ txid, vout: place }));
	const found = await quiet(call('gettxspendingprevout', outputs));
	return Promise.all(outputs.map(async (output, place) => {
		const { spendingtxid, blockhash } = found?.[place] ?? {};
		if (spendingtxid) return { spent: true, txid: spendingtxid, status: { confirmed: blockhash !== undefined, block_hash: blockhash } };
		return { spent: (await quiet(call('gettxout', txid, place, true))) === null };
	}));
}

async function transaction(txid, block, marked) {
	const tx = await findTx(txid, block);
	const { status } = tx;
	const [indexed, tip, entry] = await Promise.all([quiet(explore(`/tx/${txid}/outspends`)), quiet(call('getblockcount')),
		status.confirmed ? null : quiet(call('getmempoolentry', txid))]);
	const spends = indexed ?? await spendsByRpc(tx);
	const isCoinbase = tx.vin[0]?.is_coinbase;
	const overview = facts().update({
		txid: mono(tx.txid),
		Status: status.confirmed ? badge('good', tip === null ? 'confirmed' : plural(tip - status.block_height + 1, 'confirmation')) : badge('warn', 'unconfirmed'),
		Block: blockOf(status), Time: status.confirmed ? `${time(status.block_time)} (${ago(status.block_time)})` : entry && `${time(entry.time)} (here)`,
		Fee: isCoinbase ? 'none' : sats(tx.fee), 'Fee rate': isCoinbase ? null : feerate(tx),
		Size: `${num(tx.size)} bytes`, 'Virtual size': `${num(Math.ceil(tx.weight / 4))} vB`, Weight: num(tx.weight), Version: tx.version,
		'Lock time': tx.locktime === 0 ? '0' : tx.locktime < 500000000 ? `block ${num(tx.locktime)}` : time(tx.locktime),
		'Signals replacement': isCoinbase ? null : tx.vin.some((input) => input.sequence < 0xfffffffe) ? 'yes' : 'no',
		'Value of outputs': coins(sum(tx.vout, (output) => output.value)),
		'In the mempool': entry && `${plural(entry.ancestorcount - 1, 'ancestor')}, ${plural(entry.descendantcount - 1, 'descendant')}`,
	});
	const raw = () => explore(`/tx/${txid}/hex`).catch(() => call('getrawtransaction', txid, 0, ...(status.block_hash ? [status.block_hash] : [])));
	return [
		card('Transaction', overview, !indexed && note('warn', 'The node keeps no index of scripts. -addressindex adds who spends an output, and the history of addresses; -txindex finds every transaction by its txid.')),
		h('div.columns.wide', card(`Inputs (${num(tx.vin.length)})`, long(tx.vin, inputRow)),
			card(`Outputs (${num(tx.vout.length)})`, long(tx.vout, (output, vout) => outputRow(output, vout, spends[vout], marked === String(vout))))),
		card('The transaction itself', fold('Raw', async () => pre(await raw())), fold('Decoded', async () => pre(JSON.stringify(await call('decoderawtransaction', await raw()), null, 2)))),
	];
}

const ioRow = (tag, place, of, output, ...words) => h(tag, h('div.iohead', h('span', h('span.muted', `#${place} `), of), output && amount(output)), h('div.muted.small', words));

function inputRow(input, vin) {
	if (input.is_coinbase) return ioRow('li', vin, 'coinbase', null, mono(input.scriptsig));
	return ioRow('li', vin, scriptLink(input.prevout), input.prevout, 'spends ', outputLink(input.txid, input.vout),
		input.prevout && ` · ${input.prevout.scriptpubkey_type}`, ` · sequence ${input.sequence.toString(16)}`);
}

function outputRow(output, vout, spend, isMarked) {
	const type = output.scriptpubkey_type;
	const fate = type === 'op_return' ? 'cannot be spent' : !spend ? 'whether it is spent is not known' : spend.spent === false ? h('span.good', 'unspent')
		: !spend.txid ? 'spent' : ['spent by ', txLink(spend.txid, spend.status, 10), spend.vin !== undefined && `:${spend.vin}`, spend.status?.confirmed === false && ' in the mempool'];
	return ioRow(isMarked ? 'li.marked' : 'li', vout, scriptLink(output), output, `${type} · `, fate);
}

// Scripts.

async function scriptPage(hex, after) {
	const { scripts: [of] } = await call('lydian_search', `raw(${hex})`);
	const head = card(of.address ? 'Address' : 'Script', facts().update({
		Address: of.address ? mono(of.address) : 'none', Type: of.type, Script: mono(clip(of.script, 200)), Descriptor: mono(clip(of.descriptor, 200)), 'Script hash': mono(of.scripthash) }));
	const stats = await explore(`/scripthash/${of.scripthash}`).catch((error) => error);
	if (stats instanceof Error) return [head, note('warn', stats.message)];
	const { chain_stats: chain, mempool_stats: pool } = stats;
	const total = chain.tx_count + pool.tx_count;
	const sums = facts().update({
		Balance: coins(balance(chain)), Unconfirmed: pool.tx_count === 0 ? 'nothing' : signed(balance(pool), coins), Transactions: num(total), 'Of these in the mempool': num(pool.tx_count),
		Received: `${coins(chain.funded_txo_sum)} in ${num(chain.funded_txo_count)} outputs`, Sent: `${coins(chain.spent_txo_sum)} in ${num(chain.spent_txo_count)} outputs`,
		'Unspent outputs': num(chain.funded_txo_count - chain.spent_txo_count) });
	const list = h('div');
	fill(list, 'reading the transactions', () => scriptTxs(of, after, total));
	return [head, card('Balance', sums, fold('Unspent outputs', () => scriptCoins(h('div'), of.scripthash, 0))), card('Transactions, the newest first', list)];
}

async function scriptTxs({ script, scripthash }, after, total) {
	const txs = await explore(`/scripthash/${scripthash}/txs${after ? `/chain/${after}` : ''}`);
	const confirmed = txs.filter((tx) => tx.status.confirmed);
	if (txs.length === 0) return muted('No transaction pays to this script or spends from it.');
	const turn = () => pager(after && [to({ script }, '« newest'), button('‹ back', () => history.back(), { class: 'link' })],
		`${num(txs.length)} of ${num(total)}`, confirmed.length >= PAGE && to({ script, after: confirmed.at(-1).txid }, 'older ›'));
	return [turn(), txs.map((tx) => summary(tx, null, script)), turn()];
}

async function scriptCoins(element, scripthash, skip) {
	const { coins: found, more } = await call('lydian_scriptcoins', scripthash, skip);
	if (found.length === 0 && skip === 0) return set(element, muted('none'));
	const list = table('Unspent outputs', [
		['#place', '#', num],
		['txid', 'Output', (txid, row) => outputLink(txid, row.vout)],
		['#height', 'Height', (height) => (height === null ? 'mempool' : num(height))],
		['#value', 'Value', coins],
	], { sort: 'place', limit: found.length });
	const step = (place, words) => button(words, () => scriptCoins(element, scripthash, place).catch((error) => set(element, note('bad', error.message))));
	return set(element, list.update(keyed(found.map((coin, place) => ({ ...coin, place: skip + place + 1 })), 'place')),
		pager(skip > 0 && step(Math.max(0, skip - found.length), '‹ previous'), `${num(skip + 1)} – ${num(skip + found.length)}`, more && step(skip + found.length, 'next ›')));
}

async function descriptor({ descriptors, scripts, ranged }) {
	const stats = await Promise.all(scripts.map((script) => explore(`/scripthash/${script.scripthash}`).catch((error) => error)));
	const failed = stats.find((of) => of instanceof Error);
	const list = table('Scripts of the descriptor', [
		['#place', '#', (_, row) => (descriptors.length > 1 ? `${row.branch}/${row.position}` : row.position)],
		['address', 'Address or script', (name, { script, address }) => to({ script }, address ? hash(address, 14) : clip(script, 40)), null, (row) => row.address ?? row.script],
		['#txs', 'Transactions', num],
		['#balance', 'Balance', coins],
	], { sort: 'place', limit: 1000 });
	const rows = scripts.map((script, place) => {
		const { chain_stats: chain, mempool_stats: pool } = stats[place];
		return { ...script, place, txs: chain && chain.tx_count + pool.tx_count, balance: chain && balance(chain) };
	});
	return card('Descriptor', descriptors.map((text) => h('p.mono', text)), failed && note('warn', failed.message), ranged && muted('The first 20 positions.'), list.update(keyed(rows, 'place')));
}

export default function explorer(root, { on, atEnd, query }) {
	const [out, complaint] = [h('div.results'), problem()];
	let stopped = false;
	atEnd(() => { stopped = true; });
	const field = h('input', { id: 'explorer-search', type: 'search', autocomplete: 'off', spellcheck: 'false', autocapitalize: 'off', maxlength: 20000, 'aria-describedby': 'explorer-help' });
	const form = h('form.explorer-search', { role: 'search', onsubmit: (event) => {
		event.preventDefault();
		const { hash } = to({ q: field.value.trim() });
		if (location.hash === hash) show('searching', find());
		else location.hash = hash;
	} }, h('label', { for: 'explorer-search' }, 'Height, block hash, txid, address, script or descriptor'), h('div.row', field, h('button.primary', { type: 'submit' }, 'Search')),
	h('p.muted.small', { id: 'explorer-help' }, 'Digits alone are a height, 64 hexadecimal digits a hash; raw(51) searches for the script 51.'));
	root.append(h('section.card', form), complaint, out);

	async function show(words, content) {
		complaint.say();
		if (out.childElementCount === 0) set(out, muted(`${words} ...`));
		try {
			const found = await content;
			if (!stopped && found) set(out, [found]);
		} catch (error) {
			set(out);
			complaint.say(error.message);
		}
	}

	// Goes to what is found; a descriptor has no address of its own.
	async function find() {
		const found = await call('lydian_search', query.get('q'));
		// The reader may have left; the panel ends a moment later.
		if (stopped || !location.hash.startsWith('#/explorer')) return null;
		if (found.kind === 'descriptor') return descriptor(found);
		const { hash, txid, block: at, vout, script } = found;
		const next = { block: { block: hash }, transaction: { tx: txid, ...(at && { block: at }), ...(typeof vout === 'number' && { vout }) }, script: { script } }[found.kind];
		location.replace(to(next).hash);
		return null;
	}

	const get = (name) => query.get(name);
	if (query.has('q')) {
		field.value = get('q');
		show('searching', find());
	} else if (query.has('tx')) show('reading the transaction', transaction(get('tx'), get('block'), get('vout')));
	else if (query.has('block')) show('reading the block', block(get('block'), Number(get('start')) || 0));
	else if (query.has('script')) show('reading the script', scriptPage(get('script'), get('after')));
	else {
		let height;
		on('overview', (now) => {
			if (now.height === height && height !== undefined) return;
			height = now.height;
			show('reading the blocks', latest());
		});
		if (!live.state('overview')) show('reading the blocks', latest());
	}
}
