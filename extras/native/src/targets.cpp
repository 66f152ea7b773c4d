// Which of the kernels this processor can run, and which are in use.
#include <atomic>
#include <cstring>

#include "kernels.h"
#include "products.h"

extern const tandem::Kernels kernels_plain;
#if defined(__x86_64__)
#include <cpuid.h>
#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

extern const tandem::Kernels kernels_avx2;
extern const tandem::Kernels kernels_avx512;
extern const tandem::Products products_vnni;
extern const tandem::Products products_amx;
#endif

namespace {

#if defined(__x86_64__)
bool has_avx512() {
  __builtin_cpu_init();
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}

// Whether the processor has tiles of bytes and the system lets this process use them, which has to be asked for once.
bool has_tiles() {
#if defined(__linux__)
  constexpr unsigned kTiles = 1u << 24 | 1u << 25;  // AMX-TILE and AMX-INT8, Intel's manual, leaf 7
  constexpr int kAsk = 0x1023, kTileData = 18;      // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d & kTiles) == kTiles &&
         syscall(SYS_arch_prctl, kAsk, kTileData) == 0;
#else
  return false;
#endif
}
#endif

struct Runnable {
  const tandem::Kernels* all[4] = {};
  const tandem::Products* products[3] = {};

  Runnable() {
    int count = 0;
#if defined(__x86_64__)
    if (has_avx512()) {
      all[count++] = &kernels_avx512;
      int multiply = 0;
      if (__builtin_cpu_supports("avx512vnni")) {
        if (has_tiles()) products[multiply++] = &products_amx;
        products[multiply++] = &products_vnni;
      }
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

const tandem::Products* tandem::products() { return here().products[0]; }

const tandem::Products* const* tandem::runnable_products() { return here().products; }

bool tandem::choose(const char* name) {
  for (const Kernels* const* one = runnable(); *one; ++one) {
    if (std::strcmp((*one)->name, name) == 0) {
      chosen() = *one;
      return true;
    }
  }
  return false;
}
