// A client in Go, for a test in crates/node/tests/rpc/programs: btcd's rpcclient, with the calls of lnd and btcwallet.
//
// Arguments: host:port, user, password. For each line on stdin, it writes one line to stdout, a JSON array: what the
// client sees of the node since the line before.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"sort"

	"github.com/btcsuite/btcd/btcjson"
	"github.com/btcsuite/btcd/chaincfg/chainhash"
	"github.com/btcsuite/btcd/rpcclient"
	"github.com/btcsuite/btcd/wire"
)

type watcher struct {
	client *rpcclient.Client
	chain  []*chainhash.Hash
	lines  []string
}

// say adds a line: what was asked and the answer as JSON, or the error.
func (w *watcher) say(name string, answer any, err error) {
	text, marshalled := json.Marshal(answer)
	if err != nil {
		text = []byte(err.Error())
	} else if marshalled != nil {
		log.Fatal(marshalled)
	}
	w.lines = append(w.lines, name+" "+string(text))
}

// must ends the program on an error.
func must[T any](answer T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return answer
}

// blocks follows the chain as lnd's chain notifier does: down to the fork, then up.
func (w *watcher) blocks() {
	for {
		last := int64(len(w.chain) - 1)
		if hash, err := w.client.GetBlockHash(last); err == nil && *hash == *w.chain[last] {
			break
		}
		w.say("left", w.chain[last].String(), nil)
		w.chain = w.chain[:last]
	}
	for height := int64(len(w.chain)); height <= must(w.client.GetBlockCount()); height++ {
		hash := must(w.client.GetBlockHash(height))
		block := must(w.client.GetBlock(hash))
		if block.BlockHash() != *hash {
			log.Fatalf("%v is not %v", block.BlockHash(), hash)
		}
		header, err := w.client.GetBlockHeaderVerbose(hash)
		w.say("joined", header, err)
		verbose, err := w.client.GetBlockVerboseTx(hash)
		w.say("verbose", verbose, err)
		filter, err := w.client.GetBlockFilter(*hash, nil)
		w.say("filter", filter, err)
		w.chain = append(w.chain, hash)
	}
}

// mempool reads what lnd's wallet and mempool notifier read.
func (w *watcher) mempool() {
	hashes := must(w.client.GetRawMempool())
	sort.Slice(hashes, func(a, b int) bool { return hashes[a].String() < hashes[b].String() })
	for _, hash := range hashes {
		tx := must(w.client.GetRawTransaction(hash))
		verbose, err := w.client.GetRawTransactionVerbose(hash)
		w.say("transaction", verbose, err)
		entry := must(w.client.GetMempoolEntry(hash.String()))
		entry.Time = 0
		w.say("entry", entry, nil)
		for number := range tx.MsgTx().TxOut {
			output, err := w.client.GetTxOut(hash, uint32(number), true)
			w.say("output", output, err)
		}
		spenders, err := w.client.GetTxSpendingPrevOut([]wire.OutPoint{tx.MsgTx().TxIn[0].PreviousOutPoint, {Hash: *hash}})
		w.say("spenders", spenders, err)
		accepted, err := w.client.TestMempoolAccept([]*wire.MsgTx{tx.MsgTx()}, 0.1)
		w.say("accepted", accepted, err)
		sent, err := w.client.SendRawTransaction(tx.MsgTx(), false)
		w.say("sent again", sent, err)
	}
	all, err := w.client.GetRawMempoolVerbose()
	w.say("mempool", len(all), err)
}

// fees asks for estimates as lnd and btcwallet do, and for targets that the node refuses.
func (w *watcher) fees() {
	economical, conservative := btcjson.EstimateModeEconomical, btcjson.EstimateModeConservative
	for _, target := range []int64{1, 2, 3, 6, 12, 144, 1008} {
		for _, mode := range []*btcjson.EstimateSmartFeeMode{nil, &economical, &conservative} {
			estimate, err := w.client.EstimateSmartFee(target, mode)
			w.say("estimate", estimate, err)
		}
	}
	for _, target := range []int64{0, 1009} {
		_, err := w.client.EstimateSmartFee(target, &economical)
		w.say("no target", nil, err)
	}
	unknown := btcjson.EstimateSmartFeeMode("CHEAP")
	_, err := w.client.EstimateSmartFee(6, &unknown)
	w.say("no mode", nil, err)
}

// about asks what lnd asks when it starts and while it runs.
func (w *watcher) about() {
	version, err := w.client.BackendVersion()
	w.say("version", fmt.Sprint(version), err)
	chain := must(w.client.GetBlockChainInfo())
	w.say("chain", []any{chain.Chain, chain.Blocks, chain.Headers, chain.BestBlockHash, chain.Difficulty,
		chain.MedianTime, chain.VerificationProgress, chain.InitialBlockDownload, chain.Pruned, chain.ChainWork}, nil)
	network := must(w.client.GetNetworkInfo())
	w.say("network", []any{network.LocalRelay, network.RelayFee, network.IncrementalFee}, nil)
	tips, err := w.client.GetChainTips()
	w.say("tips", len(tips), err)
	best := must(w.client.GetBestBlockHash())
	deployments, err := w.client.RawRequest("getdeploymentinfo", nil)
	w.say("deployments", deployments, err)
	stats, err := w.client.GetBlockStats(best.String(), nil)
	w.say("stats", stats, err)
	// Errors, which lnd distinguishes by their text.
	_, err = w.client.GetInfo()
	w.say("removed", nil, err)
	_, err = w.client.GetBlockHash(int64(len(w.chain)))
	w.say("no height", nil, err)
	_, err = w.client.GetBlock(&chainhash.Hash{})
	w.say("no block", nil, err)
	_, err = w.client.GetRawTransaction(&chainhash.Hash{})
	w.say("no transaction", nil, err)
	spent := must(w.client.GetBlock(w.chain[1])).Transactions[0].TxHash()
	output, err := w.client.GetTxOut(&spent, 0, true)
	w.say("first output", output, err)
	unfunded := wire.NewMsgTx(2)
	unfunded.AddTxIn(wire.NewTxIn(&wire.OutPoint{Hash: spent, Index: 7}, nil, nil))
	unfunded.AddTxOut(wire.NewTxOut(1000, []byte{0x51}))
	_, err = w.client.SendRawTransaction(unfunded, false)
	w.say("without coins", nil, err)
	accepted, err := w.client.TestMempoolAccept([]*wire.MsgTx{unfunded}, 0)
	w.say("without coins", accepted, err)
}

func main() {
	log.SetFlags(0)
	client := must(rpcclient.New(&rpcclient.ConnConfig{
		Host: os.Args[1], User: os.Args[2], Pass: os.Args[3],
		HTTPPostMode: true, DisableTLS: true, DisableConnectOnNew: true, DisableAutoReconnect: false,
	}, nil))
	w := watcher{client: client, chain: []*chainhash.Hash{must(client.GetBlockHash(0))}}
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		w.lines = []string{}
		w.blocks()
		w.mempool()
		w.fees()
		w.about()
		fmt.Println(string(must(json.Marshal(w.lines))))
	}
}
