/* The same two searches as src/psgnn/distances/kernels.py in plain C: the yardstick of distances.py. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Up to 64 sources at once; dist is [n, stride] int16, prefilled with -1. */
void bitset_bfs(int64_t n, const int64_t *indptr, const int32_t *indices, const int64_t *sources, int64_t count,
                int16_t *dist, int64_t stride) {
    uint64_t *seen = calloc(n, 8), *frontier = calloc(n, 8), *found = calloc(n, 8);
    int32_t *queue = malloc(n * 4), *touched = malloc(n * 4);
    uint64_t full = count == 64 ? ~0ull : (1ull << count) - 1;
    int64_t size = 0, edges = indptr[n];
    for (int64_t i = 0; i < count; i++) {
        if (!found[sources[i]]) touched[size++] = sources[i];
        found[sources[i]] |= 1ull << i;
    }
    for (int16_t level = 0; size; level++) {
        int64_t work = 0, frontier_size = size;
        for (int64_t i = 0; i < size; i++) {
            int32_t v = touched[i];
            uint64_t fresh = found[v];
            seen[v] |= fresh;
            work += indptr[v + 1] - indptr[v];
            for (; fresh; fresh &= fresh - 1) dist[v * stride + __builtin_ctzll(fresh)] = level;
        }
        memcpy(queue, touched, size * 4);
        uint64_t *swap = frontier; frontier = found; found = swap;
        size = 0;
        if (work > 0.06 * edges) {
            for (int64_t v = 0; v < n; v++) {
                uint64_t missing = full & ~seen[v], fresh = 0;
                if (!missing) continue;
                for (int64_t i = indptr[v]; i < indptr[v + 1]; i++) {
                    fresh |= frontier[indices[i]];
                    if ((fresh & missing) == missing) break;
                }
                fresh &= missing;
                if (fresh) { found[v] = fresh; touched[size++] = v; }
            }
        } else {
            for (int64_t i = 0; i < frontier_size; i++) {
                uint64_t reach = frontier[queue[i]];
                for (int64_t j = indptr[queue[i]]; j < indptr[queue[i] + 1]; j++) {
                    int32_t w = indices[j];
                    uint64_t fresh = reach & ~seen[w];
                    if (fresh) {
                        if (!found[w]) touched[size++] = w;
                        found[w] |= fresh;
                    }
                }
            }
        }
        for (int64_t i = 0; i < frontier_size; i++) frontier[queue[i]] = 0;
    }
    free(seen); free(frontier); free(found); free(queue); free(touched);
}

/* One source after another. */
void queue_bfs(int64_t n, const int64_t *indptr, const int32_t *indices, const int64_t *sources, int64_t count,
               int16_t *dist, int64_t stride) {
    int32_t *queue = malloc(n * 4), *hops = malloc(n * 4);
    for (int64_t s = 0; s < count; s++) {
        memset(hops, -1, n * 4);
        int64_t head = 0, tail = 1;
        queue[0] = sources[s];
        hops[sources[s]] = 0;
        while (head < tail) {
            int32_t v = queue[head++];
            for (int64_t i = indptr[v]; i < indptr[v + 1]; i++) {
                int32_t w = indices[i];
                if (hops[w] < 0) { hops[w] = hops[v] + 1; queue[tail++] = w; }
            }
        }
        for (int64_t v = 0; v < n; v++) dist[v * stride + s] = hops[v];
    }
    free(queue); free(hops);
}
