// What Core's sources need from the rest of Core: failed assertions end the program, randomness has a fixed seed. The
// results do not depend on it, because every cluster is linearised until it is optimal.
#include <random.h>
#include <util/check.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <source_location>
#include <string>
#include <string_view>

bool g_detail_test_only_CheckFailuresAreExceptionsNotAborts{false};

void assertion_fail(const std::source_location& location, std::string_view assertion)
{
    std::fprintf(stderr, "%s:%u: %.*s\n", location.file_name(), location.line(), int(assertion.size()), assertion.data());
    std::abort();
}

std::string StrFormatInternalBug(std::string_view message, const std::source_location&) { return std::string{message}; }

NonFatalCheckError::NonFatalCheckError(std::string_view message, const std::source_location&)
    : std::runtime_error{std::string{message}}
{
}

FastRandomContext::FastRandomContext(bool) noexcept : requires_seed{true}, rng{std::array<std::byte, 32>{}} {}

void FastRandomContext::RandomSeed() noexcept
{
    static unsigned char count{0};
    std::array<std::byte, 32> key{};
    key[0] = std::byte{++count};
    rng.SetKey(key);
    requires_seed = false;
}
