// The explorer: one search field for heights, hashes, txids, outputs, addresses, scripts and descriptors; blocks,
// transactions with what they spend and who spends them, scripts with their history and coins.

const PAGE = 25;
const ROWS = 40;

export default {
  name: 'explorer',
  title: 'Explorer',
  start(root, { api, ui, query, live }) {
    const { h, set, card, facts, table, num, short, bytes, ago, time, hash, note, badge, clip } = ui;
    const out = h('div', { class: 'results' });
    const problem = h('div', { class: 'warnings' });
    const field = h('input', { id: 'explorer-search', type: 'search', name: 'q', autocomplete: 'off', spellcheck: 'false', autocapitalize: 'off', maxlength: 20000,
      'aria-describedby': 'explorer-help' });
    const button = h('button', { type: 'submit', class: 'primary' }, 'Search');
    const form = h('form', { role: 'search', class: 'explorer-search', onsubmit: (event) => {
      event.preventDefault();
      const text = field.value.trim();
      const next = `#/explorer?q=${encodeURIComponent(text)}`;
      if (location.hash === next) find(text);
      else location.hash = next;
    } }, h('label', { for: 'explorer-search' }, 'Height, block hash, txid, address, script or descriptor'), h('div', { class: 'row' }, field, button),
    h('p', { class: 'muted small', id: 'explorer-help' }, 'Digits alone are a height, 64 hexadecimal digits a hash; raw(51) searches for the script 51.'));
    root.append(h('section', { class: 'card' }, form), problem, out);
    let stopped = false;

    // The answers of Esplora's routes.
    const explore = async (path) => (await api.call('lydian_explore', path)).value;
    const quiet = async (promise) => {
      try {
        return await promise;
      } catch {
        return null;
      }
    };
    const show = (...content) => stopped || set(out, content);
    const fail = (error) => stopped || set(problem, note('bad', error.message));

    const amount = (value) => (typeof value === 'number' ? `${(value / 1e8).toFixed(8)} BTC` : '–');
    const to = (parameters, ...content) => h('a', { href: `#/explorer?${new URLSearchParams(parameters)}` }, content);
    const blockLink = (status) => (status.confirmed ? to({ block: status.block_hash }, num(status.block_height)) : 'mempool');
    const txLink = (txid, status, keep) => to(status?.block_hash ? { tx: txid, block: status.block_hash } : { tx: txid }, hash(txid, keep));
    const scriptLink = (output, keep = 14) => {
      if (!output) return h('span', { class: 'muted' }, 'unknown');
      if (output.scriptpubkey === '') return 'empty script';
      const name = output.scriptpubkey_address ? hash(output.scriptpubkey_address, keep) : h('span', {}, output.scriptpubkey_type);
      return output.scriptpubkey_type === 'op_return' ? h('span', { class: 'mono', title: output.scriptpubkey_asm }, clip(output.scriptpubkey_asm, 40)) : to({ script: output.scriptpubkey }, name);
    };
    const wait = (words) => show(h('p', { class: 'muted' }, `${words} ...`));
    // Something long that is loaded when it is opened.
    const fold = (title, load) => {
      const body = h('div', {});
      return h('details', { ontoggle: async (event) => {
        if (!event.target.open || body.childElementCount > 0) return;
        set(body, h('p', { class: 'muted' }, 'loading ...'));
        try {
          set(body, await load());
        } catch (error) {
          set(body, note('bad', error.message));
        }
      } }, h('summary', {}, title), body);
    };
    const pre = (text) => h('pre', { class: 'mono', tabindex: 0 }, text);

    async function find(text) {
      set(problem);
      wait('searching');
      try {
        const found = await api.call('lydian_search', text);
        // The reader may have left; stop() is called a moment later.
        if (stopped || !location.hash.startsWith('#/explorer')) return;
        if (found.kind === 'descriptor') return showDescriptor(found);
        const next = { block: () => ({ block: found.hash }), transaction: () => (found.block ? { tx: found.txid, block: found.block } : { tx: found.txid }), script: () => ({ script: found.script }) }[found.kind]();
        location.replace(`#/explorer?${new URLSearchParams(next)}`);
      } catch (error) {
        show();
        fail(error);
      }
    }

    // Blocks.

    async function showLatest() {
      const blocks = await explore('/blocks');
      const list = table({ caption: 'The newest blocks', sort: 'height', descending: true, columns: [
        { key: 'height', title: 'Height', number: true, show: (row) => to({ block: row.id }, num(row.height)) },
        { key: 'timestamp', title: 'Time (UTC)', show: (row) => time(row.timestamp) },
        { key: 'tx_count', title: 'Transactions', number: true, show: (row) => num(row.tx_count) },
        { key: 'size', title: 'Size', number: true, show: (row) => bytes(row.size) },
        { key: 'weight', title: 'Weight', number: true, show: (row) => num(row.weight) },
        { key: 'id', title: 'Hash', show: (row) => hash(row.id, 12) },
      ] });
      list.update(Object.fromEntries(blocks.map((block) => [block.id, block])));
      show(card('The newest blocks', list));
    }

    async function showBlock(id, start) {
      wait('reading the block');
      const [block, status, header, stats] = await Promise.all([explore(`/block/${id}`), explore(`/block/${id}/status`), quiet(api.call('getblockheader', id, true)),
        quiet(api.call('getblockstats', id, ['totalfee', 'subsidy', 'feerate_percentiles', 'avgfeerate', 'total_out', 'ins', 'outs']))]);
      const overview = facts([['hash', 'Hash'], ['height', 'Height'], ['time', 'Time (UTC)'], ['confirmations', 'Confirmations'], ['count', 'Transactions'], ['size', 'Size'],
        ['weight', 'Weight'], ['fees', 'Fees'], ['subsidy', 'Subsidy'], ['rates', 'sat/vB: 10 %, median, 90 %'], ['inputs', 'Inputs, outputs'], ['out', 'Value of outputs'],
        ['median', 'Median time past'], ['version', 'Version'], ['merkle', 'Merkle root'], ['bits', 'Bits'], ['nonce', 'Nonce'], ['difficulty', 'Difficulty'], ['work', 'Chain work'], ['target', 'Target']]);
      const percentiles = stats?.feerate_percentiles;
      overview.update({
        hash: h('span', { class: 'mono' }, block.id), height: num(block.height), time: time(block.timestamp), confirmations: header ? (header.confirmations < 0 ? 'not in the active chain' : num(header.confirmations)) : '–',
        count: num(block.tx_count), size: bytes(block.size), weight: `${num(block.weight)} of 4,000,000`, fees: amount(stats?.totalfee), subsidy: amount(stats?.subsidy),
        rates: percentiles ? `${percentiles[0]}, ${percentiles[2]}, ${percentiles[4]}` : '–', inputs: stats ? `${num(stats.ins)}, ${num(stats.outs)}` : '–', out: amount(stats?.total_out),
        median: time(block.mediantime), version: `0x${block.version.toString(16).padStart(8, '0')}`, merkle: h('span', { class: 'mono' }, block.merkle_root), bits: block.bits.toString(16), nonce: num(block.nonce),
        difficulty: short(block.difficulty, 3), work: header?.chainwork ? h('span', { class: 'mono' }, header.chainwork.replace(/^0+/, '')) : '–', target: header?.target ? h('span', { class: 'mono' }, clip(header.target, 70)) : '–',
      });
      const around = h('p', { class: 'pager' }, block.previousblockhash ? to({ block: block.previousblockhash }, '← previous block') : null, status.next_best ? to({ block: status.next_best }, 'next block →') : null);
      const list = h('div', { class: 'transactions' });
      show(card(h('span', {}, `Block ${num(block.height)} `, status.in_best_chain ? badge('good', 'in the active chain') : badge('warn', 'beside the active chain')), around, overview,
        fold('Raw header', async () => pre(await explore(`/block/${id}/header`)))),
      card(`Transactions (${num(block.tx_count)})`, list));
      await listBlock(list, id, start, block.tx_count);
    }

    async function listBlock(list, id, start, total) {
      const first = Math.min(Math.max(0, Math.floor(start / PAGE) * PAGE), Math.floor((total - 1) / PAGE) * PAGE);
      set(list, h('p', { class: 'muted' }, 'reading the transactions ...'));
      try {
        const txs = await explore(`/block/${id}/txs/${first}`);
        const last = Math.floor((total - 1) / PAGE) * PAGE;
        const step = (place, words) => (place < 0 || place > last || place === first ? h('span', { class: 'muted' }, words) : to({ block: id, start: place }, words));
        const pager = () => h('p', { class: 'pager' }, step(0, '« first'), step(first - PAGE, '‹ previous'), `${num(first + 1)} – ${num(Math.min(first + PAGE, total))} of ${num(total)}`, step(first + PAGE, 'next ›'), step(last, 'last »'));
        set(list, pager(), txs.map((tx, place) => summary(tx, { place: first + place })), pager());
      } catch (error) {
        set(list, note('bad', error.message));
      }
    }

    // A transaction in a list. `of`: the script whose balance it changes.
    function summary(tx, { place = null, of = null } = {}) {
      const paid = tx.vout.reduce((sum, output) => sum + output.value, 0);
      const own = (output) => (output && output.scriptpubkey === of ? output.value : 0);
      const change = of === null ? null : tx.vout.reduce((sum, output) => sum + own(output), 0) - tx.vin.reduce((sum, input) => sum + own(input.prevout), 0);
      const few = (items, one) => [items.slice(0, 3).map(one), items.length > 3 ? h('li', { class: 'muted' }, `and ${num(items.length - 3)} more`) : null];
      return h('article', { class: 'tx' },
        h('div', { class: 'txhead' }, h('span', {}, place === null ? null : h('span', { class: 'muted' }, `${num(place)} · `), txLink(tx.txid, tx.status, 16)),
          h('span', { class: 'muted' }, tx.status.confirmed ? ['block ', blockLink(tx.status), ` · ${time(tx.status.block_time)}`] : 'in the mempool')),
        h('div', { class: 'sides' }, h('ul', {}, few(tx.vin, (input) => h('li', {}, input.is_coinbase ? 'coinbase' : [scriptLink(input.prevout), h('span', { class: 'value' }, amount(input.prevout?.value))]))),
          h('ul', {}, few(tx.vout, (output) => h('li', {}, scriptLink(output), h('span', { class: 'value' }, amount(output.value)))))),
        h('div', { class: 'txfoot muted' }, `${num(Math.ceil(tx.weight / 4))} vB`, tx.vin[0]?.is_coinbase ? null : h('span', {}, `fee ${num(tx.fee)} sat, ${(tx.fee / (tx.weight / 4)).toFixed(2)} sat/vB`),
          h('span', {}, `outputs ${amount(paid)}`), change === null ? null : h('strong', { class: change < 0 ? 'bad' : 'good' }, `${change < 0 ? '−' : '+'}${amount(Math.abs(change))}`)));
    }

    // Transactions.

    async function showTransaction(txid, block) {
      wait('reading the transaction');
      const { tx, spends, missing } = await load(txid, block);
      const [tip, entry] = await Promise.all([quiet(api.call('getblockcount')), tx.status.confirmed ? null : quiet(api.call('getmempoolentry', txid))]);
      const isCoinbase = tx.vin[0]?.is_coinbase;
      const vsize = Math.ceil(tx.weight / 4);
      const overview = facts([['txid', 'txid'], ['status', 'Status'], ['block', 'Block'], ['time', 'Time (UTC)'], ['fee', 'Fee'], ['rate', 'Fee rate'], ['size', 'Size'], ['vsize', 'Virtual size'], ['weight', 'Weight'],
        ['version', 'Version'], ['locktime', 'Lock time'], ['replaceable', 'Signals replacement'], ['out', 'Value of outputs'], ['pool', 'In the mempool']]);
      overview.update({
        txid: h('span', { class: 'mono' }, tx.txid),
        status: tx.status.confirmed ? badge('good', tip === null ? 'confirmed' : `${num(tip - tx.status.block_height + 1)} confirmations`) : badge('warn', 'unconfirmed'),
        block: tx.status.confirmed ? blockLink(tx.status) : '–', time: tx.status.confirmed ? `${time(tx.status.block_time)} (${ago(tx.status.block_time)})` : (entry ? `${time(entry.time)} (here)` : '–'),
        fee: isCoinbase ? 'none' : typeof tx.fee === 'number' ? `${num(tx.fee)} sat` : 'not known', rate: isCoinbase || typeof tx.fee !== 'number' ? '–' : `${(tx.fee / (tx.weight / 4)).toFixed(2)} sat/vB`,
        size: `${num(tx.size)} bytes`, vsize: `${num(vsize)} vB`, weight: num(tx.weight), version: String(tx.version), locktime: tx.locktime === 0 ? '0' : tx.locktime < 500000000 ? `block ${num(tx.locktime)}` : time(tx.locktime),
        replaceable: isCoinbase ? '–' : tx.vin.some((input) => input.sequence < 0xfffffffe) ? 'yes' : 'no', out: amount(tx.vout.reduce((sum, output) => sum + output.value, 0)),
        pool: entry ? `${num(entry.ancestorcount - 1)} ancestors, ${num(entry.descendantcount - 1)} descendants` : '–',
      });
      const hex = () => tx.hex ?? explore(`/tx/${txid}/hex`).catch(() => (block ? api.call('getrawtransaction', txid, 0, block) : api.call('getrawtransaction', txid, 0)));
      const marked = query.get('vout');
      show(card('Transaction', overview, missing ? note('warn', missing) : null),
        h('div', { class: 'columns wide' },
          card(`Inputs (${num(tx.vin.length)})`, long(tx.vin, (input, vin) => inputRow(input, vin))),
          card(`Outputs (${num(tx.vout.length)})`, long(tx.vout, (output, vout) => outputRow(output, vout, spends?.[vout], marked === String(vout))))),
        card('The transaction itself', fold('Raw', async () => pre(await hex())), fold('Decoded', async () => pre(JSON.stringify(await api.call('decoderawtransaction', await hex()), null, 2)))));
    }

    // A long list, of which the first rows are shown.
    function long(items, row) {
      const list = h('ol', { class: 'io', start: 0 }, items.slice(0, ROWS).map(row));
      if (items.length <= ROWS) return list;
      const all = h('button', { type: 'button', onclick: () => {
        for (const [place, item] of items.entries()) if (place >= ROWS) list.append(row(item, place));
        all.remove();
      } }, `Show all ${num(items.length)}`);
      return [list, all];
    }

    function inputRow(input, vin) {
      if (input.is_coinbase) return h('li', {}, h('div', { class: 'iohead' }, h('span', {}, `#${vin} coinbase`)), h('div', { class: 'mono small' }, input.scriptsig));
      return h('li', {}, h('div', { class: 'iohead' }, h('span', {}, h('span', { class: 'muted' }, `#${vin} `), scriptLink(input.prevout)), h('span', { class: 'value' }, amount(input.prevout?.value))),
        h('div', { class: 'muted small' }, 'spends ', to({ tx: input.txid, vout: input.vout }, hash(input.txid, 10), `:${input.vout}`), input.prevout ? ` · ${input.prevout.scriptpubkey_type}` : '', ` · sequence ${input.sequence.toString(16)}`));
    }

    function outputRow(output, vout, spend, isMarked) {
      const isData = output.scriptpubkey_type === 'op_return';
      const fate = isData ? 'cannot be spent' : !spend ? 'whether it is spent is not known' : spend.spent === false ? badge('good', 'unspent')
        : spend.txid ? ['spent by ', txLink(spend.txid, spend.status, 10), spend.vin === undefined ? '' : `:${spend.vin}`, spend.status?.confirmed === false ? ' in the mempool' : ''] : 'spent';
      return h('li', { class: isMarked ? 'marked' : null }, h('div', { class: 'iohead' }, h('span', {}, h('span', { class: 'muted' }, `#${vout} `), scriptLink(output)), h('span', { class: 'value' }, amount(output.value))),
        h('div', { class: 'muted small' }, `${output.scriptpubkey_type} · `, fate));
    }

    // A transaction with who spends its outputs, as far as the indexes know.
    async function load(txid, block) {
      try {
        const [tx, spends] = await Promise.all([explore(`/tx/${txid}`), quiet(explore(`/tx/${txid}/outspends`))]);
        return { tx, spends };
      } catch (error) {
        const found = await quiet(block ? api.call('getrawtransaction', txid, 2, block) : api.call('getrawtransaction', txid, 2));
        if (!found) throw error;
        return fromRpc(found);
      }
    }

    // Without the index of scripts: what RPC knows, in the form of Esplora.
    async function fromRpc(found) {
      const sats = (value) => Math.round(value * 1e8);
      const script = (of) => ({ scriptpubkey: of.hex, scriptpubkey_asm: of.asm, scriptpubkey_type: of.type === 'nulldata' ? 'op_return' : of.type, scriptpubkey_address: of.address });
      const prevout = (output) => (output ? { ...script(output.scriptPubKey), value: sats(output.value) } : null);
      const confirmed = found.blockhash !== undefined;
      const header = confirmed ? await quiet(api.call('getblockheader', found.blockhash, true)) : null;
      const known = await Promise.all(found.vin.slice(0, ROWS).map((input) => (input.coinbase || input.prevout ? null : quiet(api.call('gettxout', input.txid, input.vout, false)))));
      const vin = found.vin.map((input, place) => ({ txid: input.txid ?? '0'.repeat(64), vout: input.vout ?? 0xffffffff, is_coinbase: input.coinbase !== undefined, scriptsig: input.coinbase ?? input.scriptSig?.hex ?? '',
        sequence: input.sequence, prevout: prevout(input.prevout ?? known[place]) }));
      const vout = found.vout.map((output) => ({ ...script(output.scriptPubKey), value: sats(output.value) }));
      let fee = typeof found.fee === 'number' ? sats(found.fee) : null;
      if (fee === null && !confirmed) fee = (await quiet(api.call('getmempoolentry', found.txid)).then((entry) => entry && sats(entry.fees.base)));
      const status = { confirmed, block_hash: found.blockhash, block_height: header?.height, block_time: header?.time };
      const spends = await spendsByRpc(found.txid, vout);
      const missing = 'The node keeps no index of scripts. -addressindex adds who spends an output, and the history of addresses; -txindex finds every transaction by its txid.';
      return { tx: { txid: found.txid, version: found.version, locktime: found.locktime, vin, vout, size: found.size, weight: found.weight, fee, status, hex: found.hex }, spends, missing };
    }

    async function spendsByRpc(txid, vout) {
      const outputs = vout.slice(0, ROWS).map((_, place) => ({ txid, vout: place }));
      const found = await quiet(api.call('gettxspendingprevout', outputs));
      return Promise.all(outputs.map(async (output, place) => {
        const spender = found?.[place]?.spendingtxid;
        if (spender) return { spent: true, txid: spender, status: { confirmed: found[place].blockhash !== undefined, block_hash: found[place].blockhash } };
        const unspent = await quiet(api.call('gettxout', txid, place, true));
        return unspent ? { spent: false } : { spent: true };
      }));
    }

    // Scripts.

    async function showScript(hex, after) {
      wait('reading the script');
      const of = await api.call('lydian_search', `raw(${hex})`);
      const script = of.scripts[0];
      const overview = facts([['address', 'Address'], ['type', 'Type'], ['script', 'Script'], ['descriptor', 'Descriptor'], ['hash', 'Script hash']]);
      overview.update({ address: script.address ? h('span', { class: 'mono' }, script.address) : 'none', type: script.type, script: h('span', { class: 'mono' }, clip(script.script, 200)),
        descriptor: h('span', { class: 'mono' }, clip(script.descriptor, 200)), hash: h('span', { class: 'mono' }, script.scripthash) });
      const head = card(script.address ? 'Address' : 'Script', overview);
      let stats;
      try {
        stats = await explore(`/scripthash/${script.scripthash}`);
      } catch (error) {
        return show(head, note('warn', error.message));
      }
      const [chain, pool] = [stats.chain_stats, stats.mempool_stats];
      const balance = (of) => of.funded_txo_sum - of.spent_txo_sum;
      const sums = facts([['balance', 'Balance'], ['pending', 'Unconfirmed'], ['txs', 'Transactions'], ['poolTxs', 'Of these in the mempool'], ['received', 'Received'], ['sent', 'Sent'], ['coins', 'Unspent outputs']]);
      sums.update({ balance: amount(balance(chain)), pending: pool.tx_count === 0 ? 'nothing' : `${balance(pool) < 0 ? '−' : '+'}${amount(Math.abs(balance(pool)))}`, txs: num(chain.tx_count + pool.tx_count), poolTxs: num(pool.tx_count),
        received: `${amount(chain.funded_txo_sum)} in ${num(chain.funded_txo_count)} outputs`, sent: `${amount(chain.spent_txo_sum)} in ${num(chain.spent_txo_count)} outputs`,
        coins: num(chain.funded_txo_count - chain.spent_txo_count) });
      const list = h('div', { class: 'transactions' });
      const unspent = fold('Unspent outputs', async () => {
        const coins = h('div', {});
        await listCoins(coins, script.scripthash, 0);
        return coins;
      });
      show(head, card('Balance', sums, unspent), card('Transactions, the newest first', list));
      await listHistory(list, script, after, chain.tx_count + pool.tx_count);
    }

    async function listHistory(list, script, after, total) {
      set(list, h('p', { class: 'muted' }, 'reading the transactions ...'));
      try {
        const path = `/scripthash/${script.scripthash}/txs`;
        const txs = await explore(after ? `${path}/chain/${after}` : path);
        const confirmed = txs.filter((tx) => tx.status.confirmed);
        const more = confirmed.length >= PAGE ? confirmed[confirmed.length - 1].txid : null;
        const pager = () => h('p', { class: 'pager' }, after ? to({ script: script.script }, '« newest') : null, after ? h('a', { href: '#', onclick: (event) => { event.preventDefault(); history.back(); } }, '‹ back') : null,
          `${num(txs.length)} of ${num(total)}`, more ? to({ script: script.script, after: more }, 'older ›') : null);
        set(list, txs.length === 0 ? h('p', { class: 'muted' }, 'No transaction pays to this script or spends from it.') : [pager(), txs.map((tx) => summary(tx, { of: script.script })), pager()]);
      } catch (error) {
        set(list, note('bad', error.message));
      }
    }

    async function listCoins(list, scripthash, skip) {
      try {
        const { coins, more } = await api.call('lydian_scriptcoins', scripthash, skip);
        if (coins.length === 0 && skip === 0) return set(list, h('p', { class: 'muted' }, 'none'));
        const of = table({ caption: 'Unspent outputs', sort: 'place', limit: coins.length, columns: [
          { key: 'place', title: '#', number: true, show: (row) => num(row.place + 1) },
          { key: 'txid', title: 'Output', show: (row) => to({ tx: row.txid, vout: row.vout }, hash(row.txid, 10), `:${row.vout}`) },
          { key: 'height', title: 'Height', number: true, show: (row) => (row.height === null ? 'mempool' : num(row.height)) },
          { key: 'value', title: 'Value', number: true, show: (row) => amount(row.value) },
        ] });
        of.update(Object.fromEntries(coins.map((coin, place) => [`${coin.txid}:${coin.vout}`, { ...coin, place: skip + place }])));
        const step = (place, words) => h('button', { type: 'button', onclick: () => listCoins(list, scripthash, place) }, words);
        set(list, of, h('p', { class: 'pager' }, skip > 0 ? step(Math.max(0, skip - coins.length), '‹ previous') : null, `${num(skip + 1)} – ${num(skip + coins.length)}`, more ? step(skip + coins.length, 'next ›') : null));
      } catch (error) {
        set(list, note('bad', error.message));
      }
    }

    async function showDescriptor(found) {
      const stats = await Promise.all(found.scripts.map((script) => explore(`/scripthash/${script.scripthash}`).catch((error) => error)));
      const failed = stats.find((of) => of instanceof Error);
      const list = table({ caption: 'Scripts of the descriptor', sort: 'place', limit: 1000, columns: [
        { key: 'place', title: '#', number: true, show: (row) => (found.descriptors.length > 1 ? `${row.branch}/${row.position}` : String(row.position)) },
        { key: 'address', title: 'Address or script', value: (row) => row.address ?? row.script, show: (row) => to({ script: row.script }, row.address ? hash(row.address, 14) : clip(row.script, 40)) },
        { key: 'txs', title: 'Transactions', number: true, show: (row) => num(row.txs) },
        { key: 'balance', title: 'Balance', number: true, show: (row) => amount(row.balance) },
      ] });
      list.update(Object.fromEntries(found.scripts.map((script, place) => {
        const { chain_stats: chain, mempool_stats: pool } = stats[place] instanceof Error ? {} : stats[place];
        return [place, { ...script, place, txs: chain ? chain.tx_count + pool.tx_count : null, balance: chain ? chain.funded_txo_sum - chain.spent_txo_sum : null }];
      })));
      show(card('Descriptor', found.descriptors.map((text) => h('p', { class: 'mono' }, text)), failed ? note('warn', failed.message) : null,
        h('p', { class: 'muted' }, found.ranged ? 'The first 20 positions.' : ''), list));
    }

    const asked = query ?? new URLSearchParams();
    const begin = async () => {
      if (asked.has('q')) {
        field.value = asked.get('q');
        return find(asked.get('q'));
      }
      // The block of a transaction is named beside it.
      if (asked.has('tx')) return showTransaction(asked.get('tx'), asked.get('block'));
      if (asked.has('block')) return showBlock(asked.get('block'), Number(asked.get('start')) || 0);
      if (asked.has('script')) return showScript(asked.get('script'), asked.get('after'));
      await showLatest();
      let height = live.state('overview')?.height;
      off = live.on('overview', (now) => {
        if (now.height === height) return;
        height = now.height;
        showLatest().catch(fail);
      });
    };
    let off = null;
    begin().catch((error) => {
      show();
      fail(error);
    });
    return () => {
      stopped = true;
      off?.();
    };
  },
};
