// Buttons that change the node. Each asks once more, and then says in a sentence what happened. They are there only if
// the node takes actions from the page (-pageactions) and the reader has logged in.

import { call } from '../api.js';
import { button, h, set } from '../ui.js';

// Asks in a dialog; resolves to whether the answer is yes. `fields`: elements between the sentence and the buttons.
function confirm(title, sentence, verb, fields) {
	return new Promise((resolve) => {
		let answer = false;
		const no = button('Cancel', () => dialog.close());
		const form = h('form', { onsubmit: (event) => {
			event.preventDefault();
			answer = true;
			dialog.close();
		} }, h('h2', { id: 'confirm-title' }, title), h('p', sentence), fields,
		h('div.buttons', no, h('button.danger', { type: 'submit' }, verb)));
		const dialog = h('dialog.confirm', { 'aria-labelledby': 'confirm-title', onclose: () => {
			dialog.remove();
			resolve(answer);
		} }, form);
		document.body.append(dialog);
		dialog.showModal();
		// An Enter that was meant for something else must not confirm.
		(form.querySelector('input, select') ?? no).focus();
	});
}

// A line for the results of actions, which a screen reader reads aloud.
export function outcome() {
	const line = h('p.outcome', { role: 'status' });
	line.say = (words, isError = false) => {
		set(line, words);
		line.classList.toggle('bad', isError);
	};
	return line;
}

// Asks, calls a method, and reports in the line. `method` and `done` are computed after the answer: [method, ...params],
// and a sentence, of the result of the method.
export async function act(line, [title, sentence, verb, ...fields], method, done) {
	if (!(await confirm(title, sentence, verb, fields))) return;
	const [name, ...params] = method();
	try {
		line.say(done(await call(name, ...params)));
	} catch (error) {
		line.say(`${name} failed: ${error.message}`, true);
	}
}

const TIMES = [[3600, 'an hour'], [86400, 'a day'], [7 * 86400, 'a week'], [30 * 86400, '30 days'], [365 * 86400, 'a year']];

// A labelled field of a dialog, with value().
function labelled(label, control) {
	const element = h('p.field', h('label', { for: control.id }, label), control);
	element.value = () => control.value.trim();
	return element;
}

export const input = (label, placeholder) => labelled(label,
	h('input', { id: 'action-input', autocomplete: 'off', spellcheck: 'false', required: true, placeholder }));

// Bans through a method: of an address, or of what is entered.
export function ban(line, method, host, sentence) {
	const time = labelled('For', h('select', { id: 'ban-time' }, TIMES.map(([seconds, name]) => h('option', { value: seconds, selected: seconds === 86400 }, name))));
	const subnet = host ? { value: () => host } : input('Address or subnet', '203.0.113.0/24');
	const words = () => TIMES.find(([seconds]) => String(seconds) === time.value())[1];
	return act(line, [host ? `Ban ${host}?` : 'Ban an address', sentence, 'Ban', host ? null : subnet, time],
		() => [method, subnet.value(), 'add', Number(time.value())], () => `Banned ${subnet.value()} for ${words()}.`);
}

// A column of a table with an action, and one that unbans.
export const column = (show) => ['action', 'Action', show, null, (row, key) => key];
export const unbanning = (line, method, sentence) => column((address, row) => small('Unban', `Unban ${row.address}`, () => act(line,
	[`Unban ${row.address}?`, sentence, 'Unban'], () => [method, row.address, 'remove'], () => `Unbanned ${row.address}.`)));

// A small button in a row of a table.
export const small = (words, label, onclick) => button(words, (event) => {
	event.stopPropagation();
	onclick();
}, { class: 'small', 'aria-label': label });

// An address without its port, for a ban.
export const hostOf = (addr) => addr.replace(/:\d+$/, '').replace(/^\[|\]$/g, '');
