// Streams what a model writes after a prompt:  generate MODEL.gguf "Once upon a time"
#include <edgerunner/error.h>
#include <edgerunner/model.h>

#include <iostream>

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: generate MODEL.gguf PROMPT\n";
    return 2;
  }
  try {
    edgerunner::Model model = edgerunner::Model::load(argv[1]);

    edgerunner::GenerateOptions options;
    options.max_tokens = 64;
    options.sampling.temperature = 0.7F;
    options.sampling.top_p = 0.9F;

    edgerunner::Generation generation = model.generate(argv[2], options);
    for (const std::string& piece : generation) std::cout << piece << std::flush;

    const edgerunner::Summary& summary = generation.summary();
    std::cout << "\n[" << summary.generated_tokens << " tokens, " << summary.decode_tps
              << " a second, ended by " << name(summary.finish_reason) << "]\n";
  } catch (const edgerunner::Error& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
  return 0;
}
