// Exact samples of the discrete Laplace and Gaussian distributions, by integers only.
//
// Canonne, Kamath and Steinke, The Discrete Gaussian for Differential Privacy (2020), for scales t
// that are whole numbers. Every coin is a comparison of uniform integers, so every probability is
// exact if the bits are (docs/proofs/exact_noise.md). src/fastmix/kernels/discrete.py has the same
// steps in Python, and draws the same numbers from the same bits.
#pragma once

#include <cstddef>
#include <cstdint>

namespace fastmix::discrete {

// What NumPy keeps in the capsule of a bit generator; the other members are not used.
struct BitGenerator {
  void* state;
  std::uint64_t (*next_uint64)(void*);
};

class Sampler {
 public:
  explicit Sampler(const BitGenerator& bits) : bits_(bits) {}

  // P(x) is proportional to exp(-|x| / t).
  std::int64_t laplace(std::uint64_t t) {
    for (;;) {
      const std::uint64_t u = below(t);
      if (!exp_minus(u, t)) continue;
      std::uint64_t v = 0;
      while (exp_minus(1, 1)) ++v;
      const auto x = static_cast<std::int64_t>(u + t * v);
      const bool negative = below(2) == 1;
      if (!negative) return x;
      if (x != 0) return -x;
    }
  }

  // P(x) is proportional to exp(-x^2 / (2 t^2)): a Laplace draw y is kept with the probability
  // exp(-(|y| - t)^2 / (2 t^2)).
  std::int64_t gaussian(std::uint64_t t) {
    for (;;) {
      const std::int64_t y = laplace(t);
      const auto size = static_cast<std::uint64_t>(y < 0 ? -y : y);
      if (exp_minus_half_square(size > t ? size - t : t - size, t)) return y;
    }
  }

 private:
  BitGenerator bits_;

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

  // A uniform integer in [0, m).
  std::uint64_t below(std::uint64_t m) {
    if (m == 1) return 0;
    const int shift = leading_zeros(m - 1);
    for (;;) {
      const std::uint64_t r = bits_.next_uint64(bits_.state) >> shift;
      if (r < m) return r;
    }
  }

  bool coin(std::uint64_t a, std::uint64_t b) { return below(b) < a; }  // a / b

  // True with the probability exp(-a / b), for a <= b: the number of successes in a row of coins
  // a / (b k), k = 1, 2, ..., is even.
  bool exp_minus(std::uint64_t a, std::uint64_t b) {
    bool even = true;
    for (std::uint64_t k = 1; coin(a, b) && coin(1, k); ++k) even = !even;
    return even;
  }

  // True with the probability exp(-a^2 / (2 t^2)). With a = q t + r the exponent is the sum of
  // q^2 times 1/2, q times r / t, and r^2 / (2 t^2).
  bool exp_minus_half_square(std::uint64_t a, std::uint64_t t) {
    const std::uint64_t q = a / t, r = a % t;
    for (std::uint64_t i = 0; i < q * q; ++i)
      if (!exp_minus(1, 2)) return false;
    for (std::uint64_t i = 0; i < q; ++i)
      if (!exp_minus(r, t)) return false;
    bool even = true;
    for (std::uint64_t k = 1; coin(r, t) && coin(r, t) && coin(1, 2 * k); ++k) even = !even;
    return even;
  }
};

}  // namespace fastmix::discrete
