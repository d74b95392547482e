// Gaussian and Laplace noise added to a number and rounded down, exactly, by integers only.
//
// A real draw is t (v + x) with x = (u + w) / t: whole numbers v and u < t, and a fraction w whose
// digits of 64 bits are drawn when a choice needs them. Every coin is a comparison of uniform
// numbers, so the law is that of continuous noise, rounded (docs/proofs/exact_noise.md).
// src/fastmix/kernels/rounded.py has the same steps in Python, and draws the same numbers from the
// same bits.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace fastmix::rounded {

// What NumPy keeps in the capsule of a bit generator; the other members are not used.
struct BitGenerator {
  void* state;
  std::uint64_t (*next_uint64)(void*);
};

class Sampler {
 public:
  Sampler(const BitGenerator& bits, std::uint64_t t) : bits_(bits), t_(t) {}

  // floor(f + t z) for z of the Laplace distribution, -1 < f < 1.
  std::int64_t laplace(double f) { return floored(magnitude(), f); }

  // The same for z of the normal distribution: a Laplace draw y is kept with the probability
  // exp(-(|y| - 1)^2 / 2).
  std::int64_t gaussian(double f) {
    for (;;) {
      const std::uint64_t v = magnitude();
      if (kept(v)) return floored(v, f);
    }
  }

 private:
  BitGenerator bits_;
  std::uint64_t t_, u_ = 0;
  std::vector<std::uint64_t> digits_;  // of w, as many as are drawn

  static int leading_zeros(std::uint64_t x) {
    int zeros = 0;
    for (int step = 32; step != 0; step /= 2) {
      if ((x >> (64 - step)) == 0) {
        zeros += step;
        x <<= step;
      }
    }
    return zeros;
  }

  std::uint64_t next() { return bits_.next_uint64(bits_.state); }

  // A uniform integer in [0, m).
  std::uint64_t below(std::uint64_t m) {
    if (m == 1) return 0;
    const int shift = leading_zeros(m - 1);
    for (;;) {
      const std::uint64_t r = next() >> shift;
      if (r < m) return r;
    }
  }

  std::uint64_t digit(std::size_t i) {
    if (i == digits_.size()) digits_.push_back(next());
    return digits_[i];
  }

  // v and x such that v + x has the exponential distribution.
  std::uint64_t magnitude() {
    do {
      u_ = below(t_);
      digits_.clear();
    } while (!exp_minus_x());
    std::uint64_t v = 0;
    while (exp_minus_one_over(1)) ++v;
    return v;
  }

  // True with the probability x: a uniform number is smaller.
  bool less_than_x() {
    const std::uint64_t u = below(t_);
    if (u != u_) return u < u_;
    for (std::size_t i = 0;; ++i) {
      const std::uint64_t own = digit(i), other = next();
      if (other != own) return other < own;
    }
  }

  // True with the probability exp(-x): the number of successes in a row of coins x / k,
  // k = 1, 2, ..., is even.
  bool exp_minus_x() {
    bool even = true;
    for (std::uint64_t k = 1; less_than_x() && below(k) == 0; ++k) even = !even;
    return even;
  }

  // True with the probability exp(-1 / m).
  bool exp_minus_one_over(std::uint64_t m) {
    bool even = true;
    for (std::uint64_t k = 1; below(m) == 0 && below(k) == 0; ++k) even = !even;
    return even;
  }

  // True with the probability exp(-(v + x - 1)^2 / 2). For v >= 1 the exponent is the sum of q^2
  // times 1/2, q times x, and x^2 / 2, with q = v - 1; for v = 0 it is (1 - x)^2 / 2.
  bool kept(std::uint64_t v) {
    const std::uint64_t q = v == 0 ? 0 : v - 1;
    for (std::uint64_t i = 0; i < q * q; ++i)
      if (!exp_minus_one_over(2)) return false;
    for (std::uint64_t i = 0; i < q; ++i)
      if (!exp_minus_x()) return false;
    const bool inside = v != 0;
    bool even = true;
    for (std::uint64_t k = 1;
         less_than_x() == inside && less_than_x() == inside && below(2 * k) == 0; ++k)
      even = !even;
    return even;
  }

  // floor(f + s (N + w)) for N = t v + u and a random sign s.
  std::int64_t floored(std::uint64_t v, double f) {
    const auto whole = static_cast<std::int64_t>(u_ + t_ * v);
    if (below(2) == 0) return f < 0.0 ? whole - !exceeds(-f) : whole + carries(f);
    return f < 0.0 ? -whole - 1 - carries(-f) : -whole - exceeds(f);
  }

  // The next digit of a fraction f, which loses it; both steps are exact.
  static std::uint64_t taken(double& f) {
    f = std::ldexp(f, 64);
    const auto own = static_cast<std::uint64_t>(f);
    f -= static_cast<double>(own);
    return own;
  }

  // Whether w + f >= 1.
  bool carries(double f) {
    for (std::size_t i = 0;; ++i) {
      const std::uint64_t left = ~digit(i), own = taken(f);
      if (own != left) return own > left;
    }
  }

  // Whether w > f.
  bool exceeds(double f) {
    for (std::size_t i = 0;; ++i) {
      const std::uint64_t drawn = digit(i), own = taken(f);
      if (drawn != own) return drawn > own;
    }
  }
};

}  // namespace fastmix::rounded
