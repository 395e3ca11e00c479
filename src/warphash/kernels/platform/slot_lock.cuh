// A slot of 16 bytes where no atomic swaps 16 bytes: the key word of the slot is its lock.
//
// Protocol. A thread that swaps the key word for kBusy owns the slot. It writes the value, and releases the slot by
// writing the new key with .release. A thread that meets kBusy where it wants to change the slot tries again. Between
// two kernels no slot is busy.
//
// A reader reads the slot in one load of 16 bytes. It sees the old pair, the new pair, or kBusy as the key; never a key
// with the value of another, since the value is written while the key is kBusy. A reader that sees kBusy waits: the key
// on its way into the slot may be the one that is sought, and a reader that passed it by would insert the key a second
// time.
//
// For a platform without such an atomic (WARPHASH_NO_CAS128), behind its words: load_16_bytes, load_relaxed,
// store_relaxed, store_release, acquire_fence, compare_exchange_word, exchange_word.
#pragma once
#include "platform/types.cuh"

namespace warphash {

constexpr u64 kBusyKey = ~2ull;  // Slots::kBusy of keys of 8 bytes

// The slot, once no thread is writing it.
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
