// One sentence about the node, what needs attention, the figures that people look for first, and what happened last.

const EVENTS_SHOWN = 10;

const SIGNS = { starting: 'calm', headers: 'calm', validating: 'calm', waiting: 'warn', offline: 'bad', 'in sync': 'good' };

export default {
  name: 'overview',
  title: 'Overview',
  start(root, { live, ui }) {
    const { h, set, facts, bar, num, ago, duration, bytes, satvb, badge, card, hash } = ui;
    const sentence = h('p', { class: 'sentence' });
    const progress = bar('Work done');
    const warnings = h('div', { class: 'warnings' });
    const events = h('div', { class: 'events' });
    let shown = '';
    const chain = facts([
      ['height', 'Height'], ['headers', 'Headers known'], ['tip', 'Last block'], ['age', 'Its age'],
    ]);
    const node = facts([
      ['peers', 'Peers'], ['mempool', 'Mempool'], ['fee', 'Minimum fee'], ['uptime', 'Running for'], ['chain', 'Chain'], ['version', 'Version'],
    ]);
    root.append(h('section', { class: 'card hero' }, sentence, progress), warnings,
      h('div', { class: 'columns' }, card('Chain', chain), card('Node', node)), card('Recent events', events));

    // The last blocks, reorganisations and invalid blocks, by time.
    function draw() {
      const blocks = Object.values(live.state('blocks') ?? {}).filter((row) => row.hash && row.received);
      const { reorganisations = [], invalid = [] } = live.state('chain') ?? {};
      const all = [
        ...blocks.sort((a, b) => b.height - a.height).slice(0, EVENTS_SHOWN).map((row) => ({
          time: row.received, kind: 'calm', sign: 'block', hash: row.hash,
          words: `Block ${num(row.height)}${row.txs ? ` with ${num(row.txs)} ${row.txs === 1 ? 'transaction' : 'transactions'}` : ''}${row.ms?.total ? ` in ${row.ms.total.toFixed(0)} ms` : ''}`,
        })),
        ...reorganisations.map((row) => ({
          time: row.time, kind: 'warn', sign: 'reorganisation', hash: row.new.hash,
          words: `${num(row.depth)} ${row.depth === 1 ? 'block was' : 'blocks were'} replaced, from height ${num(row.fork.height + 1)} on`,
        })),
        ...invalid.filter((row) => row.time).map((row) => ({
          time: row.time, kind: 'bad', sign: 'invalid block', hash: row.hash, words: `Block at height ${num(row.height)}: ${row.reason ?? 'invalid'}`,
        })),
      ].sort((a, b) => b.time - a.time).slice(0, EVENTS_SHOWN);
      const shape = JSON.stringify(all);
      if (shape === shown) return;
      shown = shape;
      set(events, all.length === 0 ? h('p', { class: 'muted' }, 'Nothing happened since the start.') : h('ol', {}, all.map((one) => h('li', {},
        h('span', { class: 'muted' }, ui.time(one.time)), badge(one.kind, one.sign), h('a', { href: `#/explorer?q=${one.hash}` }, one.words)))));
    }

    const offs = [live.on('blocks', draw), live.on('chain', draw)];
    const off = live.on('overview', (now) => {
      set(sentence, h('span', { class: `sign ${SIGNS[now.state] ?? 'calm'}`, 'aria-hidden': 'true' }), h('span', {}, now.sentence ?? ''));
      progress.hidden = typeof now.share !== 'number' || now.share >= 1;
      progress.update(now.share, now.sentence);
      set(warnings, (now.warnings ?? []).map((text) => ui.note('bad', text)));
      chain.update({
        height: num(now.height),
        headers: num(now.headers),
        tip: now.hash ? h('a', { href: `#/explorer?q=${now.hash}` }, hash(now.hash)) : '–',
        age: ago(now.time, now.now),
      });
      node.update({
        peers: now.outbound === undefined ? '–' : `${now.outbound} out, ${now.inbound} in`,
        mempool: now.mempool ? `${num(now.mempool.transactions)} ${now.mempool.transactions === 1 ? 'transaction' : 'transactions'}, ${bytes(now.mempool.usage)}` : '–',
        fee: now.mempool ? satvb(now.mempool.minFee) : '–',
        uptime: duration(now.uptime),
        chain: now.chain,
        version: now.version,
      });
    });
    draw();
    return () => [...offs, off].forEach((end) => end());
  },
};
