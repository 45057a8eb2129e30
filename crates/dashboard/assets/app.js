// The frame of the page: login, navigation, the panel of the address.

import * as api from '/assets/api.js';
import * as live from '/assets/live.js';
import * as ui from '/assets/ui.js';

import connect from '/assets/panels/connect.js';
import overview from '/assets/panels/overview.js';
import peers from '/assets/panels/peers.js';
import log from '/assets/panels/log.js';
import machine from '/assets/panels/machine.js';
import settings from '/assets/panels/settings.js';
import serving from '/assets/panels/serving.js';
import sync from '/assets/panels/sync.js';
import blocks from '/assets/panels/blocks.js';
import chain from '/assets/panels/chain.js';
import miners from '/assets/panels/miners.js';
import mempool from '/assets/panels/mempool.js';
import explorer from '/assets/panels/explorer.js';

// In the order of the navigation.
const PANELS = [overview, sync, blocks, chain, miners, peers, mempool, explorer, serving, machine, log, settings, connect];

const { h, set } = ui;
const main = document.getElementById('main');
const nav = document.getElementById('nav');
const headline = document.getElementById('headline');
const menu = document.getElementById('menu');
let stop = null;

const wanted = () => /^#\/([a-z]+)(?:\?(.*))?$/.exec(location.hash) ?? [null, 'overview', ''];

function show() {
  const [, name, query] = wanted();
  const panel = PANELS.find((one) => one.name === name) ?? PANELS[0];
  stop?.();
  stop = null;
  openMenu(false);
  document.title = `${panel.title} · Lydian`;
  for (const link of nav.querySelectorAll('a')) {
    if (link.dataset.panel === panel.name) link.setAttribute('aria-current', 'page');
    else link.removeAttribute('aria-current');
  }
  const root = h('div', { class: `panel ${panel.name}` });
  set(main, h('h1', {}, panel.title), root);
  try {
    stop = panel.start(root, { live, api, ui, session: api.current(), query: new URLSearchParams(query ?? '') }) ?? null;
  } catch (error) {
    console.error(error);
    set(root, ui.note('bad', `This panel failed: ${error.message}`));
  }
}

// On small screens the open menu covers the panel, which then takes no input.
function openMenu(open) {
  nav.classList.toggle('open', open);
  menu.setAttribute('aria-expanded', String(open));
  main.inert = open;
}

menu.addEventListener('click', () => openMenu(!nav.classList.contains('open')));
addEventListener('keydown', (event) => event.key === 'Escape' && openMenu(false));
matchMedia('(min-width: 1024px)').addEventListener('change', () => openMenu(false));
addEventListener('hashchange', () => {
  if (location.hash.startsWith('#link=')) begin();
  else if (nav.childElementCount > 0) {
    show();
    main.focus({ preventScroll: true });
  }
});

function watch() {
  let up = false;
  const words = () => {
    const now = live.state('overview');
    document.body.classList.toggle('lost', !up);
    set(headline, up ? now?.sentence ?? '' : 'connecting to the node …');
  };
  live.onLink((is) => { up = is; words(); });
  live.on('overview', words);
}

function enter() {
  const session = api.current();
  const account = session.user
    ? h('div', { class: 'account' }, h('span', {}, session.user === '__cookie__' ? 'logged in' : `logged in as ${session.user}`),
      h('button', { type: 'button', onclick: async () => { await api.logout(); location.reload(); } }, 'Log out'))
    : h('div', { class: 'account' }, h('span', {}, 'reading is open'), h('button', { type: 'button', onclick: askLogin }, 'Log in'));
  set(nav, h('ul', {}, PANELS.map((panel) => h('li', {}, h('a', { href: `#/${panel.name}`, 'data-panel': panel.name }, panel.title)))), account);
  live.start();
  show();
}

function askLogin(words) {
  stop?.();
  stop = null;
  const problem = h('p', { class: 'note bad', role: 'alert', hidden: true });
  const complain = (text) => { set(problem, text); problem.hidden = false; };
  const user = h('input', { name: 'user', autocomplete: 'username', required: true, id: 'user' });
  const password = h('input', { name: 'password', type: 'password', autocomplete: 'current-password', required: true, id: 'password' });
  const button = h('button', { type: 'submit', class: 'primary' }, 'Log in');
  const form = h('form', { onsubmit: async (event) => {
    event.preventDefault();
    button.disabled = true;
    try {
      await api.login({ user: user.value, password: password.value });
      enter();
    } catch (error) {
      complain(error.message);
      password.focus();
    }
    button.disabled = false;
  } }, h('label', { for: 'user' }, 'User'), user, h('label', { for: 'password' }, 'Password'), password, button);
  document.title = 'Log in · Lydian';
  set(nav);
  set(headline, '');
  set(main, h('div', { class: 'login card' }, h('h1', {}, 'Log in to this node'),
    h('p', {}, 'Run ', h('code', {}, 'lydian page'), ' on the machine of the node, and open the link that it prints.'),
    h('p', { class: 'muted' }, 'Or use a user of RPC: one of rpcauth, or __cookie__ with the password in the file .cookie.'),
    form, problem));
  if (typeof words === 'string') complain(words);
}

async function begin() {
  const link = /^#link=([0-9a-f]+)$/.exec(location.hash);
  if (link) history.replaceState(null, '', '/');
  try {
    if (link) await api.login({ link: link[1] });
    else await api.loadSession();
  } catch (error) {
    try {
      await api.loadSession();
    } catch {
      set(main, ui.note('bad', error.message));
      setTimeout(begin, 2000);
      return;
    }
    if (!api.current().user) return askLogin(error.message);
  }
  const session = api.current();
  if (session.user || session.open) enter();
  else askLogin();
}

watch();
begin();
