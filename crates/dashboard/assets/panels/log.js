// The log, live: the last lines by category and level. Categories are switched by the RPC method logging.

const LEVELS = ['trace', 'debug', 'info', 'warning', 'error'];

export default {
  name: 'log',
  title: 'Log',
  start(root, { live, api, ui, session }) {
    const { h, set, card, note } = ui;
    if (!session.user) {
      root.append(note('warn', 'The log needs a login.'));
      return null;
    }
    let lines = new Map();
    let level = 'trace';
    let category = '';
    let text = '';
    let isFollowing = true;

    const levels = h('select', { id: 'loglevel', onchange: (event) => { level = event.target.value; drawAll(); } },
      LEVELS.map((name) => h('option', { value: name }, name === 'trace' ? 'all levels' : name === 'error' ? 'errors only' : `${name} and above`)));
    const categories = h('select', { id: 'logcategory', onchange: (event) => { category = event.target.value; drawAll(); } }, h('option', { value: '' }, 'all categories'));
    const words = h('input', { type: 'search', id: 'logtext', autocomplete: 'off', spellcheck: 'false', oninput: (event) => { text = event.target.value.toLowerCase(); drawAll(); } });
    const follow = h('input', { type: 'checkbox', id: 'logfollow', checked: true, onchange: (event) => { isFollowing = event.target.checked; scroll(); } });
    const list = h('ol', { class: 'loglines', tabindex: 0, 'aria-label': 'Lines of the log' });
    const count = h('p', { class: 'muted' });
    const switches = h('div', { class: 'switches' });
    const problem = h('p', { class: 'note bad', role: 'alert', hidden: true });
    root.append(card('Lines',
      h('div', { class: 'tools' }, field('loglevel', 'Level', levels), field('logcategory', 'Category', categories), field('logtext', 'Text', words),
        h('label', { class: 'check', for: 'logfollow' }, follow, ' Follow')),
      list, count),
    card('Debug categories', h('p', { class: 'muted' }, session.actions
      ? 'A category that is on is logged until the node stops; -debug switches it on at every start.'
      : 'Only a node with -pageactions can be told from here what to log; -debug=CATEGORY switches a category on at the start.'), problem, switches));

    function field(id, label, input) {
      return h('div', { class: 'search' }, h('label', { for: id }, label), input);
    }

    const isShown = (line) => LEVELS.indexOf(line.level) >= LEVELS.indexOf(level)
      && (category === '' || line.category === category) && (text === '' || line.text.toLowerCase().includes(text));

    function row(number, line) {
      const time = new Date(line.time);
      return h('li', { class: line.level, 'data-line': number }, h('time', { datetime: time.toISOString(), title: time.toISOString() }, clock(time)),
        h('span', { class: 'level' }, line.category && line.level === 'debug' ? line.category : line.category ? `${line.category}:${line.level}` : line.level),
        h('span', { class: 'text' }, line.text));
    }

    function clock(time) {
      const two = (value) => String(value).padStart(2, '0');
      const day = new Date().toDateString() === time.toDateString() ? '' : `${time.getFullYear()}-${two(time.getMonth() + 1)}-${two(time.getDate())} `;
      return `${day}${two(time.getHours())}:${two(time.getMinutes())}:${two(time.getSeconds())}`;
    }

    function drawAll() {
      const shown = [...lines].filter(([, line]) => isShown(line));
      list.replaceChildren(...shown.map(([number, line]) => row(number, line)));
      finish();
    }

    function finish() {
      const shown = list.childElementCount;
      const file = live.state('log')?.file;
      set(count, `${ui.num(shown)} of the last ${ui.num(lines.size)} lines.${file ? ` All of them are in ${file}.` : ''}`);
      scroll();
    }

    function scroll() {
      if (isFollowing) list.scrollTop = list.scrollHeight;
    }

    function drawCategories(of) {
      const names = Object.keys(of ?? {});
      if (categories.childElementCount !== names.length + 1) {
        categories.replaceChildren(h('option', { value: '' }, 'all categories'), ...names.map((name) => h('option', { value: name }, name)));
        categories.value = category;
      }
      const known = new Map([...switches.querySelectorAll('input')].map((input) => [input.name, input]));
      if (known.size !== names.length) {
        set(switches, names.map((name) => h('label', { class: 'check' },
          h('input', { type: 'checkbox', name, checked: of[name], disabled: !session.actions, onchange: (event) => toggle(name, event.target) }), ` ${name}`)));
      } else {
        for (const name of names) known.get(name).checked = of[name];
      }
    }

    async function toggle(name, input) {
      problem.hidden = true;
      try {
        await api.call('logging', input.checked ? [name] : [], input.checked ? [] : [name]);
      } catch (error) {
        input.checked = !input.checked;
        set(problem, error.message);
        problem.hidden = false;
      }
    }

    const off = live.on('log', (now, changed) => {
      const isLine = ([key]) => /^\d+$/.test(key);
      if (changed === null) {
        lines = new Map(Object.entries(now).filter(isLine).sort((a, b) => a[0] - b[0]));
        drawCategories(now.categories);
        drawAll();
        return;
      }
      if (changed.categories) drawCategories(changed.categories);
      for (const [number, line] of Object.entries(changed).filter(isLine).sort((a, b) => a[0] - b[0])) {
        if (line === null) {
          lines.delete(number);
          list.querySelector(`[data-line="${number}"]`)?.remove();
        } else {
          lines.set(number, line);
          if (isShown(line)) list.append(row(number, line));
        }
      }
      finish();
    });
    return off;
  },
};
