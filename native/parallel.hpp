// Threads for one call: no pool outlives it, so nothing is shared between callers.
#pragma once

#include <atomic>
#include <cstddef>
#include <exception>
#include <thread>
#include <vector>

namespace fastmix {

// Calls f(unit, worker) for every unit < units; worker < threads tells whose scratch to use.
// Units are handed out one by one: a thread that cannot start, or is slow, costs only time.
template <class F> void parallel(std::size_t units, std::size_t threads, const F& f) {
  std::atomic<std::size_t> next{0};
  const auto work = [&](std::size_t worker) {
    for (std::size_t u; (u = next.fetch_add(1, std::memory_order_relaxed)) < units;) f(u, worker);
  };
  std::vector<std::thread> helpers;
  if (threads > units) threads = units;
  if (threads > 1) helpers.reserve(threads - 1);
  try {
    while (helpers.size() + 1 < threads) helpers.emplace_back(work, helpers.size() + 1);
  } catch (const std::exception&) {  // the threads that did start do the work
  }
  work(0);
  for (auto& h : helpers) h.join();
}

}  // namespace fastmix
