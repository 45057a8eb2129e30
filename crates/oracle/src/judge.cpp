// The judge: Bitcoin Core's own script and transaction code behind a pipe. Tests only.
//
// Reads requests from stdin and writes one answer for each, in order, to stdout. docs/formats/judge.md in the checkout
// describes the byte format (all integers are little-endian):
//
//   frame    u32 length, then that many bytes
//   request  u8 kind (1 info, 2 script, 3 spend, 4 tx, 5 sighash, 6 hash, 7 taproot sighash, 8 standard,
//            9 package), then its body
//   answer   u8 status (0 known, 1 undecodable, 2 refused), then the body, or a text up to the end of the frame
//
// Invariants: answers come in the order of the requests; foreign bytes that do not decode are status 1; a request that
// would make an assertion in Core fail (illegal flags, a wrong number of prevouts, an input index out of range) is
// status 2; buffered answers are written before every read that could block, so that requests can be pipelined. The
// crate builds this program against the static libraries of the same build as the daemon; no code of Core is copied
// here.

#include <coins.h>
#include <consensus/tx_check.h>
#include <consensus/tx_verify.h>
#include <consensus/validation.h>
#include <crypto/sha256.h>
#include <hash.h>
#include <policy/feerate.h>
#include <policy/packages.h>
#include <policy/policy.h>
#include <primitives/transaction.h>
#include <script/interpreter.h>
#include <script/script_error.h>
#include <streams.h>
#include <util/translation.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <unistd.h>

const TranslateFn G_TRANSLATION_FUN{nullptr};

namespace {

constexpr uint32_t PROTOCOL_VERSION{1};
//! Equal to MAX_FRAME_BYTES in limits.rs.
constexpr size_t MAX_FRAME_BYTES{64 << 20};
constexpr size_t READ_BYTES{1 << 18};
constexpr size_t FLUSH_BYTES{1 << 16};

enum Kind : uint8_t { INFO = 1, SCRIPT = 2, SPEND = 3, TX = 4, SIGHASH = 5, HASH = 6, TAPROOT_SIGHASH = 7, STANDARD = 8, PACKAGE = 9 };
enum Status : uint8_t { KNOWN = 0, UNDECODABLE = 1, REFUSED = 2 };

//! The transaction does not decode, which is an answer about foreign bytes.
struct Undecodable : std::runtime_error { using std::runtime_error::runtime_error; };
//! The request is invalid: a mistake of the caller.
struct Refused : std::runtime_error { using std::runtime_error::runtime_error; };

struct ErrorName { ScriptError number; const char* name; };
#define NAME(name) ErrorName{SCRIPT_ERR_##name, #name}
constexpr ErrorName ERROR_NAMES[]{
    NAME(OK), NAME(UNKNOWN_ERROR), NAME(EVAL_FALSE), NAME(OP_RETURN), NAME(SCRIPTNUM),
    NAME(SCRIPT_SIZE), NAME(PUSH_SIZE), NAME(OP_COUNT), NAME(STACK_SIZE), NAME(SIG_COUNT), NAME(PUBKEY_COUNT),
    NAME(VERIFY), NAME(EQUALVERIFY), NAME(CHECKMULTISIGVERIFY), NAME(CHECKSIGVERIFY), NAME(NUMEQUALVERIFY),
    NAME(BAD_OPCODE), NAME(DISABLED_OPCODE), NAME(INVALID_STACK_OPERATION), NAME(INVALID_ALTSTACK_OPERATION),
    NAME(UNBALANCED_CONDITIONAL),
    NAME(NEGATIVE_LOCKTIME), NAME(UNSATISFIED_LOCKTIME),
    NAME(SIG_HASHTYPE), NAME(SIG_DER), NAME(MINIMALDATA), NAME(SIG_PUSHONLY), NAME(SIG_HIGH_S), NAME(SIG_NULLDUMMY),
    NAME(PUBKEYTYPE), NAME(CLEANSTACK), NAME(MINIMALIF), NAME(SIG_NULLFAIL),
    NAME(DISCOURAGE_UPGRADABLE_NOPS), NAME(DISCOURAGE_UPGRADABLE_WITNESS_PROGRAM),
    NAME(DISCOURAGE_UPGRADABLE_TAPROOT_VERSION), NAME(DISCOURAGE_OP_SUCCESS), NAME(DISCOURAGE_UPGRADABLE_PUBKEYTYPE),
    NAME(WITNESS_PROGRAM_WRONG_LENGTH), NAME(WITNESS_PROGRAM_WITNESS_EMPTY), NAME(WITNESS_PROGRAM_MISMATCH),
    NAME(WITNESS_MALLEATED), NAME(WITNESS_MALLEATED_P2SH), NAME(WITNESS_UNEXPECTED), NAME(WITNESS_PUBKEYTYPE),
    NAME(SCHNORR_SIG_SIZE), NAME(SCHNORR_SIG_HASHTYPE), NAME(SCHNORR_SIG), NAME(TAPROOT_WRONG_CONTROL_SIZE),
    NAME(TAPSCRIPT_VALIDATION_WEIGHT), NAME(TAPSCRIPT_CHECKMULTISIG), NAME(TAPSCRIPT_MINIMALIF),
    NAME(TAPSCRIPT_EMPTY_PUBKEY),
    NAME(OP_CODESEPARATOR), NAME(SIG_FINDANDDELETE),
};
#undef NAME

constexpr bool NamesAreComplete()
{
    int expected{0};
    for (const auto& [number, name] : ERROR_NAMES) {
        if (number != expected++) return false;
    }
    return expected == SCRIPT_ERR_ERROR_COUNT;
}
static_assert(NamesAreComplete(), "each ScriptError of this source tree has its name, in order");
static_assert(SCRIPT_ERR_ERROR_COUNT <= 256, "a ScriptError is one byte on the pipe");
static_assert(MAX_SCRIPT_VERIFY_FLAGS_BITS <= 32, "flags are a u32 on the pipe");

// ---- the pipe ----

std::vector<unsigned char> g_in;
size_t g_in_begin{0};
std::vector<unsigned char> g_out;

void Flush()
{
    size_t done{0};
    while (done < g_out.size()) {
        const ssize_t n{write(STDOUT_FILENO, g_out.data() + done, g_out.size() - done)};
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) _exit(3); // the caller has gone
        done += size_t(n);
    }
    g_out.clear();
}

//! Makes n bytes available at g_in_begin. Returns false at the end of the input.
bool Need(size_t n)
{
    while (g_in.size() - g_in_begin < n) {
        Flush();
        g_in.erase(g_in.begin(), g_in.begin() + ptrdiff_t(g_in_begin));
        g_in_begin = 0;
        const size_t had{g_in.size()};
        g_in.resize(had + READ_BYTES);
        ssize_t got{0};
        do {
            got = read(STDIN_FILENO, g_in.data() + had, READ_BYTES);
        } while (got < 0 && errno == EINTR);
        g_in.resize(had + size_t(got > 0 ? got : 0));
        if (got <= 0) return false;
    }
    return true;
}

//! The unread rest of one request's body.
class Body
{
    std::span<const unsigned char> m_left;

public:
    explicit Body(std::span<const unsigned char> bytes) : m_left{bytes} {}

    std::span<const unsigned char> Take(size_t n)
    {
        if (n > m_left.size()) throw Refused("the request ends too early");
        const auto taken{m_left.first(n)};
        m_left = m_left.subspan(n);
        return taken;
    }
    template <typename T>
    T Int()
    {
        std::make_unsigned_t<T> value{0};
        const auto bytes{Take(sizeof(T))};
        for (size_t i{0}; i < sizeof(T); ++i) value |= std::make_unsigned_t<T>(bytes[i]) << (8 * i);
        return static_cast<T>(value);
    }
    std::span<const unsigned char> Bytes() { return Take(Int<uint32_t>()); }
    size_t Left() const { return m_left.size(); }
};

//! The answer to one request; its length is filled in at the end.
class Answer
{
    std::vector<unsigned char> m_bytes;

public:
    explicit Answer(Status status) { m_bytes.push_back(status); }

    template <typename T>
    Answer& Int(T value)
    {
        for (size_t i{0}; i < sizeof(T); ++i) m_bytes.push_back(static_cast<unsigned char>(uint64_t(value) >> (8 * i)));
        return *this;
    }
    template <typename Range>
    Answer& Raw(const Range& bytes)
    {
        m_bytes.insert(m_bytes.end(), bytes.begin(), bytes.end());
        return *this;
    }
    Answer& Text(const std::string& text)
    {
        Int<uint16_t>(uint16_t(text.size()));
        return Raw(text);
    }
    void Send() const
    {
        for (size_t i{0}; i < 4; ++i) g_out.push_back(static_cast<unsigned char>(m_bytes.size() >> (8 * i)));
        g_out.insert(g_out.end(), m_bytes.begin(), m_bytes.end());
        if (g_out.size() >= FLUSH_BYTES) Flush();
    }
};

// ---- parts of a request ----

script_verify_flags TakeFlags(Body& body)
{
    const uint32_t bits{body.Int<uint32_t>()};
    if (bits & ~MAX_SCRIPT_VERIFY_FLAGS) throw Refused("unknown flag bits");
    const auto flags{script_verify_flags::from_int(bits)};
    const bool p2sh{flags & SCRIPT_VERIFY_P2SH}, witness{flags & SCRIPT_VERIFY_WITNESS};
    if (witness && !p2sh) throw Refused("illegal flags: WITNESS without P2SH");
    if ((flags & SCRIPT_VERIFY_CLEANSTACK) && !(p2sh && witness)) {
        throw Refused("illegal flags: CLEANSTACK without P2SH and WITNESS");
    }
    return flags;
}

CTransaction TakeTx(Body& body)
{
    const auto bytes{body.Bytes()};
    SpanReader reader{bytes};
    CMutableTransaction tx;
    try {
        reader >> TX_WITH_WITNESS(tx);
    } catch (const std::ios_base::failure& e) {
        throw Undecodable(e.what());
    }
    if (!reader.empty()) throw Undecodable("bytes follow the transaction");
    return CTransaction{std::move(tx)};
}

std::vector<CTxOut> TakePrevouts(Body& body, const CTransaction& tx)
{
    const uint32_t count{body.Int<uint32_t>()};
    if (count != tx.vin.size()) throw Refused("the number of prevouts is not the number of inputs");
    std::vector<CTxOut> prevouts;
    prevouts.reserve(count);
    for (uint32_t i{0}; i < count; ++i) {
        const CAmount value{body.Int<int64_t>()};
        const auto script{body.Bytes()};
        prevouts.emplace_back(value, CScript{script.begin(), script.end()});
    }
    return prevouts;
}

uint32_t TakeIndex(Body& body)
{
    return body.Int<uint32_t>();
}

void CheckIndex(uint32_t index, const CTransaction& tx)
{
    if (index >= tx.vin.size()) throw Refused("the transaction has no such input");
}

// ---- the kinds of requests ----

Answer Info(Body&)
{
    Answer answer{KNOWN};
    answer.Int(PROTOCOL_VERSION);
    const auto& flags{ScriptFlagNamesToEnum()};
    answer.Int(uint16_t(flags.size()));
    for (const auto& [name, flag] : flags) answer.Int(static_cast<uint8_t>(flag)).Text(name);
    answer.Int(uint16_t(SCRIPT_ERR_ERROR_COUNT));
    for (const auto& [number, name] : ERROR_NAMES) {
        answer.Int(static_cast<uint8_t>(number)).Text(name).Text(ScriptErrorString(number));
    }
    return answer;
}

//! The same as CScriptCheck::operator(), without the signature cache.
uint8_t VerifyInput(const CTransaction& tx, uint32_t index, const PrecomputedTransactionData& txdata, script_verify_flags flags)
{
    const CTxOut& prevout{txdata.m_spent_outputs[index]};
    const CTxIn& txin{tx.vin[index]};
    ScriptError error{SCRIPT_ERR_UNKNOWN_ERROR};
    const TransactionSignatureChecker checker{&tx, index, prevout.nValue, txdata, MissingDataBehavior::ASSERT_FAIL};
    const bool ok{VerifyScript(txin.scriptSig, prevout.scriptPubKey, &txin.scriptWitness, flags, checker, &error)};
    if (ok != (error == SCRIPT_ERR_OK)) throw Refused("VerifyScript's verdict and its ScriptError disagree");
    return static_cast<uint8_t>(error);
}

Answer Script(Body& body)
{
    const auto flags{TakeFlags(body)};
    const auto index{TakeIndex(body)};
    const CTransaction tx{TakeTx(body)};
    CheckIndex(index, tx);
    PrecomputedTransactionData txdata;
    txdata.Init(tx, TakePrevouts(body, tx));
    return Answer{KNOWN}.Int(VerifyInput(tx, index, txdata, flags));
}

Answer Spend(Body& body)
{
    const auto flags{TakeFlags(body)};
    const CTransaction tx{TakeTx(body)};
    PrecomputedTransactionData txdata;
    txdata.Init(tx, TakePrevouts(body, tx));
    Answer answer{KNOWN};
    answer.Int(uint32_t(tx.vin.size()));
    for (uint32_t i{0}; i < tx.vin.size(); ++i) answer.Int(VerifyInput(tx, i, txdata, flags));
    return answer;
}

//! Makes the prevouts coins, without their values: what is asked ignores them, and -1 would mean "spent" to Core.
void AddCoins(CCoinsViewCache& coins, const CTransaction& tx, const std::vector<CTxOut>& prevouts)
{
    std::map<COutPoint, CScript> seen;
    for (size_t i{0}; i < tx.vin.size(); ++i) {
        const auto [at, fresh]{seen.try_emplace(tx.vin[i].prevout, prevouts[i].scriptPubKey)};
        if (!fresh && at->second != prevouts[i].scriptPubKey) throw Refused("two scripts for the same outpoint");
        if (!fresh) continue;
        coins.EmplaceCoinInternalDANGER(COutPoint{tx.vin[i].prevout}, Coin{CTxOut{0, prevouts[i].scriptPubKey}, 1, false});
    }
}

int64_t SigOpCost(const CTransaction& tx, const std::vector<CTxOut>& prevouts, script_verify_flags flags)
{
    CCoinsViewCache coins{&CoinsViewEmpty::Get(), /*deterministic=*/true};
    AddCoins(coins, tx, prevouts);
    return GetTransactionSigOpCost(tx, coins, flags);
}

Answer Tx(Body& body)
{
    const auto flags{TakeFlags(body)};
    const bool has_prevouts{body.Int<uint8_t>() != 0};
    const CTransaction tx{TakeTx(body)};
    int64_t cost{-1};
    if (has_prevouts) cost = SigOpCost(tx, TakePrevouts(body, tx), flags);
    TxValidationState state;
    const bool valid{CheckTransaction(tx, state)};
    if (valid != state.IsValid()) throw Refused("CheckTransaction's verdict and its state disagree");
    return Answer{KNOWN}
        .Raw(tx.GetHash().ToUint256())
        .Raw(tx.GetWitnessHash().ToUint256())
        .Int(uint32_t(::GetSerializeSize(TX_NO_WITNESS(tx))))
        .Int(uint32_t(::GetSerializeSize(TX_WITH_WITNESS(tx))))
        .Int(uint32_t(GetLegacySigOpCount(tx)))
        .Int(cost)
        .Text(state.GetRejectReason());
}

Answer Sighash(Body& body)
{
    const auto index{TakeIndex(body)};
    const int32_t hash_type{body.Int<int32_t>()};
    const CAmount amount{body.Int<int64_t>()};
    const uint8_t version{body.Int<uint8_t>()};
    if (version > 1) throw Refused("sigversion is 0 (BASE) or 1 (WITNESS_V0)");
    const auto code{body.Bytes()};
    const CTransaction tx{TakeTx(body)};
    CheckIndex(index, tx);
    const SigVersion sigversion{version == 0 ? SigVersion::BASE : SigVersion::WITNESS_V0};
    return Answer{KNOWN}.Raw(SignatureHash(CScript{code.begin(), code.end()}, tx, index, hash_type, amount, sigversion));
}

Answer Sha256d(Body& body)
{
    return Answer{KNOWN}.Raw(Hash(body.Bytes()));
}

//! SignatureHashSchnorr. The annex includes its 0x50 and is hashed as in VerifyWitnessProgram.
Answer TaprootSighash(Body& body)
{
    const auto index{TakeIndex(body)};
    const uint8_t hash_type{body.Int<uint8_t>()};
    const uint8_t version{body.Int<uint8_t>()};
    if (version != 2 && version != 3) throw Refused("sigversion is 2 (TAPROOT) or 3 (TAPSCRIPT)");
    ScriptExecutionData data;
    data.m_annex_init = true;
    data.m_annex_present = body.Int<uint8_t>() != 0;
    const auto annex{body.Bytes()};
    if (data.m_annex_present) {
        data.m_annex_hash = (HashWriter{} << std::vector<unsigned char>(annex.begin(), annex.end())).GetSHA256();
    }
    data.m_tapleaf_hash_init = true;
    data.m_tapleaf_hash = uint256{body.Take(32)};
    data.m_codeseparator_pos_init = true;
    data.m_codeseparator_pos = body.Int<uint32_t>();
    const CTransaction tx{TakeTx(body)};
    CheckIndex(index, tx);
    PrecomputedTransactionData txdata;
    txdata.Init(tx, TakePrevouts(body, tx), /*force=*/true);
    uint256 digest;
    const SigVersion sigversion{version == 2 ? SigVersion::TAPROOT : SigVersion::TAPSCRIPT};
    const bool known{SignatureHashSchnorr(digest, data, tx, index, hash_type, sigversion, txdata, MissingDataBehavior::FAIL)};
    Answer answer{KNOWN};
    answer.Int(uint8_t(known));
    if (known) answer.Raw(digest);
    return answer;
}

//! The policy for a transaction and the scripts that it spends.
Answer Standard(Body& body)
{
    const CFeeRate dust_relay_fee{CAmount{body.Int<int64_t>()}};
    const int64_t datacarrier_bytes{body.Int<int64_t>()};
    const bool permit_bare_multisig{body.Int<uint8_t>() != 0};
    const uint32_t bytes_per_sigop{body.Int<uint32_t>()};
    const CTransaction tx{TakeTx(body)};
    const auto prevouts{TakePrevouts(body, tx)};
    if (datacarrier_bytes < -1 || datacarrier_bytes > UINT32_MAX) throw Refused("no size of data");
    std::optional<unsigned> max_datacarrier_bytes;
    if (datacarrier_bytes >= 0) max_datacarrier_bytes = unsigned(datacarrier_bytes);
    CCoinsViewCache coins{&CoinsViewEmpty::Get(), /*deterministic=*/true};
    AddCoins(coins, tx, prevouts);
    std::string reason;
    const bool is_standard{IsStandardTx(tx, max_datacarrier_bytes, permit_bare_multisig, dust_relay_fee, reason)};
    if (is_standard != reason.empty()) throw Refused("IsStandardTx's verdict and its reason disagree");
    const TxValidationState inputs{ValidateInputsStandardness(tx, coins)};
    const int64_t sigop_cost{GetTransactionSigOpCost(tx, coins, STANDARD_SCRIPT_VERIFY_FLAGS)};
    return Answer{KNOWN}
        .Text(reason)
        .Int(uint32_t(GetDust(tx, dust_relay_fee).size()))
        .Text(inputs.GetRejectReason())
        .Text(inputs.GetDebugMessage())
        .Int(uint8_t(IsWitnessStandard(tx, coins)))
        .Int(uint8_t(SpendsNonAnchorWitnessProg(tx, coins)))
        .Int(GetVirtualTransactionSize(tx, sigop_cost, bytes_per_sigop));
}

//! The shape of a package.
Answer ShapeOfPackage(Body& body)
{
    const uint32_t count{body.Int<uint32_t>()};
    Package package;
    for (uint32_t i{0}; i < count; ++i) package.push_back(std::make_shared<const CTransaction>(TakeTx(body)));
    PackageValidationState state;
    const bool valid{IsWellFormedPackage(package, state)};
    if (valid != state.IsValid()) throw Refused("IsWellFormedPackage's verdict and its state disagree");
    return Answer{KNOWN}
        .Text(state.GetRejectReason())
        .Int(uint8_t(IsChildWithParents(package)))
        .Int(uint8_t(IsChildWithParentsTree(package)))
        .Raw(GetPackageHash(package));
}

Answer Judge(std::span<const unsigned char> request)
{
    Body body{request};
    try {
        const uint8_t kind{body.Int<uint8_t>()};
        Answer (*const ask)(Body&){kind == INFO ? Info : kind == SCRIPT ? Script : kind == SPEND ? Spend
            : kind == TX ? Tx : kind == SIGHASH ? Sighash : kind == HASH ? Sha256d
            : kind == TAPROOT_SIGHASH ? TaprootSighash : kind == STANDARD ? Standard
            : kind == PACKAGE ? ShapeOfPackage : nullptr};
        if (!ask) throw Refused("unknown kind of request");
        Answer answer{ask(body)};
        if (body.Left() != 0) throw Refused("bytes follow the request");
        return answer;
    } catch (const Undecodable& e) {
        return Answer{UNDECODABLE}.Raw(std::string{e.what()});
    } catch (const std::exception& e) {
        return Answer{REFUSED}.Raw(std::string{e.what()});
    }
}

} // namespace

int main()
{
    SHA256AutoDetect();
    while (Need(4)) {
        const uint32_t length{Body{std::span{g_in}.subspan(g_in_begin, 4)}.Int<uint32_t>()};
        if (length > MAX_FRAME_BYTES) {
            Answer{REFUSED}.Raw(std::string{"the request is longer than a frame may be"}).Send();
            Flush();
            return 4;
        }
        g_in_begin += 4;
        if (!Need(length)) return 5;
        Judge(std::span{g_in}.subspan(g_in_begin, length)).Send();
        g_in_begin += length;
    }
    Flush();
    return 0;
}
