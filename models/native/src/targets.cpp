// Which of the kernels this processor runs.
#include "kernels.h"

extern const tandem::Kernels kernels_plain;
#if defined(__x86_64__)
extern const tandem::Kernels kernels_avx2;
extern const tandem::Kernels kernels_avx512;
#endif

const tandem::Kernels& tandem::kernels() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512cd")) {
    return kernels_avx512;
  }
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2")) {
    return kernels_avx2;
  }
#endif
  return kernels_plain;
}
