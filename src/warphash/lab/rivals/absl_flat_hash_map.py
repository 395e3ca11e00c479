"""The rival ``absl::flat_hash_map`` of Abseil."""

from .cpp_table import cpp_rival

RIVAL = cpp_rival(
    "absl flat_hash_map",
    """
#include <absl/container/flat_hash_map.h>

template <class Key, class Value>
struct Table : absl::flat_hash_map<Key, Value> {
  Table(const Key*, std::size_t n) { this->reserve(n); }
};
""",
    ("absl_raw_hash_set", "absl_hash", "absl_city", "absl_low_level_hash"),
)
