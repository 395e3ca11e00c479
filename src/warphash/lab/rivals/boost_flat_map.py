"""The rival ``boost::unordered_flat_map`` (Boost 1.81 or later)."""

from .cpp_table import cpp_rival

RIVAL = cpp_rival(
    "boost flat_map",
    """
#include <boost/unordered/unordered_flat_map.hpp>

template <class Key, class Value>
struct Table : boost::unordered_flat_map<Key, Value> {
  Table(const Key*, std::size_t n) { this->reserve(n); }
};
""",
)
