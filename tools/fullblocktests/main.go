// Fullblocktests dumps btcd's full-block tests, so that a test in another language can replay them.
//
// Input: none but the flag -large, which adds the reorganisation of 1,088 full blocks (2.2 GB of output and of memory, 6 s; pipe it).
// Output: JSON lines on standard output, in the order in which the blocks must be handed to the validator. The first line is
//
//	{"kind":"parameters","version":1,"btcd":"v0.25.0","large":false,"generated_at":UNIX TIME,...}
//
// generated_at is the clock the expectations hold for: the generator stamps its first block with the present time and one block with three
// hours more, which must be refused as too far in the future. The other fields are the parameters of the network the tests are
// written for. Every following line is one expectation; "hash" is in the usual reversed hex, "block" the block's bytes in hex:
//
//	{"kind":"accepted","name":"b1","height":101,"hash":"..","main_chain":true,"orphan":false,"block":".."}
//	{"kind":"rejected","name":"b8","height":105,"hash":"..","reject_code":"ErrMissingTxOut","block":".."}
//	{"kind":"rejected_non_canonical","name":"b64a","height":..,"hash":"..","block":".."}   the bytes do not decode; the hash is of the first 80
//	{"kind":"orphan_or_rejected","name":"b58","height":..,"hash":"..","block":".."}        its parent was rejected: held back, or refused
//	{"kind":"expected_tip","name":"b2","height":102,"hash":".."}                           the best block now; names a block seen before
//	{"kind":"utxo_after_disconnect","name":"..","hash":"..","txid":"..","vout":0,"exists":true}
//	    from here on: right after the block "hash" is disconnected, the output exists or does not; it is said before that block
//
// "main_chain" of an accepted block: it is the tip after it was handed over; "orphan": its parent is not known yet. Heights are those
// of the block's own branch.
//
// What Bitcoin Core 31.99 says of the same blocks, submitted in this order to a regtest node with -testactivationheight=dersig@1251, cltv@1351, and
// bip34, csv and segwit out of reach, orphans held back until their parent comes: every expected tip is the same, and so is every
// verdict but for
//
//	b51    no duplicate by its merkle tree (the pairs are not aligned): bad-txns-inputs-missingorspent
//	b56p2  likewise, and Core does not look at its transactions, for it lies on a branch without more work: stored, not validated
//	b49a   its target is read before it is compared with the parent's: high-hash
//	b8 and b19 bring more work to a branch whose lower block is the one that fails (b7, b18); btcd reports that failure at b8 and b19.
//	b12 is valid; btcd reports at it what its waiting descendant b14 fails with
//
// and the reject codes mean, in Core's words: ErrMissingTxOut bad-txns-inputs-missingorspent, ErrBadCoinbaseValue bad-cb-amount, ErrTooManySigOps
// bad-blk-sigops, ErrImmatureSpend bad-txns-premature-spend-of-coinbase, ErrBlockTooBig and ErrNoTransactions bad-blk-length,
// ErrBadCoinbaseScriptLen bad-cb-length, ErrFirstTxNotCoinbase bad-cb-missing, ErrMultipleCoinbases bad-cb-multiple, ErrHighHash high-hash,
// ErrUnexpectedDifficulty bad-diffbits, ErrTimeTooNew time-too-new, ErrTimeTooOld time-too-old, ErrBadMerkleRoot bad-txnmrklroot, ErrDuplicateTx
// bad-txns-duplicate, ErrSpendTooHigh bad-txns-in-belowout, ErrOverwriteTx bad-txns-BIP30, ErrUnfinalizedTx bad-txns-nonfinal.
package main

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/btcsuite/btcd/blockchain/fullblocktests"
	"github.com/btcsuite/btcd/chaincfg/chainhash"
	"github.com/btcsuite/btcd/wire"
)

type parameters struct {
	Kind          string `json:"kind"`
	Version       int    `json:"version"`
	Btcd          string `json:"btcd"`
	Large         bool   `json:"large"`
	GeneratedAt   int64  `json:"generated_at"`
	Network       string `json:"network"`
	Genesis       string `json:"genesis"`
	Bits          uint32 `json:"bits"`
	Retargets     bool   `json:"retargets"`
	Maturity      int    `json:"coinbase_maturity"`
	Halving       int    `json:"subsidy_halving_interval"`
	Bip34Height   int    `json:"bip34_height"`
	Bip66Height   int    `json:"bip66_height"`
	Bip65Height   int    `json:"bip65_height"`
	BlockVersion  int    `json:"block_version"`
	VersionbitsOn bool   `json:"versionbits_active"`
}

type instance struct {
	Kind       string  `json:"kind"`
	Name       string  `json:"name"`
	Height     *int32  `json:"height,omitempty"`
	Hash       string  `json:"hash"`
	MainChain  *bool   `json:"main_chain,omitempty"`
	Orphan     *bool   `json:"orphan,omitempty"`
	RejectCode string  `json:"reject_code,omitempty"`
	Txid       string  `json:"txid,omitempty"`
	Vout       *uint32 `json:"vout,omitempty"`
	Exists     *bool   `json:"exists,omitempty"`
	Block      string  `json:"block,omitempty"`
}

func main() {
	large := flag.Bool("large", false, "add the reorganisation of 1,088 full blocks")
	flag.Parse()
	if err := dump(*large); err != nil {
		fmt.Fprintln(os.Stderr, "fullblocktests:", err)
		os.Exit(1)
	}
}

func dump(large bool) error {
	generatedAt := time.Now().Unix()
	tests, err := fullblocktests.Generate(large)
	if err != nil {
		return fmt.Errorf("btcd's generator failed: %w", err)
	}
	out := bufio.NewWriterSize(os.Stdout, 1<<20)
	encoder := json.NewEncoder(out)
	if err := encoder.Encode(networkParameters(large, generatedAt)); err != nil {
		return err
	}
	for group, test := range tests {
		for _, item := range test {
			line, err := describe(item)
			if err != nil {
				return fmt.Errorf("group %d: %w", group, err)
			}
			if err := encoder.Encode(line); err != nil {
				return err
			}
		}
	}
	return out.Flush()
}

// networkParameters restates regressionNetParams of btcd's package, which does not export it.
func networkParameters(large bool, generatedAt int64) parameters {
	return parameters{
		Kind: "parameters", Version: 1, Btcd: "v0.25.0", Large: large, GeneratedAt: generatedAt,
		Network: "regtest",
		Genesis: "0f9188f13cb7b2c71f2a335e3a4fc328bf5beb436012afca590b1a11466e2206",
		Bits:    0x207fffff, Retargets: false, Maturity: 100, Halving: 150,
		Bip34Height: 100000000, Bip66Height: 1251, Bip65Height: 1351,
		BlockVersion: 1, VersionbitsOn: false,
	}
}

func describe(item fullblocktests.TestInstance) (*instance, error) {
	switch t := item.(type) {
	case fullblocktests.AcceptedBlock:
		line, err := withBlock("accepted", t.Name, t.Height, t.Block)
		line.MainChain, line.Orphan = &t.IsMainChain, &t.IsOrphan
		return line, err
	case fullblocktests.RejectedBlock:
		line, err := withBlock("rejected", t.Name, t.Height, t.Block)
		line.RejectCode = t.RejectCode.String()
		return line, err
	case fullblocktests.OrphanOrRejectedBlock:
		return withBlock("orphan_or_rejected", t.Name, t.Height, t.Block)
	case fullblocktests.ExpectedTip:
		return &instance{Kind: "expected_tip", Name: t.Name, Height: &t.Height, Hash: t.Block.BlockHash().String()}, nil
	case fullblocktests.RejectedNonCanonicalBlock:
		if len(t.RawBlock) < wire.MaxBlockHeaderPayload {
			return nil, fmt.Errorf("block %s is shorter than a header", t.Name)
		}
		hash := chainhash.DoubleHashH(t.RawBlock[:wire.MaxBlockHeaderPayload])
		return &instance{Kind: "rejected_non_canonical", Name: t.Name, Height: &t.Height, Hash: hash.String(),
			Block: hex.EncodeToString(t.RawBlock)}, nil
	case fullblocktests.BlockDisconnectExpectUTXO:
		return &instance{Kind: "utxo_after_disconnect", Name: t.Name, Hash: t.BlockHash.String(),
			Txid: t.OutPoint.Hash.String(), Vout: &t.OutPoint.Index, Exists: &t.Expected}, nil
	default:
		return nil, fmt.Errorf("unknown kind of test %T", item)
	}
}

func withBlock(kind, name string, height int32, block *wire.MsgBlock) (*instance, error) {
	var raw bytes.Buffer
	err := block.Serialize(&raw)
	return &instance{Kind: kind, Name: name, Height: &height, Hash: block.BlockHash().String(),
		Block: hex.EncodeToString(raw.Bytes())}, err
}
