// The fields of a peer: title, help, how a value is shown and sorted. They are all that getpeerinfo reports; a field
// that a later version adds is shown by its name.

import { bytes, duration, num, rate } from '/assets/ui.js';

export const NETWORKS = { ipv4: 'IPv4', ipv6: 'IPv6', onion: 'Tor', i2p: 'I2P', cjdns: 'CJDNS', not_publicly_routable: 'private', internal: 'internal' };

// The letters of `lydian-cli -netinfo`: short enough for a column.
const LETTERS = { NETWORK: 'n', BLOOM: 'b', WITNESS: 'w', COMPACT_FILTERS: 'c', NETWORK_LIMITED: 'l', P2P_V2: '2' };

export function millis(seconds) {
  if (typeof seconds !== 'number') return null;
  return seconds < 0.01 ? `${(seconds * 1000).toFixed(2)} ms` : `${num(Math.round(seconds * 1000))} ms`;
}

const yes = (value) => (value ? 'yes' : 'no');
const list = (values) => (values?.length ? values.join(', ') : 'none');
const last = (history, of) => history?.[of]?.at(-1) ?? null;

// A time of the node as time since then. Zero means never.
const since = (key) => ({
  value: (peer, { now }) => (peer[key] ? now - peer[key] : null),
  show: (peer, { now }) => (peer[key] ? duration(now - peer[key]) : 'never'),
  number: true,
});
// Heights are -1 if none is known.
const height = (key) => ({ show: (peer) => (peer[key] >= 0 ? num(peer[key]) : 'none'), number: true });
const amount = (key, format) => ({ show: (peer) => format(peer[key]), number: true });
const flag = (key) => ({ show: (peer) => yes(peer[key]) });
const speed = (of) => ({ value: (peer, { history }) => last(history, of), show: (peer, { history }) => rate(last(history, of)), number: true, derived: true });

// `value` sorts and `show` is the text, each from the peer and {now, history}; `full` is the text of the detail view.
export const FIELDS = {
  id: { title: 'Id', help: 'Number of the connection', number: true },
  addr: { title: 'Address', help: 'Address and port of the peer' },
  network: { title: 'Network', help: 'Network through which it is connected', show: (peer) => NETWORKS[peer.network] ?? peer.network },
  direction: {
    title: 'Direction',
    help: 'Who opened the connection, and what it is for',
    value: (peer) => (peer.inbound ? 'in' : peer.connection_type === 'outbound-full-relay' ? 'out' : `out, ${peer.connection_type}`),
    derived: true,
  },
  subver: { title: 'User agent', help: 'Name that the peer gave itself. It can be anything', value: (peer) => peer.subver },
  servicesnames: {
    title: 'Services',
    help: 'n: all blocks, l: the last 288 blocks, w: witness data, c: block filters, 2: encrypted transport, b: bloom filters, u: unknown',
    value: (peer) => (peer.servicesnames ?? []).map((name) => LETTERS[name] ?? 'u').join(''),
    full: (peer) => list(peer.servicesnames),
  },
  services: { title: 'Service bits', help: 'The services in hexadecimal' },
  conntime: { title: 'Age', help: 'Time since the connection was opened', ...since('conntime') },
  pingtime: { title: 'Ping', help: 'Duration of the last ping', ...amount('pingtime', millis) },
  minping: { title: 'Least ping', help: 'Shortest duration of a ping', ...amount('minping', millis) },
  pingwait: { title: 'Ping waits', help: 'Time that the current ping has waited for its answer', ...amount('pingwait', millis) },
  bytesrecv: { title: 'Received', help: 'Bytes received', ...amount('bytesrecv', bytes) },
  rate_in: { title: 'Receiving', help: 'Bytes received each second, mean of 5 seconds', ...speed('received') },
  bytessent: { title: 'Sent', help: 'Bytes sent', ...amount('bytessent', bytes) },
  rate_out: { title: 'Sending', help: 'Bytes sent each second, mean of 5 seconds', ...speed('sent') },
  synced_blocks: { title: 'Height', help: 'Last block that both have', ...height('synced_blocks') },
  synced_headers: { title: 'Headers', help: 'Last header that both have', ...height('synced_headers') },
  inflight: {
    title: 'In flight',
    help: 'Blocks that were requested from it and have not arrived',
    value: (peer) => peer.inflight?.length ?? 0,
    full: (peer) => list(peer.inflight),
    number: true,
  },
  last_block: { title: 'Last block', help: 'Time since the last new block from it', ...since('last_block') },
  last_transaction: { title: 'Last tx', help: 'Time since the last accepted transaction from it', ...since('last_transaction') },
  lastrecv: { title: 'Last receive', help: 'Time since the last bytes from it', ...since('lastrecv') },
  lastsend: { title: 'Last send', help: 'Time since the last bytes to it', ...since('lastsend') },
  inbound: { title: 'Inbound', help: 'Whether the peer opened the connection', ...flag('inbound') },
  connection_type: { title: 'Type', help: 'What the connection is for' },
  transport_protocol_type: { title: 'Transport', help: 'v2 is encrypted (BIP 324), v1 is not' },
  session_id: { title: 'Session id', help: 'Of an encrypted connection. Both sides show the same unless somebody is in between' },
  version: { title: 'Version', help: 'Version of the protocol', number: true },
  addrbind: { title: 'Our address', help: 'Address of this machine on the connection' },
  addrlocal: { title: 'Sees us as', help: 'Our address as the peer reports it' },
  relaytxes: { title: 'Relays txs', help: 'Whether we relay transactions to it', ...flag('relaytxes') },
  minfeefilter: { title: 'Fee filter', help: 'Least fee rate of transactions that it wants, in BTC/kvB', ...amount('minfeefilter', (fee) => fee?.toFixed(8)) },
  last_inv_sequence: { title: 'Inv sequence', help: 'Sequence number of the mempool at its last announcement', number: true },
  inv_to_send: { title: 'Inv queue', help: 'Transactions that wait to be announced to it', number: true },
  timeoffset: { title: 'Clock', help: 'How far its clock is ahead of ours', ...amount('timeoffset', (seconds) => `${seconds} s`) },
  bip152_hb_to: { title: 'High bandwidth to', help: 'Whether we asked it for compact blocks without announcement', ...flag('bip152_hb_to') },
  bip152_hb_from: { title: 'High bandwidth from', help: 'Whether it asked us for compact blocks without announcement', ...flag('bip152_hb_from') },
  presynced_headers: { title: 'Presync', help: 'Height of headers that are checked before they are stored', ...height('presynced_headers') },
  addr_relay_enabled: { title: 'Relays addresses', help: 'Whether addresses of nodes are exchanged with it', ...flag('addr_relay_enabled') },
  addr_processed: { title: 'Addresses', help: 'Addresses of nodes received from it', ...amount('addr_processed', num) },
  addr_rate_limited: { title: 'Addresses dropped', help: 'Addresses of nodes dropped because too many came', ...amount('addr_rate_limited', num) },
  permissions: { title: 'Permissions', help: 'What it may do that others may not', value: (peer) => list(peer.permissions) },
};

// Shown in the detail view in a table of their own.
export const NESTED = ['bytessent_per_msg', 'bytesrecv_per_msg'];

export const DEFAULT = ['id', 'addr', 'network', 'direction', 'subver', 'servicesnames', 'conntime', 'pingtime', 'rate_in', 'bytesrecv',
  'rate_out', 'bytessent', 'synced_blocks', 'inflight', 'last_block', 'last_transaction'];

export const field = (name) => FIELDS[name] ?? { title: name, help: 'A field that this page does not know', value: (peer) => JSON.stringify(peer[name]) };

export function valueOf(name, peer, context) {
  const { value } = field(name);
  return value ? value(peer, context) : peer[name];
}

// The text of a field, in a column or, with `isFull`, in the detail view.
export function textOf(name, peer, context, isFull) {
  const { show, full } = field(name);
  const text = isFull && full ? full(peer) : show ? show(peer, context) : valueOf(name, peer, context);
  return text === null || text === undefined || text === '' ? '–' : String(text);
}
