// The Walsh-Hadamard transform, natural order, of the columns of a strided matrix.
//
// n = n2 * n1 rows are transformed in passes over memory: first blocks of n2 neighbouring rows,
// then groups of n1 rows that lie n2 apart. A pass reads and writes each element once and does
// everything else in cache. Other kernels call packed(), which is the part in cache.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>

#include "isa.hpp"
#include "parallel.hpp"

namespace fastmix::fwht {

// Elements in a cache line, in the first cache, and in half of a usual second cache.
template <class T> constexpr std::size_t line = 64 / sizeof(T);
template <class T> constexpr std::size_t small_room = (std::size_t(1) << 15) / sizeof(T);
template <class T> constexpr std::size_t room = (std::size_t(1) << 19) / sizeof(T);

// Steps are counted in elements and may have any sign.
template <class T> struct View {
  T* p;
  std::ptrdiff_t row, col;

  T* at(std::size_t i, std::size_t j = 0) const {
    return p + std::ptrdiff_t(i) * row + std::ptrdiff_t(j) * col;
  }
  operator View<const T>() const { return {p, row, col}; }
};

// Elements of the cache line of p that come before p.
template <class T> std::size_t misfit(const T* p) {
  return reinterpret_cast<std::uintptr_t>(p) / sizeof(T) % line<T>;
}

template <class T> bool is_packed(const View<T>& v, std::size_t m) {
  return v.row == std::ptrdiff_t(m) && (m == 1 || v.col == 1);
}

}  // namespace fastmix::fwht

#if defined(__GNUC__)
#define FWHT_INLINE inline __attribute__((always_inline))
#if defined(__clang__)
#define FWHT_UNROLL _Pragma("unroll")
#else
#define FWHT_UNROLL _Pragma("GCC unroll 8")
#endif
#else
#define FWHT_INLINE inline
#define FWHT_UNROLL
#endif

#ifdef FASTMIX_X86
#define FWHT_ISA avx512
#define FWHT_TARGET __attribute__((target("avx512f")))
#define FWHT_BYTES 64
#include "fwht_simd.inc"
#define FWHT_ISA avx2
#define FWHT_TARGET __attribute__((target("avx2")))
#define FWHT_BYTES 32
#include "fwht_simd.inc"
#endif

#define FWHT_ISA baseline
#define FWHT_TARGET
#if defined(__GNUC__)
#define FWHT_BYTES 16
#else
#define FWHT_BYTES 0
#endif
#include "fwht_simd.inc"

namespace fastmix::fwht {

template <class T>
using Tile = void (*)(View<const T>, View<T>, std::size_t n, std::size_t m, T c, T* buf);

template <class T> Tile<T> tile() {
#ifdef FASTMIX_X86
  if (chosen_isa == Isa::avx512) return avx512::tile<T>;
  if (chosen_isa == Isa::avx2) return avx2::tile<T>;
#endif
  return baseline::tile<T>;
}

// c times the transform of n >= 2 packed rows of m, on this thread; x == y is allowed.
template <class T> void packed(const T* x, T* y, std::size_t n, std::size_t m, T c) {
  const auto step = std::ptrdiff_t(m);
  tile<T>()({x, step, 1}, {y, step, 1}, n, m, c, nullptr);
}

// The passes over m columns. In a flat panel rows follow each other without a gap, so that the
// s * m elements between two rows of a group are one long row, to be cut where it suits the cache.
template <class T> struct Panel {
  View<const T> x;
  View<T> y;
  std::size_t n, m;
  bool flat;
  T c;

  // Calls run(units, work) for each pass; work(unit, tile function, buffer) may run in any order.
  template <class Run> void passes(const Run& run) const {
    View<const T> from = x;
    for (std::size_t s = 1, r; s < n; s *= r, from = y) {
      const std::size_t row = flat ? s * m : m;
      // Long rows are cut, but not below a few cache lines: shorter runs waste the memory bus.
      const std::size_t most = room<T> / (row <= 1024 ? row : 64);
      for (r = n / s; r > most;) r /= 2;
      // A line less than what fits: rows a power of two apart would meet in the same cache sets.
      const std::size_t w = row <= room<T> / r ? row : room<T> / r - line<T>;
      // Cuts fall between cache lines, so that neighbouring tiles share none.
      const std::size_t lead = w < row ? misfit(y.p) : 0;
      const std::size_t across = flat ? (lead + row + w - 1) / w : s;
      run(n / (s * r) * across, [&](std::size_t unit, Tile<T> tile, T* buf) {
        const std::size_t i = unit / across * s * r, j = unit % across;
        const std::size_t begin = flat && j ? j * w - lead : 0;
        const std::size_t end = flat ? std::min(row, (j + 1) * w - lead) : m;
        const auto part = [&](auto v) {
          v.p = flat ? v.at(i, begin) : v.at(i + j);
          v.row *= std::ptrdiff_t(s);
          return v;
        };
        tile(part(from), part(y), r, end - begin, s * r == n ? c : T(1), buf);
      });
    }
  }
};

// y = c * H x for the n >= 2 rows and d >= 1 columns of x, where x and y are the same view or do
// not overlap. The result does not depend on the number of threads.
template <class T>
void transform(View<const T> x, View<T> y, std::size_t n, std::size_t d, T c, std::size_t threads) {
  const auto width = std::ptrdiff_t(d);
  const bool by_column = d == 1 || std::abs(y.row) < std::abs(y.col);
  const bool flat = by_column || (x.row == width * x.col && y.row == width * y.col);
  const std::size_t m = by_column ? 1 : flat ? d : std::min<std::size_t>(d, 64);
  const std::size_t panels = (d + m - 1) / m;
  const auto panel = [&](std::size_t k) {
    const std::size_t j = k * m;
    return Panel<T>{{x.at(0, j), x.row, by_column ? x.row : x.col},
                    {y.at(0, j), y.row, by_column ? y.row : y.col},
                    n,
                    std::min(m, d - j),
                    flat,
                    c};
  };

  threads = std::max<std::size_t>(1, std::min(threads, n * d / room<T>));
  // A panel that fits in the last cache is best left to one thread from its first pass to its last.
  const bool whole = panels >= (n * m <= 8 * room<T> ? threads : 4 * threads);
  const std::size_t size = (std::min(n * d, room<T>) + line<T> - 1) / line<T> * line<T>;
  const std::unique_ptr<T[]> memory(new T[size * threads + line<T>]);
  T* const buf = memory.get() + (line<T> - misfit(memory.get()));
  const auto f = tile<T>();
  parallel(panels, whole ? threads : 1, [&](std::size_t k, std::size_t i) {
    panel(k).passes([&](std::size_t units, const auto& work) {
      parallel(units, whole ? 1 : threads,
               [&](std::size_t unit, std::size_t j) { work(unit, f, buf + (i + j) * size); });
    });
  });
}

}  // namespace fastmix::fwht
