// The kernels for the distinct keys of a batch on a CPU.
#pragma once
#include "groups/cpu/members.cuh"
#include "groups/cpu/number.cuh"
#include "groups/cpu/pack.cuh"
#include "groups/cpu/parts.cuh"
#include "groups/cpu/places.cuh"
#include "groups/table_numbers.cuh"

namespace warphash {

template <class Of4, class Of8>
using OverWords = OverChunks<ChunkBatch, Of4, Of8>;
template <class Of4, class Of8>
using OverParts = OverChunks<PartBatch, Of4, Of8>;

}  // namespace warphash

#undef WARPHASH_PLAIN_ENTRIES  // of rows/rows.cuh, of which the comparison of rows is taken
#define WARPHASH_PLAIN_ENTRIES                                                                                      \
  WARPHASH_ROW_NUMBER_ENTRIES                                                                                       \
  WARPHASH_ENTRY(mark_firsts, warphash::MarkFirsts<warphash::RowCells>)                                             \
  WARPHASH_ENTRY(list_firsts, warphash::ListFirsts)                                                                 \
  WARPHASH_ENTRY(number_all, warphash::NumberAll)                                                                   \
  WARPHASH_ENTRY(spread, warphash::SpreadNumbers)                                                                   \
  WARPHASH_TABLE_NUMBER_ENTRIES                                                                                     \
  WARPHASH_ENTRY(bounds, warphash::ColumnBounds)                                                                    \
  WARPHASH_ENTRY(pack, warphash::PackColumns)                                                                       \
  WARPHASH_ENTRY(number,                                                                                            \
                 warphash::OverWords<warphash::NumberChunk<warphash::u32>, warphash::NumberChunk<warphash::u64>>)   \
  WARPHASH_ENTRY(merge, warphash::MergeAllChunks)                                                                   \
  WARPHASH_ENTRY(renumber, warphash::Renumber)                                                                      \
  WARPHASH_ENTRY(count_parts,                                                                                       \
                 warphash::OverParts<warphash::CountParts<warphash::u32>, warphash::CountParts<warphash::u64>>)     \
  WARPHASH_ENTRY(bring_to_parts,                                                                                    \
                 warphash::OverParts<warphash::BringToParts<warphash::u32>, warphash::BringToParts<warphash::u64>>) \
  WARPHASH_ENTRY(number_parts, warphash::NumberParts)                                                               \
  WARPHASH_ENTRY(replay, warphash::OverParts<warphash::Replay<warphash::u32>, warphash::Replay<warphash::u64>>)     \
  WARPHASH_ENTRY(count_keys, warphash::CountKeys)                                                                   \
  WARPHASH_ENTRY(group_parts, warphash::GroupParts)                                                                 \
  WARPHASH_ENTRY(add_members, warphash::OverMembers<warphash::AddMember>)                                           \
  WARPHASH_ENTRY(mark_members, warphash::OverMembers<warphash::MarkMember>)                                         \
  WARPHASH_ENTRY(put_places, warphash::OverPlaces<warphash::PutPlace>)                                              \
  WARPHASH_ENTRY(find_places, warphash::OverPlaces<warphash::FindPlace>)
