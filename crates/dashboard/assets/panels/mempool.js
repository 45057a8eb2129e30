// The mempool: fee bands over time, the next blocks as they would be mined, mined blocks beside their projection, rejected
// transactions, replacements, orphans.

import * as live from '/assets/live.js';
import { get } from '/assets/api.js';

// Virtual bytes by band since the page was opened; thinned out when there are many.
const SAMPLES = 900;
const BLOCK_WEIGHT = 3_992_000;
// Rows of a list in the live data.
const LIVE_ROWS = 50;
const NAMES = ['Next', '2nd', '3rd', '4th', '5th', '6th', '7th', '8th'];
const ORPHANS_MS = 5000;
const DRAW_MS = 2000;
// Points of the history that are drawn.
const POINTS = 360;
// Seconds that the chart shows at least.
const SPAN = 120;
let samples = [];
let spacing = 2;

let isUp = false;
live.onLink((up) => { isUp = up; });
setInterval(() => {
  const now = live.state('mempool');
  const at = Date.now() / 1000;
  if (!isUp || !now?.bands || (samples.length && at - samples[samples.length - 1].at < spacing)) return;
  samples.push({ at, vsize: now.bands.vsize });
  if (samples.length > SAMPLES) {
    samples = samples.filter((_, place) => place % 2 === 0);
    spacing *= 2;
  }
}, 1000);

// From violet over green to red. The table names the bands, so that nothing is said by the colour alone.
const STOPS = [[118, 78, 186], [63, 106, 196], [33, 145, 140], [94, 190, 98], [226, 190, 40], [240, 136, 48], [212, 58, 58]];
function colour(place, count) {
  const at = (count > 1 ? place / (count - 1) : 0) * (STOPS.length - 1);
  const [low, high] = [STOPS[Math.floor(at)], STOPS[Math.ceil(at)]];
  return `rgb(${low.map((value, i) => Math.round(value + (high[i] - value) * (at - Math.floor(at)))).join(',')})`;
}

const sat = (perKvb) => String(perKvb / 1000);
const range = (rates, place) => (place + 1 < rates.length ? `${sat(rates[place])} – ${sat(rates[place + 1])}` : `${sat(rates[place])} and more`);
const feerate = (value) => (typeof value === 'number' ? value.toFixed(value < 10 ? 2 : 1) : '–');
const coins = (value) => (typeof value === 'number' ? `${(value / 1e8).toFixed(8)} BTC` : '–');
const rows = (now, kind) => Object.fromEntries(Object.entries(now).filter(([key]) => key.startsWith(`${kind}:`)));

export default {
  name: 'mempool',
  title: 'Mempool',
  start(root, { api, ui }) {
    const { h, s, set, card, facts, bar, table, search, num, short, bytes, satvb, percent, time, hash, note, clip } = ui;
    const tx = (txid) => h('a', { href: `#/explorer?tx=${txid}` }, hash(txid));
    const memory = bar('Memory used');
    const sums = facts([['count', 'Transactions'], ['vsize', 'Virtual bytes'], ['fees', 'Fees'], ['usage', 'Memory'],
      ['minFee', 'Minimum fee', 'What a transaction must pay now to be accepted'], ['incremental', 'More to replace', 'What a replacement must pay on top'],
      ['unbroadcast', 'Not broadcast yet']]);
    const boxes = h('div', { class: 'boxes' });
    const strip = h('ol', { class: 'strip' });
    const chart = h('div', { class: 'bands' });
    const span = h('select', { id: 'band-span', onchange: () => loadHistory() }, [['0', 'since the page was opened'], ['86400', 'last 24 hours'],
      ['2592000', 'last 30 days']].map(([value, words]) => h('option', { value }, words)));
    const chartNote = h('p', { class: 'muted' });
    const bandTable = table({ caption: 'Fee bands', sort: 'place', descending: true, empty: 'The mempool is empty.', columns: [
      { key: 'place', title: 'sat/vB', value: (row) => row.place, show: (row) => [swatch(row), ` ${row.range}`] },
      { key: 'count', title: 'Transactions', number: true, show: (row) => num(row.count) },
      { key: 'vsize', title: 'Virtual bytes', number: true, show: (row) => num(row.vsize) },
      { key: 'above', title: 'Blocks ahead', number: true, help: 'Blocks that this band and all higher ones fill', show: (row) => row.above.toFixed(2) },
      { key: 'fees', title: 'Fees', number: true, show: (row) => coins(row.fees) },
    ] });
    const minedDetails = h('div', { class: 'details', 'aria-live': 'polite' });
    const mined = table({ caption: 'Mined blocks beside their projection', sort: 'height', descending: true, open: (row) => showMined(row),
      empty: 'No block was mined yet while the mempool had transactions.', columns: [
        { key: 'height', title: 'Height', number: true, show: (row) => h('a', { href: `#/explorer?block=${row.hash}` }, num(row.height)) },
        { key: 'time', title: 'Time', show: (row) => time(row.time) },
        { key: 'expected', title: 'Expected', number: true, show: (row) => num(row.expected) },
        { key: 'mined', title: 'Mined', number: true, show: (row) => num(row.mined) },
        { key: 'missing', title: 'Missing', number: true, help: 'Expected, and not mined', show: (row) => num(row.missing) },
        { key: 'added', title: 'Added', number: true, help: 'Mined, and not expected', show: (row) => num(row.added) },
        { key: 'unknown', title: 'Unknown', number: true, help: 'Mined, and not in the mempool', show: (row) => num(row.unknown) },
        { key: 'match', title: 'As expected', number: true, value: (row) => match(row), show: (row) => percent(match(row)) },
        { key: 'expectedFees', title: 'Fees expected', number: true, show: (row) => coins(row.expectedFees) },
        { key: 'fees', title: 'Fees mined', number: true, show: (row) => coins(row.fees) },
      ] });
    const rejectColumns = [
      { key: 'number', title: 'Time (UTC)', value: (row) => row.number, show: (row) => time(row.time) },
      { key: 'txid', title: 'Transaction', show: (row) => hash(row.txid) },
      { key: 'wtxid', title: 'wtxid', show: (row) => hash(row.wtxid) },
      { key: 'vsize', title: 'vsize', number: true, show: (row) => num(row.vsize) },
      { key: 'reason', title: 'Reason', show: (row) => h('span', { class: 'reason', title: row.reason }, clip(row.reason, 400)) },
    ];
    const rejects = table({ caption: 'Rejected transactions', sort: 'number', descending: true, limit: 1000, columns: rejectColumns,
      empty: 'No transaction was rejected since the start.' });
    const replacements = table({ caption: 'Replacements', sort: 'number', descending: true, limit: 1000, empty: 'No transaction was replaced since the start.', columns: [
      { key: 'number', title: 'Time (UTC)', value: (row) => row.number, show: (row) => time(row.time) },
      { key: 'replaced', title: 'Replaced', value: (row) => row.replaced.join(' '), show: (row) => replacedBy(row) },
      { key: 'txid', title: 'By', show: (row) => tx(row.txid) },
      { key: 'replacedFees', title: 'Fees before', number: true, show: (row) => `${num(row.replacedFees)} sat` },
      { key: 'fee', title: 'Fee now', number: true, show: (row) => `${num(row.fee)} sat` },
      { key: 'before', title: 'sat/vB before', number: true, value: (row) => row.replacedFees / row.replacedVsize, show: (row) => feerate(row.replacedFees / row.replacedVsize) },
      { key: 'after', title: 'sat/vB now', number: true, value: (row) => row.fee / row.vsize, show: (row) => feerate(row.fee / row.vsize) },
    ] });
    const orphans = table({ caption: 'Orphans', sort: 'vsize', descending: true, empty: 'No transaction waits for its parents.', columns: [
      { key: 'txid', title: 'Transaction', show: (row) => hash(row.txid) },
      { key: 'wtxid', title: 'wtxid', show: (row) => hash(row.wtxid) },
      { key: 'bytes', title: 'Bytes', number: true, show: (row) => num(row.bytes) },
      { key: 'vsize', title: 'vsize', number: true, show: (row) => num(row.vsize) },
      { key: 'from', title: 'From peers', value: (row) => (row.from ?? []).join(', ') },
    ] });
    const whole = { rejects: null, replacements: null };
    // Rows of a list that the live data has; the others are asked for.
    const more = (name, method, target) => h('button', { type: 'button', hidden: true, onclick: async (event) => {
      event.target.disabled = true;
      try {
        whole[name] = Object.fromEntries((await api.call(method)).map((row) => [`${name.slice(0, -1)}:${row.number}`, row]));
        target.update({ ...whole[name], ...rows(live.state('mempool') ?? {}, name.slice(0, -1)) });
        event.target.hidden = true;
        delete buttons[name];
      } catch (error) {
        set(event.target, error.message);
      }
    } }, 'Show all that are kept (1,000)');
    const buttons = { rejects: more('rejects', 'lydian_rejects', rejects), replacements: more('replacements', 'lydian_replacements', replacements) };
    const list = (name, now, target) => {
      const found = rows(now, name.slice(0, -1));
      if (buttons[name]) buttons[name].hidden = Object.keys(found).length < LIVE_ROWS;
      target.update({ ...whole[name], ...found });
    };

    root.append(
      h('div', { class: 'columns' }, card('Now', memory, sums), card('What a transaction should pay', boxes,
        h('p', { class: 'muted' }, 'From the projected blocks: the middle of the block if it is full, else the minimum fee. A guess, as blocks are found by chance.'))),
      card('Next blocks', h('div', { class: 'scroll plain', tabindex: 0, role: 'region', 'aria-label': 'Next blocks' }, strip)),
      card('Fee bands', h('div', { class: 'tools' }, h('label', { class: 'search', for: 'band-span' }, 'Time', span)), chart, chartNote, bandTable),
      card('Mined blocks beside their projection', h('p', { class: 'muted' }, 'Each block is compared with what the block builder would have taken from the mempool just before.'), mined, minedDetails),
      card('Rejected transactions', h('div', { class: 'tools' }, search('Filter by txid or reason', (words) => rejects.filter(words ? (row) => matches(row, words) : null)),
        buttons.rejects), rejects),
      card('Replacements', buttons.replacements, replacements),
      card('Orphans', h('p', { class: 'muted' }, 'Transactions that wait for their parents.'), orphans),
    );

    const matches = (row, words) => `${row.txid} ${row.wtxid} ${row.reason}`.toLowerCase().includes(words.toLowerCase());
    const match = (row) => (row.expected === 0 ? (row.mined === 0 ? 1 : 0) : (row.expected - row.missing) / row.expected);

    function replacedBy(row) {
      const shown = row.replaced.slice(0, 3).map((txid) => h('div', {}, hash(txid)));
      return row.replacedCount > shown.length ? [...shown, h('div', { class: 'muted' }, `and ${num(row.replacedCount - shown.length)} more`)] : shown;
    }

    function swatch(row) {
      return s('svg', { class: 'swatch', viewBox: '0 0 10 10', width: 11, height: 11, 'aria-hidden': 'true' }, s('rect', { width: 10, height: 10, rx: 2, fill: colour(row.place, row.of) }));
    }

    async function showMined(row) {
      set(minedDetails, h('p', { class: 'muted' }, `Block ${num(row.height)} ...`));
      try {
        const found = await api.call('lydian_minedblock', row.hash);
        const list = (title, txids, count) => h('div', {}, h('h3', {}, `${title}: ${num(count)}`), txids.length === 0 ? h('p', { class: 'muted' }, 'none')
          : h('ul', { class: 'txids' }, txids.map((txid) => h('li', {}, tx(txid))), count > txids.length ? h('li', { class: 'muted' }, `and ${num(count - txids.length)} more`) : null));
        set(minedDetails, h('h3', {}, `Block ${num(found.height)}`), h('div', { class: 'columns' },
          list('Expected, and not mined', found.missingTxids, found.missing), list('Mined, and not expected', found.addedTxids, found.added)));
      } catch (error) {
        set(minedDetails, note('bad', error.message));
      }
    }

    function drawBoxes(now) {
      const projected = now.projected ?? [];
      const box = (title, place) => {
        const block = projected[place];
        const isFull = block && block.weight > 0.97 * BLOCK_WEIGHT;
        const value = isFull ? block.median : now.minFee / 1000;
        const why = isFull ? `${feerate(block.min)} – ${feerate(block.max)} in this block` : 'the block is not full: the minimum fee';
        return h('div', { class: 'box' }, h('div', { class: 'muted' }, title), h('div', { class: 'big' }, feerate(value)), h('div', { class: 'unit' }, 'sat/vB'), h('div', { class: 'muted small' }, why));
      };
      set(boxes, [box('Next block', 0), box('Third block', 2), box('Sixth block', 5)]);
    }

    function drawStrip(now) {
      const projected = now.projected ?? [];
      const rates = now.rates ?? [];
      if (projected.length === 0) return set(strip, h('li', { class: 'muted' }, now.count > 0 ? 'The projection is being made.' : 'The mempool is empty: the next block would have no transaction but the coinbase.'));
      const left = now.count - projected.reduce((sum, block) => sum + block.count, 0);
      set(strip, projected.map((block, place) => {
        const band = Math.max(0, rates.findLastIndex((bound) => bound <= block.median * 1000));
        const share = Math.min(1, block.weight / BLOCK_WEIGHT);
        const fillBar = s('svg', { class: 'fill', viewBox: '0 0 100 12', preserveAspectRatio: 'none', 'aria-hidden': 'true' },
          s('rect', { class: 'back', width: 100, height: 12 }), s('rect', { width: share * 100, height: 12, fill: colour(band, rates.length) }));
        return h('li', { class: 'next' }, h('div', { class: 'muted' }, NAMES[place] ?? ''), h('div', { class: 'big' }, feerate(block.median)),
          h('div', { class: 'unit' }, 'sat/vB, median'), h('div', { class: 'small' }, `${feerate(block.min)} – ${feerate(block.max)}`), fillBar,
          h('div', { class: 'small' }, `${num(block.count)} transactions`), h('div', { class: 'small' }, `${percent(share)} full`), h('div', { class: 'small' }, coins(block.fees)));
      }), left > 0 ? h('li', { class: 'next rest' }, h('div', { class: 'muted' }, 'Later'), h('div', { class: 'small' }, `${num(left)} transactions`)) : null);
    }

    let history = null;
    async function loadHistory() {
      const seconds = Number(span.value);
      history = null;
      set(chartNote, '');
      if (seconds > 0) {
        const rates = live.state('mempool')?.rates ?? [];
        const now = Math.floor(Date.now() / 1000);
        const names = rates.map((_, place) => `mempool_band_${place}`);
        try {
          const found = await get(`/api/history?series=${names.join(',')}&from=${now - seconds}&to=${now}`);
          const lists = names.map((name) => found.series[name] ?? []);
          const stride = Math.max(1, Math.ceil((lists[0] ?? []).length / POINTS));
          history = (lists[0] ?? []).flatMap((_, at) => (at % stride === 0 ? [{ at: found.from + at * found.step, vsize: lists.map((list) => list[at] ?? null) }] : []))
            .filter(({ vsize }) => vsize.some((value) => value !== null));
          if (history.length === 0) set(chartNote, 'The node has kept no history of this time yet.');
        } catch (error) {
          set(chartNote, `The history cannot be read: ${error.message}`);
        }
      }
      drawChart(true);
    }

    let drawn = 0;
    function drawChart(atOnce) {
      const at = Date.now();
      if (!atOnce && at - drawn < DRAW_MS) return;
      drawn = at;
      const now = live.state('mempool');
      if (!now?.bands) return;
      const points = (history ?? samples).concat([{ at: at / 1000, vsize: now.bands.vsize }]);
      set(chart, stacked(points, now.rates));
      let above = 0;
      const all = {};
      for (let place = now.rates.length - 1; place >= 0; place -= 1) {
        above += now.bands.vsize[place];
        if (now.bands.count[place] > 0) {
          all[place] = { place, of: now.rates.length, range: range(now.rates, place), count: now.bands.count[place], vsize: now.bands.vsize[place], fees: now.bands.fees[place], above: above * 4 / BLOCK_WEIGHT };
        }
      }
      bandTable.update(all);
    }

    // Virtual bytes over time, the highest feerates at the bottom, as they are mined first.
    function stacked(points, rates) {
      const [width, height, left, bottom, top] = [Math.max(300, chart.clientWidth || 960), 280, 70, 26, 10];
      const to = points[points.length - 1].at;
      const from = Math.min(points[0].at, to - SPAN);
      const sum = (vsize) => vsize.reduce((all, value) => all + (value ?? 0), 0);
      const high = nice(Math.max(...points.map(({ vsize }) => sum(vsize)), 1000));
      const x = (at) => left + ((at - from) / (to - from)) * (width - left - 8);
      const y = (value) => height - bottom - (value / high) * (height - bottom - top);
      const base = points.map(() => 0);
      const areas = [];
      for (let place = rates.length - 1; place >= 0; place -= 1) {
        if (!points.some(({ vsize }) => vsize[place] > 0)) continue;
        const low = points.map((point, i) => `${x(point.at).toFixed(1)},${y(base[i]).toFixed(1)}`);
        const upper = points.map((point, i) => `${x(point.at).toFixed(1)},${y(base[i] += point.vsize[place] ?? 0).toFixed(1)}`);
        areas.push(s('polygon', { points: `${low.join(' ')} ${upper.reverse().join(' ')}`, fill: colour(place, rates.length) }, s('title', {}, `${range(rates, place)} sat/vB`)));
      }
      const lines = [0, 0.25, 0.5, 0.75, 1].map((share) => [s('line', { class: 'grid', x1: left, x2: width - 8, y1: y(high * share), y2: y(high * share) }),
        s('text', { class: 'axis', x: left - 8, y: y(high * share) + 4, 'text-anchor': 'end' }, `${short(high * share)}vB`)]);
      const count = width < 600 ? 2 : 4;
      const times = Array.from({ length: count + 1 }, (_, i) => from + ((to - from) * i) / count);
      const marks = times.map((at, i) => s('text', { class: 'axis', x: x(at), y: height - 6, 'text-anchor': i === 0 ? 'start' : i === count ? 'end' : 'middle' }, clock(at, to - from)));
      const last = points[points.length - 1].vsize;
      return s('svg', { viewBox: `0 0 ${width} ${height}`, role: 'img', 'aria-label': `Virtual bytes of the mempool by fee band over ${Math.max(1, Math.round((to - from) / 60))} min; now ${num(sum(last))}. The table below has the figures.` }, lines, areas, marks);
    }

    const nice = (value) => {
      const power = 10 ** Math.floor(Math.log10(value));
      return [1, 2, 4, 5, 8, 10].map((factor) => factor * power).find((bound) => bound >= value);
    };
    const clock = (at, seconds) => {
      const date = new Date(at * 1000).toISOString();
      if (seconds > 2 * 86400) return date.slice(5, 10);
      return seconds > 600 ? date.slice(11, 16) : date.slice(11, 19);
    };

    async function loadOrphans() {
      try {
        const found = await api.call('getorphantxs', 1);
        orphans.update(Object.fromEntries(found.map((row) => [row.wtxid, row])));
      } catch (error) {
        orphans.update({});
      }
    }

    const off = live.on('mempool', (now, changed) => {
      if (now.count === undefined) {
        set(boxes, h('p', { class: 'muted' }, 'The mempool is not open yet.'));
        return;
      }
      const touched = (kind) => changed === null || Object.keys(changed).some((key) => key.startsWith(`${kind}:`));
      memory.update(now.usage / now.usageMax, `${bytes(now.usage)} of ${bytes(now.usageMax)}`);
      sums.update({
        count: now.loaded ? num(now.count) : `${num(now.count)} (mempool.dat is being read)`,
        vsize: num(now.vsize), fees: coins(now.fees), usage: `${bytes(now.usage)} of ${bytes(now.usageMax)}`,
        minFee: satvb(now.minFee), incremental: satvb(now.incrementalFee), unbroadcast: num(now.unbroadcast),
      });
      drawBoxes(now);
      drawStrip(now);
      if (changed === null) drawChart(true);
      if (touched('block')) mined.update(rows(now, 'block'));
      if (touched('reject')) list('rejects', now, rejects);
      if (touched('replacement')) list('replacements', now, replacements);
    });
    loadOrphans();
    const timers = [setInterval(loadOrphans, ORPHANS_MS), setInterval(() => drawChart(false), DRAW_MS)];
    return () => {
      off();
      timers.forEach(clearInterval);
    };
  },
};
