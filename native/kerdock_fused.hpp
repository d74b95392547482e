// Z = S A and the distortion in one read of A, a few columns at a time, for as long as these columns
// fit in the last cache. With them go through two phases:
//   rows     in blocks: the lower levels of the transform of each block;
//   columns  in slices across the blocks: the upper levels, the sum Z, and the upper levels of what
//            is left of Z in each block. As H D Z - B A = H (D Z - H B A), and levels commute, the
//            next phase over rows ends the distortion, adds its squares to the sums of the rows, and
//            loads the next columns in the same place.
#pragma once

#include "kerdock.hpp"

namespace fastmix::kerdock {

template <class T> class Fused : Pass<T> {
 public:
  Fused(const Mapped<T>& a, const std::int8_t* signs, const std::uint32_t* forms, std::size_t m,
        std::size_t threads)
      : Pass<T>(a, signs, forms, m, 0, threads),
        column_(this->blocks_ * 8 * this->hop_ + 8),
        width_(std::min(this->p_, width())),
        slice_(std::min<std::size_t>(this->part_, 64)),
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
    for (std::size_t b = 0; b < blocks; ++b)
      most[b] = this->maximum(sums_.get() + b * this->k2_, this->block(b).rows);
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
  std::size_t buffer() const { return 8 * (slice_ + 8) + this->chunk; }

  // Ends the columns before j, if any, and begins those at j, if any.
  void rows(std::size_t j) const {
    parallel(this->blocks_, this->threads_, [&](std::size_t b, std::size_t worker) {
      double* const x = work_.get() + b * 8 * this->hop_;
      const auto block = this->block(b);
      if (j) end(block, x, j - width_);
      if (j < this->p_)
        this->begin(block, j, std::min(width_, this->p_ - j), buffers_.get() + worker * buffer(), x,
                    column_);
    });
  }

  void end(const typename Pass<T>::Block& b, double* x, std::size_t j) const {
    for (std::size_t k = 0; k < std::min(width_, this->p_ - j); ++k, x += column_)
      for (std::size_t e = 0; e < 8; ++e) {
        const auto part = this->part(b, e);
        if (part.begin == part.end) continue;
        this->lower(x + part.at);
        passes::kernels<T>().add_squares(x + part.at, part.end - part.begin, j + k == 0,
                                         sums_.get() + b.at + part.begin);
      }
  }

  void columns(std::size_t j, double* z) const {
    const std::size_t slices = this->part_ / slice_, step = slice_ + 8, block = 8 * this->hop_;
    parallel(slices, this->threads_, [&](std::size_t slice, std::size_t worker) {
      double* const sum = buffers_.get() + worker * buffer();
      const double* const signs = table_.get() + slice * slice_;
      for (std::size_t k = 0; k < std::min(width_, this->p_ - j); ++k) {
        double* const x = work_.get() + k * column_ + slice * slice_;
        std::fill_n(sum, 8 * step, 0.0);
        for (std::size_t b = 0; b < this->blocks_; ++b)
          this->k_.join(x + b * block, signs + b * block, slice_, this->hop_, sum, step);
        for (std::size_t e = 0; e < 8; ++e)
          std::copy_n(sum + e * step, slice_,
                      z + (j + k) * this->k2_ + e * this->part_ + slice * slice_);
        for (std::size_t b = 0; b < this->blocks_; ++b)
          this->k_.split_less(sum, step, signs + b * block, slice_, this->hop_, x + b * block);
      }
    });
  }

  const std::size_t column_, width_, slice_;
  const Scratch work_, table_, sums_, buffers_;
};

}  // namespace fastmix::kerdock
