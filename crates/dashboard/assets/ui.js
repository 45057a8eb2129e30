// Building blocks of the panels. Text from outside only ever becomes a text node.

const SVG = 'http://www.w3.org/2000/svg';

// h('button', {type: 'button', onclick: f, class: 'x'}, 'text', node, [more]) makes an element.
export function h(tag, attributes, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

// The same for SVG.
export function s(tag, attributes, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? '' : String(value));
  }
  put(element, children);
  return element;
}

function put(element, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : String(child));
  }
}

// Replaces the children of an element, unless its text is the same already.
export function set(element, ...children) {
  const only = children.length === 1 && !(children[0] instanceof Node) && !Array.isArray(children[0]);
  if (only) {
    const text = String(children[0] ?? '');
    if (element.childElementCount > 0 || element.textContent !== text) element.textContent = text;
    return element;
  }
  element.replaceChildren();
  put(element, children);
  return element;
}

// A panel's section with a heading.
export function card(title, ...children) {
  return h('section', { class: 'card' }, h('h2', {}, title), children);
}

// A list of labelled values; returns the element with update({label: value}).
export function facts(labels) {
  const values = new Map();
  const element = h('dl', { class: 'facts' });
  for (const [key, label, help] of labels) {
    const value = h('dd', {}, '–');
    values.set(key, value);
    element.append(h('div', { title: help }, h('dt', {}, label), value));
  }
  element.update = (of) => {
    for (const [key, value] of values) if (key in of) set(value, of[key] ?? '–');
  };
  return element;
}

// A progress bar; update(share, words) with a share from zero to one, or null.
export function bar(label) {
  const inner = h('span', {});
  const element = h('div', { class: 'bar', role: 'progressbar', 'aria-label': label, 'aria-valuemin': 0, 'aria-valuemax': 100 }, inner);
  element.update = (share, words) => {
    const known = typeof share === 'number' && Number.isFinite(share);
    const percent = known ? Math.max(0, Math.min(100, share * 100)) : 0;
    inner.style.width = `${percent}%`;
    element.classList.toggle('unknown', !known);
    if (known) element.setAttribute('aria-valuenow', percent.toFixed(1));
    else element.removeAttribute('aria-valuenow');
    if (words) element.setAttribute('aria-valuetext', words);
  };
  return element;
}

// A table with sortable columns. columns: [{key, title, value(row), show(row), number, help}]; rows by key.
// Updates cells in place, so that the focus and the scroll position stay. `open(row, key)` makes rows clickable.
export function table({ columns, caption, empty = 'nothing yet', sort = null, descending = false, limit = 500, open = null }) {
  let rows = {};
  let order = { key: sort ?? columns[0].key, descending };
  let filter = null;
  const lines = new Map();
  const body = h('tbody', {});
  const buttons = new Map();
  const head = h('tr', {}, columns.map((column) => {
    const button = h('button', { type: 'button', title: column.help, onclick: () => {
      order = { key: column.key, descending: order.key === column.key ? !order.descending : !!column.number };
      draw();
    } }, column.title);
    const cell = h('th', { scope: 'col', class: column.number ? 'number' : null }, button);
    buttons.set(column.key, cell);
    return cell;
  }));
  const note = h('p', { class: 'muted', hidden: true });
  const element = h('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': caption },
    h('table', {}, h('caption', {}, caption), h('thead', {}, head), body));
  const whole = h('div', { class: 'tablebox' }, element, note);

  const value = (column, row, key) => (column.value ? column.value(row, key) : row[column.key]);

  function line(key, row) {
    let known = lines.get(key);
    if (!known) {
      const cells = columns.map((column, place) => (place === 0
        ? h('th', { scope: 'row', class: column.number ? 'number' : null })
        : h('td', { class: column.number ? 'number' : null })));
      const tr = h('tr', {}, cells);
      if (open) {
        tr.classList.add('opens');
        tr.addEventListener('click', () => open(rows[key], key));
      }
      known = { tr, cells, shown: [] };
      lines.set(key, known);
    }
    columns.forEach((column, place) => {
      const shown = column.show ? column.show(row, key) : value(column, row, key);
      const plain = shown === null || shown === undefined ? '–' : shown;
      if (plain instanceof Node || Array.isArray(plain)) {
        const text = JSON.stringify(value(column, row, key));
        if (known.shown[place] === text) return;
        known.shown[place] = text;
        set(known.cells[place], [plain]);
      } else if (known.shown[place] !== plain) {
        known.shown[place] = plain;
        known.cells[place].textContent = String(plain);
      }
    });
    return known.tr;
  }

  function compare(a, b) {
    const column = columns.find((one) => one.key === order.key) ?? columns[0];
    const [x, y] = [value(column, a[1], a[0]), value(column, b[1], b[0])];
    const none = (v) => v === null || v === undefined || v === '';
    let result;
    if (none(x) || none(y)) return none(x) ? (none(y) ? 0 : 1) : -1;
    if (typeof x === 'number' && typeof y === 'number') result = x - y;
    else result = String(x).localeCompare(String(y), 'en', { numeric: true });
    return order.descending ? -result : result;
  }

  function draw() {
    for (const [key, cell] of buttons) {
      const is = key === order.key;
      cell.setAttribute('aria-sort', is ? (order.descending ? 'descending' : 'ascending') : 'none');
    }
    let all = Object.entries(rows);
    if (filter) all = all.filter(([key, row]) => filter(row, key));
    const count = all.length;
    all.sort(compare);
    all = all.slice(0, limit);
    const keep = new Set(all.map(([key]) => key));
    for (const [key, { tr }] of lines) {
      if (!keep.has(key)) {
        tr.remove();
        lines.delete(key);
      }
    }
    let place = body.firstChild;
    for (const [key, row] of all) {
      const tr = line(key, row);
      if (tr === place) place = place.nextSibling;
      else body.insertBefore(tr, place);
    }
    note.hidden = count > 0 && count <= limit;
    if (count === 0) set(note, empty);
    else if (count > limit) set(note, `${num(limit)} of ${num(count)} rows are shown.`);
  }

  whole.update = (of) => {
    rows = of ?? {};
    draw();
  };
  whole.filter = (f) => {
    filter = f;
    draw();
  };
  return whole;
}

// A search field that calls back while the user types.
export function search(label, onchange) {
  return h('label', { class: 'search' }, h('span', {}, label),
    h('input', { type: 'search', autocomplete: 'off', spellcheck: 'false', oninput: (event) => onchange(event.target.value.trim()) }));
}

// A line through recent values, without axes.
export function spark(values, { width = 120, height = 28, label = '' } = {}) {
  const known = values.filter((v) => typeof v === 'number');
  const [low, high] = [Math.min(...known, 0), Math.max(...known, 1e-9)];
  const x = (i) => (values.length > 1 ? (i / (values.length - 1)) * (width - 2) + 1 : width / 2);
  const y = (v) => height - 2 - ((v - low) / (high - low)) * (height - 4);
  const points = values.map((v, i) => (typeof v === 'number' ? `${x(i).toFixed(1)},${y(v).toFixed(1)}` : null)).filter(Boolean);
  return s('svg', { class: 'spark', viewBox: `0 0 ${width} ${height}`, width, height, role: 'img', 'aria-label': label },
    s('polyline', { points: points.join(' '), fill: 'none' }));
}

// A sign with words: kind is good, warn, bad or calm. Never the colour alone.
export const badge = (kind, words) => h('span', { class: `badge ${kind}` }, words);

export const note = (kind, ...words) => h('p', { class: `note ${kind}`, role: kind === 'bad' ? 'alert' : null }, words);

// Formats.

const group = new Intl.NumberFormat('en-US', { maximumFractionDigits: 0 });

export const num = (value) => (typeof value === 'number' ? group.format(value) : '–');

export function short(value, digits = 1) {
  if (typeof value !== 'number' || !Number.isFinite(value)) return '–';
  const units = [[1e9, ' G'], [1e6, ' M'], [1e3, ' k']];
  for (const [size, unit] of units) if (Math.abs(value) >= size) return `${(value / size).toFixed(digits)}${unit}`;
  return Number.isInteger(value) ? String(value) : value.toFixed(digits);
}

export function bytes(value, digits = 1) {
  if (typeof value !== 'number' || !Number.isFinite(value)) return '–';
  const units = [[1e12, 'TB'], [1e9, 'GB'], [1e6, 'MB'], [1e3, 'kB']];
  for (const [size, unit] of units) if (value >= size) return `${(value / size).toFixed(digits)} ${unit}`;
  return `${Math.round(value)} B`;
}

export const rate = (value) => (typeof value === 'number' ? `${bytes(value)}/s` : '–');

export const percent = (share, digits = 1) => (typeof share === 'number' ? `${(share * 100).toFixed(digits)} %` : '–');

export function duration(seconds) {
  if (typeof seconds !== 'number' || !Number.isFinite(seconds)) return '–';
  const whole = Math.max(0, Math.round(seconds));
  const [d, hours, m] = [Math.floor(whole / 86400), Math.floor(whole / 3600) % 24, Math.floor(whole / 60) % 60];
  if (d) return `${d} d ${hours} h`;
  if (hours) return `${hours} h ${m} min`;
  if (m) return `${m} min ${whole % 60} s`;
  return `${whole} s`;
}

export const ago = (seconds, now) => (typeof seconds === 'number' && seconds > 0 ? `${duration((now ?? Date.now() / 1000) - seconds)} ago` : '–');

export function time(seconds) {
  if (typeof seconds !== 'number' || seconds <= 0) return '–';
  return new Date(seconds * 1000).toISOString().replace('T', ' ').slice(0, 19);
}

// Satoshi per virtual byte, from satoshi per 1,000 virtual bytes.
export const satvb = (perKvb) => (typeof perKvb === 'number' ? `${(perKvb / 1000).toFixed(perKvb < 10000 ? 3 : 1)} sat/vB` : '–');

export const btc = (value) => (typeof value === 'number' ? `${value.toFixed(8)} BTC` : '–');

// The ends of a hash, with the whole in the title.
export const hash = (text, keep = 8) => (typeof text === 'string' && text.length > 2 * keep + 1
  ? h('span', { class: 'hash', title: text }, `${text.slice(0, keep)}…${text.slice(-keep)}`)
  : text ?? '–');

// Text from outside, shortened.
export const clip = (text, length = 80) => {
  const plain = String(text ?? '');
  return plain.length > length ? `${plain.slice(0, length - 1)}…` : plain;
};
