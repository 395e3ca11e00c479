// What a block of threads does in the range that it has for itself: looks for keys, adds the absent ones and makes room
// for them. `apply` (quotient/apply.cuh) and `build` (quotient/build.cuh) consist of it. A CPU has blocks of one thread.
//
// Protocol of an insert, for as many elements at a time as there are threads (a round). A barrier ends each step.
//   1. Each thread looks for its key. If it is there, combine the value.
//   2. Enter absent keys into a list of their home bucket. If there are none, the round is over.
//   3. The thread that opened a list walks it, and has that bucket for itself. Of equal keys one stays in the running;
//      the others wait for step 7. A key takes a vacant slot of its home, or is deferred. If none is, go to step 7.
//   4. Enter deferred keys into a list of their second bucket.
//   5. The thread that opened such a list gives vacant slots of the bucket to its keys, as guests. The others are
//      stuck.
//   6. Each guest sets its bit in the filter of its home. Then warps make room for the stuck keys, in turns.
//      a. A few lanes look at the keys in the way of a stuck one, for a key that can go to its other bucket. All stuck
//         keys do this at once, and claim the buckets that are to change for them.
//      b. Keys move whose buckets are all claimed for them, at once. The others have another turn.
//      c. One warp places the keys that are left one by one. If no key in the way can go to its other bucket, one thread
//         searches breadth-first over the other buckets of these keys, and the keys on the path to a vacant slot move on
//         by one. Only a path that ends in a vacant slot moves a key.
//   7. Equal keys that waited look again, and combine their values.
// After the last round the filters are made anew, if guests have left their buckets.
//
// An element whose key found no slot is flagged as unplaced, and nothing else is. So the range holds the keys of all
// other elements at any time, and neither a failure nor a host that stops between two kernels needs a way back.
//
// Why lists and not locks. Equal keys share a home, so the walk of one thread resolves them, and a thread that has a
// bucket for itself writes it with plain stores. Without a lock no lane of a warp waits for another.
//
// The head of a list is a word of its bucket: a bit and the thread that entered last, or any number without the bit,
// which is a list of nobody. So a build counts in these words, and rounds follow without a step between.
//
// Memory order: relaxed. Barriers order the steps of a block, and no other block has the range.
#pragma once
#include "quotient/crowds.cuh"

namespace warphash {

// `combine` of core/value.cuh for a value in any memory, beside threads that combine, too.
template <class Word>
WARPHASH_FN void combine_in_range(Word* at, Word operand, u64 op, u64 kind) {
  const bool whole_word = kind_bits(kind) == 8 * sizeof(Word);
  if (op == kKeep) return;
  if (op == kAdd && whole_word)
    return kind_class(kind) == kFloat ? atomic_add_float(at, operand) : atomic_add(at, operand);
  Word old = fetch_or(at, Word(0));
  for (;;) {
    const Word wanted = op == kReplace ? operand : static_cast<Word>(combine_bits(op, kind, old, operand));
    if (wanted == old) return;
    const Word seen = compare_exchange_word(at, old, wanted);
    if (seen == old) return;
    old = seen;
  }
}

// Before: what a block keeps in memory until its first round, if anything. The rounds use the same memory.
struct NothingBefore {};
template <class D, class Lines, class Before = NothingBefore>
struct InRange : OverQuotients {
  using S = typename D::S;
  using Word = typename S::Word;
  using Value = typename S::Value;
  using Brought = typename S::Brought;
  static constexpr u32 kNobody = ~0u, kNoSlot = ~0u;
  static constexpr u32 kIsListed = 1u << 31;
  static constexpr u32 kMostSeen = 256;    // buckets that a search for a vacant slot sees
  static constexpr u32 kTurns = 3;         // of steps 6a and 6b
  static constexpr u32 kLookingLanes = 8;  // that look for a move of a stuck key in step 6a

  enum State : u8 { kWaiting, kPlaced, kDeferred, kStuck, kLost };

  // A bucket that a search has come to: by the key in `slot` of the bucket of step `from`.
  struct Step {
    u16 bucket;
    u8 from, slot;
  };
  // Of a round, by the thread that has the element.
  struct Rounds {
    Brought items[kApplyingThreads];  // whose keys are absent
    union {
      u32 moves[kApplyingThreads];  // of each stuck key, in steps 6a and 6b: a Move, or kNobody
      Step steps[kMostSeen];
    };
    u16 next[kApplyingThreads];
    u8 states[kApplyingThreads];
    u8 stuck[kTurns + 1][kApplyingThreads];  // elements: those of each turn, and those that are left
  };
  struct Memory {
    typename Lines::template Range<typename S::Wide> range;
    union {
      Before before;
      Rounds rounds;
    };
    u32 heads[kMostRangeBuckets];  // of each bucket's list: kIsListed and a thread, or without that bit any number
    u32 listed, left;              // in a build: elements left to later steps, and to rounds
    u32 stuck_counts[kTurns + 1];
    u32 claimed[kMostRangeBuckets / 32];  // a bit for each bucket, in step 6a
    u32 with_fresh[2];  // the last round that had an absent key, by where its elements begin in `brought`
    u32 with_deferred;  // the last round that had a deferred one
    Sampled sampled;    // the elements that the block works on
    u32 stale;          // a guest has left a bucket, so its bit in a filter may be one too many
    u32 changed;
  };
  static constexpr u64 kMemoryBytes = sizeof(Memory);
  static constexpr u32 kThreads = Lines::kThreads;  // of a block
  static constexpr bool kCopies = Lines::kCopiesRanges;

  const QuotientTable& t;
  const QuotientBatch& b;
  Memory& m;
  const u32 id, threads;
  const u32 range, size;  // its number, and its buckets
  const u32 first_bucket;
  const u32 start, elements;  // where its elements begin in `brought`, and how many the block works on
  u32* lines;
  u32 changed, probes;
  bool odd;  // the number of the round

  WARPHASH_FN InRange(const QuotientTable& table, const QuotientBatch& batch, u32 number, void* memory)
      : t(table),
        b(batch),
        m(*static_cast<Memory*>(memory)),
        id(thread_in_block()),
        threads(threads_in_block()),
        range(number),
        size(static_cast<u32>(t.range_buckets)),
        first_bucket(number * size),
        start(pointer<const u32>(t.starts)[number]),
        elements(sampled().count(*counter_of(t, number))),
        changed(0),
        probes(0),
        odd(false) {
    if (id != 0) return;
    m.stale = m.changed = 0;  // a barrier follows before a round
    if constexpr (Lines::kIsForCrowds) m.sampled = sampled();
  }

  // The ranges that have elements, or those of them that are crowded: how many, which has a number, and whether this
  // kernel works on one.
  WARPHASH_FN static u64 ranges_of(const QuotientTable&, const QuotientBatch& b) {
    return Lines::kIsForCrowds ? crowds_of(b) : report_of(b)->winners;
  }
  WARPHASH_FN static u32 range_at(const QuotientBatch& b, u64 number) {
    if constexpr (Lines::kIsForCrowds) return crowd_at(b, static_cast<u32>(number)).range;
    return pointer<const u32>(b.touched)[number];
  }
  WARPHASH_FN static bool takes(const QuotientTable& t, const QuotientBatch& b, u32 range) {
    if constexpr (Lines::kLeavesCrowds) {
      const u32 total = *counter_of(t, range);
      if (is_crowded(b, total, static_cast<u32>(t.range_buckets) * S::kSlots)) {
        if (thread_in_block() == 0) enter_crowd(b, range, total);
        return false;
      }
    }
    return true;
  }

  // Once for the memory of a block, before its first range.
  WARPHASH_FN static void prepare(void* memory) {
    Memory& m = *static_cast<Memory*>(memory);
    clear_heads(m);
    if (thread_in_block() != 0) return;
    m.with_fresh[0] = m.with_fresh[1] = m.with_deferred = kNobody;
  }

  WARPHASH_FN static void clear_heads(Memory& m) {
    for (u32 k = thread_in_block(); k < kMostRangeBuckets; k += threads_in_block()) m.heads[k] = 0;
  }

  // Calls round(first, live, item) for `n` elements, as many at a time as there are threads: of a thread that is live,
  // `item` is item_at(first + id).
  template <class ItemAt, class Round>
  WARPHASH_FN void in_rounds(u32 n, ItemAt&& item_at, Round&& round) {
    Brought next = id < n ? item_at(id) : Brought{};
    for (u32 first = 0; first < n; first += threads) {
      const Brought item = next;
      if (first + threads + id < n) next = item_at(first + threads + id);
      round(first, first + id < n, item);
    }
  }

  // After the last round.
  WARPHASH_FN void finish() {
    for (u32 distance = kWarpLanes / 2; distance > 0; distance /= 2)
      changed += shuffle(changed, lane() ^ distance, kWarpLanes);
    if (lane() == 0) atomic_add(&m.changed, changed);
    block_barrier();
    if (m.stale && pays_to_renew()) renew_filters();
    Lines::close(m.range, line_at(t, first_bucket), size, id, threads);
    if (b.count_probes) atomic_add(&count_line(b, range).probes, static_cast<u64>(probes));
    if (id != 0) return;
    *counter_of(t, range) = 0;
    if (m.changed) atomic_add(&count_line(b, range).changed, static_cast<u64>(m.changed));
  }

  // ---- the elements, by their numbers among those that the block works on
  WARPHASH_FN Sampled sampled() const {
    return Lines::kIsForCrowds && !b.rest ? Sampled::of(*counter_of(t, range), size * S::kSlots) : Sampled{0};
  }
  WARPHASH_FN u32 place(u32 element) const {
    if constexpr (Lines::kIsForCrowds)
      return start + (b.rest ? pointer<const u32>(b.rest)[start + element] : m.sampled.place(element));
    return start + element;
  }
  WARPHASH_FN Brought brought(u32 element) const { return pointer<const Brought>(b.brought)[place(element)]; }
  WARPHASH_FN Word brought_hash(u32 element) const { return hash_at(b, place(element)); }
  WARPHASH_FN static Word hash_at(const QuotientBatch& b, u32 place) {
    return *pointer<const Word>(b.brought + u64(place) * (b.erases ? b.erases : sizeof(Brought)));
  }
  WARPHASH_FN void flag(u32 element, u8 with) const {
    if (b.out_flags) flag_at(b, place(element), with);
  }
  WARPHASH_FN static void flag_at(const QuotientBatch& b, u32 place, u8 with) {
    set_flag(b, b.numbers ? pointer<const u32>(b.numbers)[place] : place, with);
  }

  // ---- the buckets
  WARPHASH_FN u32* words(u32 bucket) const {
    return lines + (bucket - first_bucket) * Lines::template kStrideWords<typename S::Wide>;
  }
  WARPHASH_FN u32 vacant(u32 bucket) const { return ~S::occupied(words(bucket)) & S::kAllSlots; }
  WARPHASH_FN void put(u32 bucket, u32 slot, Word remainder, bool guest, Value value) const {
    S::put(words(bucket), slot, remainder, guest);
    if constexpr (S::kHasValue) *S::value(words(bucket), slot) = value;
  }
  // Puts a new key to a vacant slot of its home that no other thread has.
  WARPHASH_FN void put_at_home(const Brought& item, u32 slot) {
    const auto home = D::home_of(t, S::hash_of(item));
    u32* const w = words(home.bucket);
    Lines::template put_at_home<S>(w, slot, home.remainder);
    if constexpr (S::kHasValue) *S::value(w, slot) = S::value_of(item);
  }
  struct Spot {
    u32 bucket, slot;
    bool guest;
    WARPHASH_FN bool found() const { return slot != kNoSlot; }
  };
  WARPHASH_FN Spot look(const Home<Word>& home) {
    const u32* const first = words(home.bucket);
    ++probes;
    if (const u32 hits = S::matches(first, home.remainder, false)) return {home.bucket, first_bit(hits), false};
    if (!(first[0] & D::filter_bit(home.remainder))) return {home.bucket, kNoSlot, false};
    const u32 second = D::second_of(t, first_bucket, home);
    ++probes;
    const u32 hits = S::matches(words(second), home.remainder, true);
    return {second, hits ? first_bit(hits) : kNoSlot, true};
  }
  WARPHASH_FN void combine_at(const Spot& spot, const Brought& item) const {
    if constexpr (S::kHasValue)
      combine_in_range(S::value(words(spot.bucket), spot.slot), S::value_of(item), b.op, b.kind);
  }

  // ---- insert
  // Enters this thread's element into a list; true if it opens the list.
  WARPHASH_FN bool enter(u32 bucket) {
    const u32 old = Lines::swap(m.heads + (bucket - first_bucket), kIsListed | id);
    const bool opens = !(old & kIsListed);
    m.rounds.next[id] = static_cast<u16>(opens ? kNobody : old);
    return opens;
  }
  WARPHASH_FN u32 next_of(u32 element) const {
    const u16 next = m.rounds.next[element];
    return next == static_cast<u16>(kNobody) ? kNobody : next;
  }
  WARPHASH_FN u32 take_list(u32 bucket) const {
    const u32 head = m.heads[bucket - first_bucket] & ~kIsListed;
    m.heads[bucket - first_bucket] = 0;
    return head;
  }

  // `element` is the number of this thread's element in the range.
  WARPHASH_FN void insert_round(u32 first, bool live, const Brought& item, u32 element) {
    insert_in_round(first, live, item, [&](u8 with) {
      changed += with == kChanged;
      if (with == kUnplaced) note_unplaced();
      flag(element, with);
    });
  }
  WARPHASH_FN void note_unplaced() const { atomic_add(&report_of(b)->unplaced, u64(1)); }

  // Calls note(with) behind the round, if the item of this thread is live. No two rounds of a range have the same `first`.
  template <class Note>
  WARPHASH_FN void insert_in_round(u32 first, bool live, const Brought& item, Note&& note) {
    const Home<Word> home = D::home_of(t, S::hash_of(item));
    Spot spot = {0, kNoSlot, false};
    if (live) {
      spot = look(home);
      if (spot.found()) combine_at(spot, item);
    }
    const bool fresh = live && !spot.found();
    u32* const with_fresh = m.with_fresh + (odd = !odd);  // threads may still read that of the round before
    if (ballot(fresh) && lane() == 0) Lines::swap(with_fresh, start + first);
    if (fresh) m.rounds.items[id] = item;
    const bool opens = fresh && enter(home.bucket);
    block_barrier();
    if (*with_fresh == start + first) place_fresh(first, home, fresh, opens);
    if (!live) return;
    u8 with = kPresent;
    if (fresh) {
      with = m.rounds.states[id] == kPlaced ? kChanged : kUnplaced;
      if (m.rounds.states[id] == kWaiting) {
        spot = look(home);
        if (spot.found()) with = kPresent, combine_at(spot, item);
      }
    }
    note(with);
  }

  // Steps 3 to 6. All threads of a block call it, if one of them has an absent key.
  WARPHASH_FN void place_fresh(u32 first, const Home<Word>& home, bool fresh, bool opens) {
    if (opens) fill_home(first, home.bucket);
    block_barrier();
    if (m.with_deferred != start + first) return;
    const bool deferred = fresh && m.rounds.states[id] == kDeferred;
    const u32 second = deferred ? D::second_of(t, first_bucket, home) : 0;
    opens = deferred && enter(second);
    block_barrier();
    if (opens) fill_second(second);
    reset_claims();
    if (id == 0)
      for (u32 turn = 0; turn <= kTurns; ++turn) m.stuck_counts[turn] = 0;
    block_barrier();
    if (deferred && m.rounds.states[id] == kPlaced) fetch_or(words(home.bucket), D::filter_bit(home.remainder));
    if (deferred && m.rounds.states[id] == kStuck) list_stuck(0, id);
    block_barrier();
    u32 turn = 0;
    if constexpr (kThreads > kWarpLanes) {
      for (; turn < kTurns && m.stuck_counts[turn]; ++turn) {
        find_moves(turn);
        block_barrier();
        make_moves(turn);
        block_barrier();
      }
    }
    if (m.stuck_counts[turn] == 0) return;
    if (id < kWarpLanes) place_stuck(turn);
    block_barrier();
  }
  WARPHASH_FN void list_stuck(u32 turn, u32 element) {
    m.rounds.stuck[turn][fetch_add(m.stuck_counts + turn, 1u)] = static_cast<u8>(element);
  }

  WARPHASH_FN void fill_home(u32 first, u32 bucket) {
    const u32 head = take_list(bucket);
    u32 left = vacant(bucket);
    for (u32 x = head; x != kNobody; x = next_of(x)) {
      const Brought& item = m.rounds.items[x];
      bool copy = false;
      for (u32 y = head; y != x && !copy; y = next_of(y))
        copy = (m.rounds.states[y] != kWaiting) & (m.rounds.items[y].key == item.key);  // both loads under way at once
      m.rounds.states[x] = copy ? kWaiting : left ? kPlaced : kDeferred;
      if (m.rounds.states[x] == kDeferred) Lines::swap(&m.with_deferred, start + first);
      if (copy || !left) continue;
      put(bucket, first_bit(left), D::home_of(t, S::hash_of(item)).remainder, false, S::value_of(item));
      left &= left - 1;
    }
  }

  WARPHASH_FN void fill_second(u32 bucket) {
    u32 left = vacant(bucket);
    for (u32 x = take_list(bucket); x != kNobody; x = next_of(x)) {
      m.rounds.states[x] = left ? kPlaced : kStuck;
      if (!left) continue;
      const Brought& item = m.rounds.items[x];
      put(bucket, first_bit(left), D::home_of(t, S::hash_of(item)).remainder, true, S::value_of(item));
      left &= left - 1;
    }
  }

  // ---- make room
  // The key in a slot of a bucket of a stuck key, and a vacant slot of the other bucket of that key.
  struct Move {
    u32 bucket, slot, to, to_slot;  // buckets of the range, from its first one on
    bool is_second;                 // the bucket is the second one of the stuck key
    WARPHASH_FN u32 packed() const { return bucket | to << 9 | slot << 18 | to_slot << 23 | u32(is_second) << 28; }
    WARPHASH_FN static Move of(u32 x) {
      return {x & 511, x >> 18 & 31, x >> 9 & 511, x >> 23 & 31, (x >> 28 & 1) != 0};
    }
  };
  static_assert(kMostRangeBuckets <= 1 << 9 && S::kSlots <= 1 << 5);

  // Step 6a, for some of the stuck keys.
  WARPHASH_FN void find_moves(u32 turn) {
    constexpr u32 kAtOnce = kWarpLanes / kLookingLanes;  // stuck keys of a warp
    const u32 n = m.stuck_counts[turn];
    for (u32 first = id / kWarpLanes * kAtOnce; first < n; first += threads / kLookingLanes) {
      const u32 k = first + lane() / kLookingLanes;
      const bool is_stuck = k < n;
      const Home<Word> home = D::home_of(t, S::hash_of(m.rounds.items[is_stuck ? m.rounds.stuck[turn][k] : 0]));
      const bool found = with_move<kLookingLanes>(is_stuck, home, [&](const Move& move) {
        const u32 own = home.bucket - first_bucket;
        // The home of a key that comes to its second bucket gets a bit.
        const bool claimed = claim(move.bucket) & claim(move.to) & (own == move.bucket || own == move.to || claim(own));
        if (claimed) m.rounds.moves[k] = move.packed();
        return claimed;
      });
      if (is_stuck && !found && lane() % kLookingLanes == 0) m.rounds.moves[k] = kNobody;
    }
  }
  WARPHASH_FN void reset_claims() {
    for (u32 k = id; k < kMostRangeBuckets / 32; k += threads) m.claimed[k] = 0;
  }
  // True once for each bucket and turn.
  WARPHASH_FN bool claim(u32 bucket) {
    const u32 bit = 1u << bucket % 32;
    return !(Lines::set_bits(m.claimed + bucket / 32, bit) & bit);
  }

  // Step 6b, a thread for each stuck key.
  WARPHASH_FN void make_moves(u32 turn) {
    reset_claims();
    if (id >= m.stuck_counts[turn]) return;
    const u32 element = m.rounds.stuck[turn][id];
    if (m.rounds.moves[id] == kNobody) return list_stuck(turn + 1, element);
    make(Move::of(m.rounds.moves[id]), m.rounds.items[element]);
    m.rounds.states[element] = kPlaced;
  }
  WARPHASH_FN void make(const Move& x, const Brought& stuck) {
    move(first_bucket + x.bucket, x.slot, first_bucket + x.to, x.to_slot);
    put_stuck(first_bucket + x.bucket, x.slot, D::home_of(t, S::hash_of(stuck)), x.is_second, S::value_of(stuck));
  }

  // Step 6c. A warp has the range for itself.
  WARPHASH_FN void place_stuck(u32 turn) {
    for (u32 k = 0; k < m.stuck_counts[turn]; ++k) {
      const u32 element = m.rounds.stuck[turn][k];
      const Brought item = m.rounds.items[element];
      const Home<Word> home = D::home_of(t, S::hash_of(item));
      bool placed = with_move<kWarpLanes>(true, home, [&](const Move& x) {
        make(x, item);
        return true;
      });
      if (!placed && lane() == 0) placed = make_room(home, S::value_of(item));
      if (lane() == 0) m.rounds.states[element] = placed ? kPlaced : kLost;
      Lines::order_warp();
    }
  }

  // Some lanes of a warp look for a move that makes room for a stuck key of theirs, if they have one, and one of them
  // does something with it that may fail. All lanes of the warp call this; those with the same key learn whether it is
  // done. A lane looks at a slot. Guests go first: a guest on its way home gives a find a line less to read.
  template <u32 kLanes, class Use>
  WARPHASH_FN bool with_move(bool is_stuck, const Home<Word>& home, Use&& use) {
    constexpr u32 kMask = static_cast<u32>((u64(1) << kLanes) - 1);
    const u32 first_lane = lane() / kLanes * kLanes, own = lane() - first_lane;
    const u32 second = D::second_of(t, first_bucket, home);
    bool looks = is_stuck, done = false;
#pragma unroll 1
    for (u32 first = 0; first < 2 * S::kSlots && ballot(looks); first += kLanes) {
      const u32 k = first + own;
      const bool is_second = k >= S::kSlots;
      const u32 bucket = is_second ? second : home.bucket, slot = k % S::kSlots;
      u32 other = bucket, free = 0, guest = 0;
      if (looks && k < 2 * S::kSlots) {
        other = other_bucket(bucket, slot);
        free = vacant(other);
        guest = S::is_guest(words(bucket), slot);
      }
      const u32 can = ballot(free != 0) >> first_lane & kMask,
                guests = ballot(free != 0 && guest) >> first_lane & kMask;
      Lines::order_warp();  // before one of them writes what the others have read
      if (!can) continue;
      looks = false;
      if (own == first_bit(guests ? guests : can))
        done = use(Move{bucket - first_bucket, slot, other - first_bucket, first_bit(free), is_second});
    }
    return (ballot(done) >> first_lane & kMask) != 0;
  }

  // One thread has the range for itself. False if the search saw no vacant slot; then no key has moved.
  WARPHASH_FN bool make_room(const Home<Word>& home, Value value) {
    m.rounds.steps[0] = {static_cast<u16>(home.bucket - first_bucket), 0, 0};
    m.rounds.steps[1] = {static_cast<u16>(D::second_of(t, first_bucket, home) - first_bucket), 1, 0};
    u32 seen = 2;
    for (u32 at = 0; at < seen; ++at) {
      const u32 bucket = first_bucket + m.rounds.steps[at].bucket;
      ++probes;
      const u32 guests = S::guests(words(bucket));
      for (u32 k = 0; k < 2; ++k) {  // guests first
        for (u32 left = k == 0 ? guests : S::kAllSlots & ~guests; left; left &= left - 1) {
          const u32 slot = first_bit(left), other = other_bucket(bucket, slot);
          if (const u32 free = vacant(other)) {
            move(bucket, slot, other, first_bit(free));
            settle_path(at, slot, home, value);
            return true;
          }
          if (seen < kMostSeen)
            m.rounds.steps[seen++] = {static_cast<u16>(other - first_bucket), static_cast<u8>(at),
                                      static_cast<u8>(slot)};
        }
      }
    }
    return false;
  }

  WARPHASH_FN u32 other_bucket(u32 bucket, u32 slot) const {
    const Home<Word> home = D::home_in(t, first_bucket, words(bucket), bucket, slot);
    return S::is_guest(words(bucket), slot) ? home.bucket : D::second_of(t, first_bucket, home);
  }

  // The bucket of step `at` has a vacant slot: moves each key on the path there by one, and puts the new key at its
  // start.
  WARPHASH_FN void settle_path(u32 at, u32 slot, const Home<Word>& home, Value value) {
    for (; at > 1; at = m.rounds.steps[at].from) {
      const u32 from = first_bucket + m.rounds.steps[m.rounds.steps[at].from].bucket, of = m.rounds.steps[at].slot;
      move(from, of, first_bucket + m.rounds.steps[at].bucket, slot);
      slot = of;
    }
    put_stuck(first_bucket + m.rounds.steps[at].bucket, slot, home, at == 1, value);
  }

  WARPHASH_FN void put_stuck(u32 bucket, u32 slot, const Home<Word>& home, bool guest, Value value) {
    put(bucket, slot, home.remainder, guest, value);
    if (guest) words(home.bucket)[0] |= D::filter_bit(home.remainder);
  }

  // To its other bucket, where a slot is vacant.
  WARPHASH_FN void move(u32 bucket, u32 slot, u32 to, u32 to_slot) {
    u32* const w = words(bucket);
    const Word remainder = S::remainder(w, slot);
    const bool guest = S::is_guest(w, slot);
    Value value = 0;
    if constexpr (S::kHasValue) value = *S::value(w, slot);
    S::vacate(w, slot);
    put(to, to_slot, remainder, !guest, value);
    if (guest)
      fetch_or(&m.stale, 1u);
    else
      w[0] |= D::filter_bit(remainder);
  }

  // ---- filters
  // A renewal reads all lines of the range. Where lines stay in place, a few stale bits cost less than that. But the bits
  // of many small batches add up. So chance decides: a batch that brings n elements to the range makes its filters anew
  // with probability n / (2 * size).
  WARPHASH_FN bool pays_to_renew() const {
    return Lines::kCopiesRanges || D::mixed(brought_hash(0)) % (2 * size) < elements;
  }
  // All threads of the block call it, behind a barrier, and the last barrier is here.
  WARPHASH_FN void renew_filters() {
    constexpr u32 kFilter = S::kFilterBits == 32 ? ~0u : (1u << S::kFilterBits) - 1;
    for (u32 k = id; k < size; k += threads) words(first_bucket + k)[0] &= ~kFilter;
    block_barrier();
    for (u32 k = id; k < size; k += threads) {
      const u32 bucket = first_bucket + k;
      for (u32 left = S::guests(words(bucket)); left; left &= left - 1) {
        const Word remainder = S::remainder(words(bucket), first_bit(left));
        fetch_or(words(D::home_of_guest(t, first_bucket, bucket, remainder)), D::filter_bit(remainder));
      }
    }
    block_barrier();
  }
};

}  // namespace warphash
