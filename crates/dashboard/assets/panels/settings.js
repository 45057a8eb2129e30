// Every option: the value in effect, where it was given, the default and the help. Secrets are only ever "set".

import * as live from '../live.js';
import { badge, card, check, h, muted, note, plural, search, set } from '../ui.js';

export default function settings(root, { on }) {
	let [text, onlyGiven] = ['', false];
	// The groups that are unfolded while nothing is searched for.
	const open = new Set(['Common options']);
	const words = search('Name or help', (value) => {
		text = value.replace(/^-+/, '');
		draw();
	});
	const given = check('Only those that were given', false, (is) => {
		onlyGiven = is;
		draw();
	});
	const [notes, groups] = [h('div.warnings'), h('div.panel')];
	root.append(card('Find', h('div.tools', words, given), muted('Options are given on the command line or in lydian.conf, and take effect when the node starts.')), notes, groups);

	function draw() {
		const now = live.state('settings');
		if (!now?.options) return;
		set(notes, (now.interactions ?? []).map((sentence) => note('calm', sentence)));
		const isGiven = ([, row]) => row.source !== null;
		const shown = Object.entries(now.options).sort((a, b) => a[1].place - b[1].place).filter(([name, row]) => (onlyGiven ? row.source !== null : row.group !== '' || row.source !== null)
			&& (name.includes(text) || row.help.toLowerCase().includes(text)));
		const isSearch = onlyGiven || text !== '';
		const cards = Object.entries(Object.groupBy(shown, ([, row]) => row.group || 'Other options')).map(([group, rows]) => {
			const count = rows.filter(isGiven).length;
			return h('details.card.group', { open: isSearch || open.has(group), ontoggle: (event) => {
				if (!isSearch) open[event.target.open ? 'add' : 'delete'](group);
			} }, h('summary', h('h2', group), h('span.muted', `${plural(rows.length, 'option')}${count > 0 ? `, ${count} given` : ''}`)),
			h('div.options', rows.map(option)));
		});
		set(groups, cards.length > 0 ? cards : muted('No option matches.'));
	}

	function option([name, row]) {
		const own = row.source !== null;
		const values = own ? row.values.map((value) => value || 'empty').join(', ') : row.default || '–';
		// The end of a path says which file it is.
		const source = own ? badge('calm', row.source.split('/').at(-1)) : h('span.muted', 'default');
		return h('article.option', { id: `option-${name}` },
			h('h3', h('code', `-${name}${row.argument ? `=${row.argument}` : ''}`)),
			h('p.value', own ? h('strong', values) : values, ' ', source),
			h('p.help', `${row.help}.`, row.isSecret ? ' Its value is never shown.' : '', own && row.default ? ` Default: ${row.default}.` : ''));
	}

	on('settings', draw);
}
