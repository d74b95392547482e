// S A, and the largest row norm of S'Z - A, for S = [D_1 H B_1, ..., D_p H B_p]: H is the
// orthonormal Hadamard matrix of size k2, B_b holds signs of the rows of block b of A, and D_b the
// signs (-1)^Q(x) of the quadratic form of block b.
//
// Both passes stream over blocks of k2 rows and do everything in cache. Which sums are formed, and
// in which order, depends on shape and layout alone: the number of threads changes no bit of a
// result.
#pragma once

#include "passes.hpp"

namespace fastmix::kerdock {

using passes::Mapped;
using passes::Scratch;

struct Kernels {
  void (*widen)(const std::int8_t* s, const double* factors, std::size_t m, double* f);
  void (*flip)(const double* x, const std::int8_t* s, std::size_t m, double* y);
  void (*quadratic_signs)(const std::uint32_t* form, std::size_t m, std::size_t part,
                          std::size_t hop, double* out);
  void (*split)(const double* z, std::size_t step, const double* s, std::size_t m, std::size_t hop,
                double* y);
  void (*split_less)(const double* z, std::size_t step, const double* s, std::size_t m,
                     std::size_t hop, double* y);
  void (*join)(const double* x, const double* s, std::size_t m, std::size_t hop, double* z,
               std::size_t step);
  void (*add_squares)(const double* y, std::size_t ldy, const double* x, std::size_t ldx,
                      std::size_t m, std::size_t w, bool first, double* sums);
};

}  // namespace fastmix::kerdock

#ifdef FASTMIX_X86
#define KERDOCK_ISA avx2
#define KERDOCK_TARGET __attribute__((target("avx2,fma")))
#include "kerdock_simd.inc"
#endif
#define KERDOCK_ISA baseline
#define KERDOCK_TARGET
#include "kerdock_simd.inc"

namespace fastmix::kerdock {

inline const Kernels& kernels() {
#ifdef FASTMIX_X86
  if (chosen_isa != Isa::baseline) return avx2::kernels;
#endif
  return baseline::kernels;
}

// Rows of A are rows `offset` and following of the whole; signs and forms are those of the whole.
//
// A column of a block is held as eight parts, each a line behind the end of the one before: the
// upper three levels of the transform meet all of them at once, and parts a power of two apart
// would share their cache sets. The lower levels stay inside a part, in the first cache.
template <class T> class Pass {
 public:
  Pass(const Mapped<T>& a, const std::int8_t* signs, const std::uint32_t* forms, std::size_t m,
       std::size_t offset, std::size_t threads)
      : a_(a),
        load_(passes::kernels<T>().load),
        k_(kernels()),
        transform_(fwht::tile<double>()),
        signs_(signs),
        forms_(forms),
        m_(m),
        k2_(std::size_t(1) << m),
        part_(k2_ / 8),
        hop_(part_ + 8),
        p_(a.columns()),
        offset_(offset),
        threads_(passes::useful(threads, a.n * p_)),
        root_(1.0 / std::sqrt(double(k2_))),
        first_(offset / k2_),
        blocks_((offset + a.n - 1) / k2_ - first_ + 1),
        by_rows_(std::abs(a.x.col) < std::abs(a.x.row)),
        // Columns of Z that a worker adds to: where neighbours share cache lines, as many as fill a
        // line, which are read together; otherwise as many as stay in its cache.
        tile_(by_rows_ ? 8 : std::clamp<std::size_t>((std::size_t(1) << 15) >> m, 1, 8)),
        together_(by_rows_ ? tile_ : 1),
        tiles_((p_ + tile_ - 1) / tile_),
        size_((together_ + tile_ + 1) * 8 * hop_ + k2_ + (together_ + 1) * side),
        memory_(size_ * threads_) {}

  // z = S A, with columns one after the other.
  void sketch(double* z) const {
    const std::size_t most = std::max<std::size_t>(1, blocks_ / 4), size = k2_ * p_;
    const std::size_t ranges = std::min(most, (units + tiles_ - 1) / tiles_);
    const Scratch others(size * (ranges - 1));
    parallel(ranges * tiles_, threads_, [&](std::size_t unit, std::size_t worker) {
      const std::size_t range = unit / tiles_, t = unit % tiles_, j = start(t),
                        w = start(t + 1) - j;
      const Worker my = scratch(worker);
      std::fill_n(my.z, w * 8 * hop_, 0.0);
      for (std::size_t b = range * blocks_ / ranges; b < (range + 1) * blocks_ / ranges; ++b)
        add_block(block(b), j, w, my);
      double* to = (range ? others.get() + (range - 1) * size : z) + j * k2_;
      for (std::size_t k = 0; k < 8 * w; ++k, to += part_) std::copy_n(my.z + k * hop_, part_, to);
    });
    if (ranges > 1)
      parallel(p_, threads_, [&](std::size_t j, std::size_t) {
        for (std::size_t range = 1; range < ranges; ++range) {
          const double* const from = others.get() + (range - 1) * size + j * k2_;
          for (std::size_t i = 0; i < k2_; ++i) z[j * k2_ + i] += from[i];
        }
      });
  }

  // The largest row norm of S'Z - A.
  double distortion(const double* z) const {
    const std::size_t groups = std::min(tiles_, (units + blocks_ - 1) / blocks_);
    std::vector<double> most(blocks_, 0.0);
    const Scratch sums(groups > 1 ? groups * blocks_ * k2_ : 0);
    parallel(blocks_ * groups, threads_, [&](std::size_t unit, std::size_t worker) {
      const std::size_t b = unit / groups, group = unit % groups;
      Worker my = scratch(worker);
      if (groups > 1) my.sums = sums.get() + unit * k2_;
      add_distortion(block(b), z, group * tiles_ / groups, (group + 1) * tiles_ / groups, my);
      if (groups == 1) most[b] = maximum(my.sums, block(b).rows);
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

 protected:
  // Rows mapped at a time, with a line to keep columns apart; pieces of work to aim at.
  static constexpr std::size_t chunk = 256, side = chunk + 8, units = 32;

  // Rows of A that lie in a block: from `at`, behind `lead` rows of the block that do not.
  struct Block {
    std::size_t index, at, lead, rows;
  };
  // Columns x, a tile of Z, the signs of a block, squared norms of its rows, and a chunk of rows
  // with their factors.
  struct Worker {
    double *x, *z, *signs, *sums, *piece, *f;
  };
  // Rows of a block from `begin` to `end` that are in A, in the part that starts `at` in a column.
  struct Part {
    std::size_t at, first, begin, end;
  };

  Block block(std::size_t b) const {
    const std::size_t start = (first_ + b) * k2_, at = std::max(start, offset_);
    const std::size_t end = std::min(start + k2_, offset_ + a_.n);
    return {first_ + b, at - offset_, at - start, end - at};
  }
  Part part(const Block& b, std::size_t k) const {
    const std::size_t first = k * part_, end = first + part_;
    return {k * hop_, first, std::clamp(b.lead, first, end),
            std::clamp(b.lead + b.rows, first, end)};
  }
  Worker scratch(std::size_t worker) const {
    Worker my;
    my.x = memory_.get() + worker * size_;
    my.z = my.x + together_ * 8 * hop_;
    my.signs = my.z + tile_ * 8 * hop_;
    my.sums = my.signs + 8 * hop_;
    my.piece = my.sums + k2_;
    my.f = my.piece + together_ * side;
    return my;
  }
  std::size_t start(std::size_t t) const { return std::min(p_, t * tile_); }
  // NaN wins, as it does in NumPy.
  static double maximum(const double* x, std::size_t m) {
    double most = 0.0;
    for (std::size_t i = 0; i < m; ++i)
      if (x[i] > most || x[i] != x[i]) most = x[i];
    return most;
  }
  // The levels of the transform that stay inside a part.
  void lower(double* x) const { transform_({x, 1, 1}, {x, 1, 1}, part_, 1, root_, nullptr); }

  // B A for m <= chunk rows from i and w columns from j.
  void fetch(std::size_t i, std::size_t m, std::size_t j, std::size_t w, double* f, double* out,
             std::size_t ld) const {
    const std::int8_t* const sign = signs_ + offset_ + i;
    k_.widen(sign, a_.factors ? a_.factors + i : nullptr, m, f);
    load_(a_, i, m, j, w, f, out, ld);
    if (j + w > a_.d) k_.flip(out + (w - 1) * ld, sign, m, out + (w - 1) * ld);
  }

  // The lower levels of H B A in a part of a block, for the w columns from j.
  void begin(const Block& b, const Part& part, std::size_t j, std::size_t w, double* f, double* x,
             std::size_t ld) const {
    for (std::size_t r = part.begin; r < part.end; r += chunk)
      fetch(b.at + r - b.lead, std::min(chunk, part.end - r), j, w, f, x + r - part.first, ld);
    for (std::size_t k = 0; k < w; ++k, x += ld) {
      std::fill(x, x + part.begin - part.first, 0.0);
      std::fill(x + part.end - part.first, x + part_, 0.0);
      if (part.begin < part.end) lower(x);
    }
  }

  // z += D H B A for the w columns from j.
  void add_block(const Block& b, std::size_t j, std::size_t w, const Worker& my) const {
    const std::size_t ld = 8 * hop_;
    k_.quadratic_signs(forms_ + b.index * m_, m_, part_, hop_, my.signs);
    for (std::size_t k = 0; k < w; k += together_) {
      const std::size_t c = std::min(together_, w - k);
      for (std::size_t e = 0; e < 8; ++e) begin(b, part(b, e), j + k, c, my.f, my.x + e * hop_, ld);
      for (std::size_t l = 0; l < c; ++l)
        k_.join(my.x + l * ld, my.signs, part_, hop_, my.z + (k + l) * ld, hop_);
    }
  }

  // sums = squared norms of the rows of H D Z - B A, for some tiles of columns.
  void add_distortion(const Block& b, const double* z, std::size_t first, std::size_t last,
                      const Worker& my) const {
    k_.quadratic_signs(forms_ + b.index * m_, m_, part_, hop_, my.signs);
    const std::size_t ld = 8 * hop_;
    for (std::size_t t = first; t < last; ++t)
      for (std::size_t j = start(t); j < start(t + 1); j += together_) {
        const std::size_t c = std::min(together_, start(t + 1) - j);
        for (std::size_t l = 0; l < c; ++l)
          k_.split(z + (j + l) * k2_, part_, my.signs, part_, hop_, my.x + l * ld);
        for (std::size_t e = 0; e < 8; ++e) {
          const Part part = this->part(b, e);
          const double* const y = my.x + part.at - part.first;
          for (std::size_t l = 0; part.begin < part.end && l < c; ++l)
            lower(my.x + part.at + l * ld);
          for (std::size_t r = part.begin; r < part.end; r += chunk) {
            const std::size_t rows = std::min(chunk, part.end - r);
            fetch(b.at + r - b.lead, rows, j, c, my.f, my.piece, side);
            k_.add_squares(y + r, ld, my.piece, side, rows, c, j == start(first),
                           my.sums + r - b.lead);
          }
        }
      }
  }

  const Mapped<T> a_;
  const decltype(passes::Kernels<T>::load) load_;
  const Kernels& k_;
  const fwht::Tile<double> transform_;
  const std::int8_t* const signs_;
  const std::uint32_t* const forms_;
  const std::size_t m_, k2_, part_, hop_, p_, offset_, threads_;
  const double root_;
  const std::size_t first_, blocks_;
  const bool by_rows_;
  const std::size_t tile_, together_, tiles_, size_;
  const Scratch memory_;
};

}  // namespace fastmix::kerdock
