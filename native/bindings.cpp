#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include "fwht.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

template <class T> using Matrix = nb::ndarray<T, nb::ndim<2>, nb::device::cpu>;

template <class T> fastmix::fwht::View<T> view(const Matrix<T>& a) {
  return {a.data(), std::ptrdiff_t(a.stride(0)), std::ptrdiff_t(a.stride(1))};
}

template <class T>
void fwht(const Matrix<const T>& x, const Matrix<T>& out, double scale, std::size_t n_threads) {
  const auto from = view(x);
  const auto to = view(out);
  const std::size_t n = x.shape(0), d = x.shape(1);
  nb::gil_scoped_release release;
  fastmix::fwht::transform<T>(from, to, n, d, T(scale), n_threads);
}

}  // namespace

NB_MODULE(_native, m) {
  m.doc() = "Compiled kernels; arguments are checked by their Python callers.";
  m.def("fwht", &fwht<double>, "x"_a.noconvert(), "out"_a.noconvert(), "scale"_a, "n_threads"_a);
  m.def("fwht", &fwht<float>, "x"_a.noconvert(), "out"_a.noconvert(), "scale"_a, "n_threads"_a);
}
