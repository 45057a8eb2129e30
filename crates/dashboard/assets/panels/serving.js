// What the servers do for programs and wallets: connections, requests by method with their duration, and the sessions
// of Electrum wallets. What a wallet asks for is not shown.

import { act, ban, column, hostOf, outcome, small, unbanning } from './actions.js';
import { badge, bytes, card, clip, duration, facts, h, millis, muted, num, percent, rowsOf, search, set, short, spent, table } from '../ui.js';

const SERVERS = { rpc: 'RPC', rest: 'REST', electrum: 'Electrum', esplora: 'Esplora' };

// The figures whose name is no word; others are shown by their name.
const LABELS = { ended_total: 'Ended for their cost', refused_total: 'Refused, queue full' };

const labelOf = ({ name, label }) => {
	const words = LABELS[name] ?? name.replace(/_total$/, '').replaceAll('_', ' ');
	return label ? `${words}, ${label}` : words[0].toUpperCase() + words.slice(1);
};
const errorsOf = ({ errors }, count) => (errors > 0 ? `${num(errors)} (${percent(errors / count)})` : '0');

export default function serving(root, { on, session }) {
	const mayAct = session.actions;
	let filter = '';
	const before = new Map();

	const servers = Object.entries(SERVERS).map(([key, title]) => {
		const body = h('div');
		return { key, body, element: card(title, body) };
	});
	const requests = table('Requests by method', [
		['method', 'Method', null, null, (row, key) => key.split(':').slice(1).join(':')],
		['server', 'Server', null, null, (row, key) => SERVERS[key.split(':')[0]]],
		['#count', 'Requests', num],
		['#errors', 'Errors', (_, row) => errorsOf(row, row.count)],
		['#p50', 'p50', millis, 'Half of the requests took at most so long'],
		['#p99', 'p99', millis, '99 of 100 requests took at most so long'],
		['#mean', 'Mean', millis, null, (row) => (row.seconds / row.count) * 1000],
		['#seconds', 'Total', spent, 'Time of all requests together'],
	], { sort: '-count', empty: 'No request yet.' });
	const said = outcome();
	const sessions = table('Sessions of Electrum wallets', [
		['#id', 'Id'],
		['addr', 'Address'],
		['client', 'Client', (name) => clip(name || '–', 40)],
		['protocol', 'Protocol'],
		['#conntime', 'Age', duration],
		['#idletime', 'Idle', duration],
		['#subscriptions', 'Subscriptions', num],
		['#requests', 'Requests', num],
		['#bytesrecv', 'Received', bytes],
		['#bytessent', 'Sent', bytes],
		['#cost', 'Cost', num, 'Units that its answers cost so far'],
		['#subnet_cost', 'Subnet', num, 'Units of its subnet now'],
		mayAct && column((_, { id, addr, local }) => {
			const disconnect = () => act(said, [`Disconnect session ${id}?`, `The wallet at ${addr} may connect again.`, 'Disconnect'],
				() => ['disconnectelectrumsession', id], () => `Disconnected session ${id}.`);
			return h('span.buttons', small('Disconnect', `Disconnect session ${id}`, disconnect), !local && small('Ban', `Ban ${hostOf(addr)}`, () => ban(said, 'setelectrumban', hostOf(addr),
				'Its sessions of the Electrum server end, and new ones are refused. A restart of the node ends the ban.')));
		}),
	], { sort: '-cost', empty: 'No wallet is connected.' });
	const bans = table('Bans of the Electrum server', [
		['address', 'Address or subnet'],
		['#time_remaining', 'Left', duration],
		mayAct && unbanning(said, 'setelectrumban', 'Its wallets may connect again.'),
	], { empty: 'No address is banned.' });
	const wallets = h('div', said, sessions, h('h3', 'Bans'), bans);
	const complaint = muted();
	root.append(h('div.columns.servers', servers.map(({ element }) => element)),
		card('Requests', h('div.tools', search('Filter', (text) => {
			filter = text;
			requests.filter((row, key) => key.toLowerCase().includes(filter));
		}), h('span.muted', 'Since the start of the node. Durations include waiting.')), requests),
		card('Electrum wallets', complaint, wallets));

	function complain(words = '') {
		set(complaint, words);
		complaint.hidden = words === '';
		wallets.hidden = words !== '';
	}

	// Requests a second, from two readings.
	function speed(key, count) {
		const now = performance.now();
		const known = before.get(key) ?? { at: now, count, rate: null };
		const seconds = (now - known.at) / 1000;
		if (seconds >= 2) before.set(key, { at: now, count, rate: Math.max(0, count - known.count) / seconds });
		else if (!before.has(key)) before.set(key, known);
		return before.get(key).rate;
	}

	function drawServer({ key, body }, server) {
		if (!server?.on) return set(body, badge('calm', 'off'), muted(`-${key} switches it on.`));
		const rate = speed(key, server.requests);
		const list = facts(Object.fromEntries(server.figures.map((one) => [labelOf(one), one.help])));
		return set(body, list.update({
			Requests: `${num(server.requests)}${rate === null ? '' : `, ${short(rate)}/s`}`,
			Errors: errorsOf(server, server.requests),
			...Object.fromEntries(server.figures.map((one) => [labelOf(one), num(one.value)])),
		}));
	}

	complain(session.user ? '' : 'Log in to see the sessions.');
	on('serving', (state) => {
		servers.forEach((server) => drawServer(server, state[`server:${server.key}`]));
		requests.update(rowsOf(state, 'request'));
	});
	on('sessions', (state) => {
		complain(state.problem ? `${state.problem}.` : '');
		sessions.update(rowsOf(state, 'session'));
		bans.update(rowsOf(state, 'ban'));
	});
}
