// Where the servers of this node answer, and the settings for wallets and Lightning nodes: addresses, QR codes, the
// fingerprint of the certificate, steps with the values of this node.

import { card, h, note, s, set } from '/assets/ui.js';

// White around a code, in modules: readers need four.
const BORDER = 4;

const SERVICES = [
  ['electrum', 'Electrum', 'For wallets such as Sparrow, BlueWallet and Electrum.'],
  ['esplora', 'Esplora', 'For wallets and programs with BDK or LDK, over HTTP.'],
  ['rpc', 'RPC', 'For programs that know Bitcoin Core: Lightning nodes, Sparrow, scripts. Needs a login.'],
  ['p2p', 'P2P', 'For other nodes, and for wallets that read blocks or block filters themselves.'],
];

const REACH = { machine: 'this machine only', network: 'your network', internet: 'the internet, unless a router or a firewall is in the way' };

const TRANSPORTS = { p2p: 'P2P', onion: 'P2P, for an onion service', http: 'HTTP', tcp: 'TCP', ssl: 'TLS', ws: 'websocket', wss: 'websocket with TLS' };

// A code as a picture: one path for all dark modules.
function picture(rows, text) {
  const size = rows.length + 2 * BORDER;
  let path = '';
  rows.forEach((row, y) => {
    for (const run of row.matchAll(/1+/g)) path += `M${run.index + BORDER} ${y + BORDER}h${run[0].length}v1h-${run[0].length}z`;
  });
  return s('svg', { class: 'qr', viewBox: `0 0 ${size} ${size}`, role: 'img', 'aria-label': `QR code of ${text}`, 'shape-rendering': 'crispEdges' },
    s('rect', { width: size, height: size, fill: '#fff' }), s('path', { d: path, fill: '#000' }));
}

// A value with a button that copies it.
function copied(text) {
  const value = h('code', {}, text);
  const button = h('button', { type: 'button', class: 'small', 'aria-label': `Copy ${text}`, onclick: async () => {
    try {
      await navigator.clipboard.writeText(text);
      set(button, 'Copied');
    } catch {
      // No clipboard without a secure context: the text is selected instead.
      getSelection().selectAllChildren(value);
      set(button, 'Selected');
    }
    setTimeout(() => set(button, 'Copy'), 2000);
  } }, 'Copy');
  return h('span', { class: 'copied' }, value, ' ', button);
}

// A code opens below its button: a camera must see one only.
function scan(state, text, open = false) {
  const rows = state[`qr:${text}`];
  return rows ? h('details', { open }, h('summary', {}, 'QR code'), h('figure', {}, picture(rows, text), h('figcaption', {}, h('code', {}, text)))) : null;
}

// The address of a service that most clients reach, with the first of these transports that it has.
function best(service, ...transports) {
  const far = ['machine', 'network', 'internet'];
  for (const transport of transports) {
    const announced = service?.announced?.find((one) => one.url.startsWith(`${transport}://`));
    const urls = (service?.places ?? []).filter((one) => one.transport === transport).flatMap((one) => one.urls);
    const rank = ({ url, reach }) => 2 * far.indexOf(reach) + (url.includes('[') ? 0 : 1);
    const url = announced ?? urls.sort((x, y) => rank(y) - rank(x))[0];
    if (url) return url;
  }
  return null;
}

function parts(url) {
  const rest = url.replace(/^[a-z]+:\/\//, '');
  const at = rest.lastIndexOf(':');
  return { host: rest.slice(0, at).replace(/^\[|\]$/g, ''), port: rest.slice(at + 1) };
}

function serviceCard(state, [key, title, purpose]) {
  const service = state[`service:${key}`];
  if (!service?.listens) {
    return card(title, h('p', { class: 'muted' }, purpose), service?.on
      ? h('p', {}, 'It does not listen yet: the node is starting, or no address could be bound. The log has the reason.')
      : h('p', {}, 'It is off. To switch it on, add this to lydian.conf and restart the node: ', copied(service?.switch ?? '')));
  }
  const announced = (service.announced ?? []).map((one) => ({ ...one, kind: key === 'p2p' ? 'announced to peers' : 'announced to wallets' }));
  const bound = service.places.flatMap(({ transport, urls }) => urls.map((one) => ({ ...one, kind: `${TRANSPORTS[transport] ?? transport}, ${one.reach === 'machine' ? REACH.machine : `from ${one.reach === 'network' ? REACH.network : 'the internet'}`}` })));
  return card(title, h('p', { class: 'muted' }, purpose),
    h('p', {}, 'Reachable from ', h('strong', {}, REACH[service.reach] ?? service.reach), announced.length > 0 ? ', and under the addresses that are announced.' : '.'),
    h('ul', { class: 'addresses' }, [...announced, ...bound].map((one) => h('li', {}, copied(one.url), h('div', { class: 'muted' }, one.kind), scan(state, one.short ?? one.url)))),
    service.certificate && [h('h3', {}, 'SHA-256 of the certificate'), h('p', {}, copied(service.certificate)),
      h('p', { class: 'muted' }, 'A wallet that asks whether to trust the certificate shows these digits. Compare them.')],
    service.allowed?.length > 0 && h('p', { class: 'muted' }, `Calls are accepted from this machine and from ${service.allowed.join(', ')}.`),
    service.reach === 'machine' && h('details', {}, h('summary', {}, 'Reach it from other devices'),
      h('p', {}, 'Add this to lydian.conf and restart the node. Everyone who reaches the address can then use it, so let a firewall admit your own devices only.'),
      h('pre', { tabindex: 0 }, service.opens.join('\n'))));
}

function walletCards(state) {
  const electrum = state['service:electrum'];
  const wallets = ['Sparrow', 'BlueWallet', 'Electrum'];
  const server = electrum?.listens ? best(electrum, 'ssl', 'tcp') : null;
  if (!server) return wallets.map((wallet) => card(wallet, h('p', {}, 'The Electrum server is off. Add ', h('code', {}, 'electrum=1'), ' to lydian.conf and restart the node.')));
  const isTls = server.url.startsWith('ssl:');
  const { host, port } = parts(server.url);
  const check = () => isTls && electrum.certificate && h('li', {}, 'Accept the certificate if its SHA-256 begins with ', h('code', {}, electrum.certificate.slice(0, 23)), '.');
  const local = () => server.reach === 'machine' && note('warn', 'This address answers on this machine only. For a wallet on another device, open the Electrum server first.');
  const ssl = isTls ? 'on' : 'off';
  const steps = [
    [h('li', {}, 'Open Settings, Server, Private Electrum.'),
      h('li', {}, 'Enter URL ', copied(host), ' and port ', copied(port), `, and switch Use SSL ${ssl}. Or choose Scan QR… in the list of the URL.`), check(),
      h('li', {}, 'Press Test Connection. It shows the name of this server.')],
    [h('li', {}, 'Open Settings, Network, Electrum server.'),
      h('li', {}, 'Scan the code, or enter host ', copied(host), ' and port ', copied(port), ` with SSL ${ssl}.`), check(), h('li', {}, 'Press Save.')],
    [h('li', {}, 'Open Tools, Network, and choose to connect to one server only.'), h('li', {}, 'Enter ', copied(server.short ?? server.url), '.'), check(),
      h('li', {}, 'Or start it with ', copied(`electrum --oneserver --server ${server.short ?? server.url}`))],
  ];
  const codes = [server.url, server.short ?? server.url, server.short ?? server.url];
  return wallets.map((wallet, at) => card(wallet, h('ol', {}, steps[at]), scan(state, codes[at], wallet === 'BlueWallet'), local()));
}

const LIGHTNING = { main: ['bitcoin', 'mainnet'], test: ['testnet', 'testnet'], testnet4: ['testnet4', 'testnet4'], signet: ['signet', 'signet'], regtest: ['regtest', 'regtest'] };

function lightningCard(state) {
  const { chain, cookie, zmq, pruned, filters } = state.lightning ?? {};
  const rpc = best(state['service:rpc'], 'http');
  if (!rpc) return card('Lightning node', h('p', {}, 'RPC does not listen.'));
  const { host, port } = parts(rpc.url);
  const [core, lnd] = LIGHTNING[chain] ?? [chain, chain];
  const published = (kind) => (Array.isArray(zmq) ? zmq.find((one) => one.type === kind)?.address : null);
  const missing = [['pubrawblock', 28332], ['pubrawtx', 28333]].filter(([kind]) => !published(kind)).map(([kind, at]) => `zmq${kind}=tcp://127.0.0.1:${at}`);
  return card('Lightning node',
    h('h3', {}, 'LND, in lnd.conf'),
    h('pre', { tabindex: 0 }, ['[Bitcoin]', `bitcoin.${lnd}=true`, 'bitcoin.node=bitcoind', '[Bitcoind]', `bitcoind.rpchost=${host.includes(':') ? `[${host}]` : host}:${port}`,
      `bitcoind.rpccookie=${cookie ?? 'PATH'}`, `bitcoind.zmqpubrawblock=${published('pubrawblock') ?? 'tcp://127.0.0.1:28332'}`,
      `bitcoind.zmqpubrawtx=${published('pubrawtx') ?? 'tcp://127.0.0.1:28333'}`].join('\n')),
    missing.length > 0 && [h('p', {}, 'LND needs notifications that this node does not send. Add this to lydian.conf and restart the node:'), h('pre', { tabindex: 0 }, missing.join('\n'))],
    h('h3', {}, 'Core Lightning, in its config'),
    h('pre', { tabindex: 0 }, [`network=${core}`, `bitcoin-rpcconnect=${host}`, `bitcoin-rpcport=${port}`, 'bitcoin-rpcuser=USER', 'bitcoin-rpcpassword=PASSWORD'].join('\n')),
    h('p', { class: 'muted' }, cookie ? `A program of the same user can use the cookie ${cookie}. For others, make a user with -rpcauth. ` : 'Use the user of -rpcuser or -rpcauth. ', 'This page shows no password.'),
    h('p', { class: 'muted' }, filters ? 'Block filters are served to peers, so Neutrino can use the P2P address.' : 'Neutrino also needs blockfilterindex=1 and peerblockfilters=1.'),
    pruned && note('warn', 'This node is pruned: a Lightning node that starts later than its oldest block cannot catch up.'));
}

export default {
  name: 'connect',
  title: 'Connect',
  start(root, { live }) {
    const services = h('div', { class: 'pairs' });
    const wallets = h('div', { class: 'pairs' });
    root.append(services, wallets);
    let shown = '';
    return live.on('connect', (state) => {
      // Drawn anew only if something changed, so that an open code stays open.
      const text = JSON.stringify(state);
      if (text === shown) return;
      shown = text;
      set(services, SERVICES.map((service) => serviceCard(state, service)));
      set(wallets, walletCards(state), lightningCard(state));
    });
  },
};
