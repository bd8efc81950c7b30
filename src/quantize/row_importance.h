#pragma once

#include <span>
#include <vector>

#include "gguf/file.h"
#include "quantize/importance_matrix.h"
#include "quantize/row_writer.h"

namespace edgerunner {

// What errors of a tensor count, [matrices, cols] or the same for all, [cols]: by the importance
// matrix (null: there is none); else all alike where the type is to be fitted; else nothing, which
// leaves the simple types as the reference quantiser writes them.
std::vector<float> importance_of(const gguf::Tensor& tensor, bool fits,
                                 const ImportanceMatrix* importance);

// Gives the rows of `source` their parts of it. `importance` must outlive the source.
void weigh_rows(RowSource& source, std::span<const float> importance);

}  // namespace edgerunner
