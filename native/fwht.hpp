// The Walsh-Hadamard transform, natural order, of the columns of a strided matrix.
//
// n = n1 * n2 rows are transformed in passes over memory: blocks of n2 neighbouring rows first,
// then groups of rows n2 apart, brought together in a tile. One pass costs about one copy.
// Other kernels may call packed(), which works in cache on one contiguous buffer.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <utility>

#include "parallel.hpp"

namespace fastmix::fwht {

// Sizes that fit every processor of the last decade; nearby values run alike.
constexpr std::size_t l1_bytes = std::size_t(1) << 15;
constexpr std::size_t block_bytes = std::size_t(1) << 18;
constexpr std::size_t tile_bytes = std::size_t(1) << 16;
constexpr std::size_t thread_bytes = std::size_t(1) << 18;  // less is not worth a thread

// Steps are counted in elements and may have any sign.
template <class T> struct View {
  T* p;
  std::ptrdiff_t row, col;

  T* at(std::size_t i, std::size_t j = 0) const {
    return p + std::ptrdiff_t(i) * row + std::ptrdiff_t(j) * col;
  }
  operator View<const T>() const { return {p, row, col}; }
};

template <class T> bool is_packed(const View<T>& v, std::size_t m) {
  return v.row == std::ptrdiff_t(m) && (m == 1 || v.col == 1);
}

}  // namespace fastmix::fwht

#if defined(__GNUC__)
#define FWHT_INLINE inline __attribute__((always_inline))
#define FWHT_UNROLL _Pragma("GCC unroll 8")
#else
#define FWHT_INLINE inline
#define FWHT_UNROLL
#endif

#if defined(__GNUC__) && defined(__x86_64__)
#define FWHT_X86 1
#define FWHT_ISA avx512
#define FWHT_TARGET __attribute__((target("avx512f,avx512dq,avx512vl,fma")))
#define FWHT_BYTES 64
#include "fwht_simd.inc"
#define FWHT_ISA avx2
#define FWHT_TARGET __attribute__((target("avx2,fma")))
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
#ifdef FWHT_X86
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("fma"))
    return avx512::tile<T>;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return avx2::tile<T>;
#endif
  return baseline::tile<T>;
}

// c times the transform of n >= 2 packed rows of m, on this thread; x == y is allowed.
template <class T> void packed(const T* x, T* y, std::size_t n, std::size_t m, T c) {
  const auto step = std::ptrdiff_t(m);
  tile<T>()({x, step, 1}, {y, step, 1}, n, m, c, nullptr);
}

// A group of m columns. When rows follow each other without a gap (flat), the n2 * m elements
// between two rows of a group are one long row, whatever m is.
template <class T> struct Panel {
  View<const T> x;
  View<T> y;
  std::size_t n, m;
  bool flat;
  T c;

  // The longest power of two of rows that a block holds; then as many passes as memory needs.
  template <class Run> void passes(const Run& run) const {
    std::size_t s = n;
    while (s > 1 && s * m * sizeof(T) > block_bytes) s /= 2;
    View<const T> from = x;
    if (s > 1) {
      run(n / s, s * m, [&](std::size_t u, Tile<T> f, T* buf) {
        f({from.at(u * s), from.row, from.col}, {y.at(u * s), y.row, y.col}, s, m,
          s == n ? c : T(1), buf);
      });
      from = y;
    }
    constexpr std::size_t most = tile_bytes / 64;  // of rows in a tile, so that each is a cache line
    for (std::size_t r; s < n; s *= r, from = y) {
      r = std::min(n / s, most);
      const std::size_t row = flat ? s * m : m;
      const std::size_t w = flat ? std::min(row, tile_bytes / (r * sizeof(T))) : m;
      const std::size_t across = flat ? (row + w - 1) / w : s;
      run(n / (s * r) * across, r * w, [&](std::size_t u, Tile<T> f, T* buf) {
        const std::size_t i = u / across * s * r, j = u % across;
        const auto place = [&](auto v) {
          v.p = flat ? v.at(i, j * w) : v.at(i + j);
          v.row *= std::ptrdiff_t(s);
          return v;
        };
        f(place(from), place(y), r, flat ? std::min(w, row - j * w) : m, s * r == n ? c : T(1), buf);
      });
    }
  }
};

// y = c * H x for the n >= 2 rows and d columns of x; the result does not depend on threads.
// x and y are the same view or do not overlap.
template <class T>
void transform(View<const T> x, View<T> y, std::size_t n, std::size_t d, T c, std::size_t threads) {
  const auto f = tile<T>();
  const auto dist = [](std::ptrdiff_t s) { return s < 0 ? -s : s; };
  const auto width = std::ptrdiff_t(d);
  const bool by_column = d == 1 || dist(y.row) < dist(y.col);
  const bool flat = by_column || (x.row == width * x.col && y.row == width * y.col);
  const std::size_t m = by_column ? 1 : flat ? d : std::min<std::size_t>(d, 64);
  const std::size_t panels = (d + m - 1) / m;
  const auto panel = [&](std::size_t k) {
    Panel<T> p{{x.at(0, k * m), x.row, x.col}, {y.at(0, k * m), y.row, y.col},
               n, std::min(m, d - k * m), flat, c};
    if (by_column) p.x.col = x.row, p.y.col = y.row;
    return p;
  };

  threads = std::min(threads, n * d * sizeof(T) / thread_bytes + 1);
  const std::size_t room = std::max(block_bytes / sizeof(T), tile_bytes);
  const std::unique_ptr<T[]> buf(new T[room * threads]);
  const bool whole = panels >= 4 * threads || threads == 1;  // a column at a time stays in cache
  const auto all = [&](std::size_t k, std::size_t worker) {
    panel(k).passes([&](std::size_t units, std::size_t, const auto& g) {
      parallel(units, whole ? 1 : threads, [&](std::size_t u, std::size_t helper) {
        g(u, f, buf.get() + (worker + helper) * room);
      });
    });
  };
  parallel(panels, whole ? threads : 1, all);
}

}  // namespace fastmix::fwht
