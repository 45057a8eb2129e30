// Buttons that change the node. Each asks once more, and then says in a sentence what happened. They are there only if
// the node takes actions from the page (-pageactions) and the reader has logged in.

import { h, set } from '/assets/ui.js';

// Asks in a dialog; resolves to whether the answer is yes. `fields`: elements between the sentence and the buttons.
export function confirm({ title, sentence, verb, fields = [] }) {
  return new Promise((resolve) => {
    let answer = false;
    const no = h('button', { type: 'button', onclick: () => dialog.close() }, 'Cancel');
    const form = h('form', { onsubmit: (event) => {
      event.preventDefault();
      answer = true;
      dialog.close();
    } }, h('h2', { id: 'confirm-title' }, title), h('p', {}, sentence), fields,
    h('div', { class: 'buttons' }, no, h('button', { type: 'submit', class: 'danger' }, verb)));
    const dialog = h('dialog', { class: 'confirm', 'aria-labelledby': 'confirm-title', onclose: () => {
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
  const line = h('p', { class: 'outcome', role: 'status' });
  line.say = (words, isError = false) => {
    set(line, words);
    line.classList.toggle('bad', isError);
  };
  return line;
}

// Asks, calls a method, and reports. `call` and `done` are computed after the answer: [method, ...params], a sentence.
export async function act(api, line, question, call, done) {
  if (question && !(await confirm(question))) return false;
  const [method, ...params] = call();
  try {
    await api.call(method, ...params);
    line.say(done());
    return true;
  } catch (error) {
    line.say(`${method} failed: ${error.message}`, true);
    return false;
  }
}

const TIMES = [[3600, 'an hour'], [86400, 'a day'], [7 * 86400, 'a week'], [30 * 86400, '30 days'], [365 * 86400, 'a year']];

// A choice of the duration of a ban, with its label.
export function durations() {
  const select = h('select', { id: 'ban-time' }, TIMES.map(([seconds, name]) => h('option', { value: seconds, selected: seconds === 86400 }, name)));
  const element = h('p', { class: 'field' }, h('label', { for: 'ban-time' }, 'For'), select);
  element.seconds = () => Number(select.value);
  element.words = () => TIMES.find(([seconds]) => seconds === Number(select.value))[1];
  return element;
}

// A labelled field of a dialog.
export function input(label, attributes) {
  const control = h('input', { id: 'action-input', autocomplete: 'off', spellcheck: 'false', required: true, ...attributes });
  const element = h('p', { class: 'field' }, h('label', { for: 'action-input' }, label), control);
  element.value = () => control.value.trim();
  return element;
}

// A small button in a row of a table.
export const small = (words, label, onclick) => h('button', { type: 'button', class: 'small', 'aria-label': label, onclick: (event) => {
  event.stopPropagation();
  onclick();
} }, words);

// An address without its port, for a ban.
export const hostOf = (addr) => addr.replace(/:\d+$/, '').replace(/^\[|\]$/g, '');

// The rows of a kind: {7: row} for the keys peer:7.
export const rowsOf = (state, kind) => Object.fromEntries(Object.entries(state)
  .filter(([key]) => key.startsWith(`${kind}:`)).map(([key, row]) => [key.slice(kind.length + 1), row]));
