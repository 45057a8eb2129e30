// The fields of a peer: how a value is named, shown and sorted. They are all that getpeerinfo reports, whose help explains
// them; a field that a later version adds is shown by its name.

import { call } from '../api.js';
import { bytes, duration, millis as ms, num, rate } from '../ui.js';

export const NETWORKS = { ipv4: 'IPv4', ipv6: 'IPv6', onion: 'Tor', i2p: 'I2P', cjdns: 'CJDNS', not_publicly_routable: 'private', internal: 'internal' };

// The letters of `lydian-cli -netinfo`: short enough for a column.
const LETTERS = { NETWORK: 'n', BLOOM: 'b', WITNESS: 'w', COMPACT_FILTERS: 'c', NETWORK_LIMITED: 'l', P2P_V2: '2' };

const list = (values) => (values?.length ? values.join(', ') : 'none');
const yes = (value) => (value ? 'yes' : 'no');
const ping = (value) => (typeof value === 'number' ? ms(value * 1000) : null);

// A field is [title, {value(peer, context), show(value), full(peer), number, help}]: `value` sorts, `show` is the text,
// `full` that of the detail view. The context is {now, history}.
const number = (title, show, help) => [title, { show, number: true, help }];
const flag = (title) => [title, { show: yes }];
// Heights are -1 if none is known.
const height = (title) => number(title, (value) => (value >= 0 ? num(value) : 'none'));
// Since a time of the node. Zero means never.
const since = (title, key, help) => [title, { value: (peer, { now }) => (peer[key] ? now - peer[key] : null),
	show: (value) => (value === null ? 'never' : duration(value)), number: true, help }];
const speed = (title, of) => [title, { value: (peer, { history }) => history?.[of]?.at(-1), show: rate, number: true, help: 'bytes a second, mean of 5 seconds' }];

export const FIELDS = {
	id: number('Id'),
	addr: ['Address'],
	network: ['Network', { show: (name) => NETWORKS[name] ?? name }],
	direction: ['Direction', {
		help: 'whether the peer opened the connection (in) or the node (out), and what it is for',
		value: (peer) => (peer.inbound ? 'in' : peer.connection_type === 'outbound-full-relay' ? 'out' : `out, ${peer.connection_type}`),
	}],
	subver: ['User agent'],
	servicesnames: ['Services', {
		help: 'n: all blocks, l: the last 288 blocks, w: witness data, c: block filters, 2: encrypted transport, b: bloom filters, u: unknown',
		value: (peer) => (peer.servicesnames ?? []).map((name) => LETTERS[name] ?? 'u').join(''),
		full: (peer) => list(peer.servicesnames),
	}],
	services: ['Service bits'],
	conntime: since('Age', 'conntime', 'time since the connection was opened'),
	pingtime: number('Ping', ping),
	minping: number('Least ping', ping),
	pingwait: number('Ping waits', ping),
	bytesrecv: number('Received', bytes),
	rate_in: speed('Receiving', 'received'),
	bytessent: number('Sent', bytes),
	rate_out: speed('Sending', 'sent'),
	synced_blocks: height('Height'),
	synced_headers: height('Headers'),
	inflight: ['In flight', { value: (peer) => peer.inflight?.length ?? 0, full: (peer) => list(peer.inflight), number: true }],
	last_block: since('Last block', 'last_block'),
	last_transaction: since('Last tx', 'last_transaction'),
	lastrecv: since('Last receive', 'lastrecv'),
	lastsend: since('Last send', 'lastsend'),
	inbound: flag('Inbound'),
	connection_type: ['Type'],
	transport_protocol_type: ['Transport'],
	session_id: ['Session id'],
	version: number('Version'),
	addrbind: ['Our address'],
	addrlocal: ['Sees us as'],
	relaytxes: flag('Relays txs'),
	minfeefilter: number('Fee filter', (fee) => fee?.toFixed(8), 'in BTC/kvB'),
	last_inv_sequence: number('Inv sequence'),
	inv_to_send: number('Inv queue'),
	timeoffset: number('Clock', (seconds) => `${seconds} s`),
	bip152_hb_to: flag('High bandwidth to'),
	bip152_hb_from: flag('High bandwidth from'),
	presynced_headers: height('Presync'),
	addr_relay_enabled: flag('Relays addresses'),
	addr_processed: number('Addresses', num),
	addr_rate_limited: number('Addresses dropped', num),
	permissions: ['Permissions', { value: (peer) => list(peer.permissions) }],
};

// Shown in the detail view in a table of their own.
export const NESTED = ['bytessent_per_msg', 'bytesrecv_per_msg'];

export const DEFAULT = ['id', 'addr', 'network', 'direction', 'subver', 'servicesnames', 'conntime', 'pingtime', 'rate_in', 'bytesrecv',
	'rate_out', 'bytessent', 'synced_blocks', 'inflight', 'last_block', 'last_transaction'];

let helps = {};

// Reads what the help of getpeerinfo says of each field, once; returns whether it is new.
export async function readHelps() {
	if (Object.keys(helps).length > 0) return false;
	const text = await call('help', 'getpeerinfo').catch(() => '');
	helps = Object.fromEntries([...text.matchAll(/^ {4}"(\w+)" : .*?\((?:numeric|string|boolean|json)[^)]*\) (.*)$/gm)].map(([, name, words]) => [name, words]));
	return true;
}

// A field with its title and help, and its text in a column or, if `isFull`, in the detail view.
export function field(name) {
	const [title, { value = (peer) => peer[name], show = (plain) => plain, full, number: isNumber = false, help } = {}] =
		FIELDS[name] ?? [name, { show: (plain) => JSON.stringify(plain) }];
	return {
		title, value, isNumber, help: help ?? helps[name],
		text: (peer, context, isFull) => String((isFull && full ? full(peer) : show(value(peer, context))) ?? '') || '–',
	};
}
