#pragma once

namespace CLI {
class Validator;
}  // namespace CLI

namespace edgerunner::cli {

// What the number of an option must be. They say so in a few words, where CLI11's own print the
// largest double, and refuse what its conversion clamps.
CLI::Validator non_negative_number();  // finite
CLI::Validator positive_number();      // finite
CLI::Validator whole_number();         // decimal, of 64 bits; for Option::transform

}  // namespace edgerunner::cli
