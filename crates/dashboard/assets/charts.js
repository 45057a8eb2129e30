// Charts of the history over time: chart(root, series, options). Drawn by uPlot, with a table of the same values.
//
// series: [{name, label, width}], names of the history; `combine: (values) => value` makes one line of several `names`.
// options: {title, format(value), range: seconds, ranges: true|false, height, stacked, min, max}.
// Returns {stop()}. Keys on a chart: arrows move the cursor, Home and End go to the ends, Escape removes it.

import { history } from '/assets/api.js';
import * as ui from '/assets/ui.js';

const { h, s, set } = ui;

const RANGES = [
  ['1 h', 3600, 'the last hour'], ['6 h', 21600, 'the last 6 hours'], ['1 d', 86400, 'the last day'],
  ['1 w', 604800, 'the last week'], ['1 m', 2678400, 'the last month'], ['1 y', 31536000, 'the last year'],
  ['5 y', 157680000, 'the last 5 years'],
];

// Dashes, so that lines differ without their colours.
const DASHES = [[], [7, 4], [2, 3], [10, 3, 2, 3], [14, 4], [4, 4], [1, 4], [8, 2, 1, 2]];

// Rows of the table of values.
const ROWS = 60;

let loaded = null;

// The script of uPlot is in the page; its style is added when the first chart is drawn.
function load() {
  loaded ??= new Promise((resolve, reject) => {
    document.head.append(h('link', { rel: 'stylesheet', href: '/assets/vendor/uPlot.min.css' }));
    if (window.uPlot) return resolve(window.uPlot);
    const script = document.getElementById('uplot');
    script.addEventListener('load', () => resolve(window.uPlot));
    script.addEventListener('error', () => reject(new Error('the script of the charts was not loaded')));
  });
  return loaded;
}

const token = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const colour = (place) => token(`--n${place % 8}`);
const two = (number) => String(number).padStart(2, '0');

// A time of the browser's zone, with what matters at this step.
function moment(seconds, step) {
  const date = new Date(seconds * 1000);
  const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  const time = `${two(date.getHours())}:${two(date.getMinutes())}`;
  if (step >= 86400) return day;
  return step < 60 ? `${day} ${time}:${two(date.getSeconds())}` : `${day} ${time}`;
}

// A mark of the time axis, where `every` seconds lie between two.
function tick(seconds, every) {
  const date = new Date(seconds * 1000);
  const day = `${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  if (every >= 86400 * 28) return `${date.getFullYear()}-${two(date.getMonth() + 1)}`;
  const isMidnight = date.getHours() === 0 && date.getMinutes() === 0 && date.getSeconds() === 0;
  if (every >= 86400 || isMidnight) return day;
  return every < 60 ? `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}` : `${two(date.getHours())}:${two(date.getMinutes())}`;
}

export function chart(root, series, options = {}) {
  const format = options.format ?? ui.short;
  const names = [...new Set(series.flatMap((one) => one.names ?? [one.name]))];
  let range = options.range ?? 3600;
  let plot = null;
  let data = null;
  let step = 10;
  let hidden = new Set();
  let isTable = false;
  let ended = false;
  let timer = null;

  const buttons = RANGES.map(([label, seconds, words]) => h('button', {
    type: 'button', 'aria-pressed': String(seconds === range), title: words, onclick: () => {
      range = seconds;
      buttons.forEach((button, place) => button.setAttribute('aria-pressed', String(RANGES[place][1] === range)));
      refresh();
    },
  }, label));
  const asTable = h('button', { type: 'button', 'aria-pressed': 'false', onclick: () => {
    isTable = !isTable;
    asTable.setAttribute('aria-pressed', String(isTable));
    draw();
  } }, 'Table');
  const values = series.map(() => h('span', { class: 'value' }, '–'));
  const entries = series.map((one, place) => h('button', {
    type: 'button', 'aria-pressed': 'true', title: 'Show or hide this line', onclick: () => {
      if (hidden.has(place)) hidden.delete(place);
      else if (hidden.size < series.length - 1) hidden.add(place);
      entries[place].setAttribute('aria-pressed', String(!hidden.has(place)));
      draw();
    },
  }, sample(place), h('span', {}, one.label), values[place]));
  const at = h('span', { class: 'at muted' }, '');
  const canvas = h('div', { class: 'canvas', tabindex: 0, role: 'img', 'aria-label': options.title, onkeydown: move });
  const table = h('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': `${options.title}: values`, hidden: true });
  const note = h('p', { class: 'muted', hidden: true });
  const box = h('div', { class: 'chart' },
    h('div', { class: 'chartbar' }, options.ranges === false ? null : h('div', { class: 'ranges', role: 'group', 'aria-label': 'Time range' }, buttons), asTable),
    canvas, table, note, h('div', { class: 'lines' }, entries, at));
  root.append(box);

  function sample(place) {
    const line = s('line', { x1: 0, y1: 6, x2: 22, y2: 6, class: `n${place % 8}`, 'stroke-dasharray': (DASHES[place % 8] ?? []).join(' ') || null });
    return s('svg', { viewBox: '0 0 22 12', width: 22, height: 12, 'aria-hidden': 'true' }, line);
  }

  async function refresh() {
    clearTimeout(timer);
    const to = Date.now() / 1000;
    try {
      const answer = await history(names, to - range, to);
      if (ended) return;
      take(answer);
      note.hidden = true;
    } catch (error) {
      if (ended) return;
      set(note, error.message);
      note.hidden = false;
    }
    await draw();
    // A range is read again when it has a new point, at most every 10 seconds.
    if (!ended) timer = setTimeout(refresh, Math.max(10, Math.min(step, 300)) * 1000);
  }

  function take(answer) {
    step = answer.step;
    const count = Math.max(0, ...names.map((name) => answer.series[name].length));
    const times = Array.from({ length: count }, (_, place) => answer.from + place * step);
    const columns = series.map((one) => {
      if (!one.names) return answer.series[one.name];
      return times.map((_, place) => one.combine(one.names.map((name) => answer.series[name][place])));
    });
    data = { times, columns };
  }

  // The columns as they are drawn: stacked ones on top of those before.
  function drawn() {
    if (!options.stacked) return data.columns;
    let below = data.times.map(() => 0);
    return data.columns.map((column, place) => {
      if (hidden.has(place)) return data.times.map(() => null);
      below = column.map((value, at) => below[at] + (value ?? 0));
      return column.map((value, at) => (value === null ? null : below[at]));
    });
  }

  async function draw() {
    if (!data || ended) return;
    const known = data.columns.some((column) => column.some((value) => value !== null));
    canvas.hidden = isTable;
    table.hidden = !isTable;
    if (!known) {
      set(note, 'Nothing is recorded for this time yet. The node records a point every 10 seconds.');
      note.hidden = false;
    }
    show(null);
    if (isTable) return fillTable();
    let uPlot;
    try {
      uPlot = await load();
    } catch (error) {
      set(note, `The chart cannot be drawn: ${error.message}. Its table has the values.`);
      note.hidden = false;
      return;
    }
    if (ended) return;
    describe();
    plot?.destroy();
    plot = new uPlot(settings(), [data.times, ...drawn()], canvas);
  }

  function settings() {
    const [ink, grid] = [token('--muted'), token('--line')];
    const font = '12px system-ui, sans-serif';
    const axis = { stroke: ink, font, grid: { stroke: grid, width: 1 }, ticks: { show: false } };
    const lines = series.map((one, place) => ({
      label: one.label, show: !hidden.has(place), stroke: colour(place), width: one.width ?? 1.75, dash: DASHES[place % 8],
      spanGaps: false, points: { show: false },
      fill: options.stacked ? `${colour(place)}55` : series.length === 1 ? `${colour(place)}22` : undefined,
    }));
    // A single point between gaps has no line.
    lines.forEach((line, place) => {
      const column = data.columns[place];
      const lonely = column.some((value, at) => value !== null && (column[at - 1] ?? null) === null && (column[at + 1] ?? null) === null);
      if (lonely) line.points = { show: true, size: 4, fill: colour(place) };
    });
    const bands = options.stacked ? series.slice(1).map((_, place) => ({ series: [place + 2, place + 1] })) : undefined;
    const low = options.min ?? null;
    return {
      width: Math.max(200, canvas.clientWidth), height: options.height ?? 200, legend: { show: false }, bands,
      cursor: { drag: { x: false, y: false }, points: { size: 7 }, y: false },
      select: { show: false },
      scales: { x: { time: true, range: () => [start(), data.times[data.times.length - 1] + step] },
        y: { range: (_, min, max) => bounds(min, max, low, options.max) } },
      axes: [{ ...axis, size: 30, space: 70, values: (_, marks, at, space, every) => marks.map((mark) => tick(mark, every)) }, { ...axis, size: 74, values: (_, marks) => labels(marks.map((mark) => format(mark))) }],
      series: [{}, ...lines],
      hooks: { setCursor: [({ cursor }) => show(cursor.idx ?? null)] },
    };
  }

  // A young history fills the chart: it begins with the first value, but shows at least ten minutes.
  function start() {
    const first = data.times.find((_, place) => data.columns.some((column) => column[place] !== null));
    const latest = data.times[data.times.length - 1] - 600;
    return Math.max(data.times[0], Math.min(first ?? data.times[0], latest) - step);
  }

  // The values below the chart: at the cursor, or the last ones.
  function show(place) {
    data.columns.forEach((column, line) => {
      const value = place === null ? last(column) : column[place];
      set(values[line], value === null || value === undefined ? '–' : format(value));
    });
    set(at, place === null || data.times[place] === undefined ? '' : moment(data.times[place], step));
  }

  function last(column) {
    for (let place = column.length - 1; place >= Math.max(0, column.length - 3); place -= 1) {
      if (column[place] !== null) return column[place];
    }
    return null;
  }

  function describe() {
    const words = series.map((one, place) => {
      const known = data.columns[place].filter((value) => value !== null);
      if (known.length === 0) return `${one.label}: no values`;
      const [low, high] = known.reduce(([a, b], value) => [Math.min(a, value), Math.max(b, value)], [Infinity, -Infinity]);
      return `${one.label}: ${format(low)} to ${format(high)}, last ${format(known[known.length - 1])}`;
    });
    const span = RANGES.find(([, seconds]) => seconds === range)?.[2] ?? ui.duration(range);
    canvas.setAttribute('aria-label', `${options.title}, ${span}. ${words.join('. ')}.`);
  }

  function fillTable() {
    const places = data.times.map((_, place) => place).reverse()
      .filter((place) => data.columns.some((column) => column[place] !== null)).slice(0, ROWS);
    const head = h('tr', {}, h('th', { scope: 'col' }, 'Time'), series.map((one) => h('th', { scope: 'col', class: 'number' }, one.label)));
    const rows = places.map((place) => h('tr', {}, h('th', { scope: 'row' }, moment(data.times[place], step)),
      data.columns.map((column) => h('td', { class: 'number' }, column[place] === null ? '–' : format(column[place])))));
    set(table, h('table', {}, h('caption', {}, `${options.title}: values, the newest first`), h('thead', { class: 'plain' }, head), h('tbody', {}, rows)));
  }

  function move(event) {
    if (!plot || !data.times.length) return;
    const end = data.times.length - 1;
    const now = plot.cursor.idx ?? end;
    const to = { ArrowLeft: now - 1, ArrowRight: now + 1, PageUp: now - 10, PageDown: now + 10, Home: 0, End: end }[event.key];
    if (event.key === 'Escape') plot.setCursor({ left: -10, top: -10 });
    else if (to === undefined) return;
    else plot.setCursor({ left: plot.valToPos(data.times[Math.max(0, Math.min(end, to))], 'x'), top: 10 });
    event.preventDefault();
  }

  let width = 0;
  const sizes = new ResizeObserver(() => {
    if (plot && canvas.clientWidth > 0 && canvas.clientWidth !== width) {
      width = canvas.clientWidth;
      plot.setSize({ width: Math.max(200, width), height: options.height ?? 200 });
    }
  });
  sizes.observe(canvas);
  const scheme = matchMedia('(prefers-color-scheme: dark)');
  const redraw = () => draw();
  scheme.addEventListener('change', redraw);
  refresh();
  return {
    stop() {
      ended = true;
      clearTimeout(timer);
      sizes.disconnect();
      scheme.removeEventListener('change', redraw);
      plot?.destroy();
      box.remove();
    },
  };
}

// A label that is the same as the one below is left out.
const labels = (all) => all.map((label, place) => (label === all[place - 1] ? '' : label));

// A range of values that shows zero, unless the values are far from it.
function bounds(min, max, low, high) {
  if (min === null || max === null || min === undefined) return [0, 1];
  const span = max - min;
  const near = min >= 0 && span > max / 20;
  const bottom = low ?? (near || max === 0 ? 0 : min - Math.max(span, Math.abs(max) / 1000) * 0.1);
  const top = high ?? (max === bottom ? bottom + 1 : max + Math.max(span, Math.abs(max) / 1000) * 0.05);
  return [bottom, top];
}
