// Which of the kernels this processor can run, and which are in use.
#include <atomic>
#include <cstring>

#include "kernels.h"

extern const tandem::Kernels kernels_plain;
#if defined(__x86_64__)
extern const tandem::Kernels kernels_avx2;
extern const tandem::Kernels kernels_avx512;
#endif

namespace {

struct Runnable {
  const tandem::Kernels* all[4] = {};

  Runnable() {
    int count = 0;
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512cd") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) {
      all[count++] = &kernels_avx512;
    }
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2")) {
      all[count++] = &kernels_avx2;
    }
#endif
    all[count] = &kernels_plain;
  }
};

const Runnable& here() {
  static const Runnable found;
  return found;
}

std::atomic<const tandem::Kernels*>& chosen() {
  static std::atomic<const tandem::Kernels*> one{here().all[0]};
  return one;
}

}  // namespace

const tandem::Kernels& tandem::kernels() { return *chosen().load(std::memory_order_relaxed); }

const tandem::Kernels* const* tandem::runnable() { return here().all; }

bool tandem::choose(const char* name) {
  for (const Kernels* const* one = runnable(); *one; ++one) {
    if (std::strcmp((*one)->name, name) == 0) {
      chosen() = *one;
      return true;
    }
  }
  return false;
}
