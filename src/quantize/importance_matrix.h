#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace edgerunner {

// How much the inputs of each matrix vary over a text, column by column: an error of a weight
// changes a product's output by that times its input, so that its square counts by the mean square
// of the input. Experts of a mixture have inputs of their own.
//
// A file of it is the field's: GGUF with general.type "imatrix" and for each matrix NAME the
// tensors NAME.in_sum2 [cols, experts] and NAME.counts [1, experts], both F32.
class ImportanceMatrix {
 public:
  // Adds a row of inputs of a matrix, or of one of its experts.
  void add(std::string_view name, std::uint32_t experts, std::uint32_t expert,
           std::span<const float> input);

  std::size_t size() const { return entries_.size(); }

  // `tokens` were read in `windows` windows, of the text `source`.
  void save(const std::filesystem::path& path, const std::string& source, std::uint32_t windows,
            std::uint32_t window_length) const;
  // Untrusted input. Throws Error(invalid_file) that names the file and the tensor.
  static ImportanceMatrix load(const std::filesystem::path& path);

  // [matrices, cols], of mean 1 over each matrix: what an error counts. Empty where nothing is
  // known of the matrix or its shape is another.
  std::vector<float> weights(std::string_view name, std::uint64_t cols,
                             std::uint64_t matrices) const;

 private:
  struct Entry {
    std::size_t cols = 0;
    std::vector<double> squares;  // [matrices, cols], sums
    std::vector<double> counts;   // [matrices]
  };
  std::map<std::string, Entry, std::less<>> entries_;
};

}  // namespace edgerunner
