// Z = S A and the distortion in one read of A, as long as a few columns of A fit in the last cache.
//
// A few columns at a time go through two phases:
//   rows     in blocks: the lower levels of the transform of B A;
//   columns  in slices across the blocks: the upper levels, the sum Z, and the upper levels of
//            D Z - H B A.
// As H D Z - B A = H (D Z - H B A), and levels commute, the next phase over rows ends the
// distortion, adds its squares to the sums of the rows, and loads the next columns in the same
// place.
#pragma once

#include "kerdock.hpp"

namespace fastmix::kerdock {

template <class T> class Fused : Pass<T> {
 public:
  Fused(const Mapped<T>& a, const std::int8_t* signs, const std::uint32_t* forms, std::size_t m,
        std::size_t threads)
      : Pass<T>(a, signs, forms, m, 0, threads),
        squares_(passes::kernels<T>().add_squares),
        column_(this->blocks_ * 8 * this->hop_ + 8),
        width_(std::min(this->p_, width())),
        // Slices of all blocks fill a quarter of a usual second cache.
        slice_(std::min(this->part_, std::max<std::size_t>(8, slice(this->blocks_)))),
        work_(column_ * width_),
        table_(width_ ? column_ : 0),
        sums_(width_ ? a.n : 0),
        buffers_(buffer() * this->threads_) {}

  // Whether enough columns fit in the last cache.
  bool is_possible() const { return width_ > 0; }

  double run(double* z) const {
    const std::size_t blocks = this->blocks_, block = 8 * this->hop_;
    parallel(blocks, this->threads_, [&](std::size_t b, std::size_t) {
      this->k_.quadratic_signs(this->forms_ + b * this->m_, this->m_, this->part_, this->hop_,
                               table_.get() + b * block);
    });
    std::size_t j = 0;
    for (; j < this->p_; j += width_) {
      rows(j);
      columns(j, z);
    }
    rows(j);
    std::vector<double> most(blocks, 0.0);
    parallel(blocks, this->threads_, [&](std::size_t b, std::size_t) {
      most[b] = this->maximum(sums_.get() + b * this->k2_, this->block(b).rows);
    });
    return std::sqrt(this->maximum(most.data(), blocks));
  }

 private:
  // Columns to hold at a time: 8 MiB of them, but where neighbours share cache lines, as many as
  // fill a line if 32 MiB will do.
  std::size_t width() const {
    const std::size_t rows = this->blocks_ * this->k2_;
    const std::size_t few = (std::size_t(1) << 20) / rows, more = (std::size_t(1) << 22) / rows;
    return std::max(few, this->by_rows_ && more >= 8 ? std::size_t(8) : 0);
  }
  // The greatest power of two of which all blocks together have at most 4096.
  static std::size_t slice(std::size_t blocks) {
    std::size_t s = 4096;
    while (s * blocks > 4096) s /= 2;
    return s;
  }
  std::size_t buffer() const { return 8 * (slice_ + 8) + this->chunk; }

  // Ends the columns before j, if any, and begins those at j, if any.
  void rows(std::size_t j) const {
    parallel(8 * this->blocks_, this->threads_, [&](std::size_t unit, std::size_t worker) {
      const auto block = this->block(unit / 8);
      const auto part = this->part(block, unit % 8);
      double *const x = work_.get() + unit * this->hop_, *f = buffers_.get() + worker * buffer();
      if (j && part.begin < part.end)
        for (std::size_t k = 0; k < std::min(width_, this->p_ - (j - width_)); ++k) {
          this->lower(x + k * column_);
          squares_(x + k * column_, part.end - part.begin, j + k == width_,
                   sums_.get() + block.at + part.begin);
        }
      if (j < this->p_) this->begin(block, part, j, std::min(width_, this->p_ - j), f, x, column_);
    });
  }

  void columns(std::size_t j, double* z) const {
    const std::size_t w = std::min(width_, this->p_ - j), step = slice_ + 8, block = 8 * this->hop_;
    parallel(this->part_ / slice_ * w, this->threads_, [&](std::size_t unit, std::size_t worker) {
      const std::size_t at = unit / w * slice_, k = unit % w;
      double *const sum = buffers_.get() + worker * buffer(), *x = work_.get() + k * column_ + at;
      const double* const signs = table_.get() + at;
      std::fill_n(sum, 8 * step, 0.0);
      for (std::size_t b = 0; b < this->blocks_; ++b)
        this->k_.join(x + b * block, signs + b * block, slice_, this->hop_, sum, step);
      for (std::size_t e = 0; e < 8; ++e)
        std::copy_n(sum + e * step, slice_, z + (j + k) * this->k2_ + e * this->part_ + at);
      for (std::size_t b = 0; b < this->blocks_; ++b)
        this->k_.split_less(sum, step, signs + b * block, slice_, this->hop_, x + b * block);
    });
  }

  const decltype(passes::Kernels<T>::add_squares) squares_;
  const std::size_t column_, width_, slice_;
  const Scratch work_, table_, sums_, buffers_;
};

}  // namespace fastmix::kerdock
