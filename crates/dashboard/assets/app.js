// The frame of the page: login, navigation, the panel of the address.

import * as api from './api.js';
import * as live from './live.js';
import { button, h, muted, note, problem, set } from './ui.js';

// In the order of the navigation. A panel is a module with a function that fills its root; it is loaded when it is opened.
const PANELS = ['overview', 'sync', 'blocks', 'chain', 'miners', 'peers', 'mempool', 'explorer', 'serving', 'machine', 'log', 'settings', 'connect'];

const [main, nav, headline, menu] = ['main', 'nav', 'headline', 'menu'].map((id) => document.getElementById(id));
// What ends with the panel.
let ends = [];

const load = (panel) => import(`/assets/panels/${panel}.js`);
const titleOf = (panel) => panel[0].toUpperCase() + panel.slice(1);

function leave() {
	ends.forEach((end) => end());
	ends = [];
}

async function show() {
	const [, name, query] = /^#\/([a-z]+)(?:\?(.*))?$/.exec(location.hash) ?? [];
	const panel = PANELS.includes(name) ? name : PANELS[0];
	leave();
	openMenu(false);
	document.title = `${titleOf(panel)} · Lydian`;
	for (const link of nav.querySelectorAll('a')) {
		if (link.dataset.panel === panel) link.setAttribute('aria-current', 'page');
		else link.removeAttribute('aria-current');
	}
	const root = h(`div.panel.${panel}`);
	set(main, h('h1', titleOf(panel)), root);
	const session = api.current();
	// The explorer has no live data.
	if (panel !== 'explorer' && !session.topics.includes(panel)) {
		set(root, note('warn', session.user ? `-rpcwhitelist does not let ${session.user} see this panel.` : 'This panel needs a login.'));
		return;
	}
	const own = ends;
	try {
		const { default: start } = await load(panel);
		if (own !== ends) return;
		start(root, {
			session,
			query: new URLSearchParams(query),
			on: (topic, listener) => own.push(live.on(topic, listener)),
			every: (ms, work) => {
				const timer = setInterval(work, ms);
				own.push(() => clearInterval(timer));
				work();
			},
			atEnd: (work) => own.push(work),
		});
	} catch (error) {
		console.error(error);
		set(root, note('bad', `This panel failed: ${error.message}`));
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
		document.body.classList.toggle('lost', !up);
		set(headline, up ? live.state('overview')?.sentence ?? '' : 'connecting to the node …');
	};
	live.onLink((is) => { up = is; words(); });
	live.on('overview', words);
}

function enter() {
	const { user } = api.current();
	const logout = async () => {
		await api.logout();
		location.reload();
	};
	set(nav, h('ul', PANELS.map((panel) => h('li', h('a', { href: `#/${panel}`, 'data-panel': panel }, titleOf(panel))))),
		h('div.account', h('span', !user ? 'reading is open' : user === '__cookie__' ? 'logged in' : `logged in as ${user}`),
			user ? button('Log out', logout) : button('Log in', () => askLogin())));
	live.start();
	// The other panels are there even if the node ends.
	show().then(() => PANELS.forEach((panel) => load(panel).catch(() => {})));
}

function askLogin(words) {
	leave();
	const complaint = problem();
	complaint.say(words);
	const field = (name, attributes) => h('input', { name, id: name, required: true, ...attributes });
	const user = field('user', { autocomplete: 'username' });
	const password = field('password', { type: 'password', autocomplete: 'current-password' });
	const submit = h('button.primary', { type: 'submit' }, 'Log in');
	const form = h('form', { onsubmit: async (event) => {
		event.preventDefault();
		submit.disabled = true;
		try {
			await api.login({ user: user.value, password: password.value });
			enter();
		} catch (error) {
			complaint.say(error.message);
			password.focus();
		}
		submit.disabled = false;
	} }, h('label', { for: 'user' }, 'User'), user, h('label', { for: 'password' }, 'Password'), password, submit);
	document.title = 'Log in · Lydian';
	set(nav);
	set(headline, '');
	set(main, h('div.login.card', h('h1', 'Log in to this node'),
		h('p', 'Run ', h('code', 'lydian page'), ' on the machine of the node, and open the link that it prints.'),
		muted('Or use a user of RPC: one of rpcauth, or __cookie__ with the password in the file .cookie.'), form, complaint));
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
			set(main, note('bad', error.message));
			setTimeout(begin, 2000);
			return;
		}
		if (!api.current().user) return askLogin(error.message);
	}
	const { user, open } = api.current();
	if (user || open) enter();
	else askLogin();
}

watch();
begin();
