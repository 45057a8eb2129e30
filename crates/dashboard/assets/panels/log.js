// The log, live: the last lines by category and level. Categories are switched by the RPC method logging.

import { call } from '../api.js';
import * as live from '../live.js';
import { card, check, day, h, muted, num, problem, search, second, select, set, time } from '../ui.js';

const LEVELS = ['trace', 'debug', 'info', 'warning', 'error'];
const NAMES = LEVELS.map((name) => [name, name === 'trace' ? 'all levels' : name === 'error' ? 'errors only' : `${name} and above`]);

export default function log(root, { on, session }) {
	let lines = new Map();
	let [level, category, text, isFollowing] = ['trace', '', '', true];

	const levels = select('Level', NAMES, (value) => {
		level = value;
		drawAll();
	});
	const categories = select('Category', [], (value) => {
		category = value;
		drawAll();
	});
	const words = search('Text', (value) => {
		text = value;
		drawAll();
	});
	const follow = check('Follow', true, (is) => {
		isFollowing = is;
		scroll();
	});
	const list = h('ol.loglines', { tabindex: 0, 'aria-label': 'Lines of the log' });
	const [count, switches, complaint] = [muted(), h('div.switches'), problem()];
	root.append(card('Lines', h('div.tools', levels, categories, words, follow), list, count),
		card('Debug categories', muted(session.actions ? 'A category that is on is logged until the node stops; -debug switches it on at every start.'
			: 'Only a node with -pageactions switches categories from here; -debug=CATEGORY switches one on at the start.'), complaint, switches));

	const isShown = (line) => LEVELS.indexOf(line.level) >= LEVELS.indexOf(level)
		&& (category === '' || line.category === category) && line.text.toLowerCase().includes(text);

	function row(number, line) {
		const at = line.time / 1000;
		const isToday = day(at) === day(Date.now() / 1000);
		const kind = !line.category ? line.level : line.level === 'debug' ? line.category : `${line.category}:${line.level}`;
		return h(`li.${line.level}`, { 'data-line': number }, h('time', { title: new Date(line.time).toISOString() }, (isToday ? second : time)(at)),
			h('span.level', { title: kind }, kind), h('span.text', line.text));
	}

	function drawAll() {
		set(list, [...lines].filter(([, line]) => isShown(line)).map(([number, line]) => row(number, line)));
		finish();
	}

	function finish() {
		const file = live.state('log')?.file;
		set(count, `${num(list.childElementCount)} of the last ${num(lines.size)} lines.${file ? ` All of them are in ${file}.` : ''}`);
		scroll();
	}

	function scroll() {
		if (isFollowing) list.scrollTop = list.scrollHeight;
	}

	function drawCategories(of = {}) {
		const names = Object.keys(of);
		const known = [...switches.querySelectorAll('input')];
		if (known.length === names.length) return known.forEach((input) => { input.checked = of[input.name]; });
		const choice = categories.querySelector('select');
		set(choice, ['', ...names].map((name) => h('option', { value: name }, name || 'all categories')));
		choice.value = category;
		return set(switches, names.map((name) => check(name, of[name], (is, input) => toggle(name, input), { name, disabled: !session.actions })));
	}

	async function toggle(name, input) {
		complaint.say();
		try {
			await call('logging', input.checked ? [name] : [], input.checked ? [] : [name]);
		} catch (error) {
			input.checked = !input.checked;
			complaint.say(error.message);
		}
	}

	on('log', (now, changed) => {
		const numbered = (of) => Object.entries(of).filter(([key]) => /^\d+$/.test(key)).sort((a, b) => a[0] - b[0]);
		if (changed === null || changed.categories) drawCategories(now.categories);
		if (changed === null) {
			lines = new Map(numbered(now));
			return drawAll();
		}
		for (const [number, line] of numbered(changed)) {
			if (line === null) {
				lines.delete(number);
				list.querySelector(`[data-line="${number}"]`)?.remove();
			} else {
				lines.set(number, line);
				if (isShown(line)) list.append(row(number, line));
			}
		}
		return finish();
	});
}
