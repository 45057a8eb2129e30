// Prints random changes of Core's TxGraph and the answers it gives after each of them. A line without `=` is a change,
// a line with `=` an answer. Transactions are numbered from 0 within a graph; a chunk is `numbers@fee/size`.
//
// Fees are either small, so that equal feerates are common, or large, so that no two chunks have the same fee and size:
// only then is what Trim() removes a matter of its rule rather than of its heap.
#include "splitmix.h"

#include <txgraph.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <span>
#include <vector>

using Level = TxGraph::Level;
using Refs = std::vector<TxGraph::Ref*>;
static constexpr uint64_t UNLIMITED{1'000'000'000'000};

struct Tx : TxGraph::Ref {
    int number;
    uint64_t key;
    uint64_t rank; //!< A parent has a lower rank than its child, so that there are no cycles.
};

static int Number(const TxGraph::Ref* ref) { return static_cast<const Tx*>(ref)->number; }

static std::strong_ordering ByKey(const TxGraph::Ref& a, const TxGraph::Ref& b)
{
    return static_cast<const Tx&>(a).key <=> static_cast<const Tx&>(b).key;
}

static void PrintSorted(const Refs& refs)
{
    std::vector<int> numbers;
    for (auto ref : refs) numbers.push_back(Number(ref));
    std::ranges::sort(numbers);
    for (int number : numbers) std::printf(" %d", number);
}

static void PrintDiagram(std::span<const FeeFrac> diagram)
{
    for (const auto& chunk : diagram) std::printf(" %" PRId64 "/%d", chunk.fee, chunk.size);
}

class Scenario
{
    SplitMix64& m_random;
    const bool m_trims;
    const unsigned m_count_max;
    const uint64_t m_size_max;
    const uint64_t m_fee_max;
    const uint64_t m_cluster_size_max;
    const size_t m_target;
    std::unique_ptr<TxGraph> m_graph;
    std::vector<std::unique_ptr<Tx>> m_txs;

    std::vector<Tx*> Existing(Level level)
    {
        std::vector<Tx*> found;
        for (auto& tx : m_txs) {
            if (m_graph->Exists(*tx, level)) found.push_back(tx.get());
        }
        return found;
    }

    Tx* Pick(const std::vector<Tx*>& txs) { return txs[m_random.below(txs.size())]; }

    void Add()
    {
        auto tx = std::make_unique<Tx>();
        tx->number = m_txs.size();
        tx->key = m_random.next();
        tx->rank = m_random.next();
        int64_t fee = m_random.below(m_fee_max);
        if (m_random.below(40) == 0) fee = -fee;
        int32_t size = 1 + m_random.below(m_size_max);
        if (uint64_t(size) > m_cluster_size_max && m_random.below(4)) size = m_cluster_size_max;
        m_graph->AddTransaction(*tx, FeePerWeight(fee, size));
        std::printf("add %" PRId64 " %d %016" PRIx64 "\n", fee, size, tx->key);
        m_txs.push_back(std::move(tx));
    }

    void Depend(const std::vector<Tx*>& txs)
    {
        std::printf("depend");
        for (int i = m_random.below(m_random.below(5) == 0 ? 20 : 3); i >= 0; --i) {
            auto a = Pick(txs), b = Pick(txs);
            if (a == b) continue;
            if (a->rank > b->rank) std::swap(a, b);
            m_graph->AddDependency(*a, *b);
            std::printf(" %d %d", a->number, b->number);
        }
        std::printf("\n");
    }

    void Remove(const std::vector<Tx*>& txs)
    {
        std::vector<const TxGraph::Ref*> of{Pick(txs)};
        Refs removed{const_cast<TxGraph::Ref*>(of[0])};
        if (!m_graph->IsOversized(Level::TOP)) {
            if (m_random.below(2)) of.push_back(Pick(txs));
            const int what = m_random.below(3);
            if (what == 1) removed = m_graph->GetDescendantsUnion(of, Level::TOP);
            if (what == 2) removed = m_graph->GetAncestorsUnion(of, Level::TOP);
        }
        std::printf("remove");
        for (auto ref : removed) {
            m_graph->RemoveTransaction(*ref);
            std::printf(" %d", Number(ref));
        }
        std::printf("\n");
    }

    void Change()
    {
        const auto top = Existing(Level::TOP);
        const bool is_oversized = m_graph->IsOversized(Level::TOP);
        const bool is_staged = m_graph->HaveStaging();
        const int what = m_random.below(100);
        if (is_oversized && m_trims && m_random.below(8)) {
            const auto removed = m_graph->Trim();
            std::printf("trim");
            PrintSorted(removed);
            std::printf("\n");
        } else if (is_oversized && !m_trims && is_staged) {
            m_graph->AbortStaging();
            std::printf("abort\n");
        } else if (what < 35 && top.size() < m_target) {
            Add();
        } else if (what < 65 && top.size() > 1) {
            Depend(top);
        } else if (what < 75 && !top.empty()) {
            Remove(top);
        } else if (what < 82 && !top.empty()) {
            const auto tx = Pick(top);
            const int64_t fee = m_random.below(m_fee_max);
            m_graph->SetTransactionFee(*tx, fee);
            std::printf("fee %d %" PRId64 "\n", tx->number, fee);
        } else if (what < 90 && !is_staged) {
            m_graph->StartStaging();
            std::printf("start\n");
        } else if (is_staged && m_random.below(3) == 0) {
            m_graph->AbortStaging();
            std::printf("abort\n");
        } else if (is_staged) {
            m_graph->CommitStaging();
            std::printf("commit\n");
        }
    }

    void AnswerMain()
    {
        std::printf("=main");
        {
            const auto builder = m_graph->GetBlockBuilder();
            while (const auto chunk = builder->GetCurrentChunk()) {
                const char* separator = " ";
                for (auto ref : chunk->first) {
                    std::printf("%s%d", separator, Number(ref));
                    separator = ",";
                }
                std::printf("@%" PRId64 "/%d", chunk->second.fee, chunk->second.size);
                builder->Include();
            }
        }
        std::printf("\n");
        const auto main = Existing(Level::MAIN);
        if (main.empty()) return;
        if (m_random.below(3) == 0) {
            std::printf("=skip");
            const auto builder = m_graph->GetBlockBuilder();
            while (const auto chunk = builder->GetCurrentChunk()) {
                const bool is_skipped = m_random.below(2);
                std::printf(" %c%d", is_skipped ? '-' : '+', Number(chunk->first.back()));
                is_skipped ? builder->Skip() : builder->Include();
            }
            std::printf("\n");
        }
        const auto [worst, feerate] = m_graph->GetWorstMainChunk();
        std::printf("=worst %" PRId64 "/%d", feerate.fee, feerate.size);
        for (auto ref : worst) std::printf(" %d", Number(ref));
        std::printf("\n");
        for (int i = 0; i < 2; ++i) {
            const auto a = Pick(main), b = Pick(main);
            const auto order = m_graph->CompareMainOrder(*a, *b);
            std::printf("=compare %d %d %d\n", a->number, b->number, order < 0 ? -1 : order > 0);
            std::printf("=cluster %d", a->number);
            for (auto ref : m_graph->GetCluster(*a, Level::MAIN)) std::printf(" %d", Number(ref));
            const auto chunk = m_graph->GetMainChunkFeerate(*a);
            std::printf(" @%" PRId64 "/%d\n", chunk.fee, chunk.size);
        }
    }

    void AnswerTop()
    {
        const auto top = Existing(Level::TOP);
        if (top.empty()) return;
        std::vector<const TxGraph::Ref*> of;
        for (int i = m_random.below(4); i >= 0; --i) of.push_back(Pick(top));
        const auto begin = [&](const char* name) {
            std::printf("=%s", name);
            for (auto ref : of) std::printf(" %d", Number(ref));
            std::printf(" :");
        };
        begin("ancestors");
        PrintSorted(m_graph->GetAncestorsUnion(of, Level::TOP));
        std::printf("\n");
        begin("descendants");
        PrintSorted(m_graph->GetDescendantsUnion(of, Level::TOP));
        std::printf("\n");
        begin("clusters");
        std::printf(" %u\n", m_graph->CountDistinctClusters(of, Level::TOP));
    }

    void Answer()
    {
        const bool is_main_oversized = m_graph->IsOversized(Level::MAIN);
        const bool is_top_oversized = m_graph->IsOversized(Level::TOP);
        if (!m_graph->DoWork(UNLIMITED)) std::abort();
        std::printf("=count %u %u %d %d\n", m_graph->GetTransactionCount(Level::MAIN),
                    m_graph->GetTransactionCount(Level::TOP), is_main_oversized, is_top_oversized);
        if (!is_main_oversized) AnswerMain();
        if (!is_top_oversized) AnswerTop();
        if (!m_graph->HaveStaging() || is_main_oversized || is_top_oversized) return;
        const auto [main, staging] = m_graph->GetMainStagingDiagrams();
        std::printf("=diagrams");
        PrintDiagram(main);
        std::printf(" :");
        PrintDiagram(staging);
        const auto order = CompareChunks(staging, main);
        const char* verdict = order < 0 ? "less" : order > 0 ? "greater" : order == 0 ? "equal" : "none";
        std::printf(" : %s\n", verdict);
    }

public:
    explicit Scenario(SplitMix64& random)
        : m_random{random},
          m_trims{random.below(2) == 1},
          m_count_max{random.pick<unsigned>({3, 6, 12, 64})},
          m_size_max{m_trims ? 100'000 : random.pick<uint64_t>({1, 3, 1000})},
          m_fee_max{m_trims ? 1'000'000'000 : random.pick<uint64_t>({2, 5, 20, 100'000})},
          m_cluster_size_max{random.below(3) ? m_size_max * m_count_max : m_size_max + m_size_max / 2},
          m_target{5 + random.below(60)},
          m_graph{MakeTxGraph(m_count_max, m_cluster_size_max, /*acceptable_cost=*/75'000, ByKey)}
    {
        std::printf("graph %u %" PRIu64 "\n", m_count_max, m_cluster_size_max);
    }

    void Run(int changes)
    {
        for (int i = 0; i < changes; ++i) {
            Change();
            Answer();
        }
    }
};

int main(int argc, char** argv)
{
    if (argc != 4) return 1;
    SplitMix64 random{std::strtoull(argv[3], nullptr, 10)};
    for (int i = std::atoi(argv[1]); i > 0; --i) Scenario{random}.Run(std::atoi(argv[2]));
}
