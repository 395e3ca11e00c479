// The entry points of tickets/entries.cuh, for tables whose lanes collaborate (core/gpu/collaborating.cuh).
#pragma once
#include "core/gpu/collaborating.cuh"
#include "tickets/entries.cuh"

#undef WARPHASH_ENTRIES
#define WARPHASH_ENTRIES(D, WORD, VALUE, N) \
  WARPHASH_TICKET_ENTRIES(warphash::Collaborating, WARPHASH_DESIGN(D, WORD, VALUE, N))
