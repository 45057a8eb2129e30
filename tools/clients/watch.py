"""Clients in Python, as their users write them, for the tests in crates/node/tests/rpc/programs.

watch.py rpc URL: for each line on stdin, one line on stdout, a JSON array: what python-bitcoinlib sees of the node
since the line before: blocks that left and joined, the mempool, outputs, and errors.

watch.py zmq ADDRESS: pyzmq subscribes to everything; each message is one line of JSON: topic, body in hex, number.
"""

import json
import struct
import sys

import bitcoin


class Watcher:
    """Follows the chain and the mempool of a node with python-bitcoinlib."""

    def __init__(self, url):
        from bitcoin.rpc import Proxy

        bitcoin.SelectParams("regtest")
        self.proxy = Proxy(service_url=url)
        self.chain = [self.proxy.getblockhash(0)]

    def fails(self, name, call, *arguments):
        """The error of a call that must fail, as the library raises it."""
        from bitcoin.rpc import JSONRPCError

        try:
            return f"{name} returned {call(*arguments)}"
        except (IndexError, JSONRPCError) as error:
            return f"{name}: {type(error).__name__} {error}"

    def output(self, txid, number):
        """An unspent output."""
        try:
            return sorted(self.proxy.gettxout(bitcoin.core.COutPoint(txid, number)).items())
        except IndexError:
            return "spent"

    def blocks(self):
        proxy, lines = self.proxy, []
        while len(self.chain) - 1 > proxy.getblockcount() or proxy.getblockhash(len(self.chain) - 1) != self.chain[-1]:
            lines.append(f"left {self.chain.pop().hex()}")
        for height in range(len(self.chain), proxy.getblockcount() + 1):
            block_hash = proxy.getblockhash(height)
            block, header = proxy.getblock(block_hash), proxy.getblockheader(block_hash, verbose=True)
            assert block.GetHash() == block_hash and block.hashPrevBlock == self.chain[-1]
            txids = [bitcoin.core.b2lx(tx.GetTxid()) for tx in block.vtx]
            lines.append(f"joined {height} {bitcoin.core.b2lx(block_hash)} {txids} {sorted(header.items(), key=str)}")
            self.chain.append(block_hash)
        assert proxy.getbestblockhash() == self.chain[-1]
        return lines

    def mempool(self):
        proxy, lines = self.proxy, []
        entries = proxy.getrawmempool(verbose=True)
        assert sorted(entries) == sorted(bitcoin.core.b2lx(txid) for txid in proxy.getrawmempool())
        for txid, entry in sorted(entries.items()):
            tx = proxy.getrawtransaction(bitcoin.core.lx(txid))
            assert bitcoin.core.b2lx(tx.GetTxid()) == txid
            lines.append(f"mempool {txid} {entry['fees']} {entry['vsize']} {sorted(entry['depends'])}")
            for number in range(len(tx.vout)):
                lines.append(f"output {number}: {self.output(tx.GetTxid(), number)}")
            lines.append(self.fails("sent again", proxy.sendrawtransaction, tx))
        return lines

    def look(self):
        from bitcoin.core import COutPoint, CMutableTransaction, CMutableTxIn

        proxy = self.proxy
        lines = self.blocks() + self.mempool()
        coinbase = proxy.getblock(self.chain[1]).vtx[0]
        lines.append(f"first output {self.output(coinbase.GetTxid(), 0)}")
        found = proxy.getrawtransaction(coinbase.GetTxid(), verbose=True)
        lines.append(f"first transaction {bitcoin.core.b2lx(found['tx'].GetTxid())} {found['confirmations']}")
        # Errors, as the library distinguishes them.
        lines.append(self.fails("no height", proxy.getblockhash, len(self.chain)))
        lines.append(self.fails("no block", proxy.getblock, bytes(32)))
        lines.append(self.fails("no transaction", proxy.getrawtransaction, bytes(32)))
        lines.append(self.fails("removed", proxy.getinfo))
        unfunded = CMutableTransaction([CMutableTxIn(COutPoint(bytes(32), 0))], list(coinbase.vout[:1]))
        lines.append(self.fails("without coins", proxy.sendrawtransaction, unfunded))
        lines.append(f"address {sorted(proxy.call('validateaddress', 'bcrt1qqqqq').items(), key=str)}")
        lines.append(f"chain {proxy.call('getblockchaininfo')['chain']} {proxy.call('getdifficulty')}")
        return lines


def publish(address):
    """Prints every message of a publisher."""
    import zmq

    socket = zmq.Context().socket(zmq.SUB)
    socket.setsockopt(zmq.RCVHWM, 0)
    for topic in ("hashblock", "hashtx", "rawblock", "rawtx", "sequence"):
        socket.setsockopt_string(zmq.SUBSCRIBE, topic)
    socket.connect(address)
    while True:
        topic, body, number = socket.recv_multipart()
        print(json.dumps([topic.decode(), body.hex(), struct.unpack("<I", number)[0]]), flush=True)


if sys.argv[1] == "zmq":
    publish(sys.argv[2])
else:
    watcher = Watcher(sys.argv[2])
    for _ in sys.stdin:
        print(json.dumps(watcher.look()), flush=True)
