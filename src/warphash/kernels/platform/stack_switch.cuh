// One change of stack. On x86-64 it saves what the calling convention asks a function to keep, and costs 2 ns; elsewhere it
// is swapcontext, which saves the signal mask too, at a system call each.
#pragma once
#if !defined(__x86_64__)
#include <ucontext.h>
#endif

#include "platform/types.cuh"

namespace warphash::emulation {

#if defined(__x86_64__)
struct Stack {
  void* top;
};

extern "C" void warphash_switch_stack(void** leave, void* enter) __attribute__((visibility("hidden")));
asm(R"(
  .pushsection .text
  .p2align 4
  .hidden warphash_switch_stack
  .globl warphash_switch_stack
  .type warphash_switch_stack, @function
warphash_switch_stack:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
  .size warphash_switch_stack, . - warphash_switch_stack
  .popsection
)");

// Makes `stack` run `entry`, which never returns, when it is first entered. `memory` is aligned to 16 bytes.
inline void prepare_stack(Stack& stack, char* memory, u64 bytes, void (*entry)()) {
  void** top = reinterpret_cast<void**>(memory + bytes);
  *--top = nullptr;  // in place of a return address: ends a debugger's walk
  *--top = reinterpret_cast<void*>(entry);
  for (int saved = 0; saved < 6; ++saved) *--top = nullptr;
  stack.top = top;
}

inline void switch_stack(Stack& leave, Stack& enter) { warphash_switch_stack(&leave.top, enter.top); }
#else
using Stack = ucontext_t;

inline void prepare_stack(Stack& stack, char* memory, u64 bytes, void (*entry)()) {
  getcontext(&stack);
  stack.uc_stack.ss_sp = memory;
  stack.uc_stack.ss_size = bytes;
  stack.uc_link = nullptr;
  makecontext(&stack, entry, 0);
}

inline void switch_stack(Stack& leave, Stack& enter) { swapcontext(&leave, &enter); }
#endif

}  // namespace warphash::emulation
