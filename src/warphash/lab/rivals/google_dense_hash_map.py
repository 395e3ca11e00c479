"""The rival ``google::dense_hash_map`` of Sparsehash.

The table reserves a key, so its constructor looks for a key that no pair has.
"""

from .cpp_table import cpp_rival

RIVAL = cpp_rival(
    "dense_hash_map",
    """
#include <algorithm>
#include <google/dense_hash_map>

template <class Key, class Value>
struct Table : google::dense_hash_map<Key, Value> {
  Table(const Key* keys, std::size_t n) {
    Key reserved = static_cast<Key>(-1);
    while (std::count(keys, keys + n, reserved)) --reserved;
    this->set_empty_key(reserved);
    this->resize(n);
  }
  void emplace(Key key, Value value) { this->insert({key, value}); }
};
""",
)
