// S A, and the largest row norm of S'Z - A, for S = [D_1 H B_1, ..., D_p H B_p]: H is the
// orthonormal Hadamard matrix of size k2, B_b holds signs of the rows of block b of A, and D_b the
// signs (-1)^Q(x) of the quadratic form of block b.
//
// Both passes stream over blocks of k2 rows and do everything in cache. Which sums are formed, and
// in which order, depends on the shape alone: the number of threads changes no bit of a result.
#pragma once

#include "passes.hpp"

namespace fastmix::kerdock {

using passes::Mapped;
using passes::round_up;
using passes::Scratch;

struct Kernels {
  void (*widen)(const std::int8_t* s, const double* factors, std::size_t m, double* f);
  void (*flip)(const double* x, const std::int8_t* s, std::size_t m, double* y);
  void (*add)(const double* x, const std::int8_t* s, std::size_t m, double* y);
  void (*add_squares)(const double* y, const double* x, std::size_t m, bool first, double* sums);
};

}  // namespace fastmix::kerdock

#ifdef FWHT_X86
#define KERDOCK_ISA avx2
#define KERDOCK_TARGET __attribute__((target("avx2,fma")))
#include "kerdock_simd.inc"
#endif
#define KERDOCK_ISA baseline
#define KERDOCK_TARGET
#include "kerdock_simd.inc"

namespace fastmix::kerdock {

inline const Kernels& kernels() {
#ifdef FWHT_X86
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return avx2::kernels;
#endif
  return baseline::kernels;
}

// (-1)^Q(x) for all x < 2^m, where bit i of form[i] is Q(e_i) and bit j < i of it is B(e_i, e_j):
// Q(x + e_i) = Q(x) + Q(e_i) + B(x, e_i) for x < 2^i, 64 of them at a time.
inline void quadratic_signs(const std::uint32_t* form, std::size_t m, std::int8_t* out) {
  out[0] = 1;
  for (std::size_t i = 0; i < m; ++i) {
    const std::size_t h = std::size_t(1) << i, run = std::min<std::size_t>(h, 64);
    const auto mask = form[i] & std::uint32_t(h - 1);
    std::int8_t low[64] = {0};
    for (std::size_t k = 0; (std::size_t(1) << k) < run; ++k)
      for (std::size_t s = 0, t = std::size_t(1) << k; s < t; ++s)
        low[t + s] = std::int8_t(low[s] ^ -std::int8_t(mask >> k & 1));
    for (std::size_t s = 0; s < h; s += run) {
      const int odd = __builtin_parity(mask & std::uint32_t(s)) ^ int(form[i] >> i & 1);
      const std::int8_t *from = out + s, turn = std::int8_t(-odd);
      std::int8_t* const to = out + h + s;
      for (std::size_t l = 0; l < run; ++l) {
        const std::int8_t c = std::int8_t(low[l] ^ turn);
        to[l] = std::int8_t((from[l] ^ c) - c);
      }
    }
  }
}

// Rows of A are rows `offset` and following of the whole; signs and forms are those of the whole.
template <class T> class Pass {
 public:
  Pass(const Mapped<T>& a, const std::int8_t* signs, const std::uint32_t* forms, std::size_t m,
       std::size_t offset, std::size_t threads)
      : a_(a),
        load_(passes::kernels<T>().load),
        k_(kernels()),
        signs_(signs),
        forms_(forms),
        m_(m),
        k2_(std::size_t(1) << m),
        p_(a.columns()),
        offset_(offset),
        threads_(passes::useful(threads, a.n * p_)),
        root_(1.0 / std::sqrt(double(k2_))),
        first_(offset / k2_),
        blocks_((offset + a.n - 1) / k2_ - first_ + 1),
        // Where neighbours share cache lines, as many columns as fill a line are read together.
        together_(std::abs(a.x.col) < std::abs(a.x.row) ? tile : 1),
        // A line more than a power of two, or columns would meet in the same cache sets.
        ld_(round_up(k2_, 8) + 8),
        size_(together_ * ld_ + round_up(k2_, 8) + round_up(k2_, 64) / 8 + (tile + 1) * side),
        memory_(size_ * threads_) {}

  // z = S A, with columns one after the other.
  void sketch(double* z) const {
    const std::size_t tiles = (p_ + tile - 1) / tile, most = std::max<std::size_t>(1, blocks_ / 4);
    const std::size_t ranges = std::min(most, (units + tiles - 1) / tiles), size = k2_ * p_;
    const Scratch parts(size * (ranges - 1));
    std::fill_n(z, size, 0.0);
    std::fill_n(parts.get(), size * (ranges - 1), 0.0);
    parallel(ranges * tiles, threads_, [&](std::size_t unit, std::size_t worker) {
      const std::size_t range = unit / tiles, j = unit % tiles * tile;
      double* const to = range ? parts.get() + (range - 1) * size : z;
      for (std::size_t b = range * blocks_ / ranges; b < (range + 1) * blocks_ / ranges; ++b)
        add_block(block(b), j, to + j * k2_, worker);
    });
    if (ranges > 1)
      parallel(p_, threads_, [&](std::size_t j, std::size_t) {
        for (std::size_t range = 1; range < ranges; ++range) {
          const double* const from = parts.get() + (range - 1) * size + j * k2_;
          for (std::size_t i = 0; i < k2_; ++i) z[j * k2_ + i] += from[i];
        }
      });
  }

  // The largest row norm of S'Z - A.
  double distortion(const double* z) const {
    const std::size_t tiles = (p_ + tile - 1) / tile;
    const std::size_t groups = std::min(tiles, (units + blocks_ - 1) / blocks_);
    std::vector<double> most(blocks_, 0.0);
    const Scratch sums(groups > 1 ? groups * blocks_ * k2_ : 0);
    parallel(blocks_ * groups, threads_, [&](std::size_t unit, std::size_t worker) {
      const std::size_t b = unit / groups, group = unit % groups;
      const std::size_t begin = group * tiles / groups * tile;
      const std::size_t end = std::min(p_, (group + 1) * tiles / groups * tile);
      double* const to = groups > 1 ? sums.get() + unit * k2_ : scratch(worker).sums;
      add_distortion(block(b), z, begin, end, to, worker);
      if (groups == 1) most[b] = maximum(to, block(b).rows);
    });
    if (groups > 1)
      parallel(blocks_, threads_, [&](std::size_t b, std::size_t) {
        double* const total = sums.get() + b * groups * k2_;
        for (std::size_t group = 1; group < groups; ++group)
          for (std::size_t i = 0; i < block(b).rows; ++i) total[i] += total[group * k2_ + i];
        most[b] = maximum(total, block(b).rows);
      });
    return std::sqrt(maximum(most.data(), blocks_));
  }

 private:
  // Columns of a tile, rows mapped at a time and their step, and pieces of work to aim at.
  static constexpr std::size_t tile = 8, chunk = 256, side = chunk + 8, units = 32;

  // Rows of A that lie in a block: from `at`, behind `lead` rows of the block that do not.
  struct Block {
    std::size_t index, at, lead, rows;
  };
  struct Worker {
    double *x, *sums, *piece, *f;
    std::int8_t* signs;
  };

  Block block(std::size_t b) const {
    const std::size_t start = (first_ + b) * k2_, at = std::max(start, offset_);
    const std::size_t end = std::min(start + k2_, offset_ + a_.n);
    return {first_ + b, at - offset_, at - start, end - at};
  }
  Worker scratch(std::size_t worker) const {
    double* const x = memory_.get() + worker * size_;
    double* const sums = x + together_ * ld_;
    double* const piece = sums + round_up(k2_, 8);
    double* const f = piece + tile * side;
    return {x, sums, piece, f, reinterpret_cast<std::int8_t*>(f + side)};
  }
  // NaN wins, as it does in NumPy.
  static double maximum(const double* x, std::size_t m) {
    double most = 0.0;
    for (std::size_t i = 0; i < m; ++i)
      if (x[i] > most || x[i] != x[i]) most = x[i];
    return most;
  }
  void transform(double* x) const { fwht::packed(x, x, k2_, 1, root_); }

  // B A for m <= chunk rows from i and w columns from j.
  void fetch(std::size_t i, std::size_t m, std::size_t j, std::size_t w, double* f, double* out,
             std::size_t ld) const {
    const std::int8_t* const sign = signs_ + offset_ + i;
    k_.widen(sign, a_.factors ? a_.factors + i : nullptr, m, f);
    load_(a_, i, m, j, w, f, out, ld);
    if (j + w > a_.d) k_.flip(out + (w - 1) * ld, sign, m, out + (w - 1) * ld);
  }

  // z += D H B A for the tile of columns at j.
  void add_block(const Block& b, std::size_t j, double* z, std::size_t worker) const {
    const Worker my = scratch(worker);
    quadratic_signs(forms_ + b.index * m_, m_, my.signs);
    const std::size_t end = std::min(p_, j + tile);
    for (; j < end; j += together_) {
      const std::size_t w = std::min(together_, end - j);
      for (std::size_t r = 0; r < b.rows; r += chunk)
        fetch(b.at + r, std::min(chunk, b.rows - r), j, w, my.f, my.x + b.lead + r, ld_);
      for (std::size_t k = 0; k < w; ++k, z += k2_) {
        double* const x = my.x + k * ld_;
        std::fill(x, x + b.lead, 0.0);
        std::fill(x + b.lead + b.rows, x + k2_, 0.0);
        transform(x);
        k_.add(x, my.signs, k2_, z);
      }
    }
  }

  // sums = squared norms of the rows of H D Z - B A, for the columns from j to end.
  void add_distortion(const Block& b, const double* z, std::size_t j, std::size_t end,
                      double* sums, std::size_t worker) const {
    const Worker my = scratch(worker);
    quadratic_signs(forms_ + b.index * m_, m_, my.signs);
    for (const std::size_t begin = j; j < end; j += together_) {
      const std::size_t w = std::min(together_, end - j);
      for (std::size_t k = 0; k < w; ++k) {
        double* const y = my.x + k * ld_;
        k_.flip(z + (j + k) * k2_, my.signs, k2_, y);
        transform(y);
      }
      for (std::size_t r = 0; r < b.rows; r += chunk) {
        const std::size_t rows = std::min(chunk, b.rows - r);
        fetch(b.at + r, rows, j, w, my.f, my.piece, side);
        for (std::size_t k = 0; k < w; ++k)
          k_.add_squares(my.x + k * ld_ + b.lead + r, my.piece + k * side, rows, j + k == begin,
                         sums + r);
      }
    }
  }

  const Mapped<T> a_;
  const decltype(passes::Kernels<T>::load) load_;
  const Kernels& k_;
  const std::int8_t* const signs_;
  const std::uint32_t* const forms_;
  const std::size_t m_, k2_, p_, offset_;
  const std::size_t threads_;
  const double root_;
  const std::size_t first_, blocks_, together_, ld_, size_;
  const Scratch memory_;
};

}  // namespace fastmix::kerdock
