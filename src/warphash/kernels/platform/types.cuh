// The integers of kernels, by their bits, under every compiler.
#pragma once

namespace warphash {

using u8 = unsigned char;
using u16 = unsigned short;
using u32 = unsigned int;
using i32 = int;
using u64 = unsigned long long;
using i64 = long long;

}  // namespace warphash
