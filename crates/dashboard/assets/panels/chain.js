// The header tree: its tips and where they part, reorganisations, invalid blocks with the rule that each breaks.

// What `getchaintips` means by each word; each status has its own shape.
const STATUS = {
  active: 'the chain of this node',
  'valid-fork': 'validated before, then left',
  'valid-headers': 'all blocks are here; they were not validated',
  'headers-only': 'not all blocks are here',
  invalid: 'breaks a rule',
};

const explorer = (hash) => `#/explorer?q=${hash}`;

export default {
  name: 'chain',
  title: 'Chain',
  start(root, { live, ui }) {
    const { h, s, set, table, card, num, time, clip, badge, hash } = ui;
    const tree = h('div', { class: 'scroll chaintree', tabindex: 0, role: 'region', 'aria-label': 'The tree of tips' });
    const legend = h('ul', { class: 'legend' }, Object.entries(STATUS).map(([name, words]) => h('li', {},
      s('svg', { viewBox: '0 0 16 16', width: 16, height: 16, 'aria-hidden': 'true' }, sign(s, name, 8, 8)), `${name}: ${words}`)));
    const left = h('p', { class: 'muted' });
    const link = (row) => h('a', { href: explorer(row.hash) }, hash(row.hash));
    const tips = table({
      caption: 'Tips', sort: 'height', descending: true, empty: 'The chain is not known yet.',
      columns: [
        { key: 'height', title: 'Height', number: true, value: (row) => row.height, show: (row) => num(row.height) },
        { key: 'hash', title: 'Hash', show: link },
        { key: 'branchlen', title: 'Branch, blocks', number: true, help: 'above the active chain' },
        { key: 'fork', title: 'Leaves at', number: true, value: (row) => row.fork?.height, show: (row) => (row.fork ? num(row.fork.height) : null), help: 'the last block that it shares' },
        { key: 'status', title: 'Status', show: (row) => badge({ active: 'good', invalid: 'bad' }[row.status] ?? 'calm', row.status) },
      ],
    });
    const reorganisations = table({
      caption: 'Reorganisations', sort: 'number', descending: true, empty: 'No reorganisation so far.',
      columns: [
        { key: 'number', title: 'No.', number: true },
        { key: 'time', title: 'Time', show: (row) => time(row.time) },
        { key: 'depth', title: 'Depth', number: true, help: 'blocks that were disconnected' },
        { key: 'fork', title: 'Parts at', number: true, value: (row) => row.fork.height, show: (row) => num(row.fork.height) },
        { key: 'old', title: 'Old tip', value: (row) => row.old.height, show: (row) => h('span', {}, num(row.old.height), ' ', link(row.old)) },
        { key: 'new', title: 'New tip', value: (row) => row.new.height, show: (row) => h('span', {}, num(row.new.height), ' ', link(row.new)) },
        { key: 'undone', title: 'Outcome', value: (row) => outcome(row) },
      ],
    });
    const invalid = table({
      caption: 'Invalid blocks', sort: 'height', descending: true, empty: 'No invalid block is known.',
      columns: [
        { key: 'height', title: 'Height', number: true, show: (row) => num(row.height) },
        { key: 'hash', title: 'Hash', show: link },
        { key: 'time', title: 'Found', show: (row) => (row.time ? time(row.time) : 'before this start') },
        { key: 'rule', title: 'Rule', show: (row) => row.rule ?? 'not known' },
        { key: 'sentence', title: 'What the rule says', value: sentence, show: (row) => h('span', { class: 'wrapped' }, sentence(row)) },
        { key: 'reason', title: 'Reason', help: 'in the words of Bitcoin Core', show: (row) => clip(row.reason ?? '–', 80) },
        { key: 'tx', title: 'Transaction', number: true, help: 'its place in the block' },
      ],
    });
    root.append(card('Tips', tree, legend, left, tips), card('Reorganisations', reorganisations), card('Invalid blocks', invalid));

    let drawn = '';
    const off = live.on('chain', (now) => {
      const known = now.tips ?? [];
      // The tree is drawn anew only if a tip moved, so that the focus stays.
      const shape = JSON.stringify(known);
      if (shape !== drawn) {
        drawn = shape;
        set(tree, known.length ? drawTree(ui, known) : h('p', { class: 'muted' }, 'The chain is not known yet.'));
      }
      set(left, now.leftOut ? `${num(now.leftOut)} lower tips are left out.` : '');
      left.hidden = !now.leftOut;
      tips.update(Object.fromEntries(known.map((row) => [row.hash, row])));
      reorganisations.update(Object.fromEntries((now.reorganisations ?? []).map((row) => [row.number, row])));
      invalid.update(Object.fromEntries((now.invalid ?? []).map((row) => [row.hash, row])));
    });
    return () => off();
  },
};

const outcome = (row) => (row.undone ? 'back on the old tip' : row.new.height < row.old.height ? 'the tip is lower' : 'new chain');

function sentence(row) {
  if (row.sentence) return row.sentence;
  return row.time ? 'It was marked as invalid by a call (invalidateblock).' : 'It was found or marked before this start; the reason was not kept.';
}

// The end of a branch. The shape says the status, not only the colour.
function sign(s, status, x, y) {
  switch (status) {
    case 'active': return s('circle', { class: 'tip active', cx: x, cy: y, r: 6 });
    case 'valid-fork': return s('rect', { class: 'tip fork', x: x - 5, y: y - 5, width: 10, height: 10 });
    case 'valid-headers': return s('path', { class: 'tip headers', d: `M${x} ${y - 6}l6 11h-12z` });
    case 'invalid': return s('path', { class: 'tip invalid', d: `M${x - 5} ${y - 5}l10 10M${x + 5} ${y - 5}l-10 10` });
    default: return s('circle', { class: 'tip only', cx: x, cy: y, r: 5 });
  }
}

// A line for each branch, from the block at which it leaves another. Only heights at which something happens have a
// place, so that long chains fit.
function drawTree({ h, s, num }, tips) {
  const heights = [...new Set(tips.flatMap((tip) => [tip.height, tip.fork?.height ?? tip.height]))].sort((a, b) => a - b);
  const [row, gap, before] = [34, 96, 40];
  const x = (height) => before + heights.indexOf(height) * gap;
  const y = (place) => 46 + place * row;
  const places = new Map(tips.map((tip, place) => [tip.hash, place]));
  const wide = x(heights.at(-1)) + 330;
  const words = tips.length === 1 ? `One chain, up to height ${num(tips[0].height)}.` : `${tips.length} branches; the chain of this node ends at height ${num(tips[0].height)}.`;
  const svg = s('svg', { class: 'tree', viewBox: `0 0 ${wide} ${y(tips.length)}`, width: wide, height: y(tips.length), role: 'group', 'aria-label': words });
  for (const height of heights) {
    svg.append(s('line', { class: 'grid', x1: x(height), x2: x(height), y1: 26, y2: y(tips.length) - row / 2 }),
      s('text', { class: 'label', x: x(height), y: 16, 'text-anchor': 'middle' }, num(height)));
  }
  tips.forEach((tip, place) => {
    const [end, here] = [x(tip.height), y(place)];
    const start = tip.fork ? x(tip.fork.height) : 0;
    const above = tip.fork ? y(places.get(tip.fork.of) ?? 0) : here;
    const path = tip.fork ? `M${start} ${above}V${here - 10}q0 10 10 10H${Math.max(end, start + 10)}` : `M0 ${here}H${end}`;
    svg.append(s('path', { class: `branch ${tip.status}`, d: path }));
  });
  tips.forEach((tip, place) => {
    const [end, here] = [x(tip.height), y(place)];
    const title = `${tip.status}, height ${num(tip.height)}${tip.branchlen ? `, ${num(tip.branchlen)} block${tip.branchlen === 1 ? '' : 's'}` : ''}`;
    svg.append(s('a', { href: explorer(tip.hash) },
      s('title', {}, `${title}\n${tip.hash}`), sign(s, tip.status, end, here),
      s('text', { class: 'name', x: end + 14, y: here + 5 }, `${title} · ${tip.hash.slice(-8)}`)));
  });
  return svg;
}
