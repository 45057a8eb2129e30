// Every peer with all that getpeerinfo reports, bans and added nodes; actions for those who may.

import { act, ban, column, hostOf, input, outcome, small, unbanning } from './actions.js';
import { DEFAULT, FIELDS, NESTED, NETWORKS, field, readHelps } from './peer-fields.js';
import { badge, button, bytes, card, check, clip, duration, facts, h, keyed, millis, muted, num, plural, problem, rate, rowsOf, search, set, spark, table, time } from '../ui.js';

const STORED = 'lydian.peers.columns';

function storedColumns() {
	try {
		const names = JSON.parse(localStorage.getItem(STORED));
		if (Array.isArray(names) && names.length > 0) return names.filter((name) => name in FIELDS);
	} catch {
		// A browser without storage, or with another's value in it.
	}
	return DEFAULT;
}

export default function peers(root, { on, atEnd, session, query }) {
	const mayAct = session.actions;
	let state = {};
	let words = '';
	let columns = storedColumns();
	let list = null;
	let detail = null;

	const context = (id) => ({ now: (state.totals?.timemillis ?? Date.now()) / 1000, history: state[`history:${id}`] });
	const said = outcome();
	const complaint = problem('warn');
	const network = facts({
		'Reachable networks': 'Networks in which the node connects to peers',
		'Our addresses': 'Addresses that are announced to peers',
		'Upload limit': '-maxuploadtarget',
	});
	const [count, place, picker] = [h('span.muted'), h('div'), h('details.picker')];
	const switcher = button('Switch the network off…', toggle);
	const tools = h('div.tools', search('Filter', (text) => {
		words = text;
		draw();
	}), picker, count, h('span.grow'), mayAct && [button('Add a peer…', addPeer), switcher]);
	const bans = table('Bans', [
		['address', 'Address or subnet'],
		['#time_remaining', 'Left', duration],
		mayAct && unbanning(said, 'setban', 'Its peers may connect again.'),
		['ban_created', 'Since', time],
		['banned_until', 'Until', time],
	], { empty: 'No address is banned.' });
	const added = table('Added peers', [
		['addednode', 'Peer'],
		['connected', 'Connected', (is, node) => (is ? `yes, ${(node.addresses ?? []).map((one) => `${one.connected} ${one.address}`).join(', ')}` : 'no')],
		mayAct && column((_, { addednode }) => small('Remove', `Remove ${addednode}`, () => act(said,
			[`Remove ${addednode}?`, 'The node does not connect to it again; an open connection goes on.', 'Remove'],
			() => ['addnode', addednode, 'remove'], () => `Removed ${addednode}.`))),
	], { empty: 'No peer was added (-addnode).' });
	root.append(complaint, card('Network', network), card('Connected peers', tools, said, place),
		h('div.columns',
			card('Bans', bans, mayAct && h('p.buttons', button('Ban an address…', () => ban(said, 'setban', null, 'All its connections end, and new ones are refused.')),
				button('Remove all bans…', () => act(said, ['Remove all bans?', 'All banned peers may connect again.', 'Remove all'], () => ['clearbanned'], () => 'Removed all bans.')))),
			card('Added peers', added)),
		mayAct ? '' : muted(session.user ? 'This node takes no actions from the page. Start it with -pageactions to disconnect or ban peers here.'
			: 'Log in to disconnect or ban peers, if the node was started with -pageactions.'));

	// Columns.

	function makeTable() {
		list = table('Connected peers', columns.map((name, at) => {
			const { title, help, isNumber, value, text } = field(name);
			// The first column opens the details by keyboard, too.
			const open = (peer, shown) => button(shown, (event) => {
				event.stopPropagation();
				openDetail(peer.id);
			}, { class: 'link', 'aria-label': `Details of peer ${peer.id}` });
			return [`${isNumber ? '#' : ''}${name}`, title, (_, peer) => {
				const shown = text(peer, context(peer.id));
				return at === 0 ? open(peer, shown) : clip(shown, 48);
			}, help, (peer) => value(peer, context(peer.id))];
		}), { sort: columns.includes('id') ? 'id' : columns[0], limit: 1000, open: (peer) => openDetail(peer.id),
			empty: 'No peer is connected, or none matches the filter.' });
		list.filter(matches);
		set(place, list);
	}

	function matches(peer) {
		const texts = [peer.id, peer.addr, peer.subver, peer.connection_type, NETWORKS[peer.network], peer.transport_protocol_type, peer.inbound ? 'in' : 'out',
			...columns.map((name) => field(name).text(peer, context(peer.id)))];
		return words === '' || texts.some((text) => String(text ?? '').toLowerCase().includes(words));
	}

	function choose(names) {
		columns = names.length > 0 ? names : ['id'];
		try {
			localStorage.setItem(STORED, JSON.stringify(columns));
		} catch {
			// The choice holds until the page is closed.
		}
		makeTable();
		draw();
	}

	function makePicker() {
		const boxes = Object.keys(FIELDS).map((name) => check(field(name).title, columns.includes(name), (is) => {
			choose(Object.keys(FIELDS).filter((one) => (one === name ? is : columns.includes(one))));
		}));
		set(picker, h('summary', 'Columns'), h('div.choices', { role: 'group', 'aria-label': 'Columns' }, boxes, small('Default columns', null, () => {
			choose(DEFAULT);
			makePicker();
		})));
	}

	// What is shown.

	function draw() {
		const rows = rowsOf(state, 'peer');
		const all = Object.values(rows);
		const shown = all.filter(matches).length;
		list.update(rows);
		set(count, shown === all.length ? plural(shown, 'peer') : `${num(shown)} of ${plural(all.length, 'peer')}`);
		bans.update(rowsOf(state, 'ban'));
		added.update(rowsOf(state, 'added'));
		complaint.say(state.problem && `Not available yet: ${state.problem}`);
		drawNetwork(all);
		detail?.draw();
	}

	function drawNetwork(all) {
		const { network: of, totals } = state;
		if (!of || !totals) return;
		const sum = (what) => all.reduce((total, peer) => total + (state[`history:${peer.id}`]?.[what]?.at(-1) ?? 0), 0);
		const limit = totals.uploadtarget;
		const names = (list, name) => (list ?? []).map(name).join(', ') || 'none';
		set(switcher, of.networkactive ? 'Switch the network off…' : 'Switch the network on…');
		network.update({
			Connections: `${num(of.connections)}: ${num(of.connections_out)} out, ${num(of.connections_in)} in`,
			Network: of.networkactive ? 'on' : badge('warn', 'off'),
			Received: `${bytes(totals.totalbytesrecv)}, ${rate(sum('received'))}`,
			Sent: `${bytes(totals.totalbytessent)}, ${rate(sum('sent'))}`,
			'Reachable networks': names(of.networks?.filter((one) => one.reachable), ({ name }) => NETWORKS[name] ?? name),
			'Our addresses': names(of.localaddresses, ({ address, port }) => (address.includes(':') ? `[${address}]:${port}` : `${address}:${port}`)),
			'Upload limit': limit?.target > 0 ? `${bytes(limit.bytes_left_in_cycle)} of ${bytes(limit.target)} left for ${duration(limit.time_left_in_cycle)}` : 'none',
			'Our user agent': of.subversion,
		});
	}

	// One peer.

	function openDetail(id) {
		detail?.close();
		const names = Object.keys(state[`peer:${id}`] ?? {}).filter((name) => !NESTED.includes(name));
		const shown = [...Object.keys(FIELDS).filter((name) => names.includes(name)), ...names.filter((name) => !(name in FIELDS))].map((name) => field(name));
		const fields = facts(Object.fromEntries(shown.map(({ title, help }) => [title, help])));
		const title = h('h2', { id: 'peer-title' }, `Peer ${id}`);
		const gone = h('p.note.warn', { hidden: true }, 'This peer is not connected any more.');
		const sparks = h('div.sparks');
		const messages = table('Bytes by message type', [['type', 'Message'], ['#received', 'Received', bytes], ['#sent', 'Sent', bytes]],
			{ empty: 'No message yet.', sort: '-received' });
		const report = outcome();
		const buttons = mayAct && h('div.buttons', button('Disconnect…', () => disconnect(id, report), { class: 'danger' }),
			button('Ban…', () => ban(report, 'setban', hostOf(state[`peer:${id}`]?.addr ?? ''), 'All connections of this address end, and new ones are refused.'), { class: 'danger' }));
		const dialog = h('dialog.sheet', { 'aria-labelledby': 'peer-title', onclose: () => {
			dialog.remove();
			detail = null;
		}, onclick: (event) => event.target === dialog && dialog.close() },
		h('div.inside', h('div.sheethead', title, button('Close', () => dialog.close())),
			gone, buttons, report, h('h3', 'Last 10 minutes'), sparks, h('h3', 'Fields'), fields, h('h3', 'Messages'), messages));
		document.body.append(dialog);
		let drawn = '';
		detail = { close: () => dialog.close(), draw: drawDetail };
		drawDetail();
		dialog.showModal();

		function drawDetail() {
			const peer = state[`peer:${id}`];
			gone.hidden = Boolean(peer);
			if (buttons) buttons.hidden = !peer;
			if (!peer) return;
			set(title, `Peer ${id}: ${peer.addr}`);
			const now = context(id);
			fields.update(Object.fromEntries(shown.map((one) => [one.title, one.text(peer, now, true)])));
			const [received, sent] = [peer.bytesrecv_per_msg ?? {}, peer.bytessent_per_msg ?? {}];
			const types = Object.keys({ ...received, ...sent });
			messages.update(keyed(types.map((type) => ({ type, received: received[type] ?? 0, sent: sent[type] ?? 0 })), 'type'));
			drawSparks(now.history ?? {});
		}

		function drawSparks(history) {
			const text = JSON.stringify(history);
			if (text === drawn) return;
			drawn = text;
			const one = (label, values = [], format = rate) => {
				const known = values.filter((value) => typeof value === 'number');
				const range = known.length === 0 ? 'nothing yet' : `${format(known.at(-1))} now, at most ${format(Math.max(...known))}`;
				return h('figure', h('figcaption', h('strong', label), ' ', range), known.length > 1 && spark(values, `${label}: ${range}`, 204, 44));
			};
			set(sparks, [one('Ping', history.ping, millis), one('Received', history.received), one('Sent', history.sent)]);
		}
	}

	// Actions.

	function disconnect(id, report) {
		const name = `peer ${id} (${state[`peer:${id}`]?.addr ?? 'gone'})`;
		return act(report, [`Disconnect ${name}?`, 'The node may connect to it again, and it to the node. A ban prevents that.', 'Disconnect'],
			() => ['disconnectnode', '', id], () => `Disconnected ${name}.`);
	}

	function addPeer() {
		const address = input('Address or name, with or without a port', '203.0.113.7:8333');
		let once = false;
		return act(said, ['Add a peer', 'The node connects to it, and keeps up to 8 such connections. They end with a restart unless -addnode names them.', 'Add',
			address, check('try once only', false, (is) => { once = is; })],
		() => ['addnode', address.value(), once ? 'onetry' : 'add'], () => (once ? `Connecting to ${address.value()}.` : `Added ${address.value()}.`));
	}

	function toggle() {
		const turnsOn = !(state.network?.networkactive ?? true);
		return act(said, turnsOn ? ['Switch the network on?', 'The node connects to peers again.', 'Switch on']
			: ['Switch the network off?', 'All peers are disconnected, and the node learns of no new block until it is on again.', 'Switch off'],
		() => ['setnetworkactive', turnsOn], () => `The network is ${turnsOn ? 'on' : 'off'}.`);
	}

	makePicker();
	makeTable();
	readHelps().then((isNew) => {
		if (!isNew) return;
		makeTable();
		draw();
	});
	on('peers', (now) => {
		state = now;
		draw();
	});
	const wanted = query.get('id');
	if (state[`peer:${wanted}`]) openDetail(Number(wanted));
	atEnd(() => detail?.close());
}
