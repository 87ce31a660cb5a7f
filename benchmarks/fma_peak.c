/* Largest number of float32 operations a core does in a second: independent fused multiply-adds, all in registers. */
#include <stdio.h>
#include <time.h>

#ifdef __AVX512F__
#define BYTES 64
#else
#define BYTES 32
#endif
#define LANES (BYTES / 4)
#define CHAINS 12 /* enough to hide the latency of an addition, few enough for 16 registers */

typedef float vector __attribute__((vector_size(BYTES)));

static double gflops(long rounds, float seed) {
    vector sums[CHAINS], factor, term;
    for (int lane = 0; lane < LANES; lane++) factor[lane] = 1.0f - seed, term[lane] = seed;
    for (int chain = 0; chain < CHAINS; chain++) sums[chain] = term * (float)chain;
    clock_t started = clock();
    for (long round = 0; round < rounds; round++) {
#pragma GCC unroll 12
        for (int chain = 0; chain < CHAINS; chain++) sums[chain] = sums[chain] * factor + term;
    }
    double seconds = (double)(clock() - started) / CLOCKS_PER_SEC;
    volatile float kept = 0; /* the sums must be seen to be computed */
    for (int chain = 0; chain < CHAINS; chain++) kept += sums[chain][0];
    return 2e-9 * rounds * CHAINS * LANES / seconds;
}

int main(int count, char **arguments) {
    float seed = 1e-3f * count; /* not known to the compiler */
    double best = 0;
    (void)arguments;
    for (int repeat = 0; repeat < 5; repeat++) {
        double found = gflops(50000000L, seed);
        best = found > best ? found : best;
    }
    printf("%.2f\n", best);
    return 0;
}
