// Exceptions through many frames, with destructors on the way, rethrown, in threads, and caught by base class.
extern "C" {
#include "common.h"
}
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

struct Problem : std::runtime_error {
    uint64_t code;
    explicit Problem(uint64_t c) : std::runtime_error("problem " + std::to_string(c)), code(c) {}
};
struct Guard {
    uint64_t &count;
    explicit Guard(uint64_t &c) : count(c) {}
    ~Guard() { count += 1; }
};

static NOINLINE uint64_t sink(uint64_t x, int depth, uint64_t &unwound) {
    Guard guard(unwound);
    if (depth == 0) {
        uint64_t value = churn(x, 50);
        if (x % 4 == 0) throw Problem(value % 100);
        if (x % 4 == 1) throw std::string("text");
        if (x % 4 == 2) throw static_cast<int>(value % 50);
        return value;
    }
    if (depth % 16 == 5) {
        try {
            return sink(x, depth - 1, unwound) + 1;
        } catch (const Problem &p) {
            if (p.code % 3 == 0) return p.code;
            throw;
        }
    }
    return sink(x, depth - 1, unwound) * 3 + depth;
}
static uint64_t once(uint64_t x, uint64_t &unwound) {
    try {
        return sink(x, 10 + x % 50, unwound);
    } catch (const std::exception &e) {
        return std::string(e.what()).size() * 1000;
    } catch (int code) {
        return code;
    } catch (...) {
        return 7;
    }
}
static void many(uint64_t seed, uint64_t *result) {
    uint64_t sum = seed, unwound = 0, rounds = scaled(900);
    for (uint64_t i = 0; i < rounds; i++) sum = mix(sum ^ once(i + seed, unwound)) + churn(i, 300) % 3;
    *result = sum + unwound;
}

int main() {
    uint64_t results[3];
    std::vector<std::thread> threads;
    for (uint64_t i = 0; i < 2; i++) threads.emplace_back(many, i, &results[i]);
    many(2, &results[2]);
    for (auto &t : threads) t.join();
    std::exception_ptr kept;
    try {
        throw Problem(5);
    } catch (...) {
        kept = std::current_exception();
    }
    try {
        std::rethrow_exception(kept);
    } catch (const Problem &p) {
        printf("kept %s\n", p.what());
    }
    for (uint64_t r : results) printf("%016lx\n", r);
}
