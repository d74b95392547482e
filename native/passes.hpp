// Fused passes over the rows of an array that is seen through a public map of its entries.
//
// Every pass brings a block of rows into cache, mapped and column-major, and does everything else
// there. Blocks, and the order in which their sums are added, depend on the shape alone: the
// number of threads changes no bit of a result.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <new>
#include <stdexcept>
#include <type_traits>
#include <vector>

#include "fwht.hpp"

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace fastmix::passes {

using fwht::View;

// a_ij = f_i s_j (clip(x_ij, l_j, u_j) - c_j), and a last column of `constant` unless that is 0.
template <class T> struct Mapped {
  View<const T> x;
  std::size_t n, d;
  const double* map;      // l, u, c and s one after the other; null for none of them
  const double* factors;  // f; null for 1
  double constant;

  std::size_t columns() const { return d + (constant != 0.0); }
  bool is_plain() const { return !map && !factors && constant == 0.0; }
  // Whether rows are long and lie in one piece each: then they are used as they lie.
  bool has_long_rows() const { return x.col == 1 && d >= 128; }
};

// clip((clip(y_i, lower, upper) - center) * scale, -1, 1).
struct Targets {
  View<const double> y;
  double lower, upper, center, scale;
};

// A convex loss of a residual: u^2/2 up to the zone; outside, the slope goes to `most` as
// most + scale log(1 - e), e = exp(-rate (|u| - zone)) / (1 + ridge), with curvature
// ridge e / (1 - e). With a small ridge 1 - e is small, too: it is computed without cancellation.
struct Loss {
  double zone, most, rate, ridge, scale, longest = 1.0;

  bool leaves(double u) const { return std::abs(u) > zone; }
  double power(double u) const { return -rate * (std::abs(u) - zone); }
  double excess(double t) const { return std::exp(t) / (1.0 + ridge); }
  double rest(double t) const { return (ridge - std::expm1(t)) / (1.0 + ridge); }
  double slope(double u) const {
    const double t = power(u), e = excess(t);
    return std::copysign(most + scale * (e < 0.5 ? std::log1p(-e) : std::log(rest(t))), u);
  }
  double curvature(double u) const {
    const double t = power(u);
    return ridge * excess(t) / rest(t);
  }
  // The curvature of the parabola around 0 that touches the loss at u, and is nowhere below it.
  double secant(double u) const { return slope(u) / u; }
};

// The loss of a row of a given length: that for most/length and ridge/length^2, so that `most`
// bounds its gradient; a row beyond `longest` counts as if it and its target were shortened.
struct RowLoss {
  Loss loss;
  double weight;

  RowLoss(const Loss& of, double length) : loss(of), weight(1.0) {
    if (length > of.longest) {
      weight = of.longest / length;
      length = of.longest;
    }
    const double eps = of.most / of.scale;
    loss.most = of.most / length;
    loss.scale = of.scale / length;
    loss.ridge = of.ridge / (length * length);
    loss.rate = eps * loss.ridge / loss.most;
    loss.zone = loss.most * (1.0 - std::log1p(1.0 / loss.ridge) / eps);
  }
  bool leaves(double u) const { return weight < 1.0 || loss.leaves(u); }
  double slope(double u) const {
    const double v = weight * u;
    return weight * (loss.leaves(v) ? loss.slope(v) : v);
  }
  double curvature(double u) const {
    const double v = weight * u;
    return weight * weight * (loss.leaves(v) ? loss.curvature(v) : 1.0);
  }
  double secant(double u) const { return u == 0.0 ? curvature(u) : slope(u) / u; }
};

// The loss for each row of a pass: the same for all, or that for its length.
struct Losses {
  const Loss& loss;
  const double* lengths;
  // A gradient up to `sure` is inside the zone, whatever the length; one up to `most` less `room`
  // times the squared length is, too, as log(1 + t) <= t.
  double sure, room;

  Losses(const Loss& of, const double* l)
      : loss(of), lengths(l), sure(0.0), room(of.scale / of.ridge) {
    if (lengths) sure = of.longest * RowLoss(of, of.longest).loss.zone;
  }
  static constexpr bool reads_targets = false;
  double bend() const { return 1.0; }  // the largest curvature
  template <class K> bool may_leave(const K& k, const double* r, std::size_t m) const {
    return lengths || k.leaves(r, m, loss.zone);
  }
  // Calls f(s, loss of row s) for rows i to i + m whose residual r[s] is outside the zone.
  template <class F>
  void outside(std::size_t i, std::size_t m, const double* r, const double*, const F& f) const {
    for (std::size_t s = 0; s < m; ++s) {
      if (!lengths) {
        if (loss.leaves(r[s])) f(s, loss);
        continue;
      }
      const double length = lengths[i + s], size = std::abs(r[s]) * length;
      const double inside = std::max(sure, loss.most - room * (length * length));
      if (length <= loss.longest && size <= inside) continue;
      const RowLoss own(loss, length);
      if (own.leaves(r[s])) f(s, own);
    }
  }
};

// A loss whose slope is a sigmoid less its level: sigma(v/width) - level, up to `most` over the
// length of the row. `strength` is the ridge times eps_c. It is the smoothed quantile loss with
// v = u or, with `margin`, the logistic loss of the margin: a target is a label's sign times its
// weight, and v = -sign(y) x'theta. The quantile loss of a row so long that its slopes would exceed
// their bound has a smaller weight, so that both slopes keep their ratio.
struct Sigmoid {
  double level, width, most, strength;
  bool margin;
};

// The loss of a row. It is the sigmoid's up to the slope where its curvature is what privacy
// allows, strength/length^2 (1 - slope/bound); from there the curvature is at most that, and the
// slope goes to the bound, or to that of the sigmoid if it is less.
struct RowSigmoid {
  double bound, room, width, weight, sign, target, level;  // residuals count from the target
  bool margin;

  RowSigmoid(const Sigmoid& of, double length, double y)
      : bound(of.most / length),
        room(of.strength / (length * length)),
        width(of.width),
        weight(1.0),
        sign(1.0),
        target(0.0),
        level(of.level),
        margin(of.margin) {
    if (margin) {
      weight = std::abs(y);
      sign = std::copysign(1.0, y);
      target = y;
    } else {
      weight = std::min(1.0, bound / std::max(level, 1.0 - level));
      width = std::max(width, weight * level * (1.0 - level) / room);
      target = tail(1.0 - level) - tail(level);
    }
  }
  struct Parts {
    double slope, curvature;
  };
  Parts parts(double u) const {
    u -= target;
    if (margin) {
      const Parts side = rising(sign * u, 0.0);
      return {sign * side.slope, side.curvature};
    }
    if (sigma(u / width) < level) {
      const Parts side = rising(-u, 1.0 - level);
      return {-side.slope, side.curvature};
    }
    return rising(u, level);
  }
  double slope(double u) const { return parts(u).slope; }
  double curvature(double u) const { return parts(u).curvature; }
  double secant(double) const { return 0.25 * weight / width; }

 private:
  static double sigma(double z) { return 1.0 / (1.0 + std::exp(-z)); }

  // The sigmoid where its curvature is what is allowed; 1 or more if it never is.
  double meeting(double a) const {
    const double rate = room / bound, c = width * rate, share = c / (1.0 + c);
    const double top = bound / weight + a, square = 1.0 - 4.0 * share * top / (1.0 + c);
    if (!(square >= 0.0 && a < 0.5 * (1.0 + c))) return 1.0;
    return std::max(a, 2.0 * share * top / (1.0 + std::sqrt(square)));
  }
  // How much farther the limit moves the mean of the law that smooths, on its rising side.
  double tail(double a) const {
    const double s = meeting(a), most = std::min(bound, weight * (1.0 - a));
    if (!(s < 1.0)) return 0.0;
    return (most - weight * (s - a)) * most / (weight * room) + width * std::log(s);
  }
  // The side on which the slope weight (sigma(v/width) - a) is not negative.
  Parts rising(double v, double a) const {
    // The sigmoids of |v| and -|v|, from one exponential.
    const double e = std::exp(-std::abs(v) / width), high = 1.0 / (1.0 + e), low = e * high;
    const double s = v < 0.0 ? low : high, met = meeting(a);
    if (s > met) {
      const double edge = width * (std::log(met) - std::log1p(-met));
      const double most = std::min(bound, weight * (1.0 - a)), pace = room / most;
      const double left = (most - weight * (met - a)) * std::exp(-pace * (v - edge));
      return {most - left, pace * left};
    }
    return {weight * (s - a), weight * high * low / width};
  }
};

// The loss for each row of a pass; none is a square anywhere.
struct Sigmoids {
  const Sigmoid& loss;
  const double* lengths;

  static constexpr bool reads_targets = true;
  double bend() const { return 0.25 / loss.width; }
  template <class K> bool may_leave(const K&, const double*, std::size_t) const { return true; }
  template <class F>
  void outside(std::size_t i, std::size_t m, const double* r, const double* y, const F& f) const {
    for (std::size_t s = 0; s < m; ++s)
      f(s, RowSigmoid(loss, lengths ? lengths[i + s] : 1.0, y[s]));
    (void)r;
  }
};

// Products with m x w entries of A; rows that lie as in the array have factors f, or null.
struct Products {
  void (*subtract)(const double* x, std::size_t ld, const double* f, std::size_t m, std::size_t w,
                   const double* theta, double* r);
  void (*subtract_both)(const double* x, std::size_t ld, const double* f, std::size_t m,
                        std::size_t w, const double* theta, double* r, const double* v, double* s);
  void (*add_adjoint)(const double* x, std::size_t ld, const double* f, std::size_t m,
                      std::size_t w, const double* r, double* g);
  void (*add_adjoint_exactly)(const double* x, std::size_t ld, const double* f, std::size_t m,
                              std::size_t w, const double* r, double* high, double* low);
};

template <class T> struct Kernels {
  void (*load)(const Mapped<T>&, std::size_t i, std::size_t m, std::size_t j, std::size_t w,
               const double* f, double* out, std::size_t ld);
  void (*load_targets)(const Targets&, std::size_t i, std::size_t m, double* out);
  void (*add_norms)(const double* x, std::size_t ld, std::size_t m, std::size_t w,
                    const double* map, double* sums);
  void (*clip_to)(double bound, std::size_t m, double* r);
  bool (*leaves)(const double* r, std::size_t m, double zone);
  void (*add_gram)(const double* x, std::size_t ld, std::size_t m, std::size_t w, double* g);
  void (*add_squares)(const double* x, std::size_t m, bool first, double* sums);
  Products columns;
  void (*load_rows)(const Mapped<T>&, std::size_t i, std::size_t m, double* out, std::size_t ld);
  void (*norms_of_rows)(const Mapped<T>&, std::size_t i, std::size_t m, double* out);
  Products rows;
  void (*transform)(const double* x, std::size_t ld, std::size_t m, std::size_t p, const double* t,
                    bool triangular, double* sums, double* z, std::size_t ldz);
  void (*transform_single)(const float* x, std::size_t ld, std::size_t m, std::size_t p,
                           const float* t, bool triangular, float* sums, float* z, std::size_t ldz);
  void (*to_single)(const double* x, std::size_t m, float* out);
  void (*bound_lengths)(const double* squares, const double* norms, std::size_t m, double hair,
                        double speck, double least, double* out);
  void (*bound_lengths_single)(const float* squares, const double* norms, std::size_t m,
                               double hair, double speck, double least, double* out);
  void (*count_above)(const double* sizes, std::size_t m, const double* edges, std::size_t n_edges,
                      std::int64_t* counts);
  bool (*gradient_sizes)(double* r, const double* lengths, std::size_t m, double square);
};

}  // namespace fastmix::passes

#ifdef FASTMIX_X86
#define PASSES_ISA avx2
#define PASSES_TARGET __attribute__((target("avx2,fma")))
#define PASSES_HOLD(v) __asm__("" : "+x"(v))
#include "passes_simd.inc"
#endif
#define PASSES_ISA baseline
#define PASSES_TARGET
#define PASSES_HOLD(v) (void)0
#include "passes_simd.inc"

namespace fastmix::passes {

template <class T> const Kernels<T>& kernels() {
#ifdef FASTMIX_X86
  if (chosen_isa != Isa::baseline) return avx2::kernels<T>;
#endif
  return baseline::kernels<T>;
}

inline std::size_t round_up(std::size_t n, std::size_t to) { return (n + to - 1) / to * to; }

// Uninitialised memory that starts with a cache line. Large pages spare most of the page faults,
// which would otherwise cost as much as the work.
class Scratch {
 public:
  explicit Scratch(std::size_t size) {
    const std::size_t bytes = std::max<std::size_t>(size, 1) * sizeof(double);
    const std::size_t unit = bytes < huge ? 64 : huge;
    data_ = static_cast<double*>(std::aligned_alloc(unit, round_up(bytes, unit)));
    if (!data_) throw std::bad_alloc();
#if defined(__linux__) && defined(MADV_HUGEPAGE)
    if (unit == huge) madvise(data_, round_up(bytes, unit), MADV_HUGEPAGE);
#endif
  }
  ~Scratch() { std::free(data_); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  double* get() const { return data_; }

 private:
  static constexpr std::size_t huge = std::size_t(1) << 21;
  double* data_;
};

// Threads that are worth starting for this many entries.
inline std::size_t useful(std::size_t threads, std::size_t entries) {
  return std::max<std::size_t>(1, std::min(threads, entries >> 16));
}

// Cuts n rows into blocks of at most `room` entries, and blocks into at most 128 units.
struct Blocks {
  std::size_t n, rows, per_unit, units;

  Blocks(std::size_t n_, std::size_t width, std::size_t room, std::size_t most)
      : n(n_), rows(std::max<std::size_t>(16, std::min(most, room / width)) / 8 * 8) {
    const std::size_t blocks = (n + rows - 1) / rows;
    per_unit = (blocks + 127) / 128;
    units = (blocks + per_unit - 1) / per_unit;
  }
  // Columns of a block are a line more than a multiple of eight lines apart: a power of two would
  // send all columns to the same cache sets.
  std::size_t ld() const { return round_up(rows, 64) + 8; }

  // Whether a unit ends before row i.
  bool ends(std::size_t i) const { return i == n || i % (per_unit * rows) == 0; }

  // Calls f(i, m, unit, worker) for the rows i to i + m of each block; a unit keeps their order.
  template <class F> void run(std::size_t threads, const F& f) const {
    parallel(units, threads, [&](std::size_t unit, std::size_t worker) {
      const std::size_t end = std::min(n, (unit + 1) * per_unit * rows);
      for (std::size_t i = unit * per_unit * rows; i < end; i += rows)
        f(i, std::min(rows, end - i), unit, worker);
    });
  }
};

// Entries of a block that is read twice or three times.
template <class T> std::size_t room(const Mapped<T>& a) {
  return std::size_t(1) << (a.has_long_rows() ? 14 : 15);
}

// Columns of A ld apart, with zeros at their ends up to a multiple of eight entries; or rows of A
// ld apart. Residuals have `padded` entries in both cases.
struct Block {
  const double* x;
  std::size_t ld, rows, w, padded;
  const Products* products;
  bool by_rows;
  const double* f = nullptr;  // factors of rows that lie as in the array

  double at(std::size_t i, std::size_t j) const {
    return (by_rows ? x[i * ld + j] : x[j * ld + i]) * (f ? f[i] : 1.0);
  }
  // r -= x theta, perhaps with s -= x v; g += x'r, perhaps with rounding errors of sums in `low`.
  void subtract(const double* theta, double* r) const {
    products->subtract(x, ld, f, rows, w, theta, r);
  }
  void subtract(const double* theta, double* r, const double* v, double* s) const {
    products->subtract_both(x, ld, f, rows, w, theta, r, v, s);
  }
  void add_adjoint(const double* r, double* g) const {
    products->add_adjoint(x, ld, f, rows, w, r, g);
  }
  void add_adjoint_exactly(const double* r, double* high, double* low) const {
    products->add_adjoint_exactly(x, ld, f, rows, w, r, high, low);
  }
};

// Rows i to i + m of A by columns: in place if they lie there as the kernels want them, or else in
// x, with columns ld apart.
template <class T>
Block fetch(const Mapped<T>& a, std::size_t i, std::size_t m, double* x, std::size_t ld,
            bool in_place = true) {
  const auto& k = kernels<T>();
  const std::size_t p = a.columns(), end = round_up(m, 8);
  if constexpr (std::is_same_v<T, double>)
    if (in_place && a.is_plain() && a.x.row == 1 && a.x.col > 0 && m % 8 == 0)
      return {a.x.at(i), std::size_t(a.x.col), m, p, m, &k.columns, false};
  k.load(a, i, m, 0, p, a.factors ? a.factors + i : nullptr, x, ld);
  for (std::size_t j = 0; j < p; ++j) std::fill(x + j * ld + m, x + j * ld + end, 0.0);
  return {x, ld, end, p, end, &k.columns, false};
}

// Rows i to i + m of A, long rows as they lie, others by columns.
template <class T>
Block fetch_any(const Mapped<T>& a, std::size_t i, std::size_t m, double* x, std::size_t ld) {
  if (!a.has_long_rows()) return fetch(a, i, m, x, ld);
  const auto& k = kernels<T>();
  const std::size_t p = a.columns(), end = round_up(m, 8);
  if constexpr (std::is_same_v<T, double>)
    if (!a.map && a.constant == 0.0 && a.x.row > 0)
      return {a.x.at(i), std::size_t(a.x.row), m, p, end, &k.rows, true,
              a.factors ? a.factors + i : nullptr};
  k.load_rows(a, i, m, x, p);
  return {x, p, m, p, end, &k.rows, true};
}

// Rows i to i + m of A to columns of m entries.
template <class T>
void map_rows(const Mapped<T>& a, std::size_t i, std::size_t m, double* out, std::size_t ld,
              std::size_t threads) {
  const std::size_t p = a.columns(), step = 512;
  const auto& k = kernels<T>();
  parallel((m + step - 1) / step, useful(threads, m * p), [&](std::size_t unit, std::size_t) {
    const std::size_t r = unit * step;
    k.load(a, i + r, std::min(step, m - r), 0, p, a.factors ? a.factors + i + r : nullptr, out + r,
           ld);
  });
}

// The sum of symmetric matrices of which lower triangles are known, each `stride` behind the last.
inline void add_parts(const double* parts, std::size_t stride, std::size_t units, std::size_t p,
                      double* out) {
  for (std::size_t j = 0; j < p; ++j)
    for (std::size_t l = 0; l <= j; ++l) {
      double total = 0.0;
      for (std::size_t unit = 0; unit < units; ++unit) total += parts[unit * stride + j * p + l];
      out[j * p + l] = out[l * p + j] = total;
    }
}

// Squared norms of mapped rows without factors and constant; NaN where the array is not finite.
template <class T> void squared_norms(Mapped<T> a, double* out, std::size_t threads) {
  const auto& k = kernels<T>();
  const Blocks blocks(a.n, a.d, 1 << 15, 512);
  threads = useful(threads, a.n * a.d);
  if (a.has_long_rows())
    return blocks.run(threads, [&](std::size_t i, std::size_t m, std::size_t, std::size_t) {
      k.norms_of_rows(a, i, m, out + i);
    });
  const double* const map = a.map;
  a.map = a.factors = nullptr;
  a.constant = 0.0;
  const std::size_t ld = blocks.ld(), size = ld * (a.d + 1);
  const Scratch memory(size * threads);
  blocks.run(threads, [&](std::size_t i, std::size_t m, std::size_t, std::size_t worker) {
    double *x = memory.get() + worker * size, *sums = x + a.d * ld;
    const Block block = fetch(a, i, m, x, ld);
    std::fill_n(sums, block.rows, 0.0);
    k.add_norms(block.x, block.ld, block.rows, a.d, map, sums);
    std::copy_n(sums, m, out + i);
  });
}

// A' clip(y - A theta).
template <class T>
void gradient(const Mapped<T>& a, const Targets& targets, const double* theta, double clip,
              double* out, std::size_t threads) {
  const std::size_t p = a.columns();
  const Blocks blocks(a.n, p, room(a), 512);
  const std::size_t ld = blocks.ld(), stride = round_up(p, 8), size = ld * (p + 1) + stride;
  threads = useful(threads, a.n * p);
  const Scratch memory(size * threads), parts(stride * blocks.units);
  std::fill_n(parts.get(), stride * blocks.units, 0.0);
  const auto& k = kernels<T>();
  blocks.run(threads, [&](std::size_t i, std::size_t m, std::size_t unit, std::size_t worker) {
    double *x = memory.get() + worker * size, *r = x + p * ld, *sums = r + ld;
    double* const to = parts.get() + unit * stride;
    const Block block = fetch_any(a, i, m, x, ld);
    k.load_targets(targets, i, m, r);
    std::fill(r + m, r + block.padded, 0.0);
    block.subtract(theta, r);
    k.clip_to(clip, block.padded, r);
    // Those of a block by themselves: rows that lie as in the array are added one after the other.
    std::fill_n(sums, p, 0.0);
    block.add_adjoint(r, sums);
    for (std::size_t j = 0; j < p; ++j) to[j] += sums[j];
  });
  std::fill_n(out, p, 0.0);
  for (std::size_t unit = 0; unit < blocks.units; ++unit)
    for (std::size_t j = 0; j < p; ++j) out[j] += parts.get()[unit * stride + j];
}

// A' f'(y - A theta) in two parts, whose sum has the rounding errors of the summation taken off;
// A' (bend - f'') A unless excess is null; and how many residuals are outside the zone.
template <class T, class L>
std::size_t slopes(const Mapped<T>& a, const Targets& targets, const double* theta,
                   const L& losses, double* high, double* low, double* excess,
                   std::size_t threads) {
  const std::size_t p = a.columns();
  const Blocks blocks(a.n, p, room(a), 512);
  const std::size_t ld = blocks.ld(), tile = ld * p, size = (excess ? 2 * tile : tile) + 2 * ld;
  const double bend = losses.bend();
  const std::size_t stride = round_up(p, 8), square = excess ? round_up(p * p, 8) : 0;
  const std::size_t part = 2 * stride + square;
  threads = useful(threads, a.n * p);
  const Scratch memory(size * threads), parts(part * blocks.units);
  std::fill_n(parts.get(), part * blocks.units, 0.0);
  std::vector<std::size_t> outside(blocks.units, 0), held(threads, 0);
  const auto& k = kernels<T>();
  // Rows outside are held back until there are enough for a product, or the unit ends.
  const auto flush = [&](double* rows, std::size_t& count, double* to) {
    const std::size_t end = round_up(count, 8);
    for (std::size_t j = 0; j < p; ++j) std::fill(rows + j * ld + count, rows + j * ld + end, 0.0);
    k.add_gram(rows, ld, end, p, to);
    count = 0;
  };
  blocks.run(threads, [&](std::size_t i, std::size_t m, std::size_t unit, std::size_t worker) {
    double *r = memory.get() + worker * size, *y = r + ld, *x = y + ld, *rows = x + tile;
    double* const to = parts.get() + unit * part;
    std::size_t& count = held[worker];
    const Block block = fetch_any(a, i, m, x, ld);
    k.load_targets(targets, i, m, r);
    std::fill(r + m, r + block.padded, 0.0);
    if (L::reads_targets) std::copy_n(r, m, y);
    block.subtract(theta, r);
    if (losses.may_leave(k, r, block.padded)) {
      if (excess && count + m > blocks.rows) flush(rows, count, to + 2 * stride);
      losses.outside(i, m, r, y, [&](std::size_t s, const auto& loss) {
        ++outside[unit];
        if (excess) {
          const double root = std::sqrt(std::max(0.0, bend - loss.curvature(r[s])));
          for (std::size_t j = 0; j < p; ++j) rows[j * ld + count] = root * block.at(s, j);
          ++count;
        }
        r[s] = loss.slope(r[s]);
      });
    }
    if (count && blocks.ends(i + m)) flush(rows, count, to + 2 * stride);
    block.add_adjoint_exactly(r, to, to + stride);
  });
  std::size_t total = 0;
  std::fill_n(high, p, 0.0);
  std::fill_n(low, p, 0.0);
  for (std::size_t unit = 0; unit < blocks.units; ++unit) {
    const double* const from = parts.get() + unit * part;
    for (std::size_t j = 0; j < p; ++j) {
      const double v = from[j], t = high[j] + v, z = t - high[j];
      low[j] += ((high[j] - (t - z)) + (v - z)) + from[stride + j];
      high[j] = t;
    }
    total += outside[unit];
  }
  if (excess) add_parts(parts.get() + 2 * stride, part, blocks.units, p, excess);
  return total;
}

// A' f''(y - A theta) A v, or that with secants for f''.
template <class T, class L>
void curved(const Mapped<T>& a, const Targets& targets, const double* theta, const L& losses,
            const double* v, bool secant, double* out, std::size_t threads) {
  const std::size_t p = a.columns();
  const Blocks blocks(a.n, p, room(a), 512);
  const std::size_t ld = blocks.ld(), size = ld * (p + 3), stride = round_up(p, 8);
  threads = useful(threads, a.n * p);
  const Scratch memory(size * threads), parts(stride * blocks.units);
  std::fill_n(parts.get(), stride * blocks.units, 0.0);
  const auto& k = kernels<T>();
  blocks.run(threads, [&](std::size_t i, std::size_t m, std::size_t unit, std::size_t worker) {
    double *r = memory.get() + worker * size, *w = r + ld, *y = w + ld, *x = y + ld;
    const Block block = fetch_any(a, i, m, x, ld);
    k.load_targets(targets, i, m, r);
    std::fill(r + m, r + block.padded, 0.0);
    if (L::reads_targets) std::copy_n(r, m, y);
    std::fill_n(w, block.padded, 0.0);
    block.subtract(theta, r, v, w);
    if (losses.may_leave(k, r, block.padded))
      losses.outside(i, m, r, y, [&](std::size_t s, const auto& loss) {
        w[s] *= secant ? loss.secant(r[s]) : loss.curvature(r[s]);
      });
    for (std::size_t s = 0; s < block.padded; ++s) w[s] = r[s] != r[s] ? r[s] : -w[s];
    block.add_adjoint(w, parts.get() + unit * stride);
  });
  std::fill_n(out, p, 0.0);
  for (std::size_t unit = 0; unit < blocks.units; ++unit)
    for (std::size_t j = 0; j < p; ++j) out[j] += parts.get()[unit * stride + j];
}

// A'A for few columns, which a general matrix product handles badly; with targets, A is joined by
// them as its last column.
template <class T>
void gram(const Mapped<T>& a, const Targets* targets, double* out, std::size_t threads) {
  const std::size_t p = a.columns() + (targets != nullptr);
  const Blocks blocks(a.n, p, 1 << 14, 1024);
  const std::size_t ld = blocks.ld(), size = ld * p, stride = round_up(p * p, 8);
  threads = useful(threads, a.n * p);
  const Scratch memory(size * threads), parts(stride * blocks.units);
  std::fill_n(parts.get(), stride * blocks.units, 0.0);
  const auto& k = kernels<T>();
  blocks.run(threads, [&](std::size_t i, std::size_t m, std::size_t unit, std::size_t worker) {
    double* x = memory.get() + worker * size;
    // Columns are read many times: they must not meet in the same cache sets, as they would if
    // they were a power of two apart and more than the ways of a cache.
    const Block block = fetch(a, i, m, x, ld, p <= 8 && !targets);
    if (targets) {
      double* const y = x + (p - 1) * ld;
      k.load_targets(*targets, i, m, y);
      std::fill(y + m, y + block.rows, 0.0);
    }
    k.add_gram(block.x, block.ld, block.rows, p, parts.get() + unit * stride);
  });
  add_parts(parts.get(), stride, blocks.units, p, out);
}

// A square matrix T in panels of columns, each with its rows one after the other, and zeros behind
// the last column.
template <class S> class Panels {
 public:
  static constexpr std::size_t columns = baseline::tile_columns;

  Panels(const double* t, std::size_t p)
      : memory_(round_up(p, columns) * p * sizeof(S) / sizeof(double) + 1), triangular_(true) {
    for (std::size_t j = 0; j < round_up(p, columns); ++j)
      for (std::size_t k = 0; k < p; ++k) {
        const double v = j < p ? t[k * p + j] : 0.0;
        get()[j / columns * columns * p + k * columns + j % columns] = S(v);
        triangular_ = triangular_ && (k <= j || v == 0.0);
      }
  }
  S* get() const { return reinterpret_cast<S*>(memory_.get()); }
  bool is_triangular() const { return triangular_; }

 private:
  Scratch memory_;
  bool triangular_;
};

// Rows i to i + m of A by columns in x, joined by targets if there are any; and their squared
// norms, if asked for.
template <class T>
std::size_t fetch_joined(const Mapped<T>& a, const Targets* targets, std::size_t i, std::size_t m,
                         double* x, std::size_t ld, double* norms) {
  const auto& k = kernels<T>();
  const std::size_t p = a.columns(), rows = fetch(a, i, m, x, ld, false).rows;
  if (targets) {
    k.load_targets(*targets, i, m, x + p * ld);
    std::fill(x + p * ld + m, x + p * ld + rows, 0.0);
  }
  for (std::size_t j = 0; norms && j < p + (targets != nullptr); ++j)
    k.add_squares(x + j * ld, rows, j == 0, norms);
  return rows;
}

// What is added to computed lengths: `hair` times the norm of the row, and `speck`; the least length.
struct Margin {
  double hair, speck, least;
};

// Bounds on the lengths of T'a, or of T'(a, y) with targets, computed in double or single precision.
template <class T>
void lengths(const Mapped<T>& a, const Targets* targets, const double* t, bool single,
             const Margin& margin, double* out, std::size_t threads) {
  const std::size_t p = a.columns() + (targets != nullptr);
  const Blocks blocks(a.n, p, std::max<std::size_t>(std::size_t(1) << 14, p <= 256 ? 0 : 64 * p), 512);
  const std::size_t ld = blocks.ld(), most = round_up(blocks.rows, 16);
  // The block, norms, squares, and in single precision the block once more; whole cache lines.
  const std::size_t size = ld * p + 2 * most + (single ? most / 2 * p : 0);
  threads = useful(threads, a.n * p);
  const Scratch memory(size * threads);
  const auto& k = kernels<T>();
  const auto run = [&](const auto& panels, const auto& measure) {
    blocks.run(threads, [&](std::size_t i, std::size_t m, std::size_t, std::size_t worker) {
      double *norms = memory.get() + worker * size, *squares = norms + most, *x = squares + most;
      std::fill_n(norms, 2 * most, 0.0);
      const std::size_t rows = fetch_joined(a, targets, i, m, x, ld, margin.hair ? norms : nullptr);
      measure(panels, i, m, rows, norms, squares, x);
    });
  };
  if (!single)
    return run(Panels<double>(t, p), [&](const auto& panels, std::size_t i, std::size_t m,
                                         std::size_t rows, double* norms, double* s, double* x) {
      k.transform(x, ld, rows, p, panels.get(), panels.is_triangular(), s, nullptr, 0);
      k.bound_lengths(s, norms, m, margin.hair, margin.speck, margin.least, out + i);
    });
  run(Panels<float>(t, p), [&](const auto& panels, std::size_t i, std::size_t m, std::size_t rows,
                               double* norms, double* squares, double* x) {
    float *const narrow = reinterpret_cast<float*>(x + ld * p), *s = reinterpret_cast<float*>(squares);
    const std::size_t end = round_up(rows, 16);
    for (std::size_t j = 0; j < p; ++j) {
      k.to_single(x + j * ld, rows, narrow + j * most);
      std::fill(narrow + j * most + rows, narrow + j * most + end, 0.0f);
    }
    k.transform_single(narrow, most, end, p, panels.get(), panels.is_triangular(), s, nullptr, 0);
    k.bound_lengths_single(s, norms, m, margin.hair, margin.speck, margin.least, out + i);
  });
}

// Z'Z for rows z = T'(a, y) that are shortened to `longest`.
template <class T>
void second_moments(const Mapped<T>& a, const Targets& targets, const double* t, double longest,
                    double* out, std::size_t threads) {
  const std::size_t p = a.columns() + 1;
  const Blocks blocks(a.n, p, 1 << 13, 512);
  const Panels<double> panels(t, p);
  const std::size_t ld = blocks.ld(), wide = round_up(p, Panels<double>::columns);
  const std::size_t size = ld * (p + wide + 1), stride = round_up(p * p, 8);
  threads = useful(threads, a.n * p);
  const Scratch memory(size * threads), parts(stride * blocks.units);
  std::fill_n(parts.get(), stride * blocks.units, 0.0);
  const auto& k = kernels<T>();
  blocks.run(threads, [&](std::size_t i, std::size_t m, std::size_t unit, std::size_t worker) {
    double *f = memory.get() + worker * size, *x = f + ld, *z = x + p * ld;
    const std::size_t rows = fetch_joined(a, &targets, i, m, x, ld, nullptr);
    std::fill_n(f, rows, 0.0);
    k.transform(x, ld, rows, p, panels.get(), panels.is_triangular(), f, z, ld);
    bool any = false;
    for (std::size_t s = 0; s < rows; ++s) {
      const double length = std::sqrt(f[s]);
      f[s] = length <= longest ? 1.0 : longest / length;
      any = any || f[s] != 1.0;
    }
    for (std::size_t j = 0; any && j < p; ++j)
      for (std::size_t s = 0; s < rows; ++s) z[j * ld + s] *= f[s];
    k.add_gram(z, ld, rows, p, parts.get() + unit * stride);
  });
  add_parts(parts.get(), stride, blocks.units, p, out);
}

// How many |y - A theta|, times the lengths of the rows, lie between each edge and the next, or
// beyond the last but one; those of a row beyond `longest` are of the shortened row. False if any
// is not a number.
template <class T>
bool slope_counts(const Mapped<T>& a, const Targets& targets, const double* theta,
                  const double* lengths, double longest, const double* edges, std::size_t bins,
                  double* out, std::size_t threads) {
  const std::size_t p = a.columns();
  const Blocks blocks(a.n, p, room(a), 512);
  const std::size_t ld = blocks.ld(), size = ld * (p + 1);
  threads = useful(threads, a.n * p);
  const Scratch memory(size * threads);
  std::vector<std::int64_t> above((bins + 1) * threads, 0);
  std::vector<char> odd(threads, 0);
  const auto& k = kernels<T>();
  blocks.run(threads, [&](std::size_t i, std::size_t m, std::size_t, std::size_t worker) {
    double *r = memory.get() + worker * size, *x = r + ld;
    const Block block = fetch_any(a, i, m, x, ld);
    k.load_targets(targets, i, m, r);
    std::fill(r + m, r + block.padded, 0.0);
    block.subtract(theta, r);
    if (!k.gradient_sizes(r, lengths + i, m, longest * longest)) odd[worker] = 1;
    std::fill(r + m, r + block.padded, 0.0);
    k.count_above(r, block.padded, edges, bins, above.data() + worker * (bins + 1));
  });
  for (std::size_t j = 0; j < bins; ++j) {
    std::int64_t count = 0;
    for (std::size_t w = 0; w < threads; ++w)
      count += above[w * (bins + 1) + j] - above[w * (bins + 1) + j + 1];
    out[j] = double(count);
  }
  return std::all_of(odd.begin(), odd.end(), [](char c) { return c == 0; });
}

// f'(y - A theta) and f''(y - A theta) of each row.
template <class T, class L>
void terms(const Mapped<T>& a, const Targets& targets, const double* theta, const L& losses,
           double* slopes, double* bends, std::size_t threads) {
  const std::size_t p = a.columns();
  const Blocks blocks(a.n, p, room(a), 512);
  const std::size_t ld = blocks.ld(), size = ld * (p + 2);
  threads = useful(threads, a.n * p);
  const Scratch memory(size * threads);
  const auto& k = kernels<T>();
  blocks.run(threads, [&](std::size_t i, std::size_t m, std::size_t, std::size_t worker) {
    double *r = memory.get() + worker * size, *y = r + ld, *x = y + ld;
    const Block block = fetch_any(a, i, m, x, ld);
    k.load_targets(targets, i, m, r);
    std::fill(r + m, r + block.padded, 0.0);
    if (L::reads_targets) std::copy_n(r, m, y);
    block.subtract(theta, r);
    for (std::size_t s = 0; s < m; ++s) {
      slopes[i + s] = r[s];
      bends[i + s] = r[s] != r[s] ? r[s] : 1.0;
    }
    if (losses.may_leave(k, r, block.padded))
      losses.outside(i, m, r, y, [&](std::size_t s, const auto& loss) {
        slopes[i + s] = loss.slope(r[s]);
        bends[i + s] = loss.curvature(r[s]);
      });
  });
}

// y - A theta.
template <class T>
void residuals(const Mapped<T>& a, const Targets& targets, const double* theta, double* out,
               std::size_t threads) {
  const std::size_t p = a.columns();
  const Blocks blocks(a.n, p, room(a), 512);
  const std::size_t ld = blocks.ld(), size = ld * (p + 1);
  threads = useful(threads, a.n * p);
  const Scratch memory(size * threads);
  const auto& k = kernels<T>();
  blocks.run(threads, [&](std::size_t i, std::size_t m, std::size_t, std::size_t worker) {
    double *r = memory.get() + worker * size, *x = r + ld;
    const Block block = fetch_any(a, i, m, x, ld);
    k.load_targets(targets, i, m, r);
    std::fill(r + m, r + block.padded, 0.0);
    block.subtract(theta, r);
    std::copy_n(r, m, out + i);
  });
}

// S A, and the largest row norm of (S'S - I) A, for an SRHT.
//
// A few columns at a time go through two phases, each of which reads and writes them once:
//   rows     in blocks of neighbours: signs, and the lower levels of the transform;
//   columns  in slices across the blocks: the upper levels, the sampled rows, their weights, and
//            the upper levels of the second transform, which may come first as levels commute.
// The next phase over rows ends the second transform, adds its squares to the sums of the rows,
// and loads the next columns in the same place.
template <class T> class Srht {
 public:
  Srht(const Mapped<T>& a, const std::int8_t* signs, const std::int64_t* rows, std::size_t k2,
       std::size_t n_pad, double* z, bool distortion, std::size_t threads)
      : a_(a),
        k_(kernels<T>()),
        tile_(fwht::tile<double>()),
        signs_(signs),
        k2_(k2),
        p_(a.columns()),
        z_(z),
        distortion_(distortion),
        threads_(useful(threads, n_pad * p_)),
        root_(1.0 / std::sqrt(double(n_pad))),
        gain_(std::sqrt(double(n_pad) / double(k2))),
        weight_(1.0 - double(n_pad) / double(k2)),
        block_(std::min<std::size_t>(std::size_t(1) << 14, std::max<std::size_t>(1, n_pad / 8))),
        blocks_(n_pad / block_),
        slice_(cut(block_, std::max<std::size_t>(64, (std::size_t(1) << 15) / blocks_))),
        // A line more than a power of two, or neighbours would meet in the same cache sets.
        ld_(round_up(block_, 8) + 8),
        column_(blocks_ * ld_ + 8),
        width_(std::min(p_, width(n_pad))),
        work_(column_ * width_),
        sums_(distortion ? a.n : 0),
        buffers_(buffer() * threads_) {
    sort(rows);
  }

  double run() const {
    std::size_t j = 0;
    for (; j < p_; j += width_) {
      rows(j);
      columns(j);
    }
    if (!distortion_) return 0.0;
    rows(j);
    std::vector<double> most(blocks_, 0.0);
    parallel(blocks_, threads_, [&](std::size_t b, std::size_t) {
      const std::size_t i = std::min(a_.n, b * block_);
      most[b] = maximum(sums_.get() + i, std::min(block_, a_.n - i));
    });
    return std::sqrt(maximum(most.data(), blocks_));
  }

 private:
  struct Sample {
    std::uint32_t at, k;  // where in a slice, and which row of Z
  };
  static constexpr std::size_t chunk = 256;

  // Columns to hold at a time: 8 MiB of them, but where neighbours share cache lines, as many as
  // fill a line if 32 MiB will do.
  std::size_t width(std::size_t n_pad) const {
    const std::size_t few = (std::size_t(1) << 20) / n_pad, more = (std::size_t(1) << 22) / n_pad;
    const bool share = std::abs(a_.x.col) < std::abs(a_.x.row);
    return std::max<std::size_t>({1, few, share ? std::min<std::size_t>(8, more) : 0});
  }
  // NaN wins, as it does in NumPy.
  static double maximum(const double* x, std::size_t m) {
    double most = 0.0;
    for (std::size_t i = 0; i < m; ++i)
      if (x[i] > most || x[i] != x[i]) most = x[i];
    return most;
  }
  // Length of equal slices of at most `most` entries, in whole lines.
  static std::size_t cut(std::size_t length, std::size_t most) {
    const std::size_t slices = (length + most - 1) / most;
    return round_up((length + slices - 1) / slices, 8);
  }
  std::size_t buffer() const { return round_up(std::max(blocks_ * slice_, chunk), 8); }
  std::size_t slices() const { return (block_ + slice_ - 1) / slice_; }
  std::size_t slice_width(std::size_t s) const { return std::min(slice_, block_ - s * slice_); }
  std::size_t tile_width(std::size_t j) const { return std::min(width_, p_ - j); }

  void sort(const std::int64_t* rows) {
    if (k2_ > UINT32_MAX) throw std::length_error("more than 2^32 rows of a sketch");
    first_.assign(slices() + 1, 0);
    const auto slice_of = [&](std::size_t k) { return std::size_t(rows[k]) % block_ / slice_; };
    for (std::size_t k = 0; k < k2_; ++k) ++first_[slice_of(k) + 1];
    for (std::size_t s = 0; s < slices(); ++s) first_[s + 1] += first_[s];
    auto next = first_;
    samples_.resize(k2_);
    for (std::size_t k = 0; k < k2_; ++k) {
      const std::size_t row = std::size_t(rows[k]), s = slice_of(k);
      const std::size_t at = row / block_ * slice_width(s) + row % block_ - s * slice_;
      samples_[next[s]++] = {std::uint32_t(at), std::uint32_t(k)};
    }
  }

  // Ends the tile of columns before j, if any, and begins the one at j, if any.
  void rows(std::size_t j) const {
    parallel(blocks_, threads_, [&](std::size_t b, std::size_t worker) {
      const std::size_t i = b * block_, m = std::min(block_, a_.n - std::min(a_.n, i));
      if (j && distortion_ && m) end(b, i, m, j - width_);
      if (j < p_) begin(b, i, m, j, buffers_.get() + worker * buffer());
    });
  }

  void begin(std::size_t b, std::size_t i, std::size_t m, std::size_t j, double* f) const {
    double* const x = work_.get() + b * ld_;
    const std::size_t w = tile_width(j);
    for (std::size_t r = 0; r < m; r += chunk) {
      const std::size_t rows = std::min(chunk, m - r);
      const std::int8_t* sign = signs_ + i + r;
      for (std::size_t s = 0; s < rows; ++s)
        f[s] = a_.factors ? a_.factors[i + r + s] * sign[s] : sign[s];
      k_.load(a_, i + r, rows, j, w, f, x + r, column_);
      if (j + w > a_.d)
        for (std::size_t s = 0; s < rows; ++s) x[(w - 1) * column_ + r + s] *= sign[s];
    }
    for (std::size_t k = 0; k < w; ++k) {
      double* const column = x + k * column_;
      std::fill(column + m, column + block_, 0.0);
      if (m && block_ > 1) fwht::packed(column, column, block_, 1, 1.0);
    }
  }

  void end(std::size_t b, std::size_t i, std::size_t m, std::size_t j) const {
    double* const x = work_.get() + b * ld_;
    for (std::size_t k = 0; k < tile_width(j); ++k) {
      double* const column = x + k * column_;
      if (block_ > 1) fwht::packed(column, column, block_, 1, 1.0);
      k_.add_squares(column, m, j + k == 0, sums_.get() + i);
    }
  }

  void columns(std::size_t j) const {
    const std::size_t w = tile_width(j);
    // Threads keep to their own columns of Z where there are enough of them.
    const std::size_t parts = w >= 4 * threads_ || threads_ == 1 ? 1 : slices();
    parallel(w * parts, threads_, [&](std::size_t unit, std::size_t worker) {
      const std::size_t k = unit % w, part = unit / w;
      double* const buf = buffers_.get() + worker * buffer();
      for (std::size_t s = part; s < slices(); s += parts)
        slice(s, work_.get() + k * column_ + s * slice_, z_ + (j + k) * k2_, buf);
    });
  }

  void slice(std::size_t s, double* x, double* z, double* buf) const {
    const std::size_t w = slice_width(s);
    const View<double> out{x, std::ptrdiff_t(ld_), 1}, in{buf, std::ptrdiff_t(w), 1};
    tile_(out, in, blocks_, w, root_, buf);
    // S'S - I = B H ((n/k2) P'P - I) H B; neither the last B nor a sign changes a norm.
    for (std::size_t t = first_[s]; t < first_[s + 1]; ++t) {
      double& v = buf[samples_[t].at];
      z[samples_[t].k] = v * gain_;
      v *= weight_;
    }
    if (distortion_) tile_(in, out, blocks_, w, root_, buf);
  }

  const Mapped<T> a_;
  const Kernels<T>& k_;
  const fwht::Tile<double> tile_;
  const std::int8_t* const signs_;
  const std::size_t k2_, p_;
  double* const z_;
  const bool distortion_;
  const std::size_t threads_;
  const double root_, gain_, weight_;
  const std::size_t block_, blocks_, slice_, ld_, column_, width_;
  const Scratch work_, sums_, buffers_;
  std::vector<std::size_t> first_;
  std::vector<Sample> samples_;
};

}  // namespace fastmix::passes
