// Every option: the value in effect, where it was given, the default and the help. Secrets are only ever "set".

export default {
  name: 'settings',
  title: 'Settings',
  start(root, { live, ui, session }) {
    const { h, set, card, note, badge } = ui;
    if (!session.user) {
      root.append(note('warn', 'The settings need a login.'));
      return null;
    }
    let text = '';
    let onlyGiven = false;
    // The groups that are unfolded while nothing is searched for.
    const open = new Set(['Common options']);
    const input = h('input', { type: 'search', id: 'optiontext', autocomplete: 'off', spellcheck: 'false', oninput: (event) => { text = event.target.value.trim().toLowerCase().replace(/^-+/, ''); draw(); } });
    const given = h('input', { type: 'checkbox', id: 'optiongiven', onchange: (event) => { onlyGiven = event.target.checked; draw(); } });
    const notes = h('div', { class: 'warnings' });
    const groups = h('div', { class: 'panel' });
    root.append(card('Find', h('div', { class: 'tools' },
      h('div', { class: 'search' }, h('label', { for: 'optiontext' }, 'Name or help'), input),
      h('label', { class: 'check', for: 'optiongiven' }, given, ' Only those that were given')),
    h('p', { class: 'muted' }, 'Options are given on the command line or in lydian.conf, and take effect when the node starts.')), notes, groups);

    function draw() {
      const now = live.state('settings');
      if (!now?.options) return;
      set(notes, (now.interactions ?? []).map((words) => note('calm', words)));
      const all = Object.entries(now.options).sort((a, b) => a[1].place - b[1].place)
        .filter(([, row]) => row.group !== '' || row.source !== null)
        .filter(([name, row]) => (!onlyGiven || row.source !== null) && (text === '' || name.includes(text) || row.help.toLowerCase().includes(text)));
      const byGroup = new Map();
      for (const [name, row] of all) {
        const group = row.group || 'Other options';
        if (!byGroup.has(group)) byGroup.set(group, []);
        byGroup.get(group).push([name, row]);
      }
      const isSearch = onlyGiven || text !== '';
      const cards = [...byGroup].map(([group, rows]) => {
        const given = rows.filter(([, row]) => row.source !== null).length;
        const title = h('summary', {}, h('h2', {}, group), h('span', { class: 'muted' }, `${rows.length} options${given > 0 ? `, ${given} given` : ''}`));
        return h('details', { class: 'card group', open: isSearch || open.has(group), ontoggle: (event) => {
          if (!isSearch) open[event.target.open ? 'add' : 'delete'](group);
        } }, title, h('div', { class: 'options' }, rows.map(([name, row]) => option(name, row))));
      });
      set(groups, cards.length > 0 ? cards : h('p', { class: 'muted' }, 'No option matches.'));
    }

    function option(name, row) {
      const own = row.source !== null;
      const values = own ? row.values.map((value) => (value === '' ? 'empty' : value)).join(', ') : row.default || '–';
      return h('article', { class: own ? 'option given' : 'option', id: `option-${name}` },
        h('h3', {}, h('code', {}, `-${name}${row.argument ? `=${row.argument}` : ''}`)),
        h('p', { class: 'value' }, own ? h('strong', {}, values) : h('span', {}, values), ' ', own ? badge('calm', source(row.source)) : h('span', { class: 'muted' }, 'default')),
        h('p', { class: 'help' }, `${row.help}.`, row.isSecret ? ' Its value is never shown.' : '', own && row.default ? ` Default: ${row.default}.` : ''));
    }

    // The end of a path says which file it is.
    function source(words) {
      return words.includes('/') ? words.slice(words.lastIndexOf('/') + 1) : words;
    }
    return live.on('settings', draw);
  },
};
