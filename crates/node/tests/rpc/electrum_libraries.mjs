// Drives a wallet library: agrees on a version, asks about a script, subscribes to it and to headers, and prints every
// answer and notification as a line of JSON, [what, value]. It ends when its input does.
// Arguments: the library, the transport, the port, a script hash, a txid.
const [library, transport, port, scripthash, txid] = process.argv.slice(1);
const print = (what, value) => console.log(JSON.stringify([what, value]));
const unknown = '00'.repeat(32);

// `@electrum-cash/network`, which checks that the version is exactly the one that it asked for.
async function network() {
  const { ElectrumClient } = await import('@electrum-cash/network');
  const { ElectrumWebSocket } = await import('@electrum-cash/web-socket');
  const socket = new ElectrumWebSocket('127.0.0.1', Number(port), transport === 'wss');
  const client = new ElectrumClient('test', '1.4.1', socket);
  client.on('notification', ({ method, params }) => print(method, params));
  await client.connect();
  print('software', client.software);
  const ask = async (method, ...params) => {
    const answer = await client.request(method, ...params);
    if (answer instanceof Error) throw answer;
    return answer;
  };
  print('history', await ask('blockchain.scripthash.get_history', scripthash));
  print('histories', await Promise.all([scripthash, unknown].map((hash) => ask('blockchain.scripthash.get_history', hash))));
  print('coins', await ask('blockchain.scripthash.listunspent', scripthash));
  print('balance', await ask('blockchain.scripthash.get_balance', scripthash));
  print('transaction', await ask('blockchain.transaction.get', txid));
  await client.subscribe('blockchain.headers.subscribe');
  await client.subscribe('blockchain.scripthash.subscribe', scripthash);
  return () => client.disconnect(true);
}

// `@mempool/electrum-client`, which sends batches.
async function mempool() {
  const { default: ElectrumClient } = await import('@mempool/electrum-client');
  const client = new ElectrumClient(Number(port), '127.0.0.1', transport, null, { onLog: () => {} });
  for (const method of ['blockchain.headers.subscribe', 'blockchain.scripthash.subscribe']) {
    client.subscribe.on(method, (params) => print(method, params));
  }
  await client.initElectrum({ client: 'test', version: '1.4' });
  print('software', client.versionInfo[0]);
  print('history', await client.blockchainScripthash_getHistory(scripthash));
  const batch = await client.blockchainScripthash_getHistoryBatch([scripthash, unknown]);
  print('histories', [scripthash, unknown].map((hash) => batch.find(({ param }) => param === hash).result));
  print('coins', await client.blockchainScripthash_listunspent(scripthash));
  print('balance', await client.blockchainScripthash_getBalance(scripthash));
  print('transaction', await client.blockchainTransaction_get(txid));
  // The library's own method adds an argument of protocol 1.2.
  print('blockchain.headers.subscribe', [await client.request('blockchain.headers.subscribe', [])]);
  print('blockchain.scripthash.subscribe', [scripthash, await client.blockchainScripthash_subscribe(scripthash)]);
  return () => client.close();
}

const end = await { network, mempool }[library]();
print('ready', null);
process.stdin.resume();
process.stdin.on('end', async () => {
  await end();
  process.exit(0);
});
