// Every peer with all that getpeerinfo reports, bans and added nodes; actions for those who may.

import { act, durations, hostOf, input, outcome, rowsOf, small } from '/assets/panels/actions.js';
import { DEFAULT, FIELDS, NESTED, NETWORKS, field, millis, textOf, valueOf } from '/assets/panels/peer-fields.js';

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

export default {
  name: 'peers',
  title: 'Peers',
  start(root, { live, api, ui, session, query }) {
    const { h, set, card, facts, table, search, spark, num, bytes, rate, duration, time, clip, note, badge } = ui;
    const mayAct = session.actions;
    let state = {};
    let words = '';
    let columns = storedColumns();
    let peers = null;
    let detail = null;

    const context = (id) => ({ now: (state.totals?.timemillis ?? Date.now()) / 1000, history: state[`history:${id}`] });
    const said = outcome();
    const problem = h('div', { hidden: true });
    const network = facts([
      ['connections', 'Connections'], ['active', 'Network'], ['received', 'Received'], ['sent', 'Sent'],
      ['networks', 'Reachable networks', 'Networks in which the node connects to peers'],
      ['addresses', 'Our addresses', 'Addresses that are announced to peers'], ['upload', 'Upload limit', '-maxuploadtarget'],
      ['agent', 'Our user agent'],
    ]);
    const count = h('span', { class: 'muted' });
    const place = h('div', {});
    const switcher = h('button', { type: 'button', onclick: toggle }, 'Switch the network off…');
    const picker = h('details', { class: 'picker' });
    const tools = h('div', { class: 'tools' }, search('Filter', (text) => {
      words = text.toLowerCase();
      draw();
    }), picker, count, h('span', { class: 'grow' }), mayAct && [
      h('button', { type: 'button', onclick: addPeer }, 'Add a peer…'),
      switcher,
    ]);
    const bans = table({
      caption: 'Bans',
      empty: 'No address is banned.',
      columns: [
        { key: 'address', title: 'Address or subnet' },
        { key: 'ban_created', title: 'Since', show: (ban) => time(ban.ban_created), number: true },
        { key: 'banned_until', title: 'Until', show: (ban) => time(ban.banned_until), number: true },
        { key: 'time_remaining', title: 'Left', show: (ban) => duration(ban.time_remaining), number: true },
        ...(mayAct ? [{ key: 'unban', title: 'Action', value: (ban) => ban.address, show: (ban) => small('Unban', `Unban ${ban.address}`, () => unban(ban.address)) }] : []),
      ],
    });
    const added = table({
      caption: 'Added peers',
      empty: 'No peer was added (-addnode).',
      columns: [
        { key: 'addednode', title: 'Peer' },
        { key: 'connected', title: 'Connected', value: (node) => (node.connected ? 'yes' : 'no'),
          show: (node) => (node.connected ? `yes, ${(node.addresses ?? []).map((one) => `${one.connected} ${one.address}`).join(', ')}` : 'no') },
        ...(mayAct ? [{ key: 'remove', title: 'Action', value: (node) => node.addednode, show: (node) => small('Remove', `Remove ${node.addednode}`, () => removeNode(node.addednode)) }] : []),
      ],
    });
    root.append(problem, card('Network', network), card('Connected peers', tools, said, place),
      h('div', { class: 'columns' },
        card('Bans', bans, mayAct && h('p', { class: 'buttons' }, h('button', { type: 'button', onclick: banAddress }, 'Ban an address…'),
          h('button', { type: 'button', onclick: clearBans }, 'Remove all bans…'))),
        card('Added peers', added)),
      mayAct ? '' : h('p', { class: 'muted' }, session.user ? 'This node takes no actions from the page. Start it with -pageactions to disconnect or ban peers here.'
        : 'Log in to disconnect or ban peers, if the node was started with -pageactions.'));

    // Columns.

    function makeTable() {
      peers = table({
        caption: 'Connected peers',
        empty: 'No peer is connected, or none matches the filter.',
        sort: columns.includes('id') ? 'id' : columns[0],
        limit: 1000,
        open: (peer) => openDetail(peer.id),
        columns: columns.map((name) => {
          const { title, help, number } = field(name);
          return {
            key: name,
            title,
            help,
            number,
            value: (peer) => valueOf(name, peer, context(peer.id)),
            show: (peer) => cell(name, peer),
          };
        }),
      });
      peers.filter((peer) => matches(peer));
      set(place, peers);
    }

    // The first column opens the details by keyboard, too.
    function cell(name, peer) {
      const text = textOf(name, peer, context(peer.id));
      if (name !== columns[0]) return clip(text, 48);
      return h('button', { type: 'button', class: 'link', 'aria-label': `Details of peer ${peer.id}`, onclick: (event) => {
        event.stopPropagation();
        openDetail(peer.id);
      } }, text);
    }

    function matches(peer) {
      if (words === '') return true;
      const texts = [peer.id, peer.addr, peer.subver, peer.connection_type, NETWORKS[peer.network], peer.transport_protocol_type, peer.inbound ? 'in' : 'out',
        ...columns.map((name) => textOf(name, peer, context(peer.id)))];
      return texts.some((text) => String(text ?? '').toLowerCase().includes(words));
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
      const boxes = Object.entries(FIELDS).map(([name, { title, help }]) => {
        const box = h('input', { type: 'checkbox', checked: columns.includes(name), onchange: () => {
          choose(Object.keys(FIELDS).filter((one) => (one === name ? box.checked : columns.includes(one))));
        } });
        return h('label', { title: help }, box, title);
      });
      set(picker, h('summary', {}, 'Columns'), h('div', { class: 'choices', role: 'group', 'aria-label': 'Columns' }, boxes,
        h('button', { type: 'button', class: 'small', onclick: () => {
          choose(DEFAULT);
          makePicker();
        } }, 'Default columns')));
    }

    // What is shown.

    function draw() {
      const rows = rowsOf(state, 'peer');
      peers.update(rows);
      const all = Object.values(rows);
      const shown = words === '' ? all.length : all.filter(matches).length;
      set(count, shown === all.length ? `${num(all.length)} peers` : `${num(shown)} of ${num(all.length)} peers`);
      bans.update(rowsOf(state, 'ban'));
      added.update(rowsOf(state, 'added'));
      problem.hidden = !state.problem;
      if (state.problem) set(problem, note('warn', `Not available yet: ${state.problem}`));
      drawNetwork(all);
      detail?.draw();
    }

    function drawNetwork(all) {
      const { network: of, totals } = state;
      if (!of || !totals) return;
      const sum = (what) => all.reduce((total, peer) => total + (state[`history:${peer.id}`]?.[what]?.at(-1) ?? 0), 0);
      const limit = totals.uploadtarget;
      set(switcher, of.networkactive ? 'Switch the network off…' : 'Switch the network on…');
      network.update({
        connections: `${num(of.connections)}: ${num(of.connections_out)} out, ${num(of.connections_in)} in`,
        active: badgeOf(of.networkactive),
        received: `${bytes(totals.totalbytesrecv)}, ${rate(sum('received'))}`,
        sent: `${bytes(totals.totalbytessent)}, ${rate(sum('sent'))}`,
        networks: (of.networks ?? []).filter((one) => one.reachable).map((one) => NETWORKS[one.name] ?? one.name).join(', ') || 'none',
        addresses: (of.localaddresses ?? []).map(({ address, port }) => (address.includes(':') ? `[${address}]:${port}` : `${address}:${port}`)).join(', ') || 'none',
        upload: limit?.target > 0 ? `${bytes(limit.bytes_left_in_cycle)} of ${bytes(limit.target)} left for ${duration(limit.time_left_in_cycle)}` : 'none',
        agent: of.subversion,
      });
    }

    const badgeOf = (isActive) => (isActive ? 'on' : [badge('warn', 'off')]);

    // One peer.

    function openDetail(id) {
      detail?.close();
      const names = Object.keys(state[`peer:${id}`] ?? {}).filter((name) => !NESTED.includes(name));
      const shown = [...Object.keys(FIELDS).filter((name) => names.includes(name)), ...names.filter((name) => !(name in FIELDS))];
      const list = facts(shown.map((name) => [name, field(name).title, field(name).help]));
      const title = h('h2', { id: 'peer-title' }, `Peer ${id}`);
      const gone = h('p', { class: 'note warn', hidden: true }, 'This peer is not connected any more.');
      const sparks = h('div', { class: 'sparks' });
      const messages = table({
        caption: 'Bytes by message type',
        empty: 'No message yet.',
        sort: 'received',
        descending: true,
        columns: [
          { key: 'type', title: 'Message', value: (row, key) => key },
          { key: 'received', title: 'Received', show: (row) => bytes(row.received), number: true },
          { key: 'sent', title: 'Sent', show: (row) => bytes(row.sent), number: true },
        ],
      });
      const report = outcome();
      let drawn = '';
      const buttons = mayAct && h('div', { class: 'buttons' },
        h('button', { type: 'button', class: 'danger', onclick: () => disconnect(id, report) }, 'Disconnect…'),
        h('button', { type: 'button', class: 'danger', onclick: () => banPeer(id, report) }, 'Ban…'));
      const dialog = h('dialog', { class: 'sheet', 'aria-labelledby': 'peer-title', onclose: () => {
        dialog.remove();
        detail = null;
      }, onclick: (event) => event.target === dialog && dialog.close() },
      h('div', { class: 'inside' },
        h('div', { class: 'sheethead' }, title, h('button', { type: 'button', onclick: () => dialog.close() }, 'Close')),
        gone, buttons, report, h('h3', {}, 'Last 10 minutes'), sparks, h('h3', {}, 'Fields'), list, h('h3', {}, 'Messages'), messages));
      document.body.append(dialog);
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
        list.update(Object.fromEntries(shown.map((name) => [name, textOf(name, peer, now, true)])));
        const types = {};
        for (const [key, nested] of [['received', peer.bytesrecv_per_msg], ['sent', peer.bytessent_per_msg]]) {
          for (const [type, size] of Object.entries(nested ?? {})) (types[type] ??= { received: 0, sent: 0 })[key] = size;
        }
        messages.update(types);
        drawSparks(now.history);
      }

      function drawSparks(history) {
        const text = JSON.stringify(history ?? null);
        if (text === drawn) return;
        drawn = text;
        const one = (label, values, format) => {
          const known = (values ?? []).filter((value) => typeof value === 'number');
          const range = known.length === 0 ? 'nothing yet' : `${format(known.at(-1))} now, at most ${format(Math.max(...known))}`;
          return h('figure', {}, h('figcaption', {}, h('strong', {}, label), ' ', range),
            known.length > 1 && spark(values, { width: 204, height: 44, label: `${label}: ${range}` }));
        };
        set(sparks, [one('Ping', history?.ping, (value) => millis(value / 1000)), one('Received', history?.received, rate), one('Sent', history?.sent, rate)]);
      }
    }

    // Actions.

    const nameOf = (id) => `peer ${id} (${state[`peer:${id}`]?.addr ?? 'gone'})`;

    function disconnect(id, report) {
      const name = nameOf(id);
      return act(api, report, { title: `Disconnect ${name}?`, sentence: 'The node may connect to it again, and it to the node. A ban prevents that.', verb: 'Disconnect' },
        () => ['disconnectnode', '', id], () => `Disconnected ${name}.`);
    }

    function banPeer(id, report) {
      const host = hostOf(state[`peer:${id}`]?.addr ?? '');
      const choice = durations();
      return act(api, report, { title: `Ban ${host}?`, sentence: 'All connections of this address end, and new ones are refused.', verb: 'Ban', fields: [choice] },
        () => ['setban', host, 'add', choice.seconds()], () => `Banned ${host} for ${choice.words()}.`);
    }

    function banAddress() {
      const subnet = input('Address or subnet', { placeholder: '203.0.113.0/24' });
      const choice = durations();
      return act(api, said, { title: 'Ban an address', sentence: 'All its connections end, and new ones are refused.', verb: 'Ban', fields: [subnet, choice] },
        () => ['setban', subnet.value(), 'add', choice.seconds()], () => `Banned ${subnet.value()} for ${choice.words()}.`);
    }

    function unban(subnet) {
      return act(api, said, { title: `Unban ${subnet}?`, sentence: 'Its peers may connect again.', verb: 'Unban' },
        () => ['setban', subnet, 'remove'], () => `Unbanned ${subnet}.`);
    }

    function clearBans() {
      return act(api, said, { title: 'Remove all bans?', sentence: 'All banned peers may connect again.', verb: 'Remove all' },
        () => ['clearbanned'], () => 'Removed all bans.');
    }

    function addPeer() {
      const address = input('Address or name, with or without a port', { placeholder: '203.0.113.7:8333' });
      const once = h('input', { type: 'checkbox', id: 'add-once' });
      const how = () => (once.checked ? 'onetry' : 'add');
      return act(api, said, { title: 'Add a peer', sentence: 'The node connects to it, and keeps up to 8 such connections. They end with a restart unless -addnode names them.',
        verb: 'Add', fields: [address, h('p', {}, h('label', { for: 'add-once' }, once, ' try once only'))] },
      () => ['addnode', address.value(), how()], () => (once.checked ? `Connecting to ${address.value()}.` : `Added ${address.value()}.`));
    }

    function removeNode(name) {
      return act(api, said, { title: `Remove ${name}?`, sentence: 'The node does not connect to it again; an open connection goes on.', verb: 'Remove' },
        () => ['addnode', name, 'remove'], () => `Removed ${name}.`);
    }

    function toggle() {
      const turnsOn = !(state.network?.networkactive ?? true);
      return act(api, said, turnsOn ? { title: 'Switch the network on?', sentence: 'The node connects to peers again.', verb: 'Switch on' }
        : { title: 'Switch the network off?', sentence: 'All peers are disconnected, and the node learns of no new block until it is on again.', verb: 'Switch off' },
      () => ['setnetworkactive', turnsOn], () => (turnsOn ? 'The network is on.' : 'The network is off.'));
    }

    makePicker();
    makeTable();
    const off = live.on('peers', (now) => {
      state = now;
      draw();
    });
    const wanted = query?.get('id');
    if (wanted !== null && wanted !== undefined && state[`peer:${wanted}`]) openDetail(Number(wanted));
    return () => {
      off();
      detail?.close();
    };
  },
};
