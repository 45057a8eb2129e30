// SplitMix64, so that a seed gives the same vectors on every machine.
#pragma once
#include <cstdint>

struct SplitMix64 {
    uint64_t state;

    uint64_t next()
    {
        state += 0x9e3779b97f4a7c15;
        uint64_t mixed = state;
        mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9;
        mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111eb;
        return mixed ^ (mixed >> 31);
    }

    uint64_t below(uint64_t count) { return next() % count; }

    template <typename T, int N>
    T pick(const T (&choices)[N]) { return choices[below(N)]; }
};
