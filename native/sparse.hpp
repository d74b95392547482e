// S A, and the largest row norm of S'Z - A, for a sparse sketch S: column i has an entry
// +-1/sqrt(s) in each of s equal parts of the k2 rows. A word of 32 bits tells where it is in its
// part, by its upper 31 bits, and its sign, by its lowest.
//
// Rows of A are added where they lie: a row of Z stays in cache while the rows of A that belong to
// it are read, so that A is read s times and Z is written once. If columns of A lie in one piece,
// a tile of columns is taken at a time whose part of Z stays in cache. Every sum is taken in the
// order of the rows: the number of threads changes no bit of a result.
#pragma once

#include "passes.hpp"

namespace fastmix::sparse {

using passes::Mapped;
using passes::Scratch;

template <class T> struct Kernels {
  void (*load)(const Mapped<T>&, std::size_t i, std::size_t j, std::size_t w, double* out);
  void (*add)(const double* x, double c, std::size_t w, double* z);
  void (*add_row)(const Mapped<T>&, std::size_t i, std::size_t next, double c, double* z);
  double (*square)(const double* x, std::size_t w);
};

}  // namespace fastmix::sparse

#ifdef FASTMIX_X86
#define SPARSE_ISA avx512
#define SPARSE_TARGET __attribute__((target("avx512f,avx2,fma,prefer-vector-width=512")))
#include "sparse_simd.inc"
#define SPARSE_ISA avx2
#define SPARSE_TARGET __attribute__((target("avx2,fma")))
#include "sparse_simd.inc"
#endif
#define SPARSE_ISA baseline
#define SPARSE_TARGET
#include "sparse_simd.inc"

namespace fastmix::sparse {

template <class T> const Kernels<T>& kernels() {
#ifdef FASTMIX_X86
  if (chosen_isa == Isa::avx512) return avx512::kernels<T>;
  if (chosen_isa == Isa::avx2) return avx2::kernels<T>;
#endif
  return baseline::kernels<T>;
}

template <class T> class Pass {
 public:
  // words has s entries for each row of A, one for each part; s divides k2.
  Pass(const Mapped<T>& a, const std::uint32_t* words, std::size_t s, std::size_t k2,
       std::size_t threads)
      : a_(a),
        k_(kernels<T>()),
        gather_(passes::kernels<T>().load),
        words_(words),
        s_(s),
        k2_(k2),
        part_(k2 / s),
        p_(a.columns()),
        threads_(passes::useful(threads, a.n * p_)),
        root_(1.0 / std::sqrt(double(s))),
        by_rows_(a.x.col == 1),
        // As many columns as keep a tile of Z in the second cache, but whole cache lines of A.
        tile_(std::min(p_, std::clamp<std::size_t>(room / k2 / 8 * 8, 32, most))),
        tiles_((p_ + tile_ - 1) / tile_) {}

  // z = S A, with rows one after the other.
  void sketch(double* z) const {
    if (by_rows_)
      sketch_rows(z);
    else
      sketch_tiles(z);
  }

  // The largest row norm of S'Z - A, Z with rows one after the other. NaN wins, as it does in NumPy.
  double distortion(const double* z) const {
    const std::size_t step = 256, count = (a_.n + step - 1) / step;
    std::vector<double> largest(count, 0.0);
    const Scratch memory(threads_ * (buffer + step + most));
    parallel(count, threads_, [&](std::size_t unit, std::size_t worker) {
      double* const x = memory.get() + worker * (buffer + step + most);
      double *const sums = x + buffer, *const rest = sums + step;
      const std::size_t begin = unit * step, end = std::min(begin + step, a_.n);
      std::fill_n(sums, step, 0.0);
      for (std::size_t j = 0; j < p_; j += most) {
        const std::size_t w = std::min(most, p_ - j);
        rows(begin, end, j, w, x, [&](std::size_t i, const double* row) {
          std::fill_n(rest, w, 0.0);
          k_.add(row, -1.0, w, rest);
          for (std::size_t b = 0; b < s_; ++b)
            k_.add(z + place(i, b) * p_ + j, sign(i, b), w, rest);
          sums[i - begin] += k_.square(rest, w);
        });
      }
      for (std::size_t i = 0; i < end - begin; ++i)
        if (sums[i] > largest[unit] || sums[i] != sums[i]) largest[unit] = sums[i];
    });
    double total = 0.0;
    for (const double each : largest)
      if (each > total || each != each) total = each;
    return std::sqrt(total);
  }

 private:
  // Entries of a tile of Z to aim at, columns of a tile at most, rows that are transposed at a
  // time, and rows of Z in a piece of work.
  static constexpr std::size_t room = std::size_t(1) << 16, most = 256, strip = 32, piece = 64,
                               buffer = (strip + 1) * most;

  // Rows of A by the row of Z that they belong to, in order, with the parts of their signs.
  void sketch_rows(double* z) const {
    std::vector<std::size_t> start(k2_ + 1, 0), order(a_.n * s_);
    for (std::size_t i = 0; i < a_.n; ++i)
      for (std::size_t b = 0; b < s_; ++b) ++start[place(i, b) + 1];
    for (std::size_t r = 0; r < k2_; ++r) start[r + 1] += start[r];
    std::vector<std::size_t> next(start.begin(), start.end() - 1);
    for (std::size_t i = 0; i < a_.n; ++i)
      for (std::size_t b = 0; b < s_; ++b) order[next[place(i, b)]++] = i * s_ + b;
    parallel((k2_ + piece - 1) / piece, threads_, [&](std::size_t unit, std::size_t) {
      for (std::size_t r = unit * piece; r < std::min(k2_, (unit + 1) * piece); ++r) {
        std::fill_n(z + r * p_, p_, 0.0);
        for (std::size_t e = start[r]; e < start[r + 1]; ++e) {
          const std::size_t ahead = order[std::min(e + 1, order.size() - 1)];
          k_.add_row(a_, order[e] / s_, ahead / s_, sign(order[e] / s_, order[e] % s_), z + r * p_);
        }
      }
    });
  }

  void sketch_tiles(double* z) const {
    const std::size_t size = k2_ * tile_ + buffer;
    const Scratch memory(threads_ * size);
    parallel(tiles_, threads_, [&](std::size_t unit, std::size_t worker) {
      const std::size_t j = unit * tile_, w = std::min(tile_, p_ - j);
      double* const mine = memory.get() + worker * size;
      std::fill_n(mine, k2_ * w, 0.0);
      rows(0, a_.n, j, w, mine + k2_ * tile_, [&](std::size_t i, const double* row) {
        for (std::size_t b = 0; b < s_; ++b) k_.add(row, sign(i, b), w, mine + place(i, b) * w);
      });
      for (std::size_t r = 0; r < k2_; ++r) std::copy_n(mine + r * w, w, z + r * p_ + j);
    });
  }

  std::size_t place(std::size_t i, std::size_t b) const {
    return b * part_ + std::size_t((std::uint64_t(words_[i * s_ + b] >> 1) * part_) >> 31);
  }
  double sign(std::size_t i, std::size_t b) const {
    return words_[i * s_ + b] & 1 ? -root_ : root_;
  }
  // Calls f(i, row) for rows `begin` to `end` of A, cut to the w columns from j.
  template <class F>
  void rows(std::size_t begin, std::size_t end, std::size_t j, std::size_t w, double* x,
            const F& f) const {
    if (by_rows_) {
      for (std::size_t i = begin; i < end; ++i) {
        k_.load(a_, i, j, w, x);
        f(i, x);
      }
      return;
    }
    double* const row = x + strip * most;
    for (std::size_t i = begin; i < end; i += strip) {
      const std::size_t m = std::min(strip, end - i);
      gather_(a_, i, m, j, w, a_.factors ? a_.factors + i : nullptr, x, strip);
      for (std::size_t r = 0; r < m; ++r) {
        for (std::size_t k = 0; k < w; ++k) row[k] = x[k * strip + r];
        f(i + r, row);
      }
    }
  }

  const Mapped<T> a_;
  const Kernels<T>& k_;
  const decltype(passes::Kernels<T>::load) gather_;
  const std::uint32_t* const words_;
  const std::size_t s_, k2_, part_, p_, threads_;
  const double root_;
  const bool by_rows_;
  const std::size_t tile_, tiles_;
};

}  // namespace fastmix::sparse
