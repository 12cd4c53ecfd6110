// Exceptions through frames with clean-ups, caught in loops, thrown again; virtual calls; what the library does.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

static volatile long sink;
struct Guard {
    long &left;
    long by;
    Guard(long &left, long by) : left(left), by(by) {}
    ~Guard() { left += by; sink = left; }
};

struct Shape {
    virtual long area(long n) const = 0;
    virtual ~Shape() = default;
};
struct Square : Shape {
    long area(long n) const override { return n * n; }
};
struct Odd : Shape {
    long area(long n) const override {
        if (n % 5 == 0) throw std::runtime_error("five " + std::to_string(n));
        return n;
    }
};

__attribute__((noinline)) static long deep(const Shape &shape, long n, long &left) {
    Guard guard(left, n);
    if (n % 7 == 3) throw n;
    return n > 20 ? shape.area(n) : deep(shape, n + 3, left) + 1;
}

__attribute__((noinline)) static long tried(const Shape &shape, long n, long &left) {
    for (int again = 0;; again++) {
        try {
            Guard guard(left, 1000);
            return deep(shape, n + again, left);
        } catch (long value) {
            left ^= value;
            if (again > 3) throw std::out_of_range("again");
        } catch (const std::runtime_error &e) {
            left += static_cast<long>(std::string(e.what()).size());
            if (again > 5) throw;
        }
    }
}

int main(int argc, char **argv) {
    long n = argc > 1 ? std::atol(argv[1]) : 100, left = 0, total = 0, caught = 0;
    std::vector<std::unique_ptr<Shape>> shapes;
    shapes.emplace_back(new Square);
    shapes.emplace_back(new Odd);
    std::map<long, std::string> names;
    for (long i = 0; i < n; i++) {
        try {
            total += tried(*shapes[i % 2], i % 40, left);
            names[total % 37] += "x";
        } catch (const std::exception &e) {
            caught += e.what()[0];
        }
    }
    std::vector<long> sorted;
    for (auto &[key, name] : names) sorted.push_back(key * static_cast<long>(name.size()) % 101);
    std::sort(sorted.begin(), sorted.end(), [](long a, long b) { return a > b; });
    std::ostringstream out;
    for (long value : sorted) out << value << ' ';
    std::printf("%ld %ld %ld %s\n", total, left, caught, out.str().c_str());
    return 0;
}
