#include <exception>
#include <iostream>

#include "support/tiny_model.h"

// Writes the tiny model to the path given, for tests that run other programs.
namespace {
constexpr char kChatTemplate[] =
    "{% for message in messages %}{{ message.role }}: {{ message.content }}\n{% endfor %}"
    "{% if add_generation_prompt %}assistant: {% endif %}";
}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: make_tiny_model PATH\n";
    return 2;
  }
  try {
    edgerunner::test::write_tiny_model(argv[1], {.chat_template = kChatTemplate});
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
  return 0;
}
