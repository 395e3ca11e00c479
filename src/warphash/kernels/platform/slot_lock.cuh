// A slot of 16 bytes where no atomic swaps so many: its own key word is its lock.
//
// Protocol. Whoever moves the key word from what it was to kBusy owns the slot; it writes the value, and releases the slot
// by writing the new key with .release. Whoever meets kBusy while it wants to change the slot tries again. Between two
// kernels no slot is busy.
//
// A reader takes the slot in one load of 16 bytes and sees the pair before, the pair behind, or kBusy as its key; never a
// key with the value of another, since the value is written between the two. It waits while it sees kBusy: the key on
// its way into the slot may be the one that is sought, and who passed it by would insert it a second time.
//
// For a platform without such an atomic (WARPHASH_NO_CAS128), behind its words: load_16_bytes, load_relaxed, store_relaxed,
// store_release, acquire_fence, compare_exchange_word, exchange_word.
#pragma once
#include "platform/types.cuh"

namespace warphash {

constexpr u64 kBusyKey = ~2ull;  // Slots::kBusy of keys of 8 bytes

// The slot as nobody is writing it.
WARPHASH_FN Quad load_released(const void* p) {
  for (;;) {
    const Quad slot = load_16_bytes<false>(p);
    if (__builtin_bit_cast(Halves, slot).low != kBusyKey) return slot;
  }
}

// The slot is ours and had the key `owned.low`.
WARPHASH_FN Halves write_and_release(Halves* p, Halves owned, Halves desired) {
  const Halves old = {owned.low, load_relaxed(&p->high)};
  store_relaxed(&p->high, desired.high);
  store_release(&p->low, desired.low);
  return old;
}

WARPHASH_FN Halves compare_exchange_halves(Halves* p, Halves expected, Halves desired) {
  for (;;) {
    const u64 seen = compare_exchange_word(&p->low, expected.low, kBusyKey);
    if (seen == kBusyKey) continue;
    if (seen != expected.low) return {seen, 0};
    acquire_fence();  // the value belongs to the key that we took
    if (load_relaxed(&p->high) == expected.high) return write_and_release(p, expected, desired);
    const Halves other = {seen, load_relaxed(&p->high)};
    return write_and_release(p, other, other);
  }
}

WARPHASH_FN Halves exchange_halves(Halves* p, Halves desired) {
  for (;;) {
    const u64 seen = exchange_word(&p->low, kBusyKey);
    if (seen == kBusyKey) continue;
    acquire_fence();
    return write_and_release(p, {seen, 0}, desired);
  }
}

}  // namespace warphash
