// Which rank owns a key of a table that is spread over ranks.
//
// The function is part of the format of checkpoints: a table that one set of ranks has saved is read by another one. It
// never changes, and depends on the bytes of the key alone.
//
// Layout. A key is read as words of 8 bytes, little-endian. The last word is filled up with zeros, so a key of less than
// 8 bytes is one word, without its sign.
//
//   hash   seed = 2^64 / golden ratio; for each word: h = finalizer(h ^ word)
//
//   bit   63       52                              0
//         [  shard   |           unused            ]      rank = shard * ranks / 4096
//
// The finalizer is that of MurmurHash3 for 64 bits (Austin Appleby, 2011; public domain). Each bit of a word changes
// each bit of the hash with a probability near one half.
//
// Why shards. Each rank owns an interval of the 4096 shards. If the number of ranks changes, whole shards move, and a
// file that has keys in the order of shards has those of a rank together. With 256 ranks, a rank has 16 shards.
//
// Keys apart. A batch may have few keys that very many of its elements have. They are compared by their words, so they have
// at most 8 bytes. Their elements have no places of their own: a key apart has one row, ahead of the other rows of its
// owner. Its first element brings the row there, and all of its elements read the answer from there.
//
//   run of a rank   [ its keys apart that have elements | its other elements | up to a multiple of `run_rows` ]
//
// Why a hash of its own. If the owner were some bits of the hash of the local tables, all keys of a rank would have the
// same bits there. They would start in the same buckets of its table.
#pragma once
#include "core/bulk.cuh"
#include "core/straight.cuh"
#include "owners/abi.cuh"

namespace warphash {

constexpr u64 kOwnerSeed = 0x9e3779b97f4a7c15ull;

// The hash of the words so far, and one more.
WARPHASH_FN u64 with_word(u64 hash, u64 word) {
  hash ^= word;
  hash = (hash ^ hash >> 33) * 0xff51afd7ed558ccdull;
  hash = (hash ^ hash >> 33) * 0xc4ceb9fe1a85ec53ull;
  return hash ^ hash >> 33;
}

WARPHASH_FN u32 shard_of_hash(u64 hash) { return static_cast<u32>(hash >> (64 - kShardBits)); }
WARPHASH_FN u32 owner_of_shard(u32 shard, u32 ranks) { return shard * ranks >> kShardBits; }

// The shard of a key of 4 or 8 bytes.
template <class Word>
WARPHASH_FN u32 shard_of_word(Word key) {
  return shard_of_hash(with_word(kOwnerSeed, static_cast<u64>(key)));
}

// A word of a key of any width, which is a multiple of a Part, as its address is.
template <class Part>
WARPHASH_FN u64 word_of_row(const u8* row, u64 first, u64 bytes) {
  const u64 end = bytes - first < 8 ? bytes : first + 8;
  u64 word = 0;
  for (u64 at = first; at < end; at += sizeof(Part))
    word |= static_cast<u64>(*reinterpret_cast<const Part*>(row + at)) << 8 * (at - first);
  return word;
}

// The shard of such a key.
template <class Part>
WARPHASH_FN u32 shard_of_row(const u8* row, u64 bytes) {
  u64 hash = kOwnerSeed;
  for (u64 first = 0; first < bytes; first += 8) hash = with_word(hash, word_of_row<Part>(row, first, bytes));
  return shard_of_hash(hash);
}

// The rows that the run of a rank takes in the order of owners.
WARPHASH_FN u32 rows_of_run(const OwnerSegments& t, u32 elements) {
  const u32 rows = static_cast<u32>(t.run_rows);
  return (elements + rows - 1) / rows * rows;
}

// Ranks and keys apart.
WARPHASH_FN u32 number_of_owners(const OwnerSegments& t) { return static_cast<u32>(t.ranks + t.apart); }

// The rows of a rank for keys apart. `writes` their places.
WARPHASH_FN u32 rows_apart(const OwnerSegments& t, u32 rank, bool writes) {
  u32 rows = 0;
  for (u32 key = 0; key < t.apart; ++key) {
    const bool has_elements = pointer<const u32>(t.sizes)[t.ranks + key];
    if (!has_elements ||
        owner_of_shard(shard_of_word(pointer<const u64>(t.keys)[key]), static_cast<u32>(t.ranks)) != rank)
      continue;
    if (writes) pointer<u32>(t.places)[key] = kMostOwners * rank + rows;
    ++rows;
  }
  return rows;
}

// What stands for a place: none.
constexpr u32 kNoPlace = ~0u;

// Where an element of a key apart has its row, which moves or is read; `before` are the key's elements before it.
template <bool kRestores>
WARPHASH_FN u32 place_apart(u32 before, u32 place_of_key, bool once) {
  return before == 0 || (kRestores && !once) ? place_of_key : kNoPlace;
}

// Keys that are words: they have one width, and lie where words may lie.
template <class Word>
struct WordKeys {
  using Loaded = Word;
  const Word* const words;
  WARPHASH_FN explicit WordKeys(const OwnerBatch& b) : words(pointer<const Word>(b.keys)) {}
  WARPHASH_FN Word load(u64 i) const { return load_once(words + i); }
  WARPHASH_FN u32 shard(Word key) const { return shard_of_word(key); }
  WARPHASH_FN bool is(Word key, u64 word) const { return key == word; }
};

// Keys of any other kind.
template <class Part>
struct RowKeys {
  using Loaded = const u8*;
  const u8* const rows;
  const u64 bytes;
  WARPHASH_FN explicit RowKeys(const OwnerBatch& b) : rows(pointer<const u8>(b.keys)), bytes(b.key_bytes) {}
  WARPHASH_FN const u8* load(u64 i) const { return rows + i * bytes; }
  WARPHASH_FN u32 shard(const u8* key) const { return shard_of_row<Part>(key, bytes); }
  WARPHASH_FN bool is(const u8* key, u64 word) const { return bytes <= 8 && word_of_row<Part>(key, 0, bytes) == word; }
};

// Calls a function with keys that are rows of bytes.
template <class Call>
WARPHASH_FN void with_rows(const OwnerBatch& b, const Call& call) {
  if (b.key_word == 8)
    call(RowKeys<u64>(b));
  else if (b.key_word == 4)
    call(RowKeys<u32>(b));
  else if (b.key_word == 2)
    call(RowKeys<u16>(b));
  else
    call(RowKeys<u8>(b));
}

// Calls a function with the keys of a batch.
template <class Call>
WARPHASH_FN void with_keys(const OwnerBatch& b, const Call& call) {
  if (b.key_bytes == 8 && b.key_word == 8)
    call(WordKeys<u64>(b));
  else if (b.key_bytes == 4 && b.key_word == 4)
    call(WordKeys<u32>(b));
  else
    with_rows(b, call);
}

struct FindShards : Straight<OwnerSegments, OwnerBatch> {
  WARPHASH_FN static bool start(const OwnerSegments&, const OwnerBatch& b, u64 i, State&) {
    with_keys(b, Write{pointer<u16>(b.shards) + i, i});
    return false;
  }

 private:
  // No lambda: those with a parameter of type auto are no functions of a device to NVRTC 13.0.
  struct Write {
    u16* const shard;
    const u64 i;
    template <class Keys>
    WARPHASH_FN void operator()(const Keys& keys) const {
      *shard = static_cast<u16>(keys.shard(keys.load(i)));
    }
  };
};

}  // namespace warphash
