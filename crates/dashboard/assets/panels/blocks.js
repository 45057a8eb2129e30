// The last 2,016 blocks: what they contain, who sent them, and what each step took beside the budget of the benchmark.

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

const CHARTS = {
  avgfeerate: ['Fee rate, sat/vB', (row) => row.avgfeerate],
  size: ['Size, bytes', (row) => row.size],
  txs: ['Transactions', (row) => row.txs],
  weight: ['Weight', (row) => row.weight],
  totalfee: ['Fees, satoshis', (row) => row.totalfee],
  total: ['Validation, ms', (row) => row.ms?.total],
};

// Rows of the table at first.
const FIRST = 50;

// A budget says little about a block with fewer inputs than this: each step has fixed costs.
const INPUTS_MIN = 1000;

const SPANS = [['144', 'last 144 (a day)'], ['504', 'last 504'], ['2016', 'last 2,016']];

const explorer = (hash) => `#/explorer?q=${hash}`;

export default {
  name: 'blocks',
  title: 'Blocks',
  start(root, { live, ui }) {
    const { h, set, table, card, num, bytes, ago, time, clip, duration } = ui;
    const state = { budget: {}, rows: [], chosen: null, shown: 'avgfeerate', span: 144, all: false };
    const ms = (value) => (typeof value === 'number' ? value.toFixed(value < 10 ? 2 : 1) : null);

    const chart = barChart(ui, (row) => choose(row.hash));
    const select = (label, options, onchange) => h('label', { class: 'search' }, h('span', {}, label),
      h('select', { onchange: (event) => onchange(event.target.value) }, options.map(([value, words]) => h('option', { value }, words))));
    const tools = h('div', { class: 'tools' },
      select('Chart', Object.entries(CHARTS).map(([key, [words]]) => [key, words]), (key) => { state.shown = key; drawChart(); }),
      select('Blocks', SPANS, (value) => { state.span = Number(value); buildTable(); draw(); }));
    const detail = h('div', { class: 'steps' });
    const about = h('p', { class: 'muted' });
    const place = h('div', {});
    const more = h('button', { type: 'button', onclick: () => { state.all = !state.all; buildTable(); draw(); } });
    root.append(card('Blocks', tools, chart), card('Steps of a block', about, detail), card('Table', place, h('p', { class: 'more' }, more)));

    let list = null;
    function buildTable() {
      list = table({
        caption: 'The last blocks', sort: 'height', descending: true, limit: state.all ? state.span : FIRST, empty: 'No block yet.',
        open: (row) => choose(row.hash),
        columns: [
          { key: 'height', title: 'Height', number: true, value: (row) => row.height, show: (row) => h('a', { href: explorer(row.hash) }, num(row.height)) },
          { key: 'time', title: 'Time', value: (row) => row.time, show: (row) => time(row.time), help: 'of the header' },
          { key: 'received', title: 'Received', value: (row) => row.received, help: 'after the time of the header',
            show: (row) => (row.received ? delay(row.received - row.time, duration) : null) },
          { key: 'address', title: 'From', value: (row) => from(row), help: 'the peer that sent it first',
            show: (row) => (from(row) ? h('span', { title: row.agent ? clip(row.agent, 100) : null }, clip(from(row), 40)) : null) },
          { key: 'agent', title: 'User agent', value: (row) => row.agent, show: (row) => (row.agent ? clip(row.agent, 40) : null) },
          { key: 'txs', title: 'Transactions', number: true, show: (row) => num(row.txs) },
          { key: 'size', title: 'Size', number: true, show: (row) => bytes(row.size, 2) },
          { key: 'weight', title: 'Weight', number: true, show: (row) => num(row.weight) },
          { key: 'totalfee', title: 'Fees, BTC', number: true, show: (row) => (typeof row.totalfee === 'number' ? (row.totalfee / 1e8).toFixed(4) : null) },
          { key: 'avgfeerate', title: 'sat/vB', number: true, help: 'average fee rate' },
          { key: 'missing', title: 'Missing', number: true, help: 'transactions that its compact block lacked' },
          { key: 'copies', title: 'Copies', number: true, help: 'further copies received' },
          { key: 'download', title: 'Download, ms', number: true, value: (row) => row.ms?.download, show: (row) => ms(row.ms?.download) },
          { key: 'queue', title: 'Queue, ms', number: true, value: (row) => row.ms?.queue, show: (row) => ms(row.ms?.queue) },
          { key: 'bar', title: 'Steps', value: (row) => row.ms?.total, show: (row) => (row.ms ? small(ui, row.ms) : null), help: 'parse, check, fund, verify, commit, apply' },
          { key: 'total', title: 'All, ms', number: true, value: (row) => row.ms?.total, show: (row) => ms(row.ms?.total), help: 'from the last byte to the end' },
          { key: 'budget', title: 'Budget, ms', number: true, value: (row) => budgetOf(row), show: (row) => ms(budgetOf(row)), help: 'of the benchmark, for its inputs and signatures' },
          { key: 'pool', title: 'Miner', value: (row) => row.pool ?? row.text, show: (row) => (row.pool ?? row.text ? h('span', { title: clip(row.text, 100) }, clip(row.pool ?? row.text, 28)) : null), help: 'as the coinbase says' },
          { key: 'hash', title: 'Hash', value: (row) => row.hash, show: (row) => h('a', { href: explorer(row.hash) }, ui.hash(row.hash)) },
        ],
      });
      set(place, list);
      set(more, state.all ? `Show the last ${FIRST} only` : `Show all ${num(state.span)}`);
    }

    const budgetOf = (row) => (typeof row.ins === 'number' && row.ms ? STEPS.reduce((sum, [key]) => sum + (budget(row, key) ?? 0), 0) : undefined);

    function choose(hash) {
      state.chosen = hash;
      drawSteps();
    }

    function drawChart() {
      const [words, value] = CHARTS[state.shown];
      chart.update(state.rows.slice(-state.span), words, value);
    }

    function drawSteps() {
      const timed = state.rows.filter((row) => row.ms);
      const row = timed.find((one) => one.hash === state.chosen) ?? state.rows.find((one) => one.hash === state.chosen) ?? timed.findLast((one) => one.ins >= INPUTS_MIN) ?? timed.at(-1);
      if (!row?.ms) {
        set(about, row ? `Block ${num(row.height)} was connected before this start: the times of its steps were not kept.` : 'No block was connected since the start.');
        set(detail);
        return;
      }
      set(about, 'Block ', h('a', { href: explorer(row.hash) }, num(row.height)), `, ${num(row.ins)} inputs, ${num(row.checks)} signature checks, `,
        row.tip ? 'connected at the tip. ' : 'connected while the node caught up. ',
        'The mark is the budget of the benchmark: CPU time for the inputs and signatures of this block, which several threads share. ',
        row.ins < INPUTS_MIN ? 'It means little for so few inputs. ' : '', 'A row of the table shows another block.');
      const most = Math.max(...STEPS.map(([key]) => Math.max(row.ms[key] ?? 0, budget(row, key) ?? 0)), 1e-9);
      set(detail, STEPS.filter(([key]) => typeof row.ms[key] === 'number').map(([key, title, help]) => {
        const [took, allowed] = [row.ms[key], budget(row, key)];
        const words = `${ms(took) ?? '–'} ms${typeof allowed === 'number' ? ` of ${ms(allowed)}` : ''}`;
        return h('div', { class: 'stage', title: help }, h('span', {}, title), stepBar(ui, took, allowed, most, words, row.ins >= INPUTS_MIN), h('span', { class: 'number' }, words));
      }));
    }

    const budget = (row, key) => {
      if (!(key in state.budget)) return undefined;
      const signatures = key === 'verify' ? (row.checks ?? 0) * (state.budget.signature ?? 0) : 0;
      return (state.budget[key] * row.ins + signatures) / 1e6;
    };

    function draw() {
      drawChart();
      drawSteps();
      // By hash, since another block may come at the same height.
      list.update(Object.fromEntries(state.rows.slice(-state.span).map((row) => [row.hash, row])));
    }

    buildTable();
    const off = live.on('blocks', (now) => {
      const { budget: known, ...rows } = now;
      state.budget = known ?? {};
      state.rows = Object.values(rows).sort((a, b) => a.height - b.height);
      draw();
    });
    return () => {
      off();
      chart.stop();
    };
  },
};

const from = (row) => row.address ?? (row.source === 'peer' ? `peer ${row.peer}` : row.source);

function delay(seconds, duration) {
  const words = duration(Math.abs(seconds));
  return seconds < 0 ? `${words} before` : `${words} after`;
}

// The steps of a block as one small bar; the legend is the card above.
function small({ s }, ms) {
  const keys = ['parse', 'check', 'fund', 'verify', 'commit', 'apply'];
  const total = keys.reduce((sum, key) => sum + (ms[key] ?? 0), 0) || 1;
  let at = 0;
  const words = keys.map((key) => `${key} ${(ms[key] ?? 0).toFixed(2)} ms`).join(', ');
  return s('svg', { class: 'smallbar', viewBox: '0 0 120 12', width: 120, height: 12, role: 'img', 'aria-label': words },
    s('title', {}, words),
    keys.map((key, place) => {
      const width = (ms[key] ?? 0) / total * 120;
      const part = s('rect', { class: `n${place}`, x: at, y: place % 2, width: Math.max(0, width - 0.5), height: 12 - 2 * (place % 2) });
      at += width;
      return part;
    }));
}

// What a step took, and its budget as a mark.
function stepBar({ s }, took, allowed, most, words, counts) {
  const over = counts && typeof allowed === 'number' && took > allowed;
  const x = (value) => Math.min(200, (value ?? 0) / most * 200);
  return s('svg', { class: `stepbar${over ? ' over' : ''}`, viewBox: '0 0 200 12', preserveAspectRatio: 'none', role: 'img', 'aria-label': words },
    s('rect', { class: 'ground', x: 0, y: 2, width: 200, height: 8 }),
    s('rect', { class: 'took', x: 0, y: 2, width: x(took), height: 8 }),
    typeof allowed === 'number' ? s('rect', { class: 'mark', x: Math.min(198, x(allowed)), y: 0, width: 2, height: 12 }) : null);
}

// A bar for each block; a pointer shows its values, a click opens it in the explorer, with Shift it is chosen below.
function barChart({ h, s, set, num, time, clip }, choose) {
  const [height, left, low] = [220, 48, 22];
  let width = 960;
  let [rows, title, value, at] = [[], '', () => null, null];
  const bars = s('path', { class: 'bars' });
  const mark = s('rect', { class: 'hover', y: 6, height: height - low - 6, width: 1, visibility: 'hidden' });
  const lines = s('g', { class: 'axis' });
  const svg = s('svg', { class: 'chart', height, role: 'img', tabindex: 0 }, lines, bars, mark);
  const words = h('p', { class: 'muted readout' }, 'Point at a bar.');
  const element = h('div', { class: 'barchart' }, svg, words);

  const step = () => (width - left) / Math.max(1, rows.length);
  const place = (event) => {
    const box = svg.getBoundingClientRect();
    const x = (event.clientX - box.left) / box.width * width - left;
    const index = Math.floor(x / step());
    return index >= 0 && index < rows.length ? index : null;
  };
  function point(index) {
    at = index;
    const row = rows[index];
    mark.setAttribute('visibility', row ? 'visible' : 'hidden');
    if (!row) return set(words, 'Point at a bar.');
    mark.setAttribute('x', left + index * step());
    mark.setAttribute('width', Math.max(1, step()));
    const miner = row.pool ?? row.text;
    set(words, `Block ${num(row.height)}, ${time(row.time)}: ${title} ${num(value(row))}; ${num(row.txs)} transactions${miner ? `, ${clip(miner, 40)}` : ''}.`);
  }
  function go(row) {
    if (row) location.hash = explorer(row.hash).slice(1);
  }
  svg.addEventListener('pointermove', (event) => point(place(event)));
  svg.addEventListener('pointerleave', () => point(null));
  svg.addEventListener('click', (event) => {
    const row = rows[place(event)];
    if (event.shiftKey && row) choose(row);
    else go(row);
  });
  svg.addEventListener('keydown', (event) => {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (by) {
      event.preventDefault();
      point(Math.max(0, Math.min(rows.length - 1, (at ?? rows.length) + by)));
      if (rows[at]) choose(rows[at]);
    } else if (event.key === 'Enter') go(rows[at]);
  });

  element.update = (newRows, newTitle, newValue) => {
    const pointed = rows[at]?.hash;
    [rows, title, value] = [newRows, newTitle, newValue];
    if (at !== null) at = rows.findIndex((row) => row.hash === pointed);
    draw();
  };
  const resized = new ResizeObserver(draw);
  resized.observe(svg);
  element.stop = () => resized.disconnect();

  function draw() {
    width = Math.max(240, svg.clientWidth);
    svg.setAttribute('viewBox', `0 0 ${width} ${height}`);
    const most = Math.max(...rows.map((row) => value(row) ?? 0), 1);
    const y = (v) => (height - low - 6) * v / most;
    const wide = Math.max(0.4, step() * (rows.length > 500 ? 1 : 0.82));
    let path = '';
    rows.forEach((row, index) => {
      const v = value(row);
      if (typeof v !== 'number' || v <= 0) return;
      const x = left + index * step();
      path += `M${x.toFixed(2)} ${height - low}v${(-Math.max(1, y(v))).toFixed(2)}h${wide.toFixed(2)}V${height - low}z`;
    });
    bars.setAttribute('d', path);
    const label = (x, yy, text, anchor) => s('text', { x, y: yy, 'text-anchor': anchor }, text);
    set(lines, [0, 0.5, 1].flatMap((part) => {
      const yy = height - low - y(most * part);
      return [s('line', { x1: left, x2: width, y1: yy, y2: yy }), label(left - 6, yy + 4, compact(most * part), 'end')];
    }), rows.length ? [label(left, height - 4, num(rows[0].height), 'start'), label(width, height - 4, num(rows.at(-1).height), 'end')] : []);
    const known = rows.map(value).filter((v) => typeof v === 'number');
    svg.setAttribute('aria-label', `${title} of ${num(rows.length)} blocks: ${known.length ? `${compact(Math.min(...known))} to ${compact(Math.max(...known))}` : 'not known'}. The arrow keys move from block to block, Enter opens one.`);
    if (at !== null) point(at < 0 ? null : at);
  }
  return element;
}

function compact(value) {
  const units = [[1e9, 'G'], [1e6, 'M'], [1e3, 'k']];
  for (const [size, unit] of units) if (value >= size) return `${(value / size).toFixed(1).replace(/\.0$/, '')} ${unit}`;
  return String(Math.round(value * 10) / 10);
}
