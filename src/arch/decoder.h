#pragma once

#include "arch/decoder_spec.h"
#include "arch/weights.h"
#include "gguf/file.h"

namespace edgerunner {

// What a backend needs to run a model.
struct Decoder {
  DecoderSpec spec;
  Weights weights;  // views into the file that it was read from
};

// Reads the decoder from a file's metadata and tensors, by its family (general.architecture).
// Throws Error(unsupported) naming an architecture or element type that EdgeRunner doesn't run, and
// Error(invalid_file) naming a missing or misshapen tensor with the shape wanted and found.
Decoder read_decoder(const gguf::File& file);

}  // namespace edgerunner
