// One sentence about the node, what needs attention, and the figures that people look for first.

const SIGNS = { starting: 'calm', headers: 'calm', validating: 'calm', waiting: 'warn', offline: 'bad', 'in sync': 'good' };

export default {
  name: 'overview',
  title: 'Overview',
  start(root, { live, ui }) {
    const { h, set, facts, bar, num, ago, duration, bytes, satvb, badge, card, hash } = ui;
    const sentence = h('p', { class: 'sentence' });
    const progress = bar('Work done');
    const warnings = h('div', { class: 'warnings' });
    const chain = facts([
      ['height', 'Height'], ['headers', 'Headers known'], ['tip', 'Last block'], ['age', 'Its age'],
    ]);
    const node = facts([
      ['peers', 'Peers'], ['mempool', 'Mempool'], ['fee', 'Minimum fee'], ['uptime', 'Running for'], ['chain', 'Chain'], ['version', 'Version'],
    ]);
    root.append(h('section', { class: 'card hero' }, sentence, progress), warnings,
      h('div', { class: 'columns' }, card('Chain', chain), card('Node', node)));
    return live.on('overview', (now) => {
      set(sentence, badge(SIGNS[now.state] ?? 'calm', now.state ?? ''), h('span', {}, now.sentence ?? ''));
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
        mempool: now.mempool ? `${num(now.mempool.transactions)} transactions, ${bytes(now.mempool.usage)}` : '–',
        fee: now.mempool ? satvb(now.mempool.minFee) : '–',
        uptime: duration(now.uptime),
        chain: now.chain,
        version: now.version,
      });
    });
  },
};
