#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <stdexcept>

#include "fwht.hpp"
#if defined(__GNUC__)
#include "kerdock_fused.hpp"
#include "passes.hpp"
#include "sparse.hpp"
#endif
#include "rounded.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

using std::size_t;
template <class T> using Matrix = nb::ndarray<T, nb::ndim<2>, nb::device::cpu>;
template <class T> using Vector = nb::ndarray<T, nb::ndim<1>, nb::device::cpu>;
template <class T> using Packed = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// Everything that memory safety depends on is checked here, whoever calls; the Python callers
// check the same and more, with better messages.
void require(bool condition, const char* message) {
  if (!condition) throw std::invalid_argument(message);
}

// Nobody has more processors, and scratch memory is a multiple of this.
size_t capped(size_t n_threads) { return std::min<size_t>(n_threads, 1024); }

template <class A> void require_aligned(const A& a) {
  const auto at = reinterpret_cast<std::uintptr_t>(a.data());
  require(at % sizeof(typename A::Scalar) == 0, "arrays must be aligned");
}

// Views that repeat their elements can have any shape: sizes must not overflow.
template <class A> void require_size(const A& a) {
  require(a.shape(0) >= 1 && a.shape(1) >= 1, "x must not be empty");
  require(a.shape(0) <= (size_t(1) << 50) / a.shape(1), "x must have at most 2^50 entries");
}

template <class T> fastmix::fwht::View<T> view(const Matrix<T>& a) {
  require_aligned(a);
  return {a.data(), std::ptrdiff_t(a.stride(0)), std::ptrdiff_t(a.stride(1))};
}

template <class T>
void fwht(const Matrix<const T>& x, const Matrix<T>& out, double scale, size_t n_threads) {
  require_size(x);
  require(x.shape(0) >= 2 && (x.shape(0) & (x.shape(0) - 1)) == 0, "x must have 2^k rows, k >= 1");
  require(out.shape(0) == x.shape(0) && out.shape(1) == x.shape(1), "out must be as large as x");
  const auto from = view(x);
  const auto to = view(out);
  const size_t n = x.shape(0), d = x.shape(1);
  nb::gil_scoped_release release;
  fastmix::fwht::transform<T>(from, to, n, d, T(scale), capped(n_threads));
}

// Draws fill out; the caller holds the lock of the bit generator.
void rounded(const nb::capsule& generator, bool gaussian, std::uint64_t scale,
             const Packed<const double>& fractions, const Packed<std::int64_t>& out) {
  require_aligned(fractions);
  require_aligned(out);
  require(fractions.size() == out.size(), "fractions must have as many entries as out");
  require(scale >= 1 && scale <= (std::uint64_t(1) << 40), "scale must lie between 1 and 2^40");
  require(generator.name() && !std::strcmp(generator.name(), "BitGenerator"),
          "generator must be the capsule of a bit generator");
  fastmix::rounded::Sampler sampler(
      *static_cast<const fastmix::rounded::BitGenerator*>(generator.data()), scale);
  const double* const f = fractions.data();
  std::int64_t* const to = out.data();
  const size_t n = out.size();
  for (size_t i = 0; i < n; ++i)
    require(f[i] > -1.0 && f[i] < 1.0, "fractions must lie in (-1, 1)");
  nb::gil_scoped_release release;
  for (size_t i = 0; i < n; ++i) to[i] = gaussian ? sampler.gaussian(f[i]) : sampler.laplace(f[i]);
}

#if defined(__GNUC__)
// The arguments that describe a mapped array: map holds four rows of bounds, centres and scales,
// one after the other; empty arrays stand for None.
template <class T>
fastmix::passes::Mapped<T> mapped(const Matrix<const T>& x, const Packed<const double>& map,
                                  const Packed<const double>& factors, double constant) {
  require_size(x);
  require_aligned(map);
  require_aligned(factors);
  require(map.size() == 0 || map.size() == 4 * x.shape(1), "map must have four rows or none");
  require(factors.size() == 0 || factors.size() == x.shape(0), "factors must have n entries");
  return {view(x),
          x.shape(0),
          x.shape(1),
          map.size() ? map.data() : nullptr,
          factors.size() ? factors.data() : nullptr,
          constant};
}

template <class T>
void map_rows(const Matrix<const T>& x, const Packed<const double>& map,
              const Packed<const double>& factors, double constant, size_t start,
              const Matrix<double>& out, size_t n_threads) {
  const auto a = mapped(x, map, factors, constant);
  const auto to = view(out);
  const size_t rows = out.shape(0);
  require(out.shape(1) == a.columns(), "out must have the columns of the mapped array");
  require(rows <= a.n && start <= a.n - rows, "start and out must stay within x");
  require(rows <= 1 || to.row == 1, "out must be column-major");
  require(a.columns() == 1 || to.col >= std::ptrdiff_t(rows), "columns of out must not overlap");
  nb::gil_scoped_release release;
  fastmix::passes::map_rows(a, start, rows, to.p, size_t(to.col), capped(n_threads));
}

template <class T>
void squared_norms(const Matrix<const T>& x, const Packed<const double>& map,
                   const Packed<const double>& factors, double constant, const Packed<double>& out,
                   size_t n_threads) {
  const auto a = mapped(x, map, factors, constant);
  require_aligned(out);
  require(out.size() == a.n, "out must have n entries");
  double* const to = out.data();
  nb::gil_scoped_release release;
  fastmix::passes::squared_norms(a, to, capped(n_threads));
}

template <class T>
void gram(const Matrix<const T>& x, const Packed<const double>& map,
          const Packed<const double>& factors, double constant, const Packed<double>& out,
          size_t n_threads) {
  const auto a = mapped(x, map, factors, constant);
  require_aligned(out);
  require(a.columns() <= (size_t(1) << 20), "x must have at most 2^20 columns");
  require(out.size() == a.columns() * a.columns(), "out must have p^2 entries");
  double* const to = out.data();
  nb::gil_scoped_release release;
  fastmix::passes::gram(a, nullptr, to, capped(n_threads));
}

template <class T>
void moments(const Matrix<const T>& x, const Packed<const double>& map,
             const Packed<const double>& factors, double constant, const Vector<const double>& y,
             double lower, double upper, double center, double scale, const Packed<double>& out,
             size_t n_threads) {
  const auto a = mapped(x, map, factors, constant);
  const size_t p = a.columns() + 1;
  require_aligned(y);
  require_aligned(out);
  require(y.shape(0) == a.n, "y must have n entries");
  require(p <= (size_t(1) << 20), "x must have fewer than 2^20 columns");
  require(out.size() == p * p, "out must have (p + 1)^2 entries");
  const fastmix::passes::Targets targets{
      {y.data(), std::ptrdiff_t(y.stride(0)), 0}, lower, upper, center, scale};
  double* const to = out.data();
  nb::gil_scoped_release release;
  fastmix::passes::gram(a, &targets, to, capped(n_threads));
}

template <class T>
void gradient(const Matrix<const T>& x, const Packed<const double>& map,
              const Packed<const double>& factors, double constant, const Vector<const double>& y,
              double lower, double upper, double center, double scale,
              const Packed<const double>& theta, double clip, const Packed<double>& out,
              size_t n_threads) {
  const auto a = mapped(x, map, factors, constant);
  require_aligned(y);
  require_aligned(theta);
  require_aligned(out);
  require(y.shape(0) == a.n, "y must have n entries");
  require(theta.size() == a.columns() && out.size() == a.columns(),
          "theta and out must have p entries");
  const fastmix::passes::Targets targets{
      {y.data(), std::ptrdiff_t(y.stride(0)), 0}, lower, upper, center, scale};
  const double* const at = theta.data();
  double* const to = out.data();
  nb::gil_scoped_release release;
  fastmix::passes::gradient(a, targets, at, clip, to, capped(n_threads));
}

// Calls f with the losses of the rows. A loss has six entries, for a square: its end, the largest
// slope, rate, ridge, scale and longest row; or five, for a sigmoid: its level, width, the largest
// slope, strength, and whether it is of a margin.
template <class F>
auto with_losses(const Packed<const double>& loss, const double* lengths, const F& f) {
  const double* const c = loss.data();
  if (loss.size() == 6) {
    const fastmix::passes::Loss square{c[0], c[1], c[2], c[3], c[4], c[5]};
    return f(fastmix::passes::Losses(square, lengths));
  }
  const fastmix::passes::Sigmoid sigmoid{c[0], c[1], c[2], c[3], c[4] != 0.0};
  return f(fastmix::passes::Sigmoids{sigmoid, lengths});
}

void require_loss(const Packed<const double>& loss) {
  require_aligned(loss);
  require(loss.size() == 5 || loss.size() == 6, "loss must have five or six entries");
}

// Lengths of all rows, or none.
const double* as_lengths(const Packed<const double>& lengths, size_t n) {
  require_aligned(lengths);
  require(lengths.size() == 0 || lengths.size() == n, "lengths must have n entries or none");
  return lengths.size() ? lengths.data() : nullptr;
}

template <class T>
size_t slopes(const Matrix<const T>& x, const Packed<const double>& map,
              const Packed<const double>& factors, double constant, const Vector<const double>& y,
              double lower, double upper, double center, double scale,
              const Packed<const double>& theta, const Packed<const double>& loss,
              const Packed<const double>& lengths, const Packed<double>& high, const Packed<double>& low,
              const Packed<double>& excess, size_t n_threads) {
  const auto a = mapped(x, map, factors, constant);
  require_loss(loss);
  const double* const measured = as_lengths(lengths, a.n);
  const size_t p = a.columns();
  require_aligned(y);
  require_aligned(theta);
  require_aligned(high);
  require_aligned(low);
  require_aligned(excess);
  require(y.shape(0) == a.n, "y must have n entries");
  require(theta.size() == p && high.size() == p && low.size() == p,
          "theta, high and low must have p entries");
  require(p <= (size_t(1) << 20), "x must have at most 2^20 columns");
  require(excess.size() == 0 || excess.size() == p * p, "excess must have p^2 entries or none");
  const fastmix::passes::Targets targets{
      {y.data(), std::ptrdiff_t(y.stride(0)), 0}, lower, upper, center, scale};
  const double* const at = theta.data();
  double *const to = high.data(), *const rest = low.data();
  double* const square = excess.size() ? excess.data() : nullptr;
  nb::gil_scoped_release release;
  return with_losses(loss, measured, [&](const auto& losses) {
    return fastmix::passes::slopes(a, targets, at, losses, to, rest, square, capped(n_threads));
  });
}

// A transform of p columns is its p^2 entries, row after row.
const double* as_transform(const Packed<const double>& transform, size_t p) {
  require_aligned(transform);
  require(p <= (size_t(1) << 20), "x must have at most 2^20 columns");
  require(transform.size() == p * p, "transform must have p^2 entries");
  return transform.data();
}

// Without targets y is empty.
template <class T>
void lengths(const Matrix<const T>& x, const Packed<const double>& map,
             const Packed<const double>& factors, double constant, const Vector<const double>& y,
             double lower, double upper, double center, double scale,
             const Packed<const double>& transform, bool single, double hair, double speck,
             double least, const Packed<double>& out, size_t n_threads) {
  const auto a = mapped(x, map, factors, constant);
  const bool joined = y.shape(0) > 0;
  require_aligned(y);
  require_aligned(out);
  require(!joined || y.shape(0) == a.n, "y must have n entries or none");
  require(out.size() == a.n, "out must have n entries");
  const double* const t = as_transform(transform, a.columns() + joined);
  const fastmix::passes::Targets targets{
      {y.data(), std::ptrdiff_t(y.stride(0)), 0}, lower, upper, center, scale};
  double* const to = out.data();
  nb::gil_scoped_release release;
  fastmix::passes::lengths(a, joined ? &targets : nullptr, t, single, {hair, speck, least}, to,
                           capped(n_threads));
}

template <class T>
void second_moments(const Matrix<const T>& x, const Packed<const double>& map,
                    const Packed<const double>& factors, double constant,
                    const Vector<const double>& y, double lower, double upper, double center,
                    double scale, const Packed<const double>& transform, double longest,
                    const Packed<double>& out, size_t n_threads) {
  const auto a = mapped(x, map, factors, constant);
  const size_t p = a.columns() + 1;
  require_aligned(y);
  require_aligned(out);
  require(y.shape(0) == a.n, "y must have n entries");
  const double* const t = as_transform(transform, p);
  require(out.size() == p * p, "out must have (p + 1)^2 entries");
  const fastmix::passes::Targets targets{
      {y.data(), std::ptrdiff_t(y.stride(0)), 0}, lower, upper, center, scale};
  double* const to = out.data();
  nb::gil_scoped_release release;
  fastmix::passes::second_moments(a, targets, t, longest, to, capped(n_threads));
}

template <class T>
bool slope_counts(const Matrix<const T>& x, const Packed<const double>& map,
                  const Packed<const double>& factors, double constant,
                  const Vector<const double>& y, double lower, double upper, double center,
                  double scale, const Packed<const double>& theta,
                  const Packed<const double>& lengths, double longest,
                  const Packed<const double>& edges, const Packed<double>& out, size_t n_threads) {
  const auto a = mapped(x, map, factors, constant);
  require_aligned(y);
  require_aligned(theta);
  require_aligned(lengths);
  require_aligned(edges);
  require_aligned(out);
  require(y.shape(0) == a.n && lengths.size() == a.n, "y and lengths must have n entries");
  require(theta.size() == a.columns(), "theta must have p entries");
  require(out.size() >= 1 && out.size() <= 4096, "out must have 1 to 4096 entries");
  require(edges.size() == out.size() + 1, "edges must be one more than out");
  const fastmix::passes::Targets targets{
      {y.data(), std::ptrdiff_t(y.stride(0)), 0}, lower, upper, center, scale};
  const double *const at = theta.data(), *const rho = lengths.data(), *const edge = edges.data();
  double* const to = out.data();
  const size_t bins = out.size();
  nb::gil_scoped_release release;
  return fastmix::passes::slope_counts(a, targets, at, rho, longest, edge, bins, to,
                                       capped(n_threads));
}

template <class T>
void residuals(const Matrix<const T>& x, const Packed<const double>& map,
               const Packed<const double>& factors, double constant, const Vector<const double>& y,
               double lower, double upper, double center, double scale,
               const Packed<const double>& theta, const Packed<double>& out, size_t n_threads) {
  const auto a = mapped(x, map, factors, constant);
  require_aligned(y);
  require_aligned(theta);
  require_aligned(out);
  require(y.shape(0) == a.n && out.size() == a.n, "y and out must have n entries");
  require(theta.size() == a.columns(), "theta must have p entries");
  const fastmix::passes::Targets targets{
      {y.data(), std::ptrdiff_t(y.stride(0)), 0}, lower, upper, center, scale};
  const double* const at = theta.data();
  double* const to = out.data();
  nb::gil_scoped_release release;
  fastmix::passes::residuals(a, targets, at, to, capped(n_threads));
}

template <class T>
void terms(const Matrix<const T>& x, const Packed<const double>& map,
           const Packed<const double>& factors, double constant, const Vector<const double>& y,
           double lower, double upper, double center, double scale,
           const Packed<const double>& theta, const Packed<const double>& loss,
           const Packed<const double>& lengths, const Packed<double>& slopes,
           const Packed<double>& bends, size_t n_threads) {
  const auto a = mapped(x, map, factors, constant);
  require_loss(loss);
  const double* const measured = as_lengths(lengths, a.n);
  require_aligned(y);
  require_aligned(theta);
  require_aligned(slopes);
  require_aligned(bends);
  require(y.shape(0) == a.n && slopes.size() == a.n && bends.size() == a.n,
          "y, slopes and bends must have n entries");
  require(theta.size() == a.columns(), "theta must have p entries");
  const fastmix::passes::Targets targets{
      {y.data(), std::ptrdiff_t(y.stride(0)), 0}, lower, upper, center, scale};
  const double* const at = theta.data();
  double *const to = slopes.data(), *const rest = bends.data();
  nb::gil_scoped_release release;
  with_losses(loss, measured, [&](const auto& losses) {
    fastmix::passes::terms(a, targets, at, losses, to, rest, capped(n_threads));
  });
}

template <class T>
void curved(const Matrix<const T>& x, const Packed<const double>& map,
            const Packed<const double>& factors, double constant, const Vector<const double>& y,
            double lower, double upper, double center, double scale,
            const Packed<const double>& theta, const Packed<const double>& loss,
            const Packed<const double>& lengths, const Packed<const double>& v, bool secant,
            const Packed<double>& out, size_t n_threads) {
  const auto a = mapped(x, map, factors, constant);
  require_loss(loss);
  const double* const measured = as_lengths(lengths, a.n);
  require_aligned(y);
  require_aligned(theta);
  require_aligned(v);
  require_aligned(out);
  require(y.shape(0) == a.n, "y must have n entries");
  require(theta.size() == a.columns() && v.size() == a.columns() && out.size() == a.columns(),
          "theta, v and out must have p entries");
  const fastmix::passes::Targets targets{
      {y.data(), std::ptrdiff_t(y.stride(0)), 0}, lower, upper, center, scale};
  const double *const at = theta.data(), *const along = v.data();
  double* const to = out.data();
  nb::gil_scoped_release release;
  with_losses(loss, measured, [&](const auto& losses) {
    fastmix::passes::curved(a, targets, at, losses, along, secant, to, capped(n_threads));
  });
}

template <class T>
double srht(const Matrix<const T>& x, const Packed<const double>& map,
            const Packed<const double>& factors, double constant,
            const Packed<const std::int8_t>& signs, const Packed<const std::int64_t>& rows,
            size_t n_pad, const Packed<double>& z, bool distortion, size_t n_threads) {
  const auto a = mapped(x, map, factors, constant);
  const std::int8_t* const sign = signs.data();
  const std::int64_t* const row = rows.data();
  const size_t k2 = rows.shape(0);
  require_aligned(rows);
  require_aligned(z);
  require(n_pad >= 2 && (n_pad & (n_pad - 1)) == 0, "n_pad must be 2^k, k >= 1");
  require(n_pad >= a.n && n_pad / 2 <= a.n, "n_pad must be n rounded up");
  require(signs.size() == a.n, "signs must have n entries");
  require(k2 >= 1 && k2 <= UINT32_MAX, "rows must have 1 to 2^32 entries");
  require(z.size() % k2 == 0 && z.size() / k2 == a.columns(), "z must have k2 p entries");
  require(std::all_of(row, row + k2, [&](std::int64_t r) { return r >= 0 && size_t(r) < n_pad; }),
          "rows must lie between 0 and n_pad");
  double* const to = z.data();
  nb::gil_scoped_release release;
  return fastmix::passes::Srht<T>(a, sign, row, k2, n_pad, to, distortion, capped(n_threads)).run();
}

// The signs and forms are those of the whole, of which x is the rows from offset on.
template <class T, class Z>
void require_kerdock(const fastmix::passes::Mapped<T>& a, const Packed<const std::int8_t>& signs,
                     const Packed<const std::uint32_t>& forms, size_t log_k2, size_t offset,
                     const Z& z) {
  require_aligned(forms);
  require_aligned(z);
  require(log_k2 >= 6 && log_k2 <= 31, "log_k2 must lie between 6 and 31");
  require(forms.size() % log_k2 == 0, "forms must have log_k2 entries a block");
  require(signs.size() >= a.n && offset <= signs.size() - a.n, "signs must have offset + n entries");
  require((offset + a.n - 1) >> log_k2 < forms.size() / log_k2, "forms must have all blocks");
  require(z.size() >> log_k2 == a.columns() && z.size() % (size_t(1) << log_k2) == 0,
          "z must have k2 p entries");
}

template <class T>
double kerdock(const Matrix<const T>& x, const Packed<const double>& map,
               const Packed<const double>& factors, double constant,
               const Packed<const std::int8_t>& signs, const Packed<const std::uint32_t>& forms,
               size_t log_k2, const Packed<double>& z, size_t n_threads) {
  const auto a = mapped(x, map, factors, constant);
  require_kerdock(a, signs, forms, log_k2, 0, z);
  n_threads = capped(n_threads);
  const std::int8_t* const sign = signs.data();
  const std::uint32_t* const form = forms.data();
  double* const to = z.data();
  nb::gil_scoped_release release;
  const fastmix::kerdock::Fused<T> fused(a, sign, form, log_k2, n_threads);
  if (fused.is_possible()) return fused.run(to);
  const fastmix::kerdock::Pass<T> pass(a, sign, form, log_k2, 0, n_threads);
  pass.sketch(to);
  return pass.distortion(to);
}

template <class T>
void kerdock_sketch(const Matrix<const T>& x, const Packed<const double>& map,
                    const Packed<const double>& factors, double constant,
                    const Packed<const std::int8_t>& signs,
                    const Packed<const std::uint32_t>& forms, size_t log_k2, size_t offset,
                    const Packed<double>& z, size_t n_threads) {
  const auto a = mapped(x, map, factors, constant);
  require_kerdock(a, signs, forms, log_k2, offset, z);
  n_threads = capped(n_threads);
  const std::int8_t* const sign = signs.data();
  const std::uint32_t* const form = forms.data();
  double* const to = z.data();
  nb::gil_scoped_release release;
  fastmix::kerdock::Pass<T>(a, sign, form, log_k2, offset, n_threads).sketch(to);
}

template <class T>
double kerdock_distortion(const Matrix<const T>& x, const Packed<const double>& map,
                          const Packed<const double>& factors, double constant,
                          const Packed<const std::int8_t>& signs,
                          const Packed<const std::uint32_t>& forms, size_t log_k2, size_t offset,
                          const Packed<const double>& z, size_t n_threads) {
  const auto a = mapped(x, map, factors, constant);
  require_kerdock(a, signs, forms, log_k2, offset, z);
  n_threads = capped(n_threads);
  const std::int8_t* const sign = signs.data();
  const std::uint32_t* const form = forms.data();
  const double* const from = z.data();
  nb::gil_scoped_release release;
  return fastmix::kerdock::Pass<T>(a, sign, form, log_k2, offset, n_threads).distortion(from);
}

template <class T, class Z>
void require_sparse(const fastmix::passes::Mapped<T>& a, const Packed<const std::uint32_t>& words,
                    size_t s, size_t k2, const Z& z) {
  require_aligned(words);
  require_aligned(z);
  require(s >= 1 && k2 >= s && k2 % s == 0 && k2 <= size_t(1) << 31, "s must divide k2");
  require(words.size() % s == 0 && words.size() / s == a.n, "words must have s entries a row");
  require(z.size() % k2 == 0 && z.size() / k2 == a.columns(), "z must have k2 p entries");
}

template <class T>
void sparse_sketch(const Matrix<const T>& x, const Packed<const double>& map,
                   const Packed<const double>& factors, double constant,
                   const Packed<const std::uint32_t>& words, size_t s, size_t k2,
                   const Packed<double>& z, size_t n_threads) {
  const auto a = mapped(x, map, factors, constant);
  require_sparse(a, words, s, k2, z);
  n_threads = capped(n_threads);
  const std::uint32_t* const word = words.data();
  double* const to = z.data();
  nb::gil_scoped_release release;
  fastmix::sparse::Pass<T>(a, word, s, k2, n_threads).sketch(to);
}

template <class T>
double sparse_distortion(const Matrix<const T>& x, const Packed<const double>& map,
                         const Packed<const double>& factors, double constant,
                         const Packed<const std::uint32_t>& words, size_t s, size_t k2,
                         const Packed<const double>& z, size_t n_threads) {
  const auto a = mapped(x, map, factors, constant);
  require_sparse(a, words, s, k2, z);
  n_threads = capped(n_threads);
  const std::uint32_t* const word = words.data();
  const double* const from = z.data();
  nb::gil_scoped_release release;
  return fastmix::sparse::Pass<T>(a, word, s, k2, n_threads).distortion(from);
}
#endif

constexpr const char* compiler =
#if defined(__clang__)
    "Clang " __clang_version__;
#elif defined(__GNUC__)
    "GCC " __VERSION__;
#else
    "another compiler than GCC and Clang";
#endif

nb::list instruction_sets() {
  nb::list names;
  for (const auto isa : fastmix::all_isas)
    if (fastmix::is_possible(isa)) names.append(fastmix::name(isa));
  return names;
}

void choose(const char* instruction_set) {
  for (const auto isa : fastmix::all_isas)
    if (fastmix::is_possible(isa) && !std::strcmp(instruction_set, fastmix::name(isa))) {
      fastmix::chosen_isa = isa;
      return;
    }
  throw std::invalid_argument("the processor must run the instruction set");
}

template <class T> void define(nb::module_& m) {
  const auto x = "x"_a.noconvert();
  m.def("fwht", &fwht<T>, x, "out"_a.noconvert(), "scale"_a, "n_threads"_a);
#if defined(__GNUC__)
  const auto map = "map"_a.noconvert(), factors = "factors"_a.noconvert(),
             out = "out"_a.noconvert();
  const auto constant = "constant"_a, n_threads = "n_threads"_a;
  m.def("map_rows", &map_rows<T>, x, map, factors, constant, "start"_a, out, n_threads);
  m.def("squared_norms", &squared_norms<T>, x, map, factors, constant, out, n_threads);
  m.def("gram", &gram<T>, x, map, factors, constant, out, n_threads);
  m.def("moments", &moments<T>, x, map, factors, constant, "y"_a.noconvert(), "lower"_a, "upper"_a,
        "center"_a, "inverse_scale"_a, out, n_threads);
  m.def("gradient", &gradient<T>, x, map, factors, constant, "y"_a.noconvert(), "lower"_a,
        "upper"_a, "center"_a, "inverse_scale"_a, "theta"_a.noconvert(), "clip"_a, out, n_threads);
  m.def("slopes", &slopes<T>, x, map, factors, constant, "y"_a.noconvert(), "lower"_a, "upper"_a,
        "center"_a, "inverse_scale"_a, "theta"_a.noconvert(), "loss"_a.noconvert(),
        "lengths"_a.noconvert(), "high"_a.noconvert(), "low"_a.noconvert(), "excess"_a.noconvert(), n_threads);
  m.def("curved", &curved<T>, x, map, factors, constant, "y"_a.noconvert(), "lower"_a, "upper"_a,
        "center"_a, "inverse_scale"_a, "theta"_a.noconvert(), "loss"_a.noconvert(),
        "lengths"_a.noconvert(), "v"_a.noconvert(), "secant"_a, out, n_threads);
  m.def("lengths", &lengths<T>, x, map, factors, constant, "y"_a.noconvert(), "lower"_a, "upper"_a,
        "center"_a, "inverse_scale"_a, "transform"_a.noconvert(), "single"_a, "hair"_a, "speck"_a,
        "least"_a, out, n_threads);
  m.def("second_moments", &second_moments<T>, x, map, factors, constant, "y"_a.noconvert(),
        "lower"_a, "upper"_a, "center"_a, "inverse_scale"_a, "transform"_a.noconvert(),
        "longest"_a, out, n_threads);
  m.def("slope_counts", &slope_counts<T>, x, map, factors, constant, "y"_a.noconvert(), "lower"_a,
        "upper"_a, "center"_a, "inverse_scale"_a, "theta"_a.noconvert(), "lengths"_a.noconvert(),
        "longest"_a, "edges"_a.noconvert(), out, n_threads);
  m.def("residuals", &residuals<T>, x, map, factors, constant, "y"_a.noconvert(), "lower"_a,
        "upper"_a, "center"_a, "inverse_scale"_a, "theta"_a.noconvert(), out, n_threads);
  m.def("terms", &terms<T>, x, map, factors, constant, "y"_a.noconvert(), "lower"_a, "upper"_a,
        "center"_a, "inverse_scale"_a, "theta"_a.noconvert(), "loss"_a.noconvert(),
        "lengths"_a.noconvert(), "slopes"_a.noconvert(), "bends"_a.noconvert(), n_threads);
  m.def("srht", &srht<T>, x, map, factors, constant, "signs"_a.noconvert(), "rows"_a.noconvert(),
        "n_pad"_a, "z"_a.noconvert(), "distortion"_a, n_threads);
  const auto signs = "signs"_a.noconvert(), forms = "forms"_a.noconvert(), z = "z"_a.noconvert();
  m.def("kerdock", &kerdock<T>, x, map, factors, constant, signs, forms, "log_k2"_a, z, n_threads);
  m.def("kerdock_sketch", &kerdock_sketch<T>, x, map, factors, constant, signs, forms, "log_k2"_a,
        "offset"_a, z, n_threads);
  m.def("kerdock_distortion", &kerdock_distortion<T>, x, map, factors, constant, signs, forms,
        "log_k2"_a, "offset"_a, z, n_threads);
  const auto words = "words"_a.noconvert();
  m.def("sparse_sketch", &sparse_sketch<T>, x, map, factors, constant, words, "s"_a, "k2"_a, z,
        n_threads);
  m.def("sparse_distortion", &sparse_distortion<T>, x, map, factors, constant, words, "s"_a,
        "k2"_a, z, n_threads);
#endif
}

}  // namespace

NB_MODULE(_native, m) {
  m.doc() = "Compiled kernels; shapes are checked here, values by the Python callers.";
  m.attr("compiler") = compiler;
  m.def("instruction_sets", &instruction_sets);
  m.def("chosen", [] { return fastmix::name(fastmix::chosen_isa); });
  m.def("choose", &choose, "instruction_set"_a);
  m.def("rounded", &rounded, "generator"_a, "gaussian"_a, "scale"_a, "fractions"_a,
        "out"_a.noconvert());
#ifdef FASTMIX_FAULTS
  m.def("set_fault", [](int k) { fastmix::fault = k; });
#endif
  define<double>(m);
  define<float>(m);
}
