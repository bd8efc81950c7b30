// How alike two texts are to a model, from -1 to 1:  similarity MODEL.gguf "a cat" "a kitten"
#include <edgerunner/embedding.h>
#include <edgerunner/error.h>
#include <edgerunner/model.h>

#include <iostream>
#include <numeric>

int main(int argc, char** argv) {
  if (argc != 4) {
    std::cerr << "usage: similarity MODEL.gguf TEXT TEXT\n";
    return 2;
  }
  try {
    edgerunner::Model model = edgerunner::Model::load(argv[1]);
    const std::vector<float> a = edgerunner::embed(model, argv[2]);
    const std::vector<float> b = edgerunner::embed(model, argv[3]);
    std::cout << std::inner_product(a.begin(), a.end(), b.begin(), 0.0) << "\n";
  } catch (const edgerunner::Error& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
  return 0;
}
