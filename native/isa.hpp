// The instruction sets that kernels are compiled for, which of them the processor runs, and which
// copy of the kernels is in use. Nothing else in native/ asks the processor.
#pragma once

#include <atomic>
#include <cstdlib>

#if defined(__GNUC__) && defined(__x86_64__)
#define FASTMIX_X86 1
#endif

namespace fastmix {

enum class Isa { baseline, avx2, avx512 };
constexpr Isa all_isas[] = {Isa::baseline, Isa::avx2, Isa::avx512};

inline const char* name(Isa isa) {
  return isa == Isa::avx512 ? "avx512" : isa == Isa::avx2 ? "avx2" : "baseline";
}

// Whether there is a copy for these instructions, and the processor runs it.
inline bool is_possible(Isa isa) {
  if (isa == Isa::baseline) return true;
#ifdef FASTMIX_X86
  __builtin_cpu_init();
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  return isa == Isa::avx2 ? avx2 : avx2 && __builtin_cpu_supports("avx512f");
#else
  return false;
#endif
}

inline Isa best_isa() {
  Isa best = Isa::baseline;
  for (const Isa isa : all_isas)
    if (is_possible(isa)) best = isa;
  return best;
}

// The copy in use. A family of kernels without a copy for AVX-512 takes its copy for AVX2 instead.
inline std::atomic<Isa> chosen_isa{best_isa()};

// With FASTMIX_FAULTS, for tests only: damage number k is done while `fault` is k.
#ifdef FASTMIX_FAULTS
inline std::atomic<int> fault{0};
#define FASTMIX_FAULT(k, ...)        \
  do {                               \
    if (::fastmix::fault == (k)) {   \
      __VA_ARGS__;                   \
    }                                \
  } while (0)
#else
#define FASTMIX_FAULT(k, ...) (void)0
#endif

}  // namespace fastmix

// Entries of the vectors a and b, which are numbered one after the other. Compilers are told the
// shuffle instead of finding it among single lanes: g++ 12 finds a wrong one there.
#if defined(__has_builtin)
#if __has_builtin(__builtin_shufflevector)
#define FASTMIX_SHUFFLE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#endif
#endif
#ifndef FASTMIX_SHUFFLE
#define FASTMIX_SHUFFLE(a, b, ...) __builtin_shuffle(a, b, decltype((a) < (b)){__VA_ARGS__})
#endif
