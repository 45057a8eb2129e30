// What the servers do for programs and wallets: connections, requests by method with their duration, and the sessions
// of Electrum wallets. What a wallet asks for is not shown.

import { act, durations, hostOf, outcome, rowsOf, small } from '/assets/panels/actions.js';

const SERVERS = [['rpc', 'RPC'], ['rest', 'REST'], ['electrum', 'Electrum'], ['esplora', 'Esplora']];

// The figures that have a word of their own; others are shown by their name.
const LABELS = { connections: 'Connections', sessions: 'Sessions', subscriptions: 'Subscriptions', throttled_total: 'Throttled', ended_total: 'Ended for their cost', refused_total: 'Refused, queue full' };

const labelOf = ({ name, label }) => {
  const words = LABELS[name] ?? name.replace(/_total$/, '').replaceAll('_', ' ');
  return label ? `${words}, ${label}` : words.charAt(0).toUpperCase() + words.slice(1);
};

const took = (millis) => (typeof millis !== 'number' ? '–' : millis < 1 ? `${millis.toFixed(2)} ms` : millis < 1000 ? `${millis.toFixed(millis < 10 ? 1 : 0)} ms` : `${(millis / 1000).toFixed(1)} s`);

export default {
  name: 'serving',
  title: 'Serving',
  start(root, { live, api, ui, session }) {
    const { h, set, card, table, search, num, short, bytes, duration, percent, clip, badge } = ui;
    const mayAct = session.actions;
    let filter = '';
    const before = new Map();

    const servers = SERVERS.map(([key, title]) => {
      const body = h('div', {});
      return { key, body, element: card(title, body) };
    });
    const requests = table({
      caption: 'Requests by method',
      empty: 'No request yet.',
      sort: 'count',
      descending: true,
      columns: [
        { key: 'method', title: 'Method', value: (row, key) => key.split(':').slice(1).join(':') },
        { key: 'server', title: 'Server', value: (row, key) => SERVERS.find(([name]) => name === key.split(':')[0])?.[1] },
        { key: 'count', title: 'Requests', show: (row) => num(row.count), number: true },
        { key: 'errors', title: 'Errors', show: (row) => (row.errors > 0 ? `${num(row.errors)} (${percent(row.errors / row.count)})` : '0'), number: true },
        { key: 'p50', title: 'p50', help: 'Half of the requests took at most so long', show: (row) => took(row.p50), number: true },
        { key: 'p99', title: 'p99', help: '99 of 100 requests took at most so long', show: (row) => took(row.p99), number: true },
        { key: 'mean', title: 'Mean', value: (row) => (row.seconds / row.count) * 1000, show: (row) => took((row.seconds / row.count) * 1000), number: true },
        { key: 'seconds', title: 'Total', help: 'Time of all requests together', show: (row) => (row.seconds < 60 ? took(row.seconds * 1000) : duration(row.seconds)), number: true },
      ],
    });
    requests.filter((row, key) => key.toLowerCase().includes(filter));
    const said = outcome();
    const sessions = table({
      caption: 'Sessions of Electrum wallets',
      empty: 'No wallet is connected.',
      sort: 'cost',
      descending: true,
      columns: [
        { key: 'id', title: 'Id', number: true },
        { key: 'addr', title: 'Address' },
        { key: 'client', title: 'Client', show: (row) => clip(row.client || '–', 40) },
        { key: 'protocol', title: 'Protocol' },
        { key: 'conntime', title: 'Age', show: (row) => duration(row.conntime), number: true },
        { key: 'idletime', title: 'Idle', show: (row) => duration(row.idletime), number: true },
        { key: 'subscriptions', title: 'Subscriptions', show: (row) => num(row.subscriptions), number: true },
        { key: 'requests', title: 'Requests', show: (row) => num(row.requests), number: true },
        { key: 'bytesrecv', title: 'Received', show: (row) => bytes(row.bytesrecv), number: true },
        { key: 'bytessent', title: 'Sent', show: (row) => bytes(row.bytessent), number: true },
        { key: 'cost', title: 'Cost', help: 'Units that its answers cost so far', show: (row) => num(row.cost), number: true },
        { key: 'subnet_cost', title: 'Subnet', help: 'Units of its subnet now', show: (row) => num(row.subnet_cost), number: true },
        ...(mayAct ? [{ key: 'act', title: 'Action', value: (row) => row.id, show: (row) => h('span', { class: 'buttons' },
          small('Disconnect', `Disconnect session ${row.id}`, () => disconnect(row)), row.local ? null : small('Ban', `Ban ${hostOf(row.addr)}`, () => ban(row))) }] : []),
      ],
    });
    const bans = table({
      caption: 'Bans of the Electrum server',
      empty: 'No address is banned.',
      columns: [
        { key: 'address', title: 'Address or subnet' },
        { key: 'time_remaining', title: 'Left', show: (row) => duration(row.time_remaining), number: true },
        ...(mayAct ? [{ key: 'unban', title: 'Action', value: (row) => row.address, show: (row) => small('Unban', `Unban ${row.address}`, () => unban(row.address)) }] : []),
      ],
    });
    const wallets = h('div', {}, said, sessions, h('h3', {}, 'Bans'), bans);
    const problem = h('p', { class: 'muted', hidden: true });
    root.append(h('div', { class: 'columns' }, servers.map(({ element }) => element)),
      card('Requests', h('div', { class: 'tools' }, search('Filter', (text) => {
        filter = text.toLowerCase();
        requests.filter((row, key) => key.toLowerCase().includes(filter));
      }), h('span', { class: 'muted' }, 'Since the start of the node. Durations include waiting.')), requests),
      card('Electrum wallets', problem, wallets));
    if (!session.user) {
      wallets.hidden = true;
      problem.hidden = false;
      set(problem, 'Log in to see the sessions.');
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
      if (!server?.on) return set(body, [h('p', {}, badge('', 'off'))]);
      const rate = speed(key, server.requests);
      const rows = [['Requests', `${num(server.requests)}${rate === null ? '' : `, ${short(rate)}/s`}`],
        ['Errors', server.requests > 0 ? `${num(server.errors)} (${percent(server.errors / server.requests)})` : '0'],
        ...server.figures.map((one) => [labelOf(one), num(one.value), one.help])];
      return set(body, [h('dl', { class: 'facts' }, rows.map(([label, value, help]) => h('div', { title: help }, h('dt', {}, label), h('dd', {}, value))))]);
    }

    const disconnect = (row) => act(api, said, { title: `Disconnect session ${row.id}?`, sentence: `The wallet at ${row.addr} may connect again.`, verb: 'Disconnect' },
      () => ['disconnectelectrumsession', row.id], () => `Disconnected session ${row.id}.`);

    function ban(row) {
      const host = hostOf(row.addr);
      const choice = durations();
      return act(api, said, { title: `Ban ${host}?`, sentence: 'Its sessions of the Electrum server end, and new ones are refused. A restart of the node ends the ban.', verb: 'Ban', fields: [choice] },
        () => ['setelectrumban', host, 'add', choice.seconds()], () => `Banned ${host} for ${choice.words()}.`);
    }

    const unban = (subnet) => act(api, said, { title: `Unban ${subnet}?`, sentence: 'Its wallets may connect again.', verb: 'Unban' },
      () => ['setelectrumban', subnet, 'remove'], () => `Unbanned ${subnet}.`);

    const offs = [
      live.on('serving', (state) => {
        servers.forEach((server) => drawServer(server, state[`server:${server.key}`]));
        requests.update(rowsOf(state, 'request'));
      }),
      live.on('sessions', (state) => {
        wallets.hidden = Boolean(state.problem);
        problem.hidden = !state.problem;
        set(problem, state.problem ? `${state.problem}.` : '');
        sessions.update(rowsOf(state, 'session'));
        bans.update(rowsOf(state, 'ban'));
      }),
    ];
    return () => offs.forEach((off) => off());
  },
};
