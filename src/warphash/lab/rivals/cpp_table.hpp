// The calls that the laboratory makes to a C++ table, for keys and values of 4 or 8 bytes. The source that includes
// this file defines `Table<Key, Value>` before: a map with find() and emplace(), made by Table(keys, n) with room for n
// keys.
#pragma once
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace {

// Calls `run` with a null pointer of the type of keys and one of the type of values.
template <class Run>
auto with_types(int key_bytes, int value_bytes, const Run& run) {
  using Narrow = std::uint32_t;
  using Wide = std::uint64_t;
  const auto with_key = [&](auto key) {
    return value_bytes == 4 ? run(key, static_cast<Narrow*>(nullptr)) : run(key, static_cast<Wide*>(nullptr));
  };
  return key_bytes == 4 ? with_key(static_cast<Narrow*>(nullptr)) : with_key(static_cast<Wide*>(nullptr));
}

template <class Pointer>
using Type = std::remove_pointer_t<Pointer>;

}  // namespace

extern "C" {

// Makes a table of n pairs. The caller destroys it.
void* build(int key_bytes, int value_bytes, const void* keys, const void* values, std::size_t n) {
  return with_types(key_bytes, value_bytes, [=](auto key, auto value) -> void* {
    const auto* const k = static_cast<const Type<decltype(key)>*>(keys);
    const auto* const v = static_cast<const Type<decltype(value)>*>(values);
    auto* const table = new Table<Type<decltype(key)>, Type<decltype(value)>>(k, n);
    for (std::size_t i = 0; i < n; ++i) table->emplace(k[i], v[i]);
    return table;
  });
}

// Writes the value of each of n keys, 0 for an absent one, and whether the key is there.
void find(int key_bytes, int value_bytes, const void* table, const void* keys, std::size_t n, void* values,
          bool* found) {
  with_types(key_bytes, value_bytes, [=](auto key, auto value) {
    const auto& held = *static_cast<const Table<Type<decltype(key)>, Type<decltype(value)>>*>(table);
    const auto* const k = static_cast<const Type<decltype(key)>*>(keys);
    auto* const v = static_cast<Type<decltype(value)>*>(values);
    for (std::size_t i = 0; i < n; ++i) {
      const auto at = held.find(k[i]);
      found[i] = at != held.end();
      v[i] = found[i] ? at->second : 0;
    }
  });
}

void destroy(int key_bytes, int value_bytes, void* table) {
  with_types(key_bytes, value_bytes, [=](auto key, auto value) {
    delete static_cast<Table<Type<decltype(key)>, Type<decltype(value)>>*>(table);
  });
}

}  // extern "C"
