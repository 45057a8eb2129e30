// Prints random clusters with the optimal linearisation of Core, one per line:
// count|fee/size/tie rank,...|parent>child,...|order|chunk lengths
#include "splitmix.h"

#include <cluster_linearize.h>
#include <util/bitset.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <utility>
#include <vector>

using namespace cluster_linearize;
using Set = BitSet<64>;

/** The parents of a transaction among those before it. */
static Set Parents(SplitMix64& random, int shape, int at, int count)
{
    Set parents;
    const int half = count / 2;
    switch (shape) {
    case 0: // a tree
        parents.Set(random.below(at));
        break;
    case 1: // few parents anywhere
        for (int i = 0; i < 3; ++i) {
            if (random.below(2)) parents.Set(random.below(at));
        }
        break;
    case 2: // two layers
        for (int i = 0; at >= half && i < half; ++i) {
            if (random.below(3) == 0) parents.Set(i);
        }
        break;
    case 3: // almost a chain
        parents.Set(at - 1 - random.below(std::min(at, 3)));
        if (random.below(3) == 0) parents.Set(random.below(at));
        break;
    default: // several parents nearby
        for (int i = random.below(5); i > 0; --i) parents.Set(at - 1 - random.below(std::min(at, 8)));
    }
    return parents;
}

static void PrintCase(SplitMix64& random, int count_max)
{
    const int count = 1 + random.below(count_max);
    const int shape = random.below(5);
    const int fee_max = random.pick({2, 4, 10, 1000, 1000000});
    const int size_max = random.pick({1, 2, 5, 1000});
    std::vector<int> ranks(count);
    std::iota(ranks.begin(), ranks.end(), 0);
    for (int i = count - 1; i > 0; --i) std::swap(ranks[i], ranks[random.below(i + 1)]);

    DepGraph<Set> graph;
    std::printf("%d", count);
    for (int i = 0; i < count; ++i) {
        int64_t fee = random.below(fee_max);
        if (random.below(50) == 0) fee = -fee;
        const int size = 1 + random.below(size_max);
        graph.AddTransaction(FeeFrac(fee, size));
        std::printf("%c%lld/%d/%d", i ? ',' : '|', (long long)fee, size, ranks[i]);
    }
    std::printf("|");
    const char* separator = "";
    for (int i = 1; i < count; ++i) {
        const Set parents = Parents(random, shape, i, count);
        graph.AddDependencies(parents, i);
        for (auto parent : parents) {
            std::printf("%s%d>%d", separator, (int)parent, i);
            separator = ",";
        }
    }
    const auto by_rank = [&](DepGraphIndex a, DepGraphIndex b) { return ranks[a] <=> ranks[b]; };
    auto [order, is_optimal, _] = Linearize(graph, /*max_cost=*/~uint64_t{0}, random.next(), by_rank);
    if (!is_optimal) std::abort();
    PostLinearize(graph, std::span{order});
    for (int i = 0; i < count; ++i) std::printf("%c%d", i ? ',' : '|', (int)order[i]);
    separator = "|";
    for (const auto& chunk : ChunkLinearizationInfo(graph, order)) {
        std::printf("%s%d", separator, (int)chunk.transactions.Count());
        separator = ",";
    }
    std::printf("\n");
}

int main(int argc, char** argv)
{
    if (argc != 4) return 1;
    SplitMix64 random{std::strtoull(argv[3], nullptr, 10)};
    for (int i = std::atoi(argv[1]); i > 0; --i) PrintCase(random, std::atoi(argv[2]));
}
