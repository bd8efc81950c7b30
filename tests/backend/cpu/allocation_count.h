#pragma once

#include <cstddef>

namespace edgerunner::test {

// Calls of operator new in this process so far; the program that links allocation_count.cc counts.
std::size_t allocation_count();

}  // namespace edgerunner::test
