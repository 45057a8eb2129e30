// Who mined the last 2,016 blocks, as far as the blocks say it; version bits; hash rate; pace; the next halving.

export default {
  name: 'miners',
  title: 'Miners',
  start(root, { live, ui }) {
    const { h, s, set, table, facts, card, num, bytes, time, duration, percent, clip, short } = ui;
    const pace = facts([
      ['blocks', 'Blocks looked at'], ['hour', 'Blocks an hour'], ['interval', 'Mean interval'],
      ['recent', 'Hash rate, 120 blocks', 'as getnetworkhashps'], ['period', 'Hash rate, this period', 'since the last change of difficulty'],
      ['all', 'Hash rate, 2,016 blocks'], ['fees', 'Fees in all'], ['share', 'Fees of the reward'], ['size', 'Average size'], ['weight', 'Average weight'], ['txs', 'Average transactions'],
    ]);
    const halving = facts([
      ['height', 'Height of the next halving'], ['left', 'Blocks left'], ['reward', 'Subsidy after it'],
      ['target', 'At 10 minutes a block', 'the target spacing of the chain'], ['pace', 'At the pace of these blocks'],
    ]);
    const pools = table({
      caption: 'Pools', sort: 'blocks', descending: true, empty: 'No block was read yet.',
      columns: [
        { key: 'name', title: 'Pool', show: (row) => clip(row.name, 40) },
        { key: 'blocks', title: 'Blocks', number: true, show: (row) => num(row.blocks) },
        { key: 'share', title: 'Share', value: (row) => row.share, show: (row) => share(s, h, percent, row) },
        { key: 'empty', title: 'Empty', number: true, help: 'blocks with the coinbase alone' },
        { key: 'fees', title: 'Fees, BTC', number: true, show: (row) => (row.fees / 1e8).toFixed(3) },
        { key: 'weight', title: 'Average weight', number: true, show: (row) => num(row.weight) },
        { key: 'last', title: 'Last block', number: true, show: (row) => num(row.last) },
        { key: 'text', title: 'Text of that coinbase', show: (row) => clip(row.text, 60) },
      ],
    });
    const bits = table({
      caption: 'Version bits', sort: 'bit', empty: 'No block signals any bit.',
      columns: [
        { key: 'bit', title: 'Bit', number: true, value: (row) => row.order, show: (row) => row.name },
        { key: 'day', title: 'Last 144', number: true, show: (row) => counted(row.day, row.of.day) },
        { key: 'period', title: 'This period', number: true, show: (row) => counted(row.period, row.of.period) },
        { key: 'all', title: 'Last 2,016', number: true, show: (row) => counted(row.all, row.of.all) },
      ],
    });
    const about = h('p', { class: 'muted' });
    root.append(h('div', { class: 'columns' }, card('Pace', pace), card('Next halving', halving)),
      card('Pools', h('p', { class: 'muted' }, 'By the text that the miner wrote into the coinbase. Anyone can write any text; a block that names no known pool is "unknown".'), pools),
      card('Version bits', about, bits));

    const hashes = (value) => {
      if (typeof value !== 'number') return null;
      const units = [[1e18, 'EH/s'], [1e15, 'PH/s'], [1e12, 'TH/s'], [1e9, 'GH/s'], [1e6, 'MH/s'], [1e3, 'kH/s']];
      const [size, unit] = units.find(([one]) => value >= one) ?? [1, 'H/s'];
      return `${value < 1 ? value.toPrecision(3) : (value / size).toFixed(2)} ${unit}`;
    };
    const counted = (count, of) => `${num(count)} (${percent(of ? count / of : 0, 0)})`;
    const btc = (satoshis) => `${(satoshis / 1e8).toFixed(8).replace(/\.?0+$/, '')} BTC`;

    const off = live.on('miners', (now) => {
      const reward = now.fees + (now.subsidy ?? 0) * now.known;
      pace.update({
        blocks: now.to === undefined ? null : `${num(now.known)}, heights ${num(now.from)} to ${num(now.to)}`,
        hour: now.perHour ? now.perHour.toPrecision(3) : null,
        interval: now.interval ? duration(now.interval) : null,
        recent: hashes(now.hashRate?.recent), period: hashes(now.hashRate?.period), all: hashes(now.hashRate?.all),
        fees: typeof now.fees === 'number' ? btc(now.fees) : null,
        share: reward > 0 ? percent(now.fees / reward) : null,
        size: bytes(now.size, 2), weight: num(now.weight), txs: num(now.txs),
      });
      const next = now.halving ?? {};
      halving.update({
        height: num(next.height), left: num(next.left), reward: typeof next.subsidy === 'number' ? btc(next.subsidy) : null,
        target: next.byTarget ? time(next.byTarget).slice(0, 10) : null, pace: next.byPace ? time(next.byPace).slice(0, 10) : null,
      });
      pools.update(Object.fromEntries((now.pools ?? []).map((row) => [row.name, row])));
      const versions = now.versions;
      if (!versions) return;
      set(about, `The period has ${num(versions.interval)} blocks, ${num(versions.left)} are left. A version signals if its three highest bits are 001 (BIP-0009).`);
      const rows = versions.bits.map((row) => [`bit ${row.bit}`, { ...row, name: String(row.bit), order: row.bit, of: versions.blocks }]);
      rows.push(['others', { ...versions.others, name: 'other versions', order: 99, of: versions.blocks }]);
      bits.update(Object.fromEntries(rows));
    });
    return () => off();
  },
};

// The share as a bar beside its number.
function share(s, h, percent, row) {
  const words = percent(row.share);
  return h('span', { class: 'sharebox' },
    s('svg', { class: 'share', viewBox: '0 0 100 10', width: 120, height: 10, preserveAspectRatio: 'none', 'aria-hidden': 'true' },
      s('rect', { class: 'ground', x: 0, y: 0, width: 100, height: 10 }), s('rect', { class: 'took', x: 0, y: 0, width: row.share * 100, height: 10 })),
    h('span', {}, words));
}
