#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include "fwht.hpp"
#if defined(__GNUC__)
#include "kerdock_fused.hpp"
#include "passes.hpp"
#endif

namespace nb = nanobind;
using namespace nb::literals;

namespace {

using std::size_t;
template <class T> using Matrix = nb::ndarray<T, nb::ndim<2>, nb::device::cpu>;
template <class T> using Vector = nb::ndarray<T, nb::ndim<1>, nb::device::cpu>;
template <class T> using Packed = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

template <class T> fastmix::fwht::View<T> view(const Matrix<T>& a) {
  return {a.data(), std::ptrdiff_t(a.stride(0)), std::ptrdiff_t(a.stride(1))};
}

template <class T>
void fwht(const Matrix<const T>& x, const Matrix<T>& out, double scale, size_t n_threads) {
  const auto from = view(x);
  const auto to = view(out);
  const size_t n = x.shape(0), d = x.shape(1);
  nb::gil_scoped_release release;
  fastmix::fwht::transform<T>(from, to, n, d, T(scale), n_threads);
}

#if defined(__GNUC__)
// The arguments that describe a mapped array: map holds four rows of bounds, centres and scales,
// one after the other; empty arrays stand for None.
template <class T>
fastmix::passes::Mapped<T> mapped(const Matrix<const T>& x, const Packed<const double>& map,
                                  const Packed<const double>& factors, double constant) {
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
  nb::gil_scoped_release release;
  fastmix::passes::map_rows(a, start, rows, to.p, size_t(to.col), n_threads);
}

template <class T>
void squared_norms(const Matrix<const T>& x, const Packed<const double>& map,
                   const Packed<const double>& factors, double constant, const Packed<double>& out,
                   size_t n_threads) {
  const auto a = mapped(x, map, factors, constant);
  double* const to = out.data();
  nb::gil_scoped_release release;
  fastmix::passes::squared_norms(a, to, n_threads);
}

template <class T>
void gram(const Matrix<const T>& x, const Packed<const double>& map,
          const Packed<const double>& factors, double constant, const Packed<double>& out,
          size_t n_threads) {
  const auto a = mapped(x, map, factors, constant);
  double* const to = out.data();
  nb::gil_scoped_release release;
  fastmix::passes::gram(a, to, n_threads);
}

template <class T>
void gradient(const Matrix<const T>& x, const Packed<const double>& map,
              const Packed<const double>& factors, double constant, const Vector<const double>& y,
              double lower, double upper, double center, double scale,
              const Packed<const double>& theta, double clip, const Packed<double>& out,
              size_t n_threads) {
  const auto a = mapped(x, map, factors, constant);
  const fastmix::passes::Targets targets{
      {y.data(), std::ptrdiff_t(y.stride(0)), 0}, lower, upper, center, scale};
  const double* const at = theta.data();
  double* const to = out.data();
  nb::gil_scoped_release release;
  fastmix::passes::gradient(a, targets, at, clip, to, n_threads);
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
  double* const to = z.data();
  nb::gil_scoped_release release;
  return fastmix::passes::Srht<T>(a, sign, row, k2, n_pad, to, distortion, n_threads).run();
}

template <class T>
double kerdock(const Matrix<const T>& x, const Packed<const double>& map,
               const Packed<const double>& factors, double constant,
               const Packed<const std::int8_t>& signs, const Packed<const std::uint32_t>& forms,
               size_t log_k2, const Packed<double>& z, size_t n_threads) {
  const auto a = mapped(x, map, factors, constant);
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
  const std::int8_t* const sign = signs.data();
  const std::uint32_t* const form = forms.data();
  const double* const from = z.data();
  nb::gil_scoped_release release;
  return fastmix::kerdock::Pass<T>(a, sign, form, log_k2, offset, n_threads).distortion(from);
}
#endif

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
  m.def("gradient", &gradient<T>, x, map, factors, constant, "y"_a.noconvert(), "lower"_a,
        "upper"_a, "center"_a, "inverse_scale"_a, "theta"_a.noconvert(), "clip"_a, out, n_threads);
  m.def("srht", &srht<T>, x, map, factors, constant, "signs"_a.noconvert(), "rows"_a.noconvert(),
        "n_pad"_a, "z"_a.noconvert(), "distortion"_a, n_threads);
  const auto signs = "signs"_a.noconvert(), forms = "forms"_a.noconvert(), z = "z"_a.noconvert();
  m.def("kerdock", &kerdock<T>, x, map, factors, constant, signs, forms, "log_k2"_a, z, n_threads);
  m.def("kerdock_sketch", &kerdock_sketch<T>, x, map, factors, constant, signs, forms, "log_k2"_a,
        "offset"_a, z, n_threads);
  m.def("kerdock_distortion", &kerdock_distortion<T>, x, map, factors, constant, signs, forms,
        "log_k2"_a, "offset"_a, z, n_threads);
#endif
}

}  // namespace

NB_MODULE(_native, m) {
  m.doc() = "Compiled kernels; arguments are checked by their Python callers.";
  define<double>(m);
  define<float>(m);
}
