// Stadium hashing (Stash): a key lives in the first free slot of its own walk through all slots. No key ever moves.
// Source: Stadium Hashing: Scalable and Flexible Hashing on GPUs (Khorasani et al., 2015), section III.
//
// Layout: n slots of a pair each (tickets/pairs.cuh), n a prime number, and a ticket board (tickets/ticket_board.cuh).
//
// Walk of a key k (double hashing, Figure 5):
//   s(0)     = umulhi(h1(k), n)
//   s(i + 1) = s(i) + 1 + umulhi(h2(k), n - 1), less n if that is n or more
// As n is prime and the step is in [1, n - 1], the walk visits each slot once in n probes: a table can be filled to its
// last slot. Info bits are the lowest ones of h3(k).
//
// h(k), of keys of 4 and 8 bytes: x = k ^ c; for j = bytes of the key, ..., 1: x = ((x >> 8) ^ x) * m + j; the lower 32
// bits. With the multipliers m of Figure 5 for h1 and h2. functions="family" takes functions of core/hash.cuh in their
// place.
//
// How the lanes of a warp share out a batch: a lane for each element (Stash), or lanes that collaborate (clStash,
// core/gpu/collaborating.cuh), or by the load factor (storage/tickets/lanes.py).
//
// Departures. c is a constant of the table, drawn from its seed; the paper has none. Without it, keys of one walk would
// be so in every table, and n of them cost n^2 / 2 probes wherever they come from. The multiplier of h3 is not in the
// paper; ours is odd, and its info bits are checked by tests/designs/test_stadium.py. Wider keys are hashed by their
// digest (core/wide.cuh). The sum of slot and step is taken without overflow, so n may exceed 2^31.
// Errata. Section III-A speaks of 4 rounds, Figure 5 of as many as a key has bytes; these are the same for keys of 4
// bytes. It calls the function reversible: with the multiplier of h2, which is even, it is not, and a bit is lost each
// round.
#pragma once
#include "core/hash.cuh"
#include "core/wide.cuh"
#include "tickets/abi.cuh"

namespace warphash {

template <class S_>
struct Stadium : OverTickets {
  using S = S_;
  using Word = typename S::Word;
  static constexpr u32 kFirst = 0xE9D58A6Bu, kStep = 0x6E5B9D8Au, kInfo = 0xB5297A4Du;

  struct Walk {
    u32 slot;
    u32 step;   // 0: not computed
    u32 tried;  // slots, this one included

    WARPHASH_FN static Walk start(const TicketTable& t, const Word& key) {
      return {hash_below<kFirst, 1>(t, key, t.buckets), 0, 1};
    }
    // At a slot to which it has come after so many.
    WARPHASH_FN static Walk resume(u32 slot, u32 tried) { return {slot, 0, tried}; }
    // To the next slot; false if all were visited.
    WARPHASH_FN bool advance(const TicketTable& t, const Word& key) {
      const u32 n = static_cast<u32>(t.buckets);
      if (tried == n) return false;
      ++tried;
      if (step == 0) step = 1 + hash_below<kStep, 2>(t, key, n - 1);
      slot = slot >= n - step ? slot - (n - step) : slot + step;
      return true;
    }
  };

  // At least 7 bits of hash, the lowest ones.
  WARPHASH_FN static u32 info(const TicketTable& t, const Word& key) {
    const auto hashed = digest(t.multiplier[0], key);
    return t.of_family ? static_cast<u32>(family_hash<3>(t, hashed)) : rounds<kInfo>(t, hashed);
  }

 private:
  // Figure 5, lines 1 to 6.
  template <u32 kMultiplier, class Key>
  WARPHASH_FN static u32 rounds(const TicketTable& t, Key key) {
    Key x = key ^ static_cast<Key>(t.multiplier[1]);
#pragma unroll
    for (u32 j = sizeof(Key); j > 0; --j) x = ((x >> 8) ^ x) * kMultiplier + j;
    return static_cast<u32>(x);
  }
  // With constants i of the table.
  template <int i, class Key>
  WARPHASH_FN static auto family_hash(const TicketTable& t, Key key) {
    if (t.family == kUniversal) return static_cast<Key>(universal(key, t.multiplier[i], t.addend[i]));
    return mix(static_cast<Key>(key ^ static_cast<Key>(t.multiplier[i])));
  }
  template <u32 kMultiplier, int i>
  WARPHASH_FN static u32 hash_below(const TicketTable& t, const Word& key, u64 end) {
    const auto hashed = digest(t.multiplier[0], key);
    if (!t.of_family) return multiply_high(rounds<kMultiplier>(t, hashed), static_cast<u32>(end));
    const auto hash = family_hash<i>(t, hashed);
    return t.family == kUniversal ? static_cast<u32>(hash % end) : scale(hash, end);
  }
};

}  // namespace warphash
