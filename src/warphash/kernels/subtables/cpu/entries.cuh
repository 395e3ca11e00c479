// The entry points of subtables/entries.cuh, with the tasks that a CPU has of its own.
#pragma once
#include "subtables/cpu/find.cuh"
#include "subtables/entries.cuh"
