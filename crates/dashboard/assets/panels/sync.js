// The sync by phase: what is done, how fast, what is left, what limits it; and a map of the blocks around the tip.

import { chart } from '/assets/charts.js';

const CELLS = { d: 'durable', v: 'validated', h: 'here', r: 'requested', '.': 'only its header' };

export default {
  name: 'sync',
  title: 'Sync',
  start(root, { live, ui }) {
    const { h, s, set, facts, bar, num, short, rate, bytes, percent, duration, card } = ui;
    const progress = bar('Work done');
    const left = h('p', { class: 'muted' });
    const phases = facts([
      ['headers', 'Headers'], ['download', 'Download'], ['waiting', 'Waiting for validation'], ['validation', 'Validation'],
      ['commit', 'Commit'], ['limit', 'Limited by'], ['busy', 'Workers busy'],
    ]);
    const stages = h('div', { class: 'stages' });
    const indexes = h('div', { class: 'indexes' });
    const map = h('div', { class: 'map' });
    const legend = h('ul', { class: 'legend' }, Object.entries(CELLS).map(([letter, words]) =>
      h('li', {}, s('svg', { viewBox: '0 0 10 10', width: 12, height: 12, 'aria-hidden': 'true' }, cell(s, letter, 0, 0, 10)), words)));
    root.append(card('Progress', progress, left, phases), card('Indexes', indexes), card('Blocks around the tip', map, legend), card('Stages', stages));
    const charts = h('div', { class: 'charts' });
    root.append(charts);
    const draw = (title, series, options) => {
      const section = card(title);
      charts.append(section);
      return chart(section, series, { title, min: 0, ...options });
    };
    const running = [
      draw('Rate', [{ name: 'inputs', label: 'inputs' }, { name: 'signatures', label: 'signatures' }], { format: (value) => `${short(value)}/s` }),
      draw('Bandwidth', [{ name: 'bytes_received', label: 'received' }, { name: 'bytes_sent', label: 'sent' }], { format: rate }),
      draw('Height', [{ name: 'height', label: 'validated' }, { name: 'headers', label: 'headers' }], { format: num, min: null, range: 86400 }),
    ];

    const offs = [
      live.on('sync', (now) => {
        progress.update(now.share);
        const words = [];
        if (typeof now.share === 'number') words.push(`${percent(now.share)} of the work`);
        if (typeof now.secondsLeft === 'number') words.push(`about ${duration(now.secondsLeft)} left`);
        if (now.guess) words.push(now.guess.replace(/\s+/g, ' '));
        set(left, words.join('; ') || 'nothing to validate');
        phases.update({
          headers: now.presync ? `${num(now.presync.height)} (their work is counted${now.presync.again ? ', second pass' : ''})` : num(now.target),
          download: now.received === undefined ? '–' : `${rate(now.received)}, ${bytes(now.requestedBytes)} requested`,
          waiting: now.waitingBlocks === undefined ? '–' : `${num(now.waitingBlocks)} blocks, ${bytes(now.waitingBytes)}`,
          validation: `height ${num(now.height)}: ${short(now.blocksPerSecond)} blocks/s, ${short(now.inputsPerSecond)} inputs/s, ${short(now.signaturesPerSecond)} signatures/s`,
          commit: now.durable === undefined ? '–' : `durable to height ${num(now.durable)}`,
          limit: now.inputsPerSecond > 0 || now.blocksPerSecond > 0 ? now.bottleneck : '–',
          busy: now.workers ? `${percent(now.busy, 0)} of ${now.workers}` : '–',
        });
        drawStages(now.stages ?? []);
        drawIndexes(now.indexes ?? []);
      }),
      live.on('map', (now) => drawMap(now)),
    ];

    function drawStages(list) {
      const total = list.reduce((sum, stage) => sum + stage.wall, 0);
      const rows = list.filter((stage) => stage.wall > 0).sort((a, b) => b.wall - a.wall);
      set(stages, rows.length === 0 ? h('p', { class: 'muted' }, 'No block was validated since the start.') : rows.map((stage) => {
        const line = bar(stage.name);
        line.update(total > 0 ? stage.wall / total : 0);
        return h('div', { class: 'stage', title: stage.what }, h('span', {}, stage.name), line,
          h('span', { class: 'number' }, `${percent(total > 0 ? stage.wall / total : 0)} · ${stage.wall.toFixed(1)} s`));
      }));
    }

    function drawIndexes(list) {
      set(indexes, list.length === 0 ? h('p', { class: 'muted' }, 'No index is built. -addressindex, -txindex, -blockfilterindex and -coinstatsindex add them.')
        : list.map((index) => {
          const line = bar(index.name);
          const share = index.target > 0 ? Math.min(1, (index.height ?? 0) / index.target) : 1;
          line.update(share);
          const words = index.error ?? (index.done ? `complete, height ${num(index.height)}` : `height ${num(index.height ?? 0)} of ${num(index.target)}`);
          return h('div', { class: 'stage' }, h('span', {}, index.name), line, h('span', { class: index.error ? 'bad' : 'number' }, words));
        }));
    }

    function drawMap({ from, cells }) {
      if (!cells) return set(map, h('p', { class: 'muted' }, 'The blocks are not known yet.'));
      const across = 64;
      const size = 10;
      const down = Math.ceil(cells.length / across);
      const counts = {};
      for (const letter of cells) counts[letter] = (counts[letter] ?? 0) + 1;
      const words = Object.entries(counts).map(([letter, count]) => `${num(count)} ${CELLS[letter]}`).join(', ');
      const svg = s('svg', { viewBox: `0 0 ${across * size} ${down * size}`, role: 'img', 'aria-label': `Blocks from height ${from}: ${words}` });
      [...cells].forEach((letter, place) => {
        svg.append(cell(s, letter, (place % across) * size, Math.floor(place / across) * size, size));
      });
      set(map, svg, h('p', { class: 'muted' }, `Heights ${num(from)} to ${num(from + cells.length - 1)}: ${words}.`));
    }
    return () => {
      offs.forEach((off) => off());
      running.forEach((one) => one.stop());
    };
  },
};

// Each kind differs by shape too, for readers who cannot tell the colours apart.
function cell(s, letter, x, y, size) {
  const inner = size - 2;
  if (letter === '.') return s('circle', { class: 'cell none', cx: x + size / 2, cy: y + size / 2, r: size / 7 });
  if (letter === 'r') return s('rect', { class: 'cell requested', x: x + 2, y: y + 2, width: inner - 2, height: inner - 2 });
  const name = { d: 'durable', v: 'validated', h: 'here' }[letter];
  const top = letter === 'h' ? size / 2 : 1;
  return s('rect', { class: `cell ${name}`, x: x + 1, y: y + top, width: inner, height: size - 1 - top, rx: letter === 'd' ? 0 : 2 });
}
