// Records random calls of Bitcoin Core's classes for the relay of transactions, with their answers, one call a line.
//
// The recordings are testdata/vectors/core/tx{orphanage,request,download}_trace.txt.zst; the tests that replay them
// (crates/p2p/src/txs) describe the columns. Usage: record-txs orphanage 60 200, record-txs request 80 250 or
// record-txs download 130 150, where the numbers are those of rounds and of calls in each. The same arguments give the
// same recording. It is compiled like crates/oracle/src/judge.cpp: with the include folders of Core's sources, and with
// the static libraries of the same build, libbitcoin_node.a included.
//
// The mempool of the download is a set of ids. No code of Core is copied here. Its orphanage is included with private
// members made public, because Core chooses at random which peer gets the work for an orphan.

#include <chain.h>
#include <consensus/validation.h>
#include <policy/packages.h>
#include <policy/policy.h>
#include <primitives/block.h>
#include <random.h>
#include <streams.h>
#include <txmempool.h>
#include <txrequest.h>
#include <util/feefrac.h>
#include <util/hasher.h>
#include <util/log.h>
#include <util/strencodings.h>
#include <util/time.h>
#include <util/translation.h>
#include <validation.h>
#include <validationinterface.h>

#include <boost/multi_index/indexed_by.hpp>
#include <boost/multi_index/ordered_index.hpp>
#include <boost/multi_index/tag.hpp>
#include <boost/multi_index_container.hpp>

#include <cassert>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include <node/txorphanage.h>

#define class struct
#include <node/txorphanage.cpp>
#undef class

/** The ids that the mempool has. */
struct IdPool {
    std::set<uint256> txids, wtxids;
    bool exists(const Txid& id) const { return txids.contains(id.ToUint256()); }
    bool exists(const Wtxid& id) const { return wtxids.contains(id.ToUint256()); }
    void add(const CTransaction& tx)
    {
        txids.insert(tx.GetHash().ToUint256());
        wtxids.insert(tx.GetWitnessHash().ToUint256());
    }
    void remove(const CTransaction& tx)
    {
        txids.erase(tx.GetHash().ToUint256());
        wtxids.erase(tx.GetWitnessHash().ToUint256());
    }
};

#define CTxMemPool IdPool
#include <node/txdownloadman.h>
#include <node/txdownloadman_impl.h>
#include <node/txdownloadman_impl.cpp>
#undef CTxMemPool

const TranslateFn G_TRANSLATION_FUN{nullptr};

namespace {
std::mt19937_64 g_rng;

uint64_t below(uint64_t n) { return g_rng() % n; }

Txid constant(unsigned char byte)
{
    return Txid::FromUint256(uint256{byte});
}

void orphanage(int rounds, int steps)
{
    for (int round = 0; round < rounds; ++round) {
        std::vector<CTransactionRef> txs;
        for (int i = 0; i < 24; ++i) {
            CMutableTransaction tx;
            static const int sizes[]{1, 1, 2, 3, 9, 10, 19, 20, 25};
            int inputs = sizes[below(9)];
            uint64_t parent = below(4);
            for (int n = 0; n < inputs; ++n) {
                if (!txs.empty() && below(4) == 0) {
                    tx.vin.emplace_back(txs[below(txs.size())]->GetHash(), below(3));
                } else {
                    tx.vin.emplace_back(constant(1 + parent), n);
                }
            }
            tx.vout.resize(1 + below(3));
            for (auto& out : tx.vout) out = CTxOut(1000, CScript() << OP_TRUE);
            tx.nLockTime = i;
            if (below(4)) tx.vin[0].scriptWitness.stack.emplace_back(1 + below(below(3) ? 300 : 3000), 0);
            txs.push_back(MakeTransactionRef(tx));
            if (below(3) == 0) {
                tx.vin[0].scriptWitness.stack.emplace_back(3, 1);
                txs.push_back(MakeTransactionRef(tx));
            }
        }
        std::map<Wtxid, size_t> numbers;
        uint64_t latency = 10 + below(40), weight = 500 + below(20000), peers = 1 + below(8);
        printf("limits %lu %lu\n", latency, weight);
        for (size_t i = 0; i < txs.size(); ++i) {
            numbers[txs[i]->GetWitnessHash()] = i;
            DataStream stream; stream << TX_WITH_WITNESS(*txs[i]);
            printf("tx %s\n", HexStr(stream).c_str());
        }
        auto pool = node::MakeTxOrphanage(latency, weight);
        FastRandomContext random{true};
        for (int step = 0; step < steps; ++step) {
            size_t tx = below(txs.size());
            NodeId peer = below(peers);
            std::string result = "-";
            uint64_t kind = below(20);
            if (kind < 8) {
                printf("add %zu %ld", tx, peer);
                result = std::to_string(pool->AddTx(txs[tx], peer));
            } else if (kind < 11) {
                printf("announcer %zu %ld", tx, peer);
                result = std::to_string(pool->AddAnnouncer(txs[tx]->GetWitnessHash(), peer));
            } else if (kind < 12) {
                printf("erase %zu 0", tx);
                result = std::to_string(pool->EraseTx(txs[tx]->GetWitnessHash()));
            } else if (kind < 13 && below(3) == 0) {
                printf("gone 0 %ld", peer);
                pool->EraseForPeer(peer);
            } else if (kind < 14 && below(3) == 0) {
                printf("block %zu 0", tx);
                CBlock block; block.vtx.push_back(txs[tx]);
                pool->EraseForBlock(block);
            } else if (kind < 17) {
                printf("accepted %zu 0", tx);
                for (const auto& [wtxid, worker] : pool->AddChildrenToWorkSet(*txs[tx], random)) {
                    result += "," + std::to_string(numbers.at(wtxid)) + ":" + std::to_string(worker);
                }
            } else if (kind < 19) {
                printf("next 0 %ld", peer);
                if (auto next = pool->GetTxToReconsider(peer)) {
                    result = std::to_string(numbers.at(next->GetWitnessHash()));
                }
            } else {
                printf("children %zu %ld", tx, peer);
                for (const auto& child : pool->GetChildrenFromSamePeer(txs[tx], peer)) {
                    result += "," + std::to_string(numbers.at(child->GetWitnessHash()));
                }
            }
            pool->SanityCheck();
            printf(" %s %ld %u", result.c_str(), pool->TotalOrphanUsage(), pool->TotalLatencyScore());
            std::string all = "-";
            for (const auto& info : pool->GetOrphanTransactions()) {
                all += "," + std::to_string(numbers.at(info.tx->GetWitnessHash()));
                for (NodeId announcer : info.announcers) all += ":" + std::to_string(announcer);
            }
            printf(" %s\n", all.c_str());
        }
    }
}

void requests(int rounds, int steps)
{
    for (int round = 0; round < rounds; ++round) {
        printf("round\n");
        TxRequestTracker tracker{true};
        uint64_t peers = 1 + below(8), hashes = 1 + below(10);
        int64_t now = 1000;
        for (int step = 0; step < steps; ++step) {
            NodeId peer = below(peers);
            unsigned char hash = below(hashes);
            uint256 id{hash};
            std::string result = "-";
            uint64_t kind = below(20);
            if (kind < 6) {
                bool wtxid = below(2), preferred = below(3) == 0;
                int64_t at = now + below(5);
                printf("announced %ld %u %d %d %ld", peer, hash, wtxid, preferred, at);
                GenTxid gtxid = wtxid ? GenTxid{Wtxid::FromUint256(id)} : GenTxid{Txid::FromUint256(id)};
                tracker.ReceivedInv(peer, gtxid, preferred, std::chrono::seconds{at});
            } else if (kind < 12) {
                if (below(10) == 0) now -= below(4); else now += below(4);
                std::vector<std::pair<NodeId, GenTxid>> expired;
                auto found = tracker.GetRequestable(peer, std::chrono::seconds{now}, &expired);
                tracker.PostGetRequestableSanityCheck(std::chrono::seconds{now});
                printf("requestable %ld 0 0 0 %ld", peer, now);
                auto byte = [](const GenTxid& gtxid) { return std::to_string(*gtxid.ToUint256().begin()); };
                for (const auto& gtxid : found) result += "," + byte(gtxid) + ":" + std::to_string(gtxid.IsWtxid());
                std::set<std::string> sorted;
                for (const auto& [id, gtxid] : expired) sorted.insert(byte(gtxid) + ":" + std::to_string(id));
                result += ";";
                for (const auto& text : sorted) result += "," + text;
            } else if (kind < 15) {
                printf("requested %ld %u 0 0 %ld", peer, hash, now + 6);
                tracker.RequestedTx(peer, id, std::chrono::seconds{now + 6});
            } else if (kind < 18) {
                printf("responded %ld %u 0 0 0", peer, hash);
                tracker.ReceivedResponse(peer, id);
            } else if (below(3)) {
                std::vector<NodeId> found;
                tracker.GetCandidatePeers(id, found);
                std::set<NodeId> sorted(found.begin(), found.end());
                printf("candidates %ld %u 0 0 0", peer, hash);
                for (NodeId one : sorted) result += "," + std::to_string(one);
            } else if (below(2)) {
                printf("forget %ld %u 0 0 0", peer, hash);
                tracker.ForgetTxHash(id);
            } else {
                printf("gone %ld 0 0 0 0", peer);
                tracker.DisconnectedPeer(peer);
            }
            tracker.SanityCheck();
            printf(" %s %zu %zu %zu %zu\n", result.c_str(), tracker.Size(), tracker.Count(peer),
                   tracker.CountInFlight(peer), tracker.CountCandidates(peer));
        }
    }
}

/** The first four bytes of an id, and its kind. */
std::string name(const GenTxid& gtxid)
{
    const uint256 hash{gtxid.ToUint256()};
    return HexStr(std::span<const unsigned char>(hash.begin(), 4)) + (gtxid.IsWtxid() ? "w" : "t");
}

/** Transactions with common parents, some of which are missing forever, and with several witnesses. */
std::vector<CTransactionRef> family()
{
    std::vector<CTransactionRef> txs;
    for (int i = 0; i < 16; ++i) {
        CMutableTransaction tx;
        const int inputs = 1 + below(3);
        for (int n = 0; n < inputs; ++n) {
            if (!txs.empty() && below(4)) {
                const size_t back{1 + below(std::min<size_t>(txs.size(), 5))};
                tx.vin.emplace_back(txs[txs.size() - back]->GetHash(), below(2));
            } else {
                tx.vin.emplace_back(constant(1 + below(3)), below(3));
            }
        }
        tx.vout.resize(2);
        for (auto& out : tx.vout) out = CTxOut(1000, CScript() << OP_TRUE);
        tx.nLockTime = i;
        if (below(2)) tx.vin[0].scriptWitness.stack.emplace_back(1 + below(20), 0);
        txs.push_back(MakeTransactionRef(tx));
        if (below(4) == 0) {
            tx.vin[0].scriptWitness.stack.emplace_back(3, 1);
            txs.push_back(MakeTransactionRef(tx));
        }
    }
    return txs;
}

/** A download manager with its surroundings. */
struct Recorder {
    static constexpr NodeId PEERS{5};
    using Result = TxValidationResult;
    /** What was to be validated: the verdict follows at once. */
    struct Tx {
        size_t index;
        NodeId peer;
        bool first;
    };

    IdPool pool;
    FastRandomContext random{true};
    node::TxDownloadManagerImpl man{node::TxDownloadOptions{pool, random, true}};
    std::vector<CTransactionRef> txs{family()};
    std::map<Wtxid, size_t> numbers;
    int64_t now{1'700'000'000};
    std::optional<Tx> tx_to_validate;
    std::optional<node::PackageToValidate> package_to_validate;

    std::string Number(const CTransactionRef& tx) const { return std::to_string(numbers.at(tx->GetWitnessHash())); }

    std::string Begin(const node::PackageToValidate& package)
    {
        package_to_validate = package;
        return Number(package.m_txns[0]) + ":" + Number(package.m_txns[1]) + ":" +
               std::to_string(package.m_senders[0]) + ":" + std::to_string(package.m_senders[1]);
    }

    std::string Verdict(const Tx& tx)
    {
        if (below(4) == 0) {
            printf("accepted %zu 0 0", tx.index);
            pool.add(*txs[tx.index]);
            man.MempoolAcceptedTx(txs[tx.index]);
            return "-";
        }
        const uint64_t kind{below(16)};
        const auto [text, result] = kind < 8 ? std::pair{"missing", Result::TX_MISSING_INPUTS} :
            kind < 13 ? std::pair{"reconsiderable", Result::TX_RECONSIDERABLE} :
            kind < 14 ? std::pair{"stripped", Result::TX_WITNESS_STRIPPED} :
            kind < 15 ? std::pair{"inputs", Result::TX_INPUTS_NOT_STANDARD} :
                        std::pair{"other", Result::TX_MEMPOOL_POLICY};
        TxValidationState state;
        state.Invalid(result, text);
        printf("%s %zu %ld %d", text, tx.index, tx.peer, tx.first);
        const auto todo = man.MempoolRejectedTx(txs[tx.index], state, tx.peer, tx.first);
        std::string answer{std::to_string(todo.m_should_add_extra_compact_tx)};
        for (const auto& parent : todo.m_unique_parents) answer += "," + name(parent);
        if (todo.m_package_to_validate) answer += ";" + Begin(*todo.m_package_to_validate);
        return answer;
    }

    std::string PackageVerdict(const Package& package)
    {
        const bool accepted{below(3) == 0};
        printf("package %s %s %d", Number(package[0]).c_str(), Number(package[1]).c_str(), accepted);
        if (!accepted) man.MempoolRejectedPackage(package);
        return "-";
    }

    std::string Call(bool at_start)
    {
        const size_t index{below(txs.size())};
        const NodeId peer = below(PEERS);
        const CTransactionRef& tx{txs[index]};
        auto id = [&](bool by_wtxid) { return by_wtxid ? GenTxid{tx->GetWitnessHash()} : GenTxid{tx->GetHash()}; };
        std::string answer{"-"};
        const uint64_t kind{at_start ? 0 : below(40)};
        if (kind < 2) {
            const bool preferred = below(2), relay = below(4) == 0, wtxid_relay = below(3);
            printf("connected %d %ld 0", preferred * 4 + relay * 2 + wtxid_relay, peer);
            man.ConnectedPeer(peer, {preferred, relay, wtxid_relay});
        } else if (kind < 3 && below(2)) {
            printf("disconnected 0 %ld 0", peer);
            man.DisconnectedPeer(peer);
        } else if (kind < 14) {
            const bool by_wtxid = below(3);
            printf("inv %zu %ld %d", index, peer, by_wtxid);
            answer = std::to_string(man.AddTxAnnouncement(peer, id(by_wtxid), std::chrono::seconds{now}));
        } else if (kind < 22) {
            now += below(10) == 0 ? 30 : below(3);
            SetMockTime(now);
            printf("requests 0 %ld %ld", peer, now);
            for (const auto& gtxid : man.GetRequestsToSend(peer, std::chrono::seconds{now})) {
                answer += "," + name(gtxid);
            }
        } else if (kind < 23) {
            const bool by_wtxid = below(2);
            printf("notfound %zu %ld %d", index, peer, by_wtxid);
            man.ReceivedNotFound(peer, {id(by_wtxid)});
        } else if (kind < 32) {
            printf("received %zu %ld 0", index, peer);
            const auto [validate, package] = man.ReceivedTx(peer, tx);
            if (package) answer = Begin(*package);
            if (validate) {
                answer = "validate";
                tx_to_validate = Tx{index, peer, true};
            }
        } else if (kind < 36) {
            printf("work 0 %ld 0", peer);
            if (const auto orphan = man.GetTxToReconsider(peer)) {
                answer = Number(orphan);
                tx_to_validate = Tx{numbers.at(orphan->GetWitnessHash()), peer, false};
            }
        } else if (kind < 37) {
            printf("evicted %zu 0 0", index);
            pool.remove(*tx);
        } else if (kind < 38) {
            answer = Verdict(Tx{index, peer, below(2) == 0});
        } else if (kind < 39 && below(3) == 0) {
            printf("block %zu 0 0", index);
            auto block = std::make_shared<CBlock>();
            block->vtx.push_back(tx);
            man.BlockConnected(block);
        } else if (below(4)) {
            printf("work 0 %ld 0", PEERS);
        } else if (below(2)) {
            printf("tip 0 0 0");
            man.ActiveTipChange();
        } else {
            printf("reorg 0 0 0");
            man.BlockDisconnected();
        }
        return answer;
    }

    /** Writes the rest of the line. */
    void State(const std::string& answer)
    {
        const auto& orphanage = *static_cast<node::TxOrphanageImpl*>(man.m_orphanage.get());
        orphanage.SanityCheck();
        man.m_txrequest.SanityCheck();
        printf(" %s %zu", answer.c_str(), man.m_txrequest.Size());
        for (NodeId peer = 0; peer < PEERS; ++peer) {
            printf(":%zu:%zu", man.m_txrequest.Count(peer), man.m_txrequest.CountInFlight(peer));
        }
        std::string all{"-"};
        for (const auto& one : orphanage.m_orphans) {
            all += "," + Number(one.m_tx) + ":" + std::to_string(one.m_announcer) + (one.m_reconsider ? "*" : "");
        }
        printf(" %s\n", all.c_str());
    }

    void Run(int steps)
    {
        printf("round\n");
        for (size_t index = 0; index < txs.size(); ++index) {
            numbers[txs[index]->GetWitnessHash()] = index;
            DataStream stream;
            stream << TX_WITH_WITNESS(*txs[index]);
            printf("tx %s\n", HexStr(stream).c_str());
        }
        for (int step = 0; step < steps; ++step) {
            SetMockTime(now);
            if (const auto tx = std::exchange(tx_to_validate, std::nullopt)) {
                State(Verdict(*tx));
            } else if (const auto package = std::exchange(package_to_validate, std::nullopt)) {
                State(PackageVerdict(package->m_txns));
            } else {
                State(Call(step < 5));
            }
        }
    }
};
} // namespace

int main(int argc, char** argv)
{
    if (argc != 4) return EXIT_FAILURE;
    const std::string kind{argv[1]};
    const int rounds{std::atoi(argv[2])}, steps{std::atoi(argv[3])};
    g_rng.seed(20261123);
    if (kind == "orphanage") {
        orphanage(rounds, steps);
    } else if (kind == "request") {
        requests(rounds, steps);
    } else if (kind == "download") {
        for (int round = 0; round < rounds; ++round) Recorder{}.Run(steps);
    } else {
        return EXIT_FAILURE;
    }
    return EXIT_SUCCESS;
}
